"""The migrations of cpstore's tables: where the scripts are, what a database has, and the way to head.

The only module that imports Alembic. Its proxies are global to a process, so one migration runs at a time;
between processes the database gives the turn, in the transaction that migrates.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore.dialects import Mode, dialect_for
from cpstore.models import TABLES

__all__ = [
    "VERSION_TABLE",
    "acurrent",
    "aupgrade",
    "config",
    "current",
    "head",
    "include_name",
    "scripts",
    "upgrade",
]

VERSION_TABLE = "cpstore_alembic_version"
"""Our own version table, so that an application's Alembic history and ours do not meet."""

TURN_SECONDS = 120

_one_at_a_time = threading.Lock()


def scripts() -> Path:
    """Give the folder of the migration scripts: inside an installed wheel, or beside the package."""
    installed = Path(__file__).parent / "_alembic"
    return installed if installed.is_dir() else Path(__file__).parent.parent / "alembic"


def config(connection: Connection | None = None) -> Config:
    """Give an Alembic config for our scripts, with the connection that they are to run on."""
    made = Config(attributes={"connection": connection})
    made.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    return made


def include_name(name: str | None, kind: str, _parents: Any) -> bool:
    """Let Alembic look at our own tables only: others in the database are not ours to compare."""
    return kind != "table" or name in {table.name for table in TABLES}


def head() -> str | None:
    """Give the newest revision that this cpstore knows."""
    return ScriptDirectory.from_config(config()).get_current_head()


def current(engine: Engine) -> str | None:
    """Give the revision that a database has; None if it has none. Only reads."""
    with engine.connect() as connection:
        return _current(connection)


async def acurrent(engine: AsyncEngine) -> str | None:
    """Async version of :func:`current`."""
    async with engine.connect() as connection:
        return await connection.run_sync(_current)


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Migrate a database, all or nothing. Nothing is written if it is at `revision` already.

    Raises:
        MigrationTurnError: Another process migrates and did not end in time.
        DatabaseBusyError: As that, on SQLite, or another process writes.
    """
    if current(engine) == _resolve(revision):
        return
    with _one_at_a_time, engine.execution_options(**_options(engine)).begin() as connection:
        _upgrade(connection, revision)


async def aupgrade(engine: AsyncEngine, revision: str = "head") -> None:
    """Async version of :func:`upgrade`."""
    if await acurrent(engine) == _resolve(revision):
        return
    while not _one_at_a_time.acquire(blocking=False):  # noqa: ASYNC110 - threads share it with tasks
        await asyncio.sleep(0.01)
    try:
        async with engine.execution_options(**_options(engine)).begin() as connection:
            await connection.run_sync(_upgrade, revision)
    finally:
        _one_at_a_time.release()


def take_turn(connection: Connection) -> None:
    """Begin a migration on a connection: from here to the end of the transaction nobody else migrates."""
    sql = dialect_for(connection.dialect.name, TABLES)
    try:
        sql.begin(connection, Mode.WRITE)
    except DBAPIError as error:
        if named := sql.named(error):
            raise named from error
        raise
    sql.take_migration_turn(connection, TURN_SECONDS)


def _current(connection: Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def _upgrade(connection: Connection, revision: str) -> None:
    take_turn(connection)
    command.upgrade(config(connection), revision)


def _options(engine: Engine | AsyncEngine) -> dict[str, Any]:
    return dialect_for(engine.dialect.name, TABLES).execution_options(Mode.WRITE)


def _resolve(revision: str) -> str | None:
    return head() if revision == "head" else revision
