"""What PostgreSQL's errors mean: told by SQLSTATE, never by their text."""

from __future__ import annotations

import sys

from sqlalchemy.exc import DBAPIError, InternalError, OperationalError

__all__ = ["has_ended", "is_locked", "lacks_tables", "may_answer_soon", "was_undone"]

_LACKS_TABLES = {"42P01", "42703", "3F000"}
"""An undefined table, an undefined column and an invalid schema name."""

_LOCK_NOT_AVAILABLE = "55P03"

_UNDONE = {"40001", "40P01"}
"""A serialization failure and a deadlock."""

_CONNECTION_EXCEPTION = "08"
_ENDED = {"57P01", "57P02"}
"""A session that an administrator ended, or a crash."""

_NOT_NOW = {"53300", "57P03"}
"""A server that has too many connections, or that starts or stops."""


def lacks_tables(error: Exception) -> bool:
    """Tell whether a table or a column is not there."""
    return _sqlstate(error) in _LACKS_TABLES


def is_locked(error: Exception) -> bool:
    """Tell whether a lock was waited for too long."""
    return _sqlstate(error) == _LOCK_NOT_AVAILABLE


def was_undone(error: Exception) -> bool:
    """Tell whether a transaction was undone because others were in its way."""
    return _sqlstate(error) in _UNDONE


def may_answer_soon(error: Exception) -> bool:
    """Tell whether a connection that could not be made may be made within seconds."""
    if _sqlstate(error) is None and isinstance(error, (OSError, OperationalError)):
        return True
    return has_ended(error) or _sqlstate(error) in _NOT_NOW


def has_ended(error: Exception) -> bool:
    """Tell whether a connection has ended, even if that only confused its driver."""
    sqlstate = _sqlstate(error)
    if sqlstate is None:
        # asyncpg, when it is used after the server's last words and before the end of the connection.
        return isinstance(error, (InternalError, *_asyncpg_internal_error()))
    return sqlstate in _ENDED or sqlstate.startswith(_CONNECTION_EXCEPTION)


def _asyncpg_internal_error() -> tuple[type[Exception], ...]:
    # SQLAlchemy 2.0 lets this one through as it is; all others only while a connection is made.
    asyncpg = sys.modules.get("asyncpg")
    return () if asyncpg is None else (asyncpg.InternalClientError,)


def _sqlstate(error: Exception) -> str | None:
    driver_error = error.orig if isinstance(error, DBAPIError) else error
    return getattr(driver_error, "sqlstate", None)
