"""What is done to a database on one connection, in one transaction. Who opened it ends it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from alembic import command
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from cpstore.dialects import Dialect, dialect_for
from cpstore.errors import NotMigratedError, UnknownRevisionError
from cpstore.migrations.scripts import config, known, resolved
from cpstore.migrations.status import FIRST, State, Status, placed, refusal, status_of
from cpstore.models import models_of
from cpstore.names import Names

__all__ = [
    "TURN_SECONDS",
    "adopt_on",
    "done",
    "downgrade_on",
    "named_errors",
    "one_at_a_time",
    "speak",
    "stamp_on",
    "take_turn",
    "upgrade_on",
]

TURN_SECONDS = 120
"""So long a migration waits for another one, or for a table that somebody else has locked."""

one_at_a_time = threading.Lock()
"""Alembic's proxies are global to a process."""


def speak(name: str, names: Names) -> Dialect:
    """Give the dialect of a database, on our tables."""
    return dialect_for(name, models_of(names).tables)


def take_turn(connection: Connection, names: Names | None = None) -> None:
    """Begin a migration on a connection: from here to the end of its transaction nobody else migrates.

    Raises:
        MigrationTurnError: Another process migrates and did not end in time.
        DatabaseBusyError: As that, on SQLite, or another process writes.
    """
    sql = speak(connection.dialect.name, names or Names())
    with named_errors(sql):
        sql.join(connection)
    sql.wait_for_migration_turn(connection, TURN_SECONDS)


@contextmanager
def named_errors(sql: Dialect) -> Iterator[None]:
    """Let errors of the database for which cpstore has a name have it."""
    try:
        yield
    except DBAPIError as error:
        if named := sql.named(error):
            raise named from error
        raise


def upgrade_on(connection: Connection, names: Names, revision: str) -> None:
    """Migrate to a revision. Nothing is done if the database has it already.

    Raises:
        CpstoreError: The database is not one that the scripts can upgrade.
    """
    status = status_of(connection, names)
    if done(status, revision):
        return
    if refused := refusal(status):
        raise refused
    names = placed(connection, names)
    speak(connection.dialect.name, names).make_schema(connection)
    command.upgrade(config(connection, names), revision)


def downgrade_on(connection: Connection, names: Names, revision: str) -> None:
    """Undo migrations down to a revision, or all of them: `base`.

    Raises:
        CpstoreError: The database is not one that the scripts can downgrade.
        UnknownRevisionError: It is at an older revision, or this cpstore knows no such revision.
    """
    status = status_of(connection, names)
    goal = resolved(revision)
    if status.revision is None:
        raise refusal(status) or NotMigratedError()
    if refused := refusal(status):
        raise refused
    if goal != "base" and known().index(goal) > known().index(status.revision):
        raise UnknownRevisionError(
            f"The database is at revision {status.revision}, below {goal}: `cpstore db upgrade` leads up."
        )
    command.downgrade(config(connection, placed(connection, names)), goal)


def stamp_on(connection: Connection, names: Names, revision: str) -> None:
    """Write down that the database is at a revision, whatever it has."""
    command.stamp(config(connection, placed(connection, names)), resolved(revision))


def adopt_on(connection: Connection, names: Names) -> None:
    """Take over the tables of langgraph-checkpoint-postgres, as they are.

    Raises:
        CpstoreError: They are not there, or they are not as its newest version makes them.
    """
    status = status_of(connection, names)
    if status.state is State.OFFICIAL:
        stamp_on(connection, names, FIRST)
    elif status.revision is None:
        nothing = "There are no tables to adopt here. Run `cpstore db upgrade`, which makes new ones."
        raise refusal(status) or NotMigratedError(nothing)


def done(status: Status, revision: str) -> bool:
    """Tell whether a database has a revision, and has what belongs to it."""
    return status.revision == resolved(revision) and status.state in (State.CURRENT, State.BEHIND)
