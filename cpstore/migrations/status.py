"""What a database has of our tables. All of it only reads."""

from __future__ import annotations

import enum
from typing import NamedTuple

from alembic.migration import MigrationContext
from sqlalchemy import Connection, Inspector, Table, inspect

from cpstore.errors import (
    CpstoreError,
    ForeignTablesError,
    NewerDatabaseError,
    NotMigratedError,
    OutdatedDatabaseError,
)
from cpstore.migrations.scripts import head, known
from cpstore.models import Tables, models_of
from cpstore.names import Names

__all__ = ["FIRST", "State", "Status", "lacks", "nothing", "placed", "refusal", "status_of"]

FIRST = "0001"
"""The revision whose tables are those of langgraph-checkpoint-postgres."""

_OFFICIAL = "checkpoint_migrations"


class State(enum.Enum):
    """How a database stands to this cpstore."""

    CURRENT = "current"
    BEHIND = "behind"
    AHEAD = "ahead"
    EMPTY = "not migrated"
    OFFICIAL = "made by langgraph-checkpoint-postgres"
    FOREIGN = "not ours"
    INCOMPLETE = "incomplete"


class Status(NamedTuple):
    """What a database has.

    Attributes:
        state: How it stands to this cpstore.
        revision: Its revision; None: it has none.
        head: The newest revision that this cpstore knows.
        tables: The tables with the names of ours that are there.
    """

    state: State
    revision: str | None
    head: str
    tables: tuple[str, ...]


def nothing() -> Status:
    """Give the status of a database that is not there yet."""
    return Status(State.EMPTY, None, head(), ())


def placed(connection: Connection, names: Names) -> Names:
    """Give the names as they are in the database: after the connection's `schema_translate_map`."""
    translated = connection.get_execution_options().get("schema_translate_map") or {}
    return names._replace(schema=translated.get(names.schema, names.schema))


def status_of(connection: Connection, names: Names) -> Status:
    """Look at a database."""
    names = placed(connection, names)
    revision = _revision(connection, names)
    tables = models_of(names).tables
    inspector = inspect(connection)
    there = [table for table in tables if inspector.has_table(table.name, schema=table.schema)]
    state = _state(revision, inspector, tables, there)
    return Status(state, revision, head(), tuple(table.name for table in there))


def lacks(connection: Connection, tables: Tables) -> bool:
    """Tell whether one of the tables is not there."""
    inspector = inspect(connection)
    return not all(
        inspector.has_table(table.name, schema=placed(connection, Names(table.schema)).schema)
        for table in tables
    )


def refusal(status: Status) -> CpstoreError | None:
    """Give the error for a database that the scripts cannot upgrade; None if they can."""
    if status.state is State.AHEAD:
        return NewerDatabaseError(f"{NewerDatabaseError()} Its revision is {status.revision}.")
    if status.state is State.OFFICIAL:
        return ForeignTablesError(
            "The tables in this database are those of langgraph-checkpoint-postgres. Run `cpstore db adopt`,"
            " or call `cpstore.migrations.adopt(…)`, and cpstore goes on with them."
        )
    if status.state is State.INCOMPLETE:
        return NotMigratedError(
            f"The database says that it is at revision {status.revision}, but tables are missing. Restore"
            " them from a backup; or, if nothing is to be kept, drop the others and the version table."
        )
    if status.state is State.FOREIGN:
        return ForeignTablesError(f"{ForeignTablesError()} It is: {', '.join(status.tables)}.")
    return None


def explanation(status: Status) -> CpstoreError | None:
    """Give the error that says why a statement found no table or column; None if that is not the reason."""
    if status.state is State.EMPTY:
        return NotMigratedError()
    if status.state is State.BEHIND:
        return OutdatedDatabaseError(f"{OutdatedDatabaseError()} Its revision is {status.revision}.")
    return refusal(status)


def _revision(connection: Connection, names: Names) -> str | None:
    options = {"version_table": names.version_table, "version_table_schema": names.schema}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


def _state(revision: str | None, inspector: Inspector, tables: Tables, there: list[Table]) -> State:
    if revision is None:
        return _unmarked(inspector, tables, there)
    if revision not in known():
        return State.AHEAD
    if len(there) < len(tables):
        return State.INCOMPLETE
    return State.CURRENT if revision == head() else State.BEHIND


def _unmarked(inspector: Inspector, tables: Tables, there: list[Table]) -> State:
    """Tell whose tables these are that no revision is known of."""
    if not there:
        return State.EMPTY
    schema = tables.checkpoints.schema
    official = len(there) == len(tables) and inspector.has_table(_OFFICIAL, schema=schema)
    return State.OFFICIAL if official and all(_alike(inspector, each) for each in tables) else State.FOREIGN


def _alike(inspector: Inspector, table: Table) -> bool:
    """Tell whether a table has the columns and the key that we would give it; other columns may be there."""
    found = {column["name"]: column for column in inspector.get_columns(table.name, schema=table.schema)}
    key = inspector.get_pk_constraint(table.name, schema=table.schema)["constrained_columns"]
    return key == [column.name for column in table.primary_key] and all(
        column.name in found and bool(found[column.name]["nullable"]) >= bool(column.nullable)
        for column in table.columns
    )
