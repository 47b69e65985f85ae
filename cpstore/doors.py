"""Doors to the database: take a connection, run one unit of work, give the connection back.

All that differs between sync and async, and between engines, is here. A unit runs on a sync connection
behind either door: an async engine gives one through `run_sync`, which costs no more than awaits written by
hand. Nothing is held between two calls.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import StaticPool

from cpstore import ops
from cpstore.dialects import Dialect, Mode, dialect_for
from cpstore.engines import Engines, check_memory
from cpstore.errors import AsyncOnlyError, ConfigurationError, NotMigratedError
from cpstore.models import Tables
from cpstore.ops import Unit

__all__ = ["AsyncEngineDoor", "Door", "EngineDoor", "TwinDoor", "door_of"]

P = ParamSpec("P")
T = TypeVar("T")

_turns: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()
"""One lock for each pool that gives the same connection to everybody at once."""


class Door(Protocol):
    """What the saver needs to know of a database connection: two ways to run one unit of work."""

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work."""

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Async version of :meth:`run`."""

    def migrate(self) -> None:
        """Bring the database to the newest revision."""

    async def amigrate(self) -> None:
        """Async version of :meth:`migrate`."""

    def close(self) -> None:
        """Dispose what a sync call can dispose."""

    async def aclose(self) -> None:
        """Dispose everything."""


class EngineDoor:
    """A sync engine. Async callers have their unit run in a worker thread.

    Args:
        engine: The engine; it is neither changed nor disposed, except by :meth:`close`.
        sql: The dialect of its database.

    Raises:
        MemoryDatabaseError: Its connections would each see another memory database.
    """

    def __init__(self, engine: Engine, sql: Dialect) -> None:
        check_memory(engine)
        self._engine = engine
        self._sql = sql
        self._engines = {mode: engine.execution_options(**sql.execution_options(mode)) for mode in Mode}

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work in a transaction of its own."""
        try:
            with self._begin(unit.mode) as connection:
                return unit(connection, self._sql, *args, **kwargs)
        except DBAPIError as error:
            self._explain(error)
            raise

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Async version of :meth:`run`. A call that is cancelled ends when its unit has ended."""
        return await _in_thread(self.run, unit, *args, **kwargs)

    def migrate(self) -> None:
        """Bring the database to the newest revision."""
        with _turn(self._engine):
            _migrations().upgrade(self._engine)

    async def amigrate(self) -> None:
        """Async version of :meth:`migrate`."""
        await _in_thread(self.migrate)

    def close(self) -> None:
        """Dispose the engine."""
        self._engine.dispose()

    async def aclose(self) -> None:
        """Async version of :meth:`close`."""
        await asyncio.to_thread(self.close)

    @contextmanager
    def _begin(self, mode: Mode) -> Iterator[Connection]:
        with _turn(self._engine), self._engines[mode].begin() as connection:
            self._sql.begin(connection, mode)
            yield connection

    def _explain(self, error: DBAPIError) -> None:
        if self._sql.may_lack_tables(error):
            with self._begin(ops.lacks_tables.mode) as connection:
                lacks = ops.lacks_tables(connection, self._sql)
            if lacks:
                raise NotMigratedError from error


class AsyncEngineDoor:
    """An async engine.

    Sync callers in other threads are served by the event loop that last used the door, while it runs.

    Args:
        engine: The engine; it is neither changed nor disposed, except by :meth:`aclose`.
        sql: The dialect of its database.

    Raises:
        MemoryDatabaseError: Its connections would each see another memory database.
    """

    def __init__(self, engine: AsyncEngine, sql: Dialect) -> None:
        check_memory(engine.sync_engine)
        self._engine = engine
        self._sql = sql
        self._engines = {mode: engine.execution_options(**sql.execution_options(mode)) for mode in Mode}
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work from a thread that has no event loop.

        Raises:
            AsyncOnlyError: This thread runs an event loop, or no loop that used the door is running.
        """
        return asyncio.run_coroutine_threadsafe(self.arun(unit, *args, **kwargs), self._running_loop()).result()

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work in a transaction of its own."""
        self._loop = asyncio.get_running_loop()
        try:
            return await self._run_sync(unit.mode, lambda connection: unit(connection, self._sql, *args, **kwargs))
        except DBAPIError as error:
            await self._explain(error)
            raise

    def migrate(self) -> None:
        """Bring the database to the newest revision, from a thread that has no event loop.

        Raises:
            AsyncOnlyError: As :meth:`run`.
        """
        asyncio.run_coroutine_threadsafe(self.amigrate(), self._running_loop()).result()

    async def amigrate(self) -> None:
        """Bring the database to the newest revision."""
        self._loop = asyncio.get_running_loop()
        async with _aturn(self._engine.sync_engine):
            await _migrations().aupgrade(self._engine)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        loop = self._loop
        if _in_event_loop() or loop is None or not loop.is_running():
            raise AsyncOnlyError
        return loop

    def close(self) -> None:
        """Do nothing: an async engine can only be disposed by `aclose`."""

    async def aclose(self) -> None:
        """Dispose the engine."""
        await self._engine.dispose()

    async def _run_sync(self, mode: Mode, work: Callable[[Connection], T]) -> T:
        def begin(connection: Connection) -> T:
            self._sql.begin(connection, mode)
            return work(connection)

        async with _aturn(self._engine.sync_engine), self._engines[mode].begin() as connection:
            return await connection.run_sync(begin)

    async def _explain(self, error: DBAPIError) -> None:
        if self._sql.may_lack_tables(error) and await self._run_sync(
            ops.lacks_tables.mode, lambda connection: ops.lacks_tables(connection, self._sql)
        ):
            raise NotMigratedError from error


class TwinDoor:
    """An engine for sync calls and another for async calls, on the same database."""

    def __init__(self, sync: EngineDoor, asynchronous: AsyncEngineDoor) -> None:
        self._sync = sync
        self._async = asynchronous

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work on the sync engine."""
        return self._sync.run(unit, *args, **kwargs)

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work on the async engine."""
        return await self._async.arun(unit, *args, **kwargs)

    def migrate(self) -> None:
        """Bring the database to the newest revision."""
        self._sync.migrate()

    async def amigrate(self) -> None:
        """Async version of :meth:`migrate`."""
        await self._async.amigrate()

    def close(self) -> None:
        """Dispose the sync engine."""
        self._sync.close()

    async def aclose(self) -> None:
        """Dispose both engines."""
        await self._sync.aclose()
        await self._async.aclose()


def door_of(engine: Engine | AsyncEngine | Engines, tables: Tables) -> Door:
    """Give the door to an engine, or to two engines on one database."""
    if isinstance(engine, Engine):
        return EngineDoor(engine, dialect_for(engine.dialect.name, tables))
    if isinstance(engine, AsyncEngine):
        return AsyncEngineDoor(engine, dialect_for(engine.dialect.name, tables))
    if not isinstance(engine, Engines):
        raise ConfigurationError(f"Pass an Engine, an AsyncEngine or Engines, not {type(engine).__name__}")
    if engine.sync is not None and engine.asynchronous is not None:
        sql = dialect_for(engine.sync.dialect.name, tables)
        return TwinDoor(EngineDoor(engine.sync, sql), AsyncEngineDoor(engine.asynchronous, sql))
    return door_of(engine.sync or engine.asynchronous, tables)  # type: ignore[arg-type]


def _migrations() -> ModuleType:
    # Alembic takes long to import, and a saver on a migrated database never needs it.
    return import_module("cpstore.migrations")


async def _in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a thread. If the caller is cancelled, it waits for the end: a thread cannot be stopped."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _turn(engine: Engine) -> AbstractContextManager[Any]:
    """Let one transaction at a time on a connection that everybody shares."""
    if isinstance(engine.pool, StaticPool):
        return _turns.setdefault(engine.pool, threading.Lock())
    return nullcontext()


@asynccontextmanager
async def _aturn(engine: Engine) -> AsyncIterator[None]:
    """Async version of :func:`_turn`. It looks again and again: a lock of asyncio belongs to one event loop."""
    if not isinstance(engine.pool, StaticPool):
        yield
        return
    turn = _turns.setdefault(engine.pool, threading.Lock())
    while not turn.acquire(blocking=False):
        await asyncio.sleep(0.001)
    try:
        yield
    finally:
        turn.release()
