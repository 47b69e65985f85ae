"""The door to an async engine."""

from __future__ import annotations

import asyncio
from typing import ParamSpec, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import ops
from cpstore.dialects import Dialect, Mode
from cpstore.doors import retries
from cpstore.doors.base import migrations
from cpstore.doors.retries import Call
from cpstore.doors.turns import aturn
from cpstore.engines import check_memory
from cpstore.errors import AsyncOnlyError, NotMigratedError
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
            await migrations().aupgrade(self._engine)

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

    async def _attempt(self, call: Call[T]) -> T:
        async with aturn(self._engine.sync_engine), self._engines[call.mode].begin() as connection:
            return await connection.run_sync(call)

    async def _explain(self, error: DBAPIError) -> None:
        if named := self._sql.named(error):
            raise named from error
        if self._sql.may_lack_tables(error):
            looking = Call(self._engine.sync_engine, self._sql, ops.lacks_tables)
            if await retries.arun(looking, self._attempt):
                raise NotMigratedError from error


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
