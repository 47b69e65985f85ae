"""What is right and what is wrong with a database and the programs around it. All of it only reads."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from sqlalchemy import Connection, Engine

from cpstore import engines
from cpstore.dialects import Dialect, Finding
from cpstore.migrations.status import Status, explanation, placed, status_of
from cpstore.migrations.steps import speak
from cpstore.migrations.targets import AsyncTarget, Target, arun, reading, run
from cpstore.names import Names, names_of

__all__ = ["Finding", "aexamine", "examine"]

_PACKAGES = ("cpstore", "langgraph-checkpoint", "SQLAlchemy", "alembic")


def examine(target: Target, *, schema: str | None = None, prefix: str = "") -> list[Finding]:
    """Tell how a database fares: versions, settings, revision, tables with their sizes, rights. Only reads.

    Args:
        target: A database URL, an engine, or a connection.
        schema: Where the tables are; None: where the connection looks for them.
        prefix: What their names begin with.
    """
    return run(target, partial(_examine, names=names_of(schema, prefix)), engines.read_only)


async def aexamine(target: AsyncTarget, *, schema: str | None = None, prefix: str = "") -> list[Finding]:
    """Async version of :func:`examine`."""
    return await arun(target, partial(_examine, names=names_of(schema, prefix)), engines.read_only)


def _examine(on: Engine | Connection, names: Names) -> list[Finding]:
    with reading(on) as connection:
        names = placed(connection, names)
        sql = speak(connection.dialect.name, names)
        return [*_versions(connection), *sql.settings(connection), *_tables(connection, sql, names)]


def _versions(connection: Connection) -> Iterator[Finding]:
    yield Finding("Python", platform.python_version())
    for name in _PACKAGES:
        try:
            yield Finding(name, version(name))
        except PackageNotFoundError:  # it is used from its folder
            yield Finding(name, "not installed")
    yield Finding("driver", connection.dialect.driver)


def _tables(connection: Connection, sql: Dialect, names: Names) -> Iterator[Finding]:
    status = status_of(connection, names)
    problem = explanation(status)
    yield Finding("revision", _revision(status), None if problem is None else str(problem))
    if status.tables:
        yield from sql.relations(connection)
    if status.revision is not None and problem is None:
        yield from sql.rights(connection, names.version_table)


def _revision(status: Status) -> str:
    if status.revision is None:
        return status.state.value
    return f"{status.revision}, {status.state.value}; the newest is {status.head}"
