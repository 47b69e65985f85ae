"""The door to a sync engine."""

from __future__ import annotations

import asyncio
from typing import ParamSpec, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from cpstore.dialects import Dialect, dialect_for
from cpstore.doors import retries
from cpstore.doors.base import EXPLAIN, migrations
from cpstore.doors.retries import Call
from cpstore.doors.threads import Threads
from cpstore.doors.turns import turn
from cpstore.engines import capacity, check_memory
from cpstore.models import Models, Tables
from cpstore.ops import Unit

__all__ = ["EngineDoor"]

P = ParamSpec("P")
T = TypeVar("T")


class EngineDoor:
    """A sync engine. Async callers have their unit run in a worker thread.

    Args:
        engine: The engine; it is neither changed nor disposed, except by :meth:`close`.
        sql: The dialect of its database.
        models: The models of its tables.

    Raises:
        MemoryDatabaseError: Its connections would each see another memory database.
    """

    def __init__(self, engine: Engine, sql: Dialect, models: Models) -> None:
        check_memory(engine)
        self._engine = engine
        self._sql = sql
        self.models = models
        self._threads = Threads(capacity(engine.pool))

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
            await self._threads.run(lambda: self._explain(explained))
            raise

    def on(self, tables: Tables) -> EngineDoor:
        """Give a door to other tables of the same database."""
        return EngineDoor(self._engine, dialect_for(self._engine.dialect.name, tables), self.models)

    def migrate(self) -> None:
        """Bring the database to the newest revision."""
        with turn(self._engine):
            migrations().migrate(self._engine, self.models)

    async def amigrate(self) -> None:
        """Async version of :meth:`migrate`."""
        await self._threads.run(self.migrate)

    def close(self) -> None:
        """Dispose the engine."""
        self._engine.dispose()

    async def aclose(self) -> None:
        """Async version of :meth:`close`."""
        await asyncio.to_thread(self.close)

    def _attempt(self, call: Call[T]) -> T:
        alone = self._sql.one_writer and not call.mode.reads
        with turn(self._engine, alone=alone), self._engine.connect() as connection:
            return call(connection)

    async def _aattempt(self, call: Call[T]) -> T:
        return await self._threads.run(lambda: self._attempt(call))

    def _explain(self, error: DBAPIError) -> None:
        if named := self._sql.named(error):
            raise named from error
        if self._sql.may_lack_tables(error):
            looking = Call(self._engine, self._sql, EXPLAIN, self.models)
            reason = retries.run(looking, self._attempt)
            if reason is not None:
                raise reason from error
