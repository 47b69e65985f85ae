"""PostgreSQL 13 and newer, through psycopg 3 or asyncpg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    FromClause,
    Index,
    Numeric,
    Select,
    Table,
    Text,
    bindparam,
    case,
    cast,
    column,
    false,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, Insert, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateIndex, CreateSchema, DropIndex

from cpstore.dialects.at_once import starts_piece
from cpstore.dialects.base import Dialect, Mode
from cpstore.dialects.isolation import level_of
from cpstore.dialects.keys import Step, number
from cpstore.dialects.postgresql_health import RIGHTS, PostgreSQLHealth, is_whole, quoted
from cpstore.dialects.sqlstates import (
    has_ended,
    is_locked,
    lacks_tables,
    may_answer_soon,
    was_undone,
)
from cpstore.dialects.writing import blob_rows, checkpoint_row, stored_columns, write_rows
from cpstore.errors import MigrationTurnError
from cpstore.records import CheckpointRecord, WritesRecord

__all__ = ["PostgreSQL"]

_LEVELS = {
    Mode.READ: "REPEATABLE READ",
    Mode.WRITE: "READ COMMITTED",
    Mode.COPY: "REPEATABLE READ",
    Mode.LOOK: "AUTOCOMMIT",
    Mode.STATEMENT: "AUTOCOMMIT",
    Mode.ALONE: "AUTOCOMMIT",
}

_TURN = func.hashtextextended("cpstore", 0)
"""The advisory lock of who migrates."""
_SEMICOLON: ColumnElement[str] = literal_column("';'")
_COMMA: ColumnElement[str] = literal_column("','")

_CHAINED = 16
"""Up to so many rows are one CTE each, which is fastest; more of them go as arrays, in a statement that does
not grow."""


class PostgreSQL(PostgreSQLHealth, Dialect):
    """What is different on PostgreSQL: what SQLite says in several statements is one here."""

    name = "postgresql"
    filters_metadata = True
    builds_indexes_online = True
    replaces_views = True

    def insert(self, table: Table) -> Insert:
        """Give the insert of SQLAlchemy's dialect."""
        return insert(table)

    @contextmanager
    def transaction(self, connection: Connection, mode: Mode) -> Iterator[None]:
        """Choose the isolation level, whatever the application's engine has as its own.

        None of them costs a round trip: drivers send the level with `BEGIN`, or send no `BEGIN`.
        """
        with level_of(connection, _LEVELS[mode]), super().transaction(connection, mode):
            yield

    def commits_at_once(self, connection: Connection) -> bool:
        """Both drivers, or SQLAlchemy's adapters of them, have an attribute for it."""
        adapted: Any = connection.connection.dbapi_connection
        return bool(adapted.autocommit)

    def try_migration_turn(self, connection: Connection, seconds: int) -> bool:
        """Try an advisory lock of the transaction, which works behind a transaction pooler too."""
        bounded = func.set_config("lock_timeout", f"{seconds}s", True)
        row = connection.execute(select(bounded, func.pg_try_advisory_xact_lock(_TURN))).one()
        return bool(row[1])

    def wait_for_migration_turn(self, connection: Connection, seconds: int) -> None:
        """Wait for the same lock, and leave the transaction's own time limit as it was."""
        before = connection.execute(select(func.current_setting("lock_timeout"))).scalar_one()
        self._limit_waits(connection, f"{seconds}s")
        try:
            connection.execute(select(func.pg_advisory_xact_lock(_TURN)))
        except DBAPIError as error:
            if is_locked(error):
                raise MigrationTurnError from error
            raise
        self._limit_waits(connection, before)

    def _limit_waits(self, connection: Connection, limit: str) -> None:
        connection.execute(select(func.set_config("lock_timeout", limit, True)))

    @property
    def create_schema(self) -> CreateSchema | None:
        """PostgreSQL's own `CREATE SCHEMA`."""
        schema = self.tables.checkpoints.schema
        return None if schema is None else CreateSchema(schema, if_not_exists=True)

    def build_index(self, connection: Connection, index: Index) -> None:
        """Build it CONCURRENTLY. What a crash left half built is built anew."""
        index.dialect_options[self.name]["concurrently"] = True
        whole = connection.execute(is_whole(quoted(index.name, self.tables.checkpoints.schema))).scalar()
        if whole is False:
            connection.execute(DropIndex(index))
        if not whole:
            connection.execute(CreateIndex(index))

    def grants(self, role: str, version_table: str) -> str:
        """Give the SQL that lets a role use the tables, and not change them."""
        schema, to = self.tables.checkpoints.schema, f"TO {quoted(role)};\n"
        tables = [*(table.name for table in self.tables), version_table]
        usage = "" if schema is None else f"GRANT USAGE ON SCHEMA {quoted(schema)} {to}"
        return usage + "".join(
            f"GRANT {rights} ON {quoted(table, schema)} {to}"
            for rights, table in zip(RIGHTS, tables, strict=True)
        )

    def identity(self, connection: Connection) -> tuple[Any, ...] | None:
        """Say which server and table it is; nothing is known of a table without rows."""
        table = select(func.pg_postmaster_start_time(), func.current_database(), column("tableoid"))
        row = connection.execute(table.select_from(self.tables.checkpoints).limit(1)).first()
        return None if row is None else tuple(map(str, row))

    def may_lack_tables(self, error: DBAPIError) -> bool:
        """Decide by SQLSTATE."""
        return lacks_tables(error)

    def was_undone(self, error: DBAPIError) -> bool:
        """Decide by SQLSTATE."""
        return was_undone(error)

    def is_broken(self, error: Exception) -> bool:
        """Decide by SQLSTATE, or by a driver that was confused by an end that it had not asked for."""
        return has_ended(error)

    def may_answer_soon(self, error: Exception) -> bool:
        """Decide by SQLSTATE. Without one nobody answered, or it was libpq, which keeps it to itself."""
        return may_answer_soon(error)

    # Writing: one statement each

    def put(self, record: CheckpointRecord) -> list[Step]:
        """Store checkpoint and blobs in one statement: the blobs are data-modifying CTEs of the upsert."""
        rows = blob_rows(record)
        sure = not record.needed
        parameters = _numbered([checkpoint_row(record)], "checkpoint")
        if not sure:
            parameters |= self.needed_parameters(record)
        if len(rows) <= _CHAINED:
            return [Step(self._put_chained(len(rows), sure), parameters | _numbered(rows, "blob"))]
        return [Step(self._put_arrays(sure), parameters | _columns(rows, "blob"))]

    def put_writes(self, record: WritesRecord) -> list[Step]:
        """Store the writes in one statement."""
        rows = write_rows(record)
        if len(rows) <= _CHAINED:
            return [Step(self._put_writes_chained(len(rows)), _numbered(rows, "write"))]
        return [Step(self._put_writes_arrays, _columns(rows, "write"))]

    def delete_thread(self, thread_id: str) -> list[Step]:
        """Delete all rows of a thread in one statement."""
        return [Step(self._delete_thread, {"p_thread_id": thread_id})]

    @cached_property
    def needed_are_there(self) -> ColumnElement[bool]:
        """The same condition, looked at once."""
        needed = select(super().needed_are_there.label("there")).cte("needed")
        return select(needed.c.there).scalar_subquery()

    @cached_property
    def _delete_thread(self) -> Any:
        return _chained([step.statement for step in super().delete_thread("")])

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _put_chained(self, blobs: int, sure: bool) -> Any:
        inserts = [self._insert_row(self.tables.blobs, f"blob_{position}", sure) for position in range(blobs)]
        return _chained([*map(self.keep_blob, inserts), self._insert_checkpoint(sure)])

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _put_arrays(self, sure: bool) -> Any:
        blobs = self._insert_arrays(self.tables.blobs, "blob", sure)
        return _chained([self.keep_blob(blobs), self._insert_checkpoint(sure)])

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _put_writes_chained(self, writes: int) -> Any:
        table = self.tables.writes
        return _chained(
            [self.upsert_write(self._insert_row(table, f"write_{number}")) for number in range(writes)]
        )

    @cached_property
    def _put_writes_arrays(self) -> Any:
        return self.upsert_write(self._insert_arrays(self.tables.writes, "write"))

    def _insert_checkpoint(self, sure: bool) -> Any:
        insert = self.upsert_checkpoint(self._insert_row(self.tables.checkpoints, "checkpoint_0", sure))
        return insert.execution_options(preserve_rowcount=not sure)

    def _insert_row(self, table: Table, prefix: str, sure: bool = True) -> Any:
        """Insert a row; one that is not sure, only if what its record needs is there."""
        columns = {
            column.name: bindparam(f"{prefix}_{column.name}", type_=column.type)
            for column in stored_columns(table)
        }
        if sure:
            return self.insert(table).values(columns)
        row = select(*columns.values()).where(self.needed_are_there)
        return self.insert(table).from_select(list(columns), row)

    def _insert_arrays(self, table: Table, prefix: str, sure: bool = True) -> Any:
        columns = stored_columns(table)
        arrays = [bindparam(f"{prefix}_{column.name}", type_=ARRAY(column.type)) for column in columns]
        rows = func.unnest(*arrays).table_valued(*(column.name for column in columns), name="rows")
        found = select(*rows.render_derived().c)
        return self.insert(table).from_select(
            [column.name for column in columns], found if sure else found.where(self.needed_are_there)
        )

    # Reading

    def bound_keys(self, width: int, name: str = "keys") -> Select[Any]:
        """One array a column."""
        columns = [column(f"{name}_{position}", Text()) for position in range(width)]
        arrays = [bindparam(f"p_{each.name}", type_=ARRAY(Text())) for each in columns]
        keys = func.unnest(*arrays).table_valued(*columns, name=name)
        return select(*keys.render_derived().c)

    def among_keys_of_threads(self, table: Table) -> ColumnElement[bool]:
        """Say the threads once more as an array, whose selectivity the planner knows."""
        threads = bindparam("p_keys_0", type_=ARRAY(Text()))
        return (table.c.thread_id == func.any(threads)) & super().among_keys_of_threads(table)

    def key_parameters(self, keys: Sequence[tuple[str, ...]], name: str = "keys") -> dict[str, Any]:
        """Give one array a column."""
        return {
            f"p_{name}_{position}": list(values) for position, values in enumerate(zip(*keys, strict=True))
        }

    def versions_of(self, document: ColumnElement[Any]) -> ColumnElement[Any]:
        """A part of the JSONB, if it is an object."""
        versions = _part(document, "channel_versions")
        return case((_is(versions, "object"), versions), else_=literal_column("'{}'::jsonb"))

    def has_own_sends(self, document: ColumnElement[Any]) -> ColumnElement[bool]:
        """A part of the JSONB, if it is a number."""
        version = _part(document, "v")
        return case((_is(version, "number"), cast(version, Numeric()) >= number(4)), else_=false())

    def versions_in(self, versions: ColumnElement[Any]) -> FromClause:
        """PostgreSQL's own function: numbers have no exponent."""
        return func.jsonb_each_text(versions).table_valued("key", "value", name="each").render_derived()

    def versions_before(self, kind: ColumnElement[str]) -> FromClause:
        """The second field, split at its commas."""
        named = case((starts_piece(kind), func.split_part(kind, _SEMICOLON, number(2))))
        each = func.unnest(func.string_to_array(named, _COMMA))
        return each.table_valued("value", name="before").render_derived()

    def looked_up(
        self, keys: FromClause, columns: list[Any], conditions: list[ColumnElement[bool]]
    ) -> Select[Any]:
        """Row by row, whatever the planner thinks of the number of keys."""
        row = select(*columns).where(*conditions).limit(number(1)).lateral("r")
        return select(*row.c).select_from(keys.join(row, true()))

    def metadata_contains(self, metadata: ColumnElement[Any], pattern: BindParameter[str]) -> Any:
        """PostgreSQL's own containment."""
        return metadata.bool_op("@>")(cast(pattern, JSONB()))


def _part(document: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    """Give a part of a JSON document, whose name is ours and stands in the statement."""
    return document.op("->", return_type=JSONB())(literal_column(f"'{name}'"))


def _is(part: ColumnElement[Any], kind: str) -> ColumnElement[bool]:
    return func.jsonb_typeof(part) == literal_column(f"'{kind}'")


def _chained(statements: list[Any]) -> Any:
    *first, last = statements
    for position, statement in enumerate(first):
        last = last.add_cte(statement.cte(f"step_{position}"))
    return last


def _numbered(rows: list[dict[str, Any]], prefix: str) -> dict[str, Any]:
    return {
        f"{prefix}_{number}_{name}": value for number, row in enumerate(rows) for name, value in row.items()
    }


def _columns(rows: list[dict[str, Any]], prefix: str) -> dict[str, Any]:
    return {f"{prefix}_{name}": [row[name] for row in rows] for name in rows[0]}
