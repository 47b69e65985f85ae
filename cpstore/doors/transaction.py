"""The door to a transaction that a caller has opened, and ends.

Each operation is a savepoint in it, so that one that fails takes back only what it did. Nothing is committed,
closed or repeated here. LangGraph calls a saver from several threads and tasks at once, and a connection is
for one at a time: calls take turns.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from cpstore.dialects import Dialect, Mode, dialect_for
from cpstore.doors.base import EXPLAIN, migrations
from cpstore.doors.threads import Threads
from cpstore.engines import in_event_loop
from cpstore.errors import AsyncOnlyError, ConfigurationError, TransactionError, TransactionOverError
from cpstore.models import Models, Tables
from cpstore.ops import Unit

__all__ = ["AsyncTransactionDoor", "TransactionDoor"]

P = ParamSpec("P")
T = TypeVar("T")


class TransactionDoor:
    """A sync connection, or the one of a session. Async callers have their unit run in a worker thread.

    Args:
        holder: What the caller has opened.
        sql: The dialect of its database.
        models: The models of its tables.
    """

    def __init__(self, holder: Connection | Session, sql: Dialect, models: Models) -> None:
        self._holder = holder
        self._sql = sql
        self.models = models
        self._turn = threading.Lock()
        self._threads = Threads(1)
        self._is_over = False

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work in a savepoint.

        Raises:
            TransactionOverError: The block has ended.
            TransactionError: The unit needs a connection without a transaction.
            ConfigurationError: The connection is in autocommit.
        """
        return self._do(lambda connection: _join(connection, self._sql, self.models, unit, *args, **kwargs))

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Async version of :meth:`run`. A call that is cancelled ends when its unit has ended."""
        return await self._threads.run(lambda: self.run(unit, *args, **kwargs))

    def on(self, tables: Tables) -> TransactionDoor:
        """Give a door to other tables of the same database."""
        return TransactionDoor(self._holder, dialect_for(self._sql.name, tables), self.models)

    def migrate(self) -> None:
        """Bring the tables to the newest revision, in the caller's transaction."""
        self._do(lambda connection: _migrate(connection, self._sql, self.models))

    async def amigrate(self) -> None:
        """Async version of :meth:`migrate`."""
        await self._threads.run(self.migrate)

    def close(self) -> None:
        """End the door. What the caller has opened stays open."""
        with self._turn:
            self._is_over = True

    async def aclose(self) -> None:
        """Async version of :meth:`close`."""
        self.close()

    def _do(self, work: Callable[[Connection], T]) -> T:
        with self._turn:
            if self._is_over:
                raise TransactionOverError
            holder = self._holder
            connection = holder.connection(**_bound(self.models)) if isinstance(holder, Session) else holder
            return work(connection)


class AsyncTransactionDoor:
    """An async connection, or the one of an async session; all on one event loop.

    Args:
        holder: What the caller has opened.
        sql: The dialect of its database.
        models: The models of its tables.
    """

    def __init__(self, holder: AsyncConnection | AsyncSession, sql: Dialect, models: Models) -> None:
        self._holder = holder
        self._sql = sql
        self.models = models
        self._turn = asyncio.Lock()
        self._loop = asyncio.get_running_loop() if in_event_loop() else None
        self._is_over = False

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work from a thread that has no event loop.

        Raises:
            AsyncOnlyError: This thread runs an event loop, or the transaction's one is not running.
            TransactionOverError: As :meth:`arun`.
        """
        return self._await(lambda: self.arun(unit, *args, **kwargs))

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work in a savepoint.

        Raises:
            TransactionOverError: The block has ended.
            TransactionError: The unit needs a connection without one, or this is another event loop.
            ConfigurationError: The connection is in autocommit.
        """
        return await self._do(
            lambda connection: _join(connection, self._sql, self.models, unit, *args, **kwargs)
        )

    def on(self, tables: Tables) -> AsyncTransactionDoor:
        """Give a door to other tables of the same database."""
        return AsyncTransactionDoor(self._holder, dialect_for(self._sql.name, tables), self.models)

    def migrate(self) -> None:
        """Bring the tables to the newest revision, from a thread that has no event loop."""
        self._await(self.amigrate)

    async def amigrate(self) -> None:
        """Bring the tables to the newest revision, in the caller's transaction."""
        await self._do(lambda connection: _migrate(connection, self._sql, self.models))

    def close(self) -> None:
        """End the door. What the caller has opened stays open."""
        self._is_over = True

    async def aclose(self) -> None:
        """Async version of :meth:`close`; waits for an operation that is under way."""
        async with self._turn:
            self.close()

    def _await(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        loop = self._loop
        if in_event_loop() or loop is None or not loop.is_running():
            raise AsyncOnlyError
        return asyncio.run_coroutine_threadsafe(call(), loop).result()

    async def _do(self, work: Callable[[Connection], T]) -> T:
        self._loop = self._loop or asyncio.get_running_loop()
        if self._loop is not asyncio.get_running_loop():
            raise TransactionError("An async connection belongs to the event loop that it was opened in")
        async with self._turn:
            if self._is_over:
                raise TransactionOverError
            holder = self._holder
            if isinstance(holder, AsyncSession):
                holder = await holder.connection(**_bound(self.models))
            return await holder.run_sync(work)


def _bound(models: Models) -> dict[str, Any]:
    """Let a session with several binds choose that of our tables."""
    return {"bind_arguments": {"mapper": models.checkpoint}}


def _join(
    connection: Connection, sql: Dialect, models: Models, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    if unit.mode is Mode.ALONE:
        raise TransactionError("This cannot be done in a transaction: call the saver outside of it")
    try:
        _enter(connection, sql)
        with connection.begin_nested():
            return unit(connection, sql, *args, **kwargs)
    except DBAPIError as error:
        _explain(connection, sql, models, error)
        raise


def _migrate(connection: Connection, sql: Dialect, models: Models) -> None:
    _enter(connection, sql)
    with connection.begin_nested():
        migrations().migrate(connection, models)


def _enter(connection: Connection, sql: Dialect) -> None:
    """See to it that there is a transaction for savepoints: without one they would commit."""
    if not connection.in_transaction():
        connection.begin()
    if sql.commits_at_once(connection):
        raise ConfigurationError("The connection is in autocommit: it has no transaction that one could join")
    sql.join(connection)


def _explain(connection: Connection, sql: Dialect, models: Models, error: DBAPIError) -> None:
    if named := sql.named(error):
        raise named from error
    if sql.may_lack_tables(error) and not connection.invalidated:
        with connection.begin_nested():
            reason = EXPLAIN(connection, sql, models)
        if reason is not None:
            raise reason from error
