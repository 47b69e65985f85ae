"""Where a command works: the options that say so, and the savers on it."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import click

from cpstore import engines
from cpstore.engines import Engines
from cpstore.saver import SQLAlchemySaver
from cpstore.serde import PlainSerializer

__all__ = [
    "Place",
    "changing",
    "looking",
    "opened",
    "place_options",
    "placed",
    "prefix_option",
    "schema_option",
    "url_option",
]


class Place(NamedTuple):
    """A database, and where in it the tables are."""

    url: str
    schema: str | None = None
    prefix: str = ""
    pooler: bool = False


url_option = click.option(
    "--url",
    envvar="CPSTORE_DATABASE_URL",
    required=True,
    show_envvar=True,
    help="The database, such as sqlite:///chat.db or postgresql://user@host/name.",
)
schema_option = click.option(
    "--schema", envvar="CPSTORE_SCHEMA", show_envvar=True, help="The schema of the tables."
)
prefix_option = click.option(
    "--prefix",
    envvar="CPSTORE_PREFIX",
    default="",
    show_envvar=True,
    help="What the names of the tables begin with.",
)
_POOLER = click.option(
    "--pooler",
    envvar="CPSTORE_POOLER",
    is_flag=True,
    show_envvar=True,
    help="The URL is that of a transaction pooler, such as pgbouncer.",
)


def place_options(command: Any) -> Any:
    """Give a command the options `--url`, `--schema` and `--prefix`, as arguments of these names."""
    return url_option(schema_option(prefix_option(command)))


def placed(command: Callable[..., Any]) -> Any:
    """Give a command these options and `--pooler`, and their values as one argument `place`."""

    @functools.wraps(command)
    def called(*args: Any, url: str, schema: str | None, prefix: str, pooler: bool, **kwargs: Any) -> Any:
        return command(*args, place=Place(url, schema, prefix, pooler), **kwargs)

    return place_options(_POOLER(called))


@asynccontextmanager
async def opened(made: Engines, place: Place, **options: Any) -> AsyncIterator[SQLAlchemySaver]:
    """Give a saver on engines, which are disposed afterwards. A sync driver is run in threads."""
    used = made._replace(asynchronous=None) if engines.has_sync(place.url) else made
    try:
        yield SQLAlchemySaver(used, schema=place.schema, prefix=place.prefix, **options)
    finally:
        if made.sync is not None:
            made.sync.dispose()
        if made.asynchronous is not None:
            await made.asynchronous.dispose()


@asynccontextmanager
async def looking(place: Place) -> AsyncIterator[SQLAlchemySaver]:
    """Give a saver that only reads, and to which all values are plain data."""
    made = engines.read_only(place.url, pooler=place.pooler, whole_session=True)
    async with opened(made, place, serde=PlainSerializer()) as saver:
        yield saver


@asynccontextmanager
async def changing(place: Place) -> AsyncIterator[SQLAlchemySaver]:
    """Give a saver that may write. No file is made by it."""
    engines.check_file(place.url)
    async with opened(engines.from_url(place.url, pooler=place.pooler), place) as saver:
        yield saver
