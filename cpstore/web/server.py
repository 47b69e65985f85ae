"""`cpstore web`: the pages on this machine, for as long as somebody looks at them."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable

import uvicorn

from cpstore import engines
from cpstore.saver import SQLAlchemySaver
from cpstore.serde import PlainSerializer
from cpstore.web.app import application

__all__ = ["serve"]


def serve(url: str, *, schema: str | None, prefix: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the pages on 127.0.0.1 until the process is interrupted.

    Args:
        url: The database. It is only read.
        schema: The schema of its tables.
        prefix: What their names begin with.
        port: The port; 0 for any that is free.
        ready: Called with the address, which has the token in it, when the port is taken.

    Raises:
        OSError: The port is taken by somebody else.
        ConfigurationError: The URL is none, or names another database.
    """
    made = engines.read_only(url)
    saver = SQLAlchemySaver(made, serde=PlainSerializer(), schema=schema, prefix=prefix)
    token = secrets.token_urlsafe(16)
    name = engines.normalise(url).render_as_string(hide_password=True)
    app = application(saver, token, database=name)
    with socket.create_server(("127.0.0.1", port)) as listening:
        ready(f"http://127.0.0.1:{listening.getsockname()[1]}/{token}/")
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
        uvicorn.Server(config).run(sockets=[listening])
