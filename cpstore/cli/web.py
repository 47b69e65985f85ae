"""`cpstore web`: a page to look with."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib.util import find_spec

import click

from cpstore import engines
from cpstore.cli.output import note, show_text
from cpstore.cli.places import Place, looking, placed
from cpstore.errors import ConfigurationError

__all__ = ["require_web", "web"]

_NEEDED = ("jinja2", "starlette", "uvicorn")


@click.command()
@placed
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; 0 for any that is free.")
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
def web(place: Place, port: int, opens: bool) -> None:
    """Serve a page to look with, on this machine and only to read, until Ctrl+C.

    The address that is printed has a token in it: whoever does not know it is not let in.
    """
    require_web()
    with suppress(KeyboardInterrupt):
        asyncio.run(_web(place, port, opens))


async def _web(place: Place, port: int, opens: bool) -> None:
    from cpstore.web import serve

    def ready(address: str) -> None:
        show_text(address)
        note("Ctrl+C ends it.")
        if opens:
            click.launch(address)

    name = engines.normalise(place.url).render_as_string(hide_password=True)
    async with looking(place) as saver:
        await saver.alist_threads(limit=1)  # what is wrong with the database is told here, and not by a page
        await serve(saver, database=name, port=port, ready=ready)


def require_web() -> None:
    """See to it that the page can be made.

    Raises:
        ConfigurationError: The extra `web` is not installed.
    """
    if not all(map(find_spec, _NEEDED)):
        raise ConfigurationError("The page needs more packages: pip install 'cpstore[web]'")
