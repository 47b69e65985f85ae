"""SQLite 3.35 and newer, through pysqlite or aiosqlite."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    MetaData,
    Select,
    Table,
    Text,
    case,
    column,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.exc import DBAPIError

from cpstore.dialects.at_once import starts_piece
from cpstore.dialects.base import Dialect, Mode
from cpstore.dialects.keys import bound, number
from cpstore.dialects.sqlite_health import SQLiteHealth
from cpstore.errors import ConfigurationError, DatabaseBusyError
from cpstore.models import Tables

__all__ = ["SQLite"]

_SQLITE_ERROR = 1
_SQLITE_BUSY, _SQLITE_LOCKED = 5, 6
_LEGACY = -1
"""`sqlite3.LEGACY_TRANSACTION_CONTROL`: the driver begins transactions, which it is not asked to do."""

_QUOTED_COMMA: ColumnElement[str] = literal_column("'\",\"'")

_LOCKED = re.compile("database (table |schema )?is locked")
"""What SQLite says with these two codes, for Python 3.10, which tells no code."""


class SQLite(SQLiteHealth, Dialect):
    """What is different on SQLite."""

    name = "sqlite"

    stops_statements = False
    """aiosqlite's thread goes on, and what it found keeps SQLite's lock until it is collected as garbage."""

    one_writer = True
    copies_rows = True

    def insert(self, table: Table) -> Insert:
        """Give the insert of SQLAlchemy's dialect."""
        return insert(table)

    @contextmanager
    def transaction(self, connection: Connection, mode: Mode) -> Iterator[None]:
        """Open the transaction by hand: Python's driver would open it late, and never for reads.

        What was opened by hand and is still open when SQLAlchemy has ended it is ended by hand: a driver with
        `autocommit=True` does nothing, and an engine with `skip_autocommit_rollback` does not ask it.
        """
        if mode is Mode.ALONE:
            with connection.begin(), _interrupted(connection):
                yield
            return
        opened = False
        try:
            with connection.begin():
                opened = not _in_transaction(connection)
                self.begin(connection, mode)
                yield
            if opened and _in_transaction(connection):
                connection.exec_driver_sql("COMMIT")
        except BaseException:
            if opened and _in_transaction(connection):
                connection.exec_driver_sql("ROLLBACK")
            raise

    def begin(self, connection: Connection, mode: Mode) -> None:
        """Take the lock that the transaction needs.

        A writer begins IMMEDIATE. One that read first and asks for the write lock later fails at once when
        another wrote in between, whatever its busy timeout is; one that waits at the start does not. Where
        the application's engine has already begun, nothing was done yet, so it can be begun again.

        Where Python's driver begins by itself, it does so before the first write, which takes the lock as
        well as BEGIN IMMEDIATE. What reads one statement needs no transaction.
        """
        begun = _in_transaction(connection)
        if mode.reads:
            if mode is Mode.READ and not begun:
                connection.exec_driver_sql("BEGIN")
        elif begun or mode is not Mode.STATEMENT or not _begins_by_itself(connection):
            if begun:
                connection.exec_driver_sql("ROLLBACK")
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def join(self, connection: Connection) -> None:
        """Take the write lock: a graph reads first and writes later, which fails if another wrote between."""
        if not _in_transaction(connection):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def commits_at_once(self, connection: Connection) -> bool:
        """Tell it by the driver's own settings, unless a transaction was begun in spite of them."""
        _check_thread(connection)
        driver = _sqlite3(connection)
        alone = driver.isolation_level is None or _autocommit(driver) is True
        return alone and not driver.in_transaction

    def reclaim(self, connection: Connection) -> None:
        """Rewrite the file without the free pages, and empty the write-ahead log into it."""
        connection.exec_driver_sql("VACUUM")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").close()

    def identity(self, connection: Connection) -> tuple[Any, ...] | None:
        """Say which file and table it is; of a database in memory, which connection has it."""
        (file,) = (row[2] for row in connection.exec_driver_sql("PRAGMA database_list") if row[1] == "main")
        if not file:
            return id(connection.connection.driver_connection), self.tables.checkpoints.fullname
        there = Path(file).stat()
        return there.st_dev, there.st_ino, self.tables.checkpoints.fullname

    @cached_property
    def view_tables(self) -> Tables:
        """Without a schema: a file's view sees that file, which may be attached by another name next time."""
        alone, schema = MetaData(), cast("str", None)  # which SQLAlchemy takes, and its annotation does not
        return Tables(*(table.to_metadata(alone, schema=schema) for table in self.tables))

    def bound_keys(self, width: int, name: str = "keys") -> Select[Any]:
        """One JSON array of all keys."""
        keys = func.json_each(bound(name)).table_valued("value", name=name)
        paths: list[ColumnElement[str]] = [literal_column(f"'$[{position}]'") for position in range(width)]
        return select(*(func.json_extract(keys.c.value, path) for path in paths))

    def key_parameters(self, keys: Sequence[tuple[str, ...]], name: str = "keys") -> dict[str, Any]:
        """Give one JSON array of all keys."""
        return {f"p_{name}": json.dumps(keys)}

    def versions_of(self, document: ColumnElement[Any]) -> ColumnElement[Any]:
        """A part of the JSON text, if it is JSON and the part is an object."""
        path: ColumnElement[str] = literal_column("'$.channel_versions'")
        valid = _valid(document)
        is_object = func.json_type(valid, path) == literal_column("'object'")
        return case((is_object, func.json_extract(valid, path)), else_=literal_column("'{}'"))

    def has_own_sends(self, document: ColumnElement[Any]) -> ColumnElement[bool]:
        """A part of the JSON text, if it is JSON and the part is a number."""
        version = func.json_extract(_valid(document), literal_column("'$.v'"))
        is_number = func.typeof(version).in_([literal_column("'integer'"), literal_column("'real'")])
        return case((is_number, version >= number(4)), else_=number(0))

    def versions_in(self, versions: ColumnElement[Any]) -> FromClause:
        """SQLite's own function."""
        return func.json_each(versions).table_valued("key", column("value", Text()), name="each")

    def versions_before(self, kind: ColumnElement[str]) -> FromClause:
        """The second field, made a JSON array: there is no function that splits a text."""
        rest = func.substr(kind, number(len("items;") + 1))
        named = func.substr(rest, number(1), func.instr(rest, literal_column("';'")) - number(1))
        quoted = func.replace(func.nullif(named, literal_column("''")), literal_column("','"), _QUOTED_COMMA)
        array = literal_column("'[\"'").op("||")(quoted).op("||")(literal_column("'\"]'"))
        is_piece = starts_piece(kind) & (func.json_valid(array) == number(1))
        versions = case((is_piece, array), else_=literal_column("'[]'"))
        return func.json_each(versions).table_valued(column("value", Text()), name="before")

    def in_place(self, row: Any, source: Any, given: frozenset[str]) -> list[ColumnElement[bool]]:
        """As `source` says, so that each row of it is looked up: SQLite never scans a table for that."""
        return super().in_place(row, source, frozenset())

    def tells_versions(self, versions: Iterable[Any]) -> bool:
        """Numbers with a point, and large ones, may have another text here than in Python."""
        return all(
            type(version) is str or (type(version) is int and -(2**63) <= version < 2**63)
            for version in versions
        )

    def may_lack_tables(self, error: DBAPIError) -> bool:
        """SQLite has no code of its own for a missing table, only the general one."""
        return getattr(error.orig, "sqlite_errorcode", _SQLITE_ERROR) == _SQLITE_ERROR

    def named(self, error: DBAPIError) -> DatabaseBusyError | None:
        """Give a name to a lock that was not let go within the busy timeout."""
        return DatabaseBusyError() if _is_busy(error.orig) else None


