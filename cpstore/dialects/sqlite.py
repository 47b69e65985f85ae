"""SQLite 3.35 and newer, through pysqlite or aiosqlite."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, delete, false
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.exc import DBAPIError

from cpstore.dialects.base import Dialect, Mode

__all__ = ["SQLite"]

_SQLITE_ERROR = 1


class SQLite(Dialect):
    """What is different on SQLite."""

    name = "sqlite"

    def insert(self, table: Table) -> Insert:
        """Give the insert of SQLAlchemy's dialect."""
        return insert(table)

    def begin(self, connection: Connection, mode: Mode) -> None:
        """Open the transaction by hand: Python's driver would open it late, and never for reads.

        A writer begins IMMEDIATE. One that read first and asks for the write lock later fails at once when
        another wrote in between, whatever its busy timeout is; one that waits at the start does not. Where
        the application's engine has already begun, a delete that matches nothing takes the lock.
        """
        if not _in_transaction(connection):
            connection.exec_driver_sql("BEGIN" if mode is Mode.READ else "BEGIN IMMEDIATE")
        elif mode is not Mode.READ:
            connection.execute(delete(self.tables.checkpoints).where(false()))

    def may_lack_tables(self, error: DBAPIError) -> bool:
        """SQLite has no code of its own for a missing table, only the general one."""
        return getattr(error.orig, "sqlite_errorcode", _SQLITE_ERROR) == _SQLITE_ERROR


def _in_transaction(connection: Connection) -> bool:
    driver: Any = connection.connection.driver_connection
    return bool(driver.in_transaction)
