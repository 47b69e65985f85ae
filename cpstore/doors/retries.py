"""One call of a unit of work, and its attempts.

On our own connections a unit is a transaction, and done twice it does what it does once. So a connection that
turns out dead, a serialization failure or a deadlock ends an attempt, and not the call. While all is well it
costs nothing: no connection is asked beforehand whether it lives.
"""

from __future__ import annotations

import asyncio
import enum
import random
import time
from collections.abc import Awaitable, Callable
from typing import Concatenate, Generic, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from cpstore.dialects import Dialect, Mode
from cpstore.ops import Unit

__all__ = ["Call", "arun", "run"]

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 7
_FIRST_PAUSE, _FACTOR = 0.02, 3
"""Seconds before the second attempt, and by how much each pause is longer. All of them are about 7 seconds,
in which a server restarts. Up to half of each is chance, more or less: two that collided would meet again."""

_SECONDS = 15
"""No attempt begins later than this after the first failure, however long attempts to connect take."""


class _Stage(enum.Enum):
    CONNECT = "the database knows nothing of the unit"
    WORK = "what the unit did goes away with its transaction"
    COMMIT = "what the unit did may have taken effect, unless the database says that it undid it"


class Call(Generic[T]):
    """A unit of work with its arguments, to be done on one connection after another until one holds.

    Args:
        engine: The engine that the connections are of.
        sql: The dialect of its database.
        unit: What to do.
        args: What with.
        kwargs: What with.
    """

    def __init__(
        self, engine: Engine, sql: Dialect, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        self.mode = unit.mode
        self._dialect = engine.dialect
        self._sql = sql
        self._repeatable = unit.repeatable
        self._do: Callable[Concatenate[Connection, Dialect, ...], T] = unit
        self._given = args, kwargs
        self._stage = _Stage.CONNECT
        self._failed = 0
        self._deadline = 0.0

    def __call__(self, connection: Connection) -> T:
        """Do it on a connection, in a transaction of its own."""
        self._stage = _Stage.COMMIT if self.mode in (Mode.STATEMENT, Mode.ALONE) else _Stage.WORK
        with self._sql.transaction(connection, self.mode):
            done = self._work(connection)
            self._stage = _Stage.COMMIT
        return done

    def _work(self, connection: Connection) -> T:
        args, kwargs = self._given
        try:
            return self._do(connection, self._sql, *args, **kwargs)
        except Exception as error:
            if not _invalidated(error) and self._sql.is_broken(error):
                connection.invalidate(error)  # or the pool would lend it to the next attempt
            raise

    def pause_after(self, error: Exception) -> float | None:
        """Give the seconds to wait after an attempt that failed, or None if it was the last."""
        stage, self._stage = self._stage, _Stage.CONNECT
        if self._failed == 0:
            self._deadline = time.monotonic() + _SECONDS
        self._failed += 1
        pause = _FIRST_PAUSE * _FACTOR ** (self._failed - 1) * random.uniform(0.5, 1.5)  # noqa: S311
        late = self._failed == _ATTEMPTS or time.monotonic() + pause > self._deadline
        return None if late or not self._may_repeat(stage, error) else pause

    def _may_repeat(self, stage: _Stage, error: Exception) -> bool:
        if stage is _Stage.CONNECT:
            # A database that never answered is configured wrongly, rather: that is told at once.
            answered = self._dialect.server_version_info is not None
            return _invalidated(error) or (answered and self._sql.may_answer_soon(error))
        if _invalidated(error) or self._sql.is_broken(error):
            return self._repeatable or stage is not _Stage.COMMIT
        return isinstance(error, DBAPIError) and self._sql.was_undone(error)


def _invalidated(error: Exception) -> bool:
    return isinstance(error, DBAPIError) and error.connection_invalidated


def run(call: Call[T], attempt: Callable[[Call[T]], T]) -> T:
    """Make a call: as many attempts as it needs, each on another connection.

    Raises:
        Exception: The last attempt's error, as it came.
    """
    while True:
        try:
            return attempt(call)
        except Exception as error:
            pause = call.pause_after(error)
            if pause is None:
                raise
        time.sleep(pause)


async def arun(call: Call[T], attempt: Callable[[Call[T]], Awaitable[T]]) -> T:
    """Async version of :func:`run`. A cancellation is no failure: it ends the call."""
    while True:
        try:
            return await attempt(call)
        except Exception as error:
            pause = call.pause_after(error)
            if pause is None:
                raise
        await asyncio.sleep(pause)
