"""The doors to a transaction that a caller has opened, and ends.

Each operation is a savepoint in it, so that one that fails takes back only what it did. LangGraph calls a
saver from several threads and tasks at once, and a connection is for one at a time: calls take turns.
"""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session
from typing_extensions import Self

from cpstore.dialects import Dialect, dialect_for
from cpstore.doors.joined import Joined
from cpstore.doors.threads import Threads, to_the_end
from cpstore.engines import in_event_loop
from cpstore.errors import AsyncOnlyError, TransactionError
from cpstore.models import Models, Tables
from cpstore.ops import Unit

__all__ = ["AsyncTransactionDoor", "TransactionDoor"]

P = ParamSpec("P")
T = TypeVar("T")


class _Door:
    """What both have in common; a door to other tables takes turns with this one, and ends with it."""

    def __init__(self, sql: Dialect, models: Models) -> None:
        self._sql = sql
        self._joined = Joined(models)

    @property
    def models(self) -> Models:
        """The models of the tables."""
        return self._joined.models

    def on(self, tables: Tables) -> Self:
        """Give a door to other tables of the same database."""
        door = copy.copy(self)
        door._sql = dialect_for(self._sql.name, tables)
        return door

    def _bound(self) -> dict[str, Any]:
        """Let a session with several binds choose that of our tables."""
        return {"bind_arguments": {"mapper": self.models.checkpoint}}


class TransactionDoor(_Door):
    """A sync connection, or the one of a session. Async callers have their unit run in a worker thread.

    Args:
        holder: What the caller has opened.
        sql: The dialect of its database.
        models: The models of its tables.
    """

    def __init__(self, holder: Connection | Session, sql: Dialect, models: Models) -> None:
        super().__init__(sql, models)
        self._holder = holder
        self._turn = threading.Lock()
        self._threads = Threads(1)

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work in a savepoint.

        Raises:
            TransactionOverError: The block has ended.
            TransactionError: The unit needs a connection without a transaction, or this one is broken.
            ConfigurationError: The connection is in autocommit, or belongs to another thread.
        """
        return self._do(lambda connection: self._joined.run(connection, self._sql, unit, *args, **kwargs))

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Async version of :meth:`run`. A call that is cancelled ends when its unit has ended."""
        return await self._threads.run(lambda: self.run(unit, *args, **kwargs))

    def migrate(self) -> None:
        """Bring the tables to the newest revision, in the caller's transaction."""
        self._do(lambda connection: self._joined.migrate(connection, self._sql))

    async def amigrate(self) -> None:
        """Async version of :meth:`migrate`."""
        await self._threads.run(self.migrate)

    def close(self) -> None:
        """End the door, when its operation has ended. What the caller has opened stays open."""
        with self._turn:
            self._joined.end()

    async def aclose(self) -> None:
        """Async version of :meth:`close`."""
        await asyncio.to_thread(self.close)

    def _do(self, work: Callable[[Connection], T]) -> T:
        with self._turn:
            self._joined.check()
            holder = self._holder
            return work(holder.connection(**self._bound()) if isinstance(holder, Session) else holder)


class AsyncTransactionDoor(_Door):
    """An async connection, or the one of an async session; all on one event loop.

    Args:
        holder: What the caller has opened.
        sql: The dialect of its database.
        models: The models of its tables.
    """

    def __init__(self, holder: AsyncConnection | AsyncSession, sql: Dialect, models: Models) -> None:
        super().__init__(sql, models)
        self._holder = holder
        self._turn = asyncio.Lock()
        self._loop = asyncio.get_running_loop() if in_event_loop() else None

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work from a thread that has no event loop.

        Raises:
            AsyncOnlyError: This thread runs an event loop, or the transaction's one is not running.
            TransactionError: As :meth:`arun`.
        """
        return self._await(lambda: self.arun(unit, *args, **kwargs))

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work in a savepoint. A call that is cancelled ends when its unit has ended.

        Raises:
            TransactionOverError: The block has ended.
            TransactionError: The unit needs a connection without a transaction, this one is broken, or this
                is another event loop.
            ConfigurationError: The connection is in autocommit.
        """
        return await self._do(
            lambda connection: self._joined.run(connection, self._sql, unit, *args, **kwargs)
        )

    def migrate(self) -> None:
        """Bring the tables to the newest revision, from a thread that has no event loop."""
        self._await(self.amigrate)

    async def amigrate(self) -> None:
        """Bring the tables to the newest revision, in the caller's transaction."""
        await self._do(lambda connection: self._joined.migrate(connection, self._sql))

    def close(self) -> None:
        """End the door. What the caller has opened stays open."""
        self._joined.end()

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
            self._joined.check()
            # A driver whose statement is cancelled gives its connection up, and with it all of the caller's.
            return await to_the_end(self._run_sync(work))

    async def _run_sync(self, work: Callable[[Connection], T]) -> T:
        holder = self._holder
        if isinstance(holder, AsyncSession):
            holder = await holder.connection(**self._bound())
        return await holder.run_sync(work)
