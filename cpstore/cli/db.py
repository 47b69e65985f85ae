"""`cpstore db`: the tables of a database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import engines, migrations

__all__ = ["db"]

T = TypeVar("T")

_url = click.option(
    "--url",
    envvar="CPSTORE_DATABASE_URL",
    required=True,
    show_envvar=True,
    help="The database, such as sqlite:///chat.db or postgresql://user@host/name.",
)


@click.group()
def db() -> None:
    """The tables of a database."""


@db.command()
@_url
@click.argument("revision", default="head")
def upgrade(url: str, revision: str) -> None:
    """Migrate to REVISION; without one, to the newest."""
    _run(
        url,
        lambda engine: migrations.upgrade(engine, revision),
        lambda engine: migrations.aupgrade(engine, revision),
    )
    current.callback(url)  # type: ignore[misc]


@db.command()
@_url
def current(url: str) -> None:
    """Print the revision that the database has."""
    revision = _run(url, migrations.current, migrations.acurrent)
    head = migrations.head()
    state = "newest" if revision == head else f"newest is {head}"
    click.echo(f"{revision or 'not migrated'} ({state})")


def _run(url: str, work: Callable[[Engine], T], awork: Callable[[AsyncEngine], Awaitable[T]]) -> T:
    made = engines.from_url(url, pooler=True)  # there may be one, and nothing here is done twice
    if made.sync is not None:
        try:
            return work(made.sync)
        finally:
            made.sync.dispose()
    assert made.asynchronous is not None  # noqa: S101 - a URL gives at least one engine
    return asyncio.run(_arun(made.asynchronous, awork))


async def _arun(engine: AsyncEngine, awork: Callable[[AsyncEngine], Awaitable[T]]) -> T:
    try:
        return await awork(engine)
    finally:
        await engine.dispose()
