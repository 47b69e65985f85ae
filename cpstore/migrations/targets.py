"""What a migration is done on: a URL, an engine, or a connection with an open transaction.

All that is done is written once, for a sync connection. An async engine gives one inside SQLAlchemy's
greenlet, where each call of the driver lets the event loop go on; so does :func:`pause`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.util import await_only, greenlet_spawn
from sqlalchemy.util.concurrency import in_greenlet

from cpstore import engines
from cpstore.dialects import Mode
from cpstore.errors import AsyncOnlyError, ConfigurationError, MigrationTurnError
from cpstore.migrations.steps import TURN_SECONDS, named_errors, one_at_a_time, speak, take_turn
from cpstore.names import Names

__all__ = ["AsyncTarget", "Target", "arun", "reading", "run", "turn", "writing"]

T = TypeVar("T")
On = Engine | Connection
Target = str | URL | Engine | Connection
Make = Callable[..., engines.Engines]
AsyncTarget = str | URL | AsyncEngine | AsyncConnection

_PAUSE_SECONDS = 0.05


def run(target: Target, work: Callable[[On], T], make: Make = engines.from_url) -> T:
    """Do something on a target; a URL leads to an engine, as `make` makes it, that is disposed afterwards.

    Raises:
        AsyncOnlyError: The URL's driver is async, and this thread runs an event loop.
        ConfigurationError: The target is none.
    """
    if isinstance(target, (Engine, Connection)):
        return work(target)
    if not isinstance(target, (str, URL)):
        raise ConfigurationError(f"Pass a URL, an engine or a connection, not {type(target).__name__}")
    made = make(target, pooler=True)  # there may be one, and nothing here is done twice
    if made.sync is not None:
        try:
            return work(made.sync)
        finally:
            made.sync.dispose()
    assert made.asynchronous is not None  # noqa: S101 - a URL gives at least one engine
    if engines.in_event_loop():
        raise AsyncOnlyError
    return asyncio.run(_disposed(made.asynchronous, work))


async def arun(target: AsyncTarget, work: Callable[[On], T], make: Make = engines.from_url) -> T:
    """Async version of :func:`run`."""
    if isinstance(target, AsyncEngine):
        return await greenlet_spawn(work, target.sync_engine)
    if isinstance(target, AsyncConnection):
        return await target.run_sync(work)
    return await asyncio.to_thread(run, target, work, make)


async def _disposed(engine: AsyncEngine, work: Callable[[On], T]) -> T:
    try:
        return await arun(engine, work)
    finally:
        await engine.dispose()


@contextmanager
def reading(on: On) -> Iterator[Connection]:
    """Give a connection to read on."""
    if isinstance(on, Connection):
        yield on
        return
    with on.connect() as connection:
        yield connection


@contextmanager
def writing(on: On, names: Names) -> Iterator[Connection]:
    """Give a connection in a transaction that has the turn; a caller's own stays open afterwards."""
    if isinstance(on, Connection):
        take_turn(on, names)
        with _alembic():
            yield on
        return
    with _alembic(), turn(on, names) as connection:
        yield connection


@contextmanager
def turn(engine: Engine, names: Names) -> Iterator[Connection]:
    """Give a connection in a transaction during which nobody else migrates.

    Each try is a transaction of its own: an index that is built meanwhile waits for all transactions that
    have looked at the database before it.

    Raises:
        MigrationTurnError: Another process migrates and did not end in time.
        DatabaseBusyError: As that, on SQLite, or another process writes.
    """
    sql = speak(engine.dialect.name, names)
    deadline = time.monotonic() + TURN_SECONDS
    while time.monotonic() < deadline:
        with named_errors(sql), engine.connect() as connection, sql.transaction(connection, Mode.WRITE):
            if sql.try_migration_turn(connection, TURN_SECONDS):
                yield connection
                return
        _pause()
    raise MigrationTurnError


@contextmanager
def _alembic() -> Iterator[None]:
    """Alembic's proxies are global to a process: threads and tasks take turns."""
    while not one_at_a_time.acquire(blocking=False):
        _pause()
    try:
        yield
    finally:
        one_at_a_time.release()


def _pause() -> None:
    if in_greenlet():
        await_only(asyncio.sleep(_PAUSE_SECONDS))
    else:
        time.sleep(_PAUSE_SECONDS)
