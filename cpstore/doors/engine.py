"""The door to a sync engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from cpstore import ops
from cpstore.dialects import Dialect, Mode
from cpstore.doors import retries
from cpstore.doors.base import migrations
from cpstore.doors.retries import Call
from cpstore.doors.turns import turn
from cpstore.engines import check_memory
from cpstore.errors import NotMigratedError
from cpstore.ops import Unit

__all__ = ["EngineDoor"]

P = ParamSpec("P")
T = TypeVar("T")


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
            return retries.run(Call(self._engine, self._sql, unit, *args, **kwargs), self._attempt)
        except DBAPIError as error:
            self._explain(error)
            raise

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Async version of :meth:`run`. A call that is cancelled ends when its unit has ended."""
        try:
            return await retries.arun(Call(self._engine, self._sql, unit, *args, **kwargs), self._aattempt)
        except DBAPIError as error:
            explained = error
            await _in_thread(lambda: self._explain(explained))
            raise

    def migrate(self) -> None:
        """Bring the database to the newest revision."""
        with turn(self._engine):
            migrations().upgrade(self._engine)

    async def amigrate(self) -> None:
        """Async version of :meth:`migrate`."""
        await _in_thread(self.migrate)

    def close(self) -> None:
        """Dispose the engine."""
        self._engine.dispose()

    async def aclose(self) -> None:
        """Async version of :meth:`close`."""
        await asyncio.to_thread(self.close)

    def _attempt(self, call: Call[T]) -> T:
        with turn(self._engine), self._engines[call.mode].begin() as connection:
            return call(connection)

    async def _aattempt(self, call: Call[T]) -> T:
        return await _in_thread(lambda: self._attempt(call))

    def _explain(self, error: DBAPIError) -> None:
        if named := self._sql.named(error):
            raise named from error
        if self._sql.may_lack_tables(error):
            looking = Call(self._engine, self._sql, ops.lacks_tables)
            if retries.run(looking, self._attempt):
                raise NotMigratedError from error


async def _in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread. A caller that is cancelled waits for its end: a thread cannot be stopped."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and not task.cancelled():
        task.exception()  # seen, and given up with the call
        raise asyncio.CancelledError
    return task.result()
