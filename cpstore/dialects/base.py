"""How a database is spoken to: its statements, and the transaction that a unit of work needs.

:class:`Dialect` is a complete default that asks for nothing but `INSERT … ON CONFLICT`. A database overrides
only where it differs. Statements are built here and run in `cpstore.ops`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import ClassVar

from sqlalchemy import Connection, Index, inspect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateSchema

from cpstore.dialects.at_once import AtOnce
from cpstore.dialects.browsing import Browsing
from cpstore.dialects.health import Health
from cpstore.dialects.keys import Step
from cpstore.dialects.structure import Structuring
from cpstore.dialects.transfer import Transferring
from cpstore.errors import CpstoreError
from cpstore.models import Tables

__all__ = ["Dialect", "Mode", "Step"]


class Mode(enum.Enum):
    """What a unit of work needs from its connection."""

    READ = "several reads that see one snapshot"
    WRITE = "several statements, all or nothing; may read before it writes"
    COPY = "several statements that see one snapshot, all or nothing"
    ALONE = "statements that no transaction may hold"
    LOOK = "reads that see one snapshot: a single statement where the database can say it in one"
    STATEMENT = "one write, all or nothing: a single statement where the database can say it in one"

    @property
    def reads(self) -> bool:
        """Whether nothing is written."""
        return self in (Mode.READ, Mode.LOOK)


class Dialect(Transferring, AtOnce, Structuring, Browsing, Health):
    """One database's way to say what cpstore needs.

    Args:
        tables: The tables to build statements on.
    """

    name: ClassVar[str]

    builds_indexes_online: ClassVar[bool] = False
    """Whether an index can be built while writers go on."""

    replaces_views: ClassVar[bool] = False
    """Whether a view can be made in place of one that is there."""

    one_writer: ClassVar[bool] = False
    """Whether writers have to follow each other, whatever they write."""

    stops_statements: ClassVar[bool] = True
    """Whether a statement can be given up half-way, so that its connection is soon free of it."""

    @contextmanager
    def transaction(self, connection: Connection, mode: Mode) -> Iterator[None]:
        """Hold a transaction as `mode` needs it, and leave the connection as the application has it.

        Overridden where a level must be set before, or where the driver may not end what was begun.
        """
        with connection.begin():
            self.begin(connection, mode)
            yield

    def begin(self, connection: Connection, mode: Mode) -> None:
        """Do what must come first in the transaction.

        Overridden where a database locks too late unless it is told before the first statement.
        """

    def join(self, connection: Connection) -> None:
        """Open the driver's transaction, in a transaction of SQLAlchemy that a caller has begun.

        Overridden where a driver begins late, so that a savepoint would be the whole transaction.

        Raises:
            ConfigurationError: The connection belongs to another thread.
        """

    def commits_at_once(self, connection: Connection) -> bool:
        """Tell whether a connection has no transactions: each statement is committed as it ends.

        Overridden by each database: drivers say it in their own ways.
        """
        raise NotImplementedError

    def reclaim(self, connection: Connection) -> None:
        """Give the space of deleted rows back to the file system.

        Overridden where the database does not do it by itself, and keeps the space for ever.
        """

    def try_migration_turn(self, connection: Connection, seconds: int) -> bool:
        """Take the turn to migrate, if nobody has it; the end of the transaction ends it.

        After that, no lock is waited for longer than `seconds`. Overridden where :meth:`begin` lets more than
        one writer in at a time.
        """
        return True

    def wait_for_migration_turn(self, connection: Connection, seconds: int) -> None:
        """Wait up to `seconds` for the turn to migrate, on a connection whose transaction is a caller's.

        Overridden as :meth:`try_migration_turn` is.

        Raises:
            MigrationTurnError: Somebody else still migrates.
        """

    @property
    def create_schema(self) -> CreateSchema | None:
        """What makes the schema of the tables, if they have one.

        Overridden where a database has schemas that can be made.
        """
        return None

    def make_schema(self, connection: Connection) -> None:
        """Make the schema of the tables, if it is not there: few roles have the right to make one."""
        creation = self.create_schema
        if creation is not None and not inspect(connection).has_schema(creation.element):
            connection.execute(creation)

    @cached_property
    def view_tables(self) -> Tables:
        """The tables as a view on them names them.

        Overridden where a view sees nothing beyond its own schema.
        """
        return self.tables

    def build_index(self, connection: Connection, index: Index) -> None:
        """Build an index while writers go on, on a connection in autocommit; one that is whole stays.

        Overridden where :attr:`builds_indexes_online`.
        """
        raise NotImplementedError

    def may_lack_tables(self, error: DBAPIError) -> bool:
        """Tell whether `error` can come from a table or a column that is not there.

        Overridden where the database gives errors a code, which saves looking at the tables after each one.
        """
        return True

    def was_undone(self, error: DBAPIError) -> bool:
        """Tell whether the database undid a transaction only because others were in its way.

        Overridden where transactions run side by side, so that one of two that collide must begin again.
        """
        return False

    def is_broken(self, error: Exception) -> bool:
        """Tell whether `error` ended the connection, even if the driver has not heard of the end yet.

        Overridden where somebody else can end it.
        """
        return False

    def may_answer_soon(self, error: Exception) -> bool:
        """Tell whether a connection that could not be made may be made within seconds.

        Overridden where the database is a server, which can be restarted.
        """
        return False

    def named(self, error: DBAPIError) -> CpstoreError | None:
        """Give the error of cpstore that says what `error` means, and what to do about it.

        Overridden where the database's own error leaves that open.
        """
        return None
