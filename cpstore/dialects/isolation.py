"""The isolation level of a connection, for as long as a unit of work needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

__all__ = ["level_of"]


@contextmanager
def level_of(connection: Connection, level: str) -> Iterator[None]:
    """Set the isolation level on the driver, and afterwards what the application had there.

    SQLAlchemy's own option would go back to the level of the engine. It does not know of one, or of an
    autocommit, that the application chose in `connect_args`, in its `creator`, or when it was connected.
    """
    adapted: Any = connection.connection.dbapi_connection
    driver: Any = connection.connection.driver_connection
    autocommit = adapted.autocommit
    if autocommit and level == "AUTOCOMMIT":
        yield
        return
    # SQLAlchemy's adapter of asyncpg has the level itself, and autocommit is one. That of psycopg leaves it
    # to the driver, where it stays as it is beside autocommit.
    own = hasattr(adapted, "isolation_level")
    beside = level == "AUTOCOMMIT" and not own
    before = (adapted if own else driver).isolation_level
    try:
        if beside:
            adapted.autocommit = True
        else:
            connection.dialect.set_isolation_level(adapted, level)  # type: ignore[arg-type]
        yield
    finally:
        if not connection.invalidated:
            _restore(connection, adapted, None if beside else (before,), autocommit)


def _restore(connection: Connection, adapted: Any, level: tuple[Any] | None, autocommit: bool) -> None:
    try:
        if level is not None:
            adapted.set_isolation_level(*level)
        adapted.autocommit = autocommit
    except BaseException as error:
        # It is dead, or its task was cancelled again. Nobody shall get it as it is.
        connection.invalidate()
        if not isinstance(error, Exception):
            raise
