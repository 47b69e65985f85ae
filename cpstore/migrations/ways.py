"""What can be done with a database's tables: look, upgrade, stamp, adopt. Sync and async."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import engines
from cpstore.errors import CpstoreError, NotMigratedError, UnknownSourceError
from cpstore.migrations import indexes, status, steps, views
from cpstore.migrations.status import Status, status_of
from cpstore.migrations.targets import AsyncTarget, Target, arun, reading, run, turn, writing
from cpstore.models import Models
from cpstore.names import Names, names_of

__all__ = [
    "aadopt",
    "acheck",
    "acreate_views",
    "acurrent",
    "adopt",
    "adowngrade",
    "adrop_views",
    "amigrate",
    "astamp",
    "aupgrade",
    "check",
    "create_views",
    "current",
    "downgrade",
    "drop_views",
    "explain",
    "migrate",
    "stamp",
    "upgrade",
]


def check(target: Target, *, schema: str | None = None, prefix: str = "") -> Status:
    """Tell what a database has. Only reads; an SQLite file that is not there is not made.

    Args:
        target: A database URL, an engine, or a connection.
        schema: Where the tables are; None: where the connection looks for them.
        prefix: What their names begin with.
    """
    try:
        return run(target, partial(_check, names=names_of(schema, prefix)), engines.read_only)
    except UnknownSourceError:
        return status.nothing()


async def acheck(target: AsyncTarget, *, schema: str | None = None, prefix: str = "") -> Status:
    """Async version of :func:`check`."""
    try:
        return await arun(target, partial(_check, names=names_of(schema, prefix)), engines.read_only)
    except UnknownSourceError:
        return status.nothing()


def current(target: Target, *, schema: str | None = None, prefix: str = "") -> str | None:
    """Give the revision that a database has; None if it has none. Only reads."""
    return check(target, schema=schema, prefix=prefix).revision


async def acurrent(target: AsyncTarget, *, schema: str | None = None, prefix: str = "") -> str | None:
    """Async version of :func:`current`."""
    return (await acheck(target, schema=schema, prefix=prefix)).revision


def upgrade(target: Target, revision: str = "head", *, schema: str | None = None, prefix: str = "") -> None:
    """Migrate a database, all or nothing. Nothing is written if it is at `revision` already.

    A schema that is not there is made. Processes that start together take turns. On PostgreSQL, indexes for
    tables that are there already are built first, while others go on writing: without a transaction, so they
    stay if the rest fails; and only on an engine that can give two connections.

    Args:
        target: A database URL, an engine, or a connection, in whose transaction all of it happens.
        revision: The revision to reach.
        schema: Where the tables are; None: where the connection looks for them.
        prefix: What their names begin with.

    Raises:
        MigrationTurnError: Another process migrates and did not end in time (120 seconds).
        NewerDatabaseError: The database was migrated by a newer cpstore.
        ForeignTablesError: Tables of these names are there, and cpstore did not make them.
        UnknownRevisionError: This cpstore knows no such revision.
    """
    run(target, partial(_upgrade, names=names_of(schema, prefix), revision=revision))


async def aupgrade(
    target: AsyncTarget, revision: str = "head", *, schema: str | None = None, prefix: str = ""
) -> None:
    """Async version of :func:`upgrade`."""
    await arun(target, partial(_upgrade, names=names_of(schema, prefix), revision=revision))


def downgrade(target: Target, revision: str, *, schema: str | None = None, prefix: str = "") -> None:
    """Undo migrations down to a revision, all or nothing.

    Args:
        target: A database URL, an engine, or a connection, in whose transaction all of it happens.
        revision: The revision to go back to. `base`: the tables are dropped, with all that is in them.
        schema: Where the tables are; None: where the connection looks for them.
        prefix: What their names begin with.

    Raises:
        NotMigratedError: There are no tables.
        MigrationTurnError: As :func:`upgrade`.
        NewerDatabaseError: As :func:`upgrade`.
        ForeignTablesError: As :func:`upgrade`.
        UnknownRevisionError: This cpstore knows no such revision, or the database is below it.
    """
    run(target, partial(_downgrade, names=names_of(schema, prefix), revision=revision))


async def adowngrade(
    target: AsyncTarget, revision: str, *, schema: str | None = None, prefix: str = ""
) -> None:
    """Async version of :func:`downgrade`."""
    await arun(target, partial(_downgrade, names=names_of(schema, prefix), revision=revision))


def stamp(target: Target, revision: str, *, schema: str | None = None, prefix: str = "") -> None:
    """Write down that a database is at a revision, without running a script.

    Args:
        target: A database URL, an engine, or a connection, in whose transaction it happens.
        revision: The revision, `head`, or `base` for none.
        schema: Where the tables are; None: where the connection looks for them.
        prefix: What their names begin with.

    Raises:
        MigrationTurnError: As :func:`upgrade`.
        UnknownRevisionError: This cpstore knows no such revision.
    """
    run(target, partial(_stamp, names=names_of(schema, prefix), revision=revision))


async def astamp(target: AsyncTarget, revision: str, *, schema: str | None = None, prefix: str = "") -> None:
    """Async version of :func:`stamp`."""
    await arun(target, partial(_stamp, names=names_of(schema, prefix), revision=revision))


def adopt(target: Target, *, schema: str | None = None) -> None:
    """Take over a database of langgraph-checkpoint-postgres in place, and migrate it to the newest revision.

    Its tables and rows stay as they are, so the official saver can go on beside cpstore. Again is harmless.

    Args:
        target: A database URL, an engine, or a connection, in whose transaction all of it happens.
        schema: Where the tables are; None: where the connection looks for them.

    Raises:
        NotMigratedError: There are no such tables.
        ForeignTablesError: The tables are others, or of an older langgraph-checkpoint-postgres.
        MigrationTurnError: As :func:`upgrade`.
    """
    run(target, partial(_adopt, names=names_of(schema, "")))


async def aadopt(target: AsyncTarget, *, schema: str | None = None) -> None:
    """Async version of :func:`adopt`."""
    await arun(target, partial(_adopt, names=names_of(schema, "")))


def create_views(target: Target, *, schema: str | None = None, prefix: str = "") -> None:
    """Make the views `cpstore_threads` and `cpstore_checkpoints`, for people with SQL. Again renews them.

    No part of cpstore needs them. An upgrade keeps them; a downgrade that drops the tables drops them first.

    Args:
        target: A database URL, an engine, or a connection, in whose transaction it happens.
        schema: Where the tables are, and so the views; None: where the connection looks for them.
        prefix: What the names of tables and views begin with.

    Raises:
        NotMigratedError: The tables are not there.
        MigrationTurnError: As :func:`upgrade`.
    """
    run(target, partial(_on_views, names=names_of(schema, prefix), work=views.create_on))


async def acreate_views(target: AsyncTarget, *, schema: str | None = None, prefix: str = "") -> None:
    """Async version of :func:`create_views`."""
    await arun(target, partial(_on_views, names=names_of(schema, prefix), work=views.create_on))


def drop_views(target: Target, *, schema: str | None = None, prefix: str = "") -> None:
    """Drop the views that :func:`create_views` made; none are no error.

    Args:
        target: As :func:`create_views`.
        schema: As :func:`create_views`.
        prefix: As :func:`create_views`.

    Raises:
        MigrationTurnError: As :func:`upgrade`.
    """
    run(target, partial(_on_views, names=names_of(schema, prefix), work=views.drop_on))


async def adrop_views(target: AsyncTarget, *, schema: str | None = None, prefix: str = "") -> None:
    """Async version of :func:`drop_views`."""
    await arun(target, partial(_on_views, names=names_of(schema, prefix), work=views.drop_on))


def migrate(on: Engine | Connection, models: Models) -> None:
    """Bring the tables of models to the newest revision; those of an application have only to be there.

    Raises:
        NotMigratedError: The tables are an application's, and are not there.
        CpstoreError: As :func:`upgrade`.
    """
    if models.names is not None:
        _upgrade(on, models.names, "head")
        return
    with reading(on) as connection:
        if missing := explain(connection, models):
            raise missing


async def amigrate(engine: AsyncEngine, models: Models) -> None:
    """Async version of :func:`migrate`."""
    await arun(engine, partial(migrate, models=models))


def explain(connection: Connection, models: Models) -> CpstoreError | None:
    """Give the error that says why a table or a column was not found; None if it is another reason."""
    if models.names is not None:
        return status.explanation(status_of(connection, models.names))
    if status.lacks(connection, models.tables):
        return NotMigratedError(
            "The tables are not in this database. Run the migrations of your application."
        )
    return None


def _check(on: Engine | Connection, names: Names) -> Status:
    with reading(on) as connection:
        return status_of(connection, names)


def _upgrade(on: Engine | Connection, names: Names, revision: str) -> None:
    if steps.done(_check(on, names), revision):
        return
    if isinstance(on, Engine):
        _build_indexes(on, names)
    with writing(on, names) as connection:
        before = views.there(connection, names)
        steps.upgrade_on(connection, names, revision)
        views.restore_on(connection, names, before)


def _build_indexes(engine: Engine, names: Names) -> None:
    with engine.connect() as connection:
        wanted = indexes.gives_two(engine.pool) and indexes.wanted(connection, names)
    if wanted:
        with turn(engine, names) as holder, engine.connect() as connection:
            with holder.begin_nested():
                pass  # the last result's portal goes, and with it a snapshot that the build would wait for
            indexes.build(connection, names)


def _downgrade(on: Engine | Connection, names: Names, revision: str) -> None:
    with writing(on, names) as connection:
        steps.downgrade_on(connection, names, revision)


def _stamp(on: Engine | Connection, names: Names, revision: str) -> None:
    with writing(on, names) as connection:
        steps.stamp_on(connection, names, revision)


def _on_views(on: Engine | Connection, names: Names, work: Callable[[Connection, Names], None]) -> None:
    with writing(on, names) as connection:
        work(connection, names)


def _adopt(on: Engine | Connection, names: Names) -> None:
    with writing(on, names) as connection:
        steps.adopt_on(connection, names)
    _upgrade(on, names, "head")