def _valid(document: ColumnElement[Any]) -> ColumnElement[Any]:
    """Give a JSON text; an empty object, if it is damaged: that is told of when it is decoded."""
    return case((func.json_valid(document) == number(1), document), else_=literal_column("'{}'"))


def _is_busy(error: BaseException | None) -> bool:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return isinstance(error, sqlite3.OperationalError) and _LOCKED.match(str(error)) is not None
    return code & 0xFF in (_SQLITE_BUSY, _SQLITE_LOCKED)


@contextmanager
def _interrupted(connection: Connection) -> Iterator[None]:
    """Leave the transaction that the application's engine or driver always begins."""
    begun = _in_transaction(connection)
    if begun:
        connection.exec_driver_sql("COMMIT")
    yield
    if begun:
        connection.exec_driver_sql("BEGIN")


def _in_transaction(connection: Connection) -> bool:
    return not connection.invalidated and bool(_sqlite3(connection).in_transaction)


def _begins_by_itself(connection: Connection) -> bool:
    """Tell whether the driver opens a transaction before the first statement that writes."""
    driver = _sqlite3(connection)
    return driver.isolation_level is not None and _autocommit(driver) == _LEGACY


def _autocommit(driver: Any) -> Any:
    """Give what Python 3.12 and newer have for it; None, if only the thread of aiosqlite may ask."""
    try:
        return getattr(driver, "autocommit", _LEGACY)
    except sqlite3.ProgrammingError:
        return None


def _sqlite3(connection: Connection) -> Any:
    """Give the connection of `sqlite3`, which aiosqlite keeps inside its own."""
    driver: Any = connection.connection.driver_connection
    return getattr(driver, "_conn", driver)


def _check_thread(connection: Connection) -> None:
    driver: Any = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        return  # aiosqlite has a thread of its own
    try:
        driver.cursor().close()
    except sqlite3.ProgrammingError as error:
        raise ConfigurationError(
            "This SQLite connection may be used only in the thread that made it, and LangGraph calls the"
            " saver from several. Make the engine with connect_args={'check_same_thread': False}, and for a"
            " database in memory with poolclass=StaticPool"
        ) from error
