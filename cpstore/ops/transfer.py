"""Units of work that move rows of one thread from database to database, some at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, inspect

from cpstore.dialects import Dialect, Mode
from cpstore.ops.unit import execute, unit

__all__ = [
    "all_thread_ids",
    "columns",
    "identity",
    "lacks_tables",
    "present_keys",
    "row_counts",
    "row_keys",
    "rows",
    "store_rows",
]

RowKey = tuple[Any, ...]
"""The primary key of a row, without its thread."""


@unit(Mode.READ)
def columns(connection: Connection, sql: Dialect, names: Collection[str]) -> dict[str, frozenset[str]]:
    """Give the columns of tables by their names; those that are not there are left out."""
    inspector = inspect(connection)
    return {
        name: frozenset(column["name"] for column in inspector.get_columns(name))
        for name in names
        if inspector.has_table(name)
    }


@unit(Mode.READ)
def lacks_tables(connection: Connection, sql: Dialect) -> bool:
    """Tell whether one of the tables is not there; a `schema_translate_map` of the engine is followed."""
    inspector = inspect(connection)
    schemas = connection.get_execution_options().get("schema_translate_map") or {}
    return not all(
        inspector.has_table(table.name, schema=schemas.get(table.schema, table.schema))
        for table in sql.tables
    )


@unit(Mode.READ)
def identity(connection: Connection, sql: Dialect) -> tuple[Any, ...] | None:
    """Give what only connections to the same tables have in common; None if it is not known."""
    return sql.identity(connection)


@unit(Mode.READ)
def all_thread_ids(connection: Connection, sql: Dialect, after: str | None, limit: int) -> list[str]:
    """Give the next ids of threads that have any row, in their order."""
    return [row[0] for row in execute(connection, sql.all_thread_ids(after, limit))]


@unit(Mode.READ)
def row_counts(connection: Connection, sql: Dialect, thread_id: str | None) -> dict[str, int]:
    """Give the number of rows in each of the tables: of a thread, or of all."""
    if thread_id is None:
        counts = connection.execute(sql.all_row_counts).one()
    else:
        counts = execute(connection, sql.row_counts(thread_id)).one()
    return dict(zip(sql.tables._fields, map(int, counts), strict=True))


@unit(Mode.READ)
def row_keys(
    connection: Connection,
    sql: Dialect,
    part: str,
    thread_id: str,
    after: RowKey | None,
    limit: int,
    special: bool = False,
) -> list[tuple[RowKey, int]]:
    """Give the next keys of a thread's rows in one table, with the bytes of each row."""
    found = execute(connection, sql.row_keys(part, thread_id, after, limit, special=special))
    return [(tuple(row[:-1]), int(row[-1])) for row in found]


@unit(Mode.READ)
def present_keys(
    connection: Connection, sql: Dialect, part: str, thread_id: str, keys: Sequence[RowKey]
) -> set[RowKey]:
    """Give those keys that have a row."""
    return {tuple(row) for row in execute(connection, sql.present_keys(part, thread_id, keys))}


@unit(Mode.READ)
def rows(
    connection: Connection, sql: Dialect, part: str, thread_id: str, keys: Sequence[RowKey]
) -> list[dict[str, Any]]:
    """Give rows by column names, in the order of their keys; those that are gone are left out."""
    names = [column.key for column in getattr(sql.tables, part).primary_key.columns][1:]
    found = (dict(row) for row in execute(connection, sql.rows(part, thread_id, keys)).mappings())
    by_key = {tuple(row[name] for name in names): row for row in found}
    return [by_key[key] for key in keys if key in by_key]


@unit(Mode.WRITE)
def store_rows(connection: Connection, sql: Dialect, part: str, stored: Sequence[dict[str, Any]]) -> None:
    """Store rows by column names, all or nothing: a blob is kept, a checkpoint replaced, a write as it is."""
    connection.execute(sql.store_rows(part), list(stored))
