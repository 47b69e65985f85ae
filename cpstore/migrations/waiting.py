"""Waiting for a database: until it answers and has the newest revision."""

from __future__ import annotations

import time
from functools import partial

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError

from cpstore import engines
from cpstore.errors import UnknownSourceError
from cpstore.migrations.status import State, Status, status_of
from cpstore.migrations.targets import reading, run
from cpstore.names import Names, names_of

__all__ = ["pause", "wait_for"]

pause = time.sleep

_PAUSE_SECONDS = 0.5


def wait_for(
    target: str | URL | Engine, *, timeout: float = 60, schema: str | None = None, prefix: str = ""
) -> Status:
    """Wait until a database answers and is current. Only reads, and makes no file.

    Args:
        target: A database URL, or an engine.
        timeout: So many seconds; it is looked at least once.
        schema: Where the tables are; None: where the connection looks for them.
        prefix: What their names begin with.

    Returns:
        The status in the end, which is not current if it was not within that time.

    Raises:
        sqlalchemy.exc.DBAPIError: It did not answer within that time; from asyncpg, an OSError.
        UnknownSourceError: It is an SQLite file that was not there within that time.
    """
    names = names_of(schema, prefix)
    deadline = time.monotonic() + timeout
    while True:
        late = time.monotonic() + _PAUSE_SECONDS > deadline
        try:
            status = run(target, partial(_look, names=names), engines.read_only)
            if late or status.state is State.CURRENT:
                return status
        except (DBAPIError, OSError, UnknownSourceError):
            if late:
                raise
        pause(_PAUSE_SECONDS)


def _look(on: Engine | Connection, names: Names) -> Status:
    with reading(on) as connection:
        return status_of(connection, names)
