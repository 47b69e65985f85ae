"""The door to an async engine."""

from __future__ import annotations

import asyncio
from typing import ParamSpec, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from cpstore.dialects import Dialect, dialect_for
from cpstore.doors import retries
from cpstore.doors.base import EXPLAIN, migrations
from cpstore.doors.retries import Call
from cpstore.doors.threads import to_the_end
from cpstore.doors.turns import aturn
from cpstore.engines import check_memory, in_event_loop
from cpstore.errors import AsyncOnlyError
from cpstore.models import Models, Tables
from cpstore.ops import Unit

__all__ = ["AsyncEngineDoor"]

P = ParamSpec("P")
T = TypeVar("T")


class AsyncEngineDoor:
    """An async engine.

    Sync callers in other threads are served by the event loop that last used the door, while it runs.

    Args:
        engine: The engine; it is neither changed nor disposed, except by :meth:`aclose`.
        sql: The dialect of its database.
        models: The models of its tables.

    Raises:
        MemoryDatabaseError: Its connections would each see another memory database.
    """

    def __init__(self, engine: AsyncEngine, sql: Dialect, models: Models) -> None:
        check_memory(engine.sync_engine)
        self._engine = engine
        self._sql = sql
        self.models = models
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work from a thread that has no event loop.

        Raises:
            AsyncOnlyError: This thread runs an event loop, or no loop that used the door is running.
        """
        loop = self._running_loop()
        return asyncio.run_coroutine_threadsafe(self.arun(unit, *args, **kwargs), loop).result()

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work in a transaction of its own."""
        self._loop = asyncio.get_running_loop()
        try:
            call = Call(self._engine.sync_engine, self._sql, unit, *args, **kwargs)
            return await retries.arun(call, self._attempt)
        except DBAPIError as error:
            await self._explain(error)
            raise

    def on(self, tables: Tables) -> AsyncEngineDoor:
        """Give a door to other tables of the same database."""
        return AsyncEngineDoor(self._engine, dialect_for(self._engine.dialect.name, tables), self.models)

    def migrate(self) -> None:
        """Bring the database to the newest revision, from a thread that has no event loop.

        Raises:
            AsyncOnlyError: As :meth:`run`.
        """
        loop = self._running_loop()
        asyncio.run_coroutine_threadsafe(self.amigrate(), loop).result()

    async def amigrate(self) -> None:
        """Bring the database to the newest revision."""
        self._loop = asyncio.get_running_loop()
        async with aturn(self._engine.sync_engine):
            await migrations().amigrate(self._engine, self.models)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        loop = self._loop
        if in_event_loop() or loop is None or not loop.is_running():
            raise AsyncOnlyError
        return loop

    def close(self) -> None:
        """Do nothing: an async engine can only be disposed by `aclose`."""

    async def aclose(self) -> None:
        """Dispose the engine."""
        await self._engine.dispose()

    async def _attempt(self, call: Call[T]) -> T:
        alone = self._sql.one_writer and not call.mode.reads
        async with aturn(self._engine.sync_engine, alone=alone):
            work = greenlet_spawn(self._on_connection, call)
            return await (work if self._sql.stops_statements else to_the_end(work))

    def _on_connection(self, call: Call[T]) -> T:
        """Take a connection, do a call, and give it back: one greenlet for what would be three."""
        with self._engine.sync_engine.connect() as connection:
            return call(connection)

    async def _explain(self, error: DBAPIError) -> None:
        if named := self._sql.named(error):
            raise named from error
        if self._sql.may_lack_tables(error):
            looking = Call(self._engine.sync_engine, self._sql, EXPLAIN, self.models)
            reason = await retries.arun(looking, self._attempt)
            if reason is not None:
                raise reason from error
