"""What is said to the database when one of our own engines connects, each with its reason."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, event

from cpstore.dialects import BYTES

__all__ = ["BUSY_SECONDS", "configured"]

BUSY_SECONDS = 30
"""So long an engine of ours waits for another writer of an SQLite file."""

_SQLITE_BUSY, _SQLITE_READONLY = 5, 8


def configured(engine: Engine, pooler: bool) -> Engine:
    """Configure an engine of ours, and give it; behind a transaction pooler its sessions are left alone."""
    if engine.dialect.name == "sqlite" and engine.url.query.get("mode") != "ro":
        event.listen(engine, "connect", _configure_sqlite)
    if engine.dialect.name == "postgresql" and not pooler:
        event.listen(engine, "connect", _configure_postgresql)
    if engine.url.drivername == "postgresql+psycopg":
        _ask_for_bytes(engine.dialect)
    return engine


def _ask_for_bytes(dialect: Any) -> None:
    """Let PostgreSQL send blobs as they are: psycopg asks for text, which is twice as long, unless told.

    A listener would do it as well, and make SQLAlchemy look for others at each step of each statement.
    """
    made_of = (_AsksForBytes, dialect.execution_ctx_cls)
    dialect.execution_ctx_cls = type(_AsksForBytes.__name__, made_of, {})


class _AsksForBytes:
    """What is added to the execution context of a dialect of psycopg."""

    cursor: Any
    execution_options: Mapping[str, Any]

    def pre_exec(self) -> None:
        """Choose the format, when the cursor is there and its statement not sent."""
        super().pre_exec()  # type: ignore[misc]
        if self.execution_options.get(BYTES):
            getattr(self.cursor, "_cursor", self.cursor).format = 1  # psycopg.pq.Format.BINARY


def _configure_postgresql(connection: Any, _record: Any) -> None:
    """Let the server plan a prepared statement once.

    Left to itself it compares estimates, and may plan a read of one checkpoint anew each time, which takes
    longer than to read it. All of our statements look rows up by their keys: which ones makes no other plan.
    """
    cursor = connection.cursor()
    cursor.execute("SET plan_cache_mode = force_generic_plan")
    cursor.close()
    connection.commit()  # or it would be gone with the first rollback


def _configure_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    _use_write_ahead_log(cursor)
    # A checkpoint that `put` returned for must survive a power cut. NORMAL may lose the last ones of a WAL.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _use_write_ahead_log(cursor: Any) -> None:
    """Let readers and the writer work at the same time; the file remembers it.

    The busy timeout does not cover this change, and processes that start together all try it.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while _journal_mode(cursor) == "delete":
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # Python 3.10 does not tell the code.
            code = getattr(error, "sqlite_errorcode", _SQLITE_BUSY) & 0xFF
            if code == _SQLITE_READONLY:
                return
            if code != _SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _journal_mode(cursor: Any) -> Any:
    cursor.execute("PRAGMA journal_mode")
    return cursor.fetchone()[0]
