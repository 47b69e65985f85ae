"""The pages on this machine, for as long as somebody looks at them."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable

import uvicorn

from cpstore.saver import SQLAlchemySaver
from cpstore.web.app import application

__all__ = ["serve"]


async def serve(saver: SQLAlchemySaver, *, database: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the pages on 127.0.0.1 until the process is interrupted.

    Args:
        saver: As for :func:`~cpstore.web.application`.
        database: What the pages call the database, for people.
        port: The port; 0 for any that is free.
        ready: Called with the address, which has the token in it, when the port is taken.

    Raises:
        OSError: The port is taken by somebody else.
    """
    token = secrets.token_urlsafe(16)
    app = application(saver, token, database=database)
    with socket.create_server(("127.0.0.1", port)) as listening:
        ready(f"http://127.0.0.1:{listening.getsockname()[1]}/{token}/")
        config = uvicorn.Config(
            app, lifespan="off", log_level="warning", access_log=False, server_header=False
        )
        await uvicorn.Server(config).serve(sockets=[listening])
