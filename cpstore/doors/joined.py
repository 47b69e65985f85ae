"""A caller's open transaction, in which each unit of work is a savepoint."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from sqlalchemy import Connection, Transaction
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from cpstore.dialects import Dialect, Mode
from cpstore.doors.base import EXPLAIN, migrations
from cpstore.errors import (
    BrokenTransactionError,
    ConfigurationError,
    TransactionError,
    TransactionOverError,
)
from cpstore.models import Models
from cpstore.ops import Unit

__all__ = ["Joined"]

P = ParamSpec("P")
T = TypeVar("T")


class Joined:
    """What both doors to a caller's transaction do on its sync connection, one call at a time.

    It commits nothing, rolls nothing back but its own savepoints, and does nothing twice. The savepoints are
    the connection's: a session's objects are neither flushed nor expired by them.

    Args:
        models: The models of the tables.
    """

    def __init__(self, models: Models) -> None:
        self.models = models
        self._over = threading.Event()
        self._broken: Transaction | None = None

    def end(self) -> None:
        """Let nothing begin any more."""
        self._over.set()

    def check(self) -> None:
        """Refuse what comes too late.

        Raises:
            TransactionOverError: The block has ended.
        """
        if self._over.is_set():
            raise TransactionOverError

    def run(
        self, connection: Connection, sql: Dialect, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a unit of work in a savepoint.

        Raises:
            TransactionError: No transaction can hold the unit, or this one is broken.
            ConfigurationError: The connection is in autocommit, or belongs to another thread.
        """
        if unit.mode is Mode.ALONE:
            raise TransactionError("This cannot be done in a transaction: call the saver outside of it")
        try:
            return self._in_savepoint(connection, sql, lambda: unit(connection, sql, *args, **kwargs))
        except DBAPIError as error:
            self._explain(connection, sql, error)
            raise

    def migrate(self, connection: Connection, sql: Dialect) -> None:
        """Bring the tables to the newest revision.

        Raises:
            CpstoreError: As :func:`cpstore.migrations.upgrade`, and as :meth:`run`.
        """
        self._in_savepoint(connection, sql, lambda: migrations().migrate(connection, self.models))

    def _in_savepoint(self, connection: Connection, sql: Dialect, work: Callable[[], T]) -> T:
        transaction = connection.get_transaction()
        if transaction is not None and (connection.invalidated or self._broken is transaction):
            raise BrokenTransactionError
        self._enter(connection, sql)
        savepoint = connection.begin_nested()
        self._broken = connection.get_transaction()  # until the savepoint is known to have ended
        try:
            done = work()
        except BaseException:
            with suppress(SQLAlchemyError):  # the caller gets the error that was there before
                savepoint.rollback()
                if not connection.invalidated:
                    self._broken = None
            raise
        savepoint.commit()
        self._broken = None
        return done

    def _enter(self, connection: Connection, sql: Dialect) -> None:
        """See to it that there is a transaction for savepoints: without one they would commit."""
        if not connection.in_transaction():
            connection.begin()
        if sql.commits_at_once(connection):
            raise ConfigurationError(
                "The connection is in autocommit: it has no transaction that one could join"
            )
        sql.join(connection)

    def _explain(self, connection: Connection, sql: Dialect, error: DBAPIError) -> None:
        if named := sql.named(error):
            raise named from error
        if self._broken is None and sql.may_lack_tables(error):
            reason = self._in_savepoint(connection, sql, lambda: EXPLAIN(connection, sql, self.models))
            if reason is not None:
                raise reason from error
