"""How a database stands to this cpstore, what is said of it, and what is done on a caller's connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Connection, Engine, create_engine, inspect, make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import (
    AsyncOnlyError,
    ConfigurationError,
    CpstoreError,
    ForeignTablesError,
    NewerDatabaseError,
    NotMigratedError,
    OutdatedDatabaseError,
    SQLAlchemySaver,
    UnknownRevisionError,
    migrations,
)
from cpstore.cli import main
from cpstore.migrations import State
from tests.conftest import dispose
from tests.tour import put, tour

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from tests.ways import Way

ROOT: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
SYNC = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
VERSION = "cpstore_alembic_version"


def execute(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def behind(engine: Engine) -> None:
    """Tables of an older cpstore: one that called a column otherwise."""
    migrations.upgrade(engine, "0001")
    execute(engine, "ALTER TABLE checkpoint_blobs RENAME COLUMN blob TO old_blob")


def ahead(engine: Engine) -> None:
    """Tables of a newer cpstore: one that calls a column otherwise."""
    migrations.upgrade(engine)
    execute(
        engine,
        f"UPDATE {VERSION} SET version_num = '9999'",
        "ALTER TABLE checkpoint_blobs RENAME COLUMN blob TO new_blob",
    )


def incomplete(engine: Engine) -> None:
    """Somebody dropped a table by hand."""
    migrations.upgrade(engine)
    execute(engine, "DROP TABLE checkpoint_blobs")


def foreign(engine: Engine) -> None:
    execute(engine, "CREATE TABLE checkpoints (id INTEGER)")


def official(engine: Engine) -> None:
    """Tables as langgraph-checkpoint-postgres has them; tests/test_adoption.py has real ones."""
    migrations.upgrade(engine, "0001")
    execute(engine, f"DROP TABLE {VERSION}", "CREATE TABLE checkpoint_migrations (v INTEGER PRIMARY KEY)")


def nothing(_engine: Engine) -> None:
    """An empty database."""


STATES: list[tuple[Callable[[Engine], None], State, int]] = [
    # how it came, how it stands, and the exit code of `cpstore db check`
    (nothing, State.EMPTY, 3),
    (migrations.upgrade, State.CURRENT, 0),
    (behind, State.BEHIND, 3),
    (ahead, State.AHEAD, 4),
    (incomplete, State.INCOMPLETE, 5),
    (foreign, State.FOREIGN, 5),
    (official, State.OFFICIAL, 5),
]


@pytest.mark.parametrize(("make", "state", "code"), STATES, ids=[case[0].__name__ for case in STATES])
def test_how_a_database_stands(
    empty: Engine, empty_dialect_url: str, make: Callable[[Engine], None], state: State, code: int
) -> None:
    make(empty)
    status = migrations.check(empty)
    assert (status.state, status.head) == (state, migrations.head())
    assert migrations.check(empty_dialect_url) == status
    result = CliRunner().invoke(main, ["db", "check", "--url", empty_dialect_url])
    assert result.exit_code == code
    assert result.output.startswith(status.revision or state.value)


REFUSED: list[tuple[Callable[[Engine], None], type[CpstoreError], str]] = [
    (ahead, NewerDatabaseError, "newer cpstore.* revision is 9999"),
    (incomplete, NotMigratedError, "at revision 0002, but tables are missing"),
    (foreign, ForeignTablesError, "did not make.*It is: checkpoints"),
    (official, ForeignTablesError, "cpstore db adopt"),
]
UNUSABLE: list[tuple[Callable[[Engine], None], type[CpstoreError], str]] = [
    (nothing, NotMigratedError, "Run `cpstore db upgrade"),
    (behind, OutdatedDatabaseError, "older cpstore.*Run `cpstore db upgrade.* revision is 0001"),
    *REFUSED[:3],
]


def names(cases: list[Any]) -> list[str]:
    return [case[0].__name__ for case in cases]


@pytest.mark.parametrize(("make", "error", "words"), REFUSED, ids=names(REFUSED))
def test_what_cannot_be_upgraded_is_left_as_it_is(
    empty: Engine,
    empty_dialect_url: str,
    make: Callable[[Engine], None],
    error: type[CpstoreError],
    words: str,
) -> None:
    make(empty)
    before = dump(empty)
    for call in (SQLAlchemySaver(empty).setup, lambda: migrations.upgrade(empty)):
        with pytest.raises(error, match=f"(?s){words}"):
            call()
    result = CliRunner().invoke(main, ["db", "upgrade", "--url", empty_dialect_url])
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    assert dump(empty) == before


@pytest.mark.parametrize(("make", "error", "words"), UNUSABLE, ids=names(UNUSABLE))
async def test_a_saver_says_why_it_cannot_work(
    way: Way, empty_database_url: str, make: Callable[[Engine], None], error: type[CpstoreError], words: str
) -> None:
    migrator = create_engine(make_url(empty_database_url).set(drivername=SYNC[way.dialect]))
    make(migrator)
    migrator.dispose()
    engine = way.engine(empty_database_url)
    saver = way.saver(engine)
    for call in (lambda: put(saver, ROOT, 1, "word"), lambda: tour(saver)):
        with pytest.raises(error, match=f"(?s){words}"):
            await call()
    await dispose(engine)


def dump(engine: Engine) -> list[Any]:
    """All tables, their columns and their rows."""
    with engine.connect() as connection:
        tables = sorted(inspect(connection).get_table_names())
        return [(table, connection.execute(text(f"SELECT * FROM {table}")).all()) for table in tables]


# A caller's connection


async def on_connection(
    engine: Engine | AsyncEngine, work: Callable[[Connection], None], commits: bool
) -> None:
    """Do something in the transaction of an application, which keeps it or takes it back."""
    if isinstance(engine, AsyncEngine):
        async with engine.connect() as connection:
            await connection.run_sync(work)
            await (connection.commit() if commits else connection.rollback())
    else:
        with engine.connect() as connection_:
            work(connection_)
            (connection_.commit if commits else connection_.rollback)()


def migrated(connection: Connection) -> None:
    migrations.upgrade(connection)
    connection.execute(text("CREATE TABLE mine (x INTEGER)"))
    assert migrations.check(connection).state is State.CURRENT
    migrations.upgrade(connection)
    assert connection.in_transaction()


@pytest.mark.parametrize("commits", [False, True])
async def test_all_of_it_is_in_the_transaction_of_a_connection(
    way: Way, empty_database_url: str, commits: bool
) -> None:
    engine = way.engine(empty_database_url)
    await on_connection(engine, migrated, commits)
    await on_connection(engine, lambda connection: check_tables(connection, commits), False)
    if isinstance(engine, AsyncEngine):
        async with engine.begin() as connection:
            await migrations.aupgrade(connection)
            assert (await migrations.acheck(connection)).state is State.CURRENT
        assert await migrations.acurrent(engine) == migrations.head()
    else:
        with engine.begin() as connection_:
            migrations.upgrade(connection_)
        assert migrations.current(engine) == migrations.head()
    await tour(way.saver(engine))
    await dispose(engine)


def check_tables(connection: Connection, there: bool) -> None:
    expected = {"mine", "checkpoints", "checkpoint_blobs", "checkpoint_writes", VERSION} if there else set()
    assert set(inspect(connection).get_table_names()) == expected


def test_a_connections_own_time_limit_stays(empty: Engine) -> None:
    if empty.dialect.name == "sqlite":
        with empty.begin() as connection:
            migrations.upgrade(connection)
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 5000
        return
    with empty.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '7s'"))
        migrations.upgrade(connection)
        assert connection.execute(text("SHOW lock_timeout")).scalar() == "7s"


# URLs


async def test_a_url_of_any_driver_is_enough(way: Way, empty_database_url: str) -> None:
    await asyncio.to_thread(migrations.upgrade, empty_database_url)
    assert await migrations.acurrent(empty_database_url) == migrations.head()
    await migrations.astamp(empty_database_url, "0001")
    assert await asyncio.to_thread(migrations.current, empty_database_url) == "0001"
    await migrations.aupgrade(empty_database_url)
    engine = way.engine(empty_database_url)
    await tour(way.saver(engine))
    await dispose(engine)


async def test_an_async_driver_in_an_event_loop_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/a.db"
    with pytest.raises(AsyncOnlyError):
        migrations.upgrade(url)
    await migrations.aupgrade(url)


@pytest.mark.parametrize("target", [None, 1, object(), SQLAlchemySaver])
def test_what_is_no_target_is_refused(target: Any) -> None:
    with pytest.raises(ConfigurationError, match="Pass a URL, an engine or a connection"):
        migrations.upgrade(target)


def test_an_unknown_revision_is_an_error(empty: Engine, empty_dialect_url: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: migrations.upgrade(empty, "nowhere"),
        lambda: migrations.stamp(empty, "nowhere"),
        lambda: migrations.sql(empty_dialect_url, "nowhere"),
        lambda: migrations.sql(empty_dialect_url, start="nowhere"),
    ]
    for call in calls:
        with pytest.raises(UnknownRevisionError, match="'nowhere'; it knows: 0001, 0002, head"):
            call()
    for command in ("upgrade", "stamp", "sql"):
        result = CliRunner().invoke(main, ["db", command, "--url", empty_dialect_url, "nowhere"])
        assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert inspect(empty).get_table_names() == []


@pytest.mark.parametrize("commits", [False, True])
def test_a_stamp_is_in_the_transaction_of_a_connection(empty: Engine, commits: bool) -> None:
    migrations.upgrade(empty)
    with empty.connect() as connection:
        migrations.stamp(connection, "base")
        assert migrations.current(connection) is None
        (connection.commit if commits else connection.rollback)()
    assert migrations.current(empty) == (None if commits else migrations.head())


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/none.db"
    for found in (migrations.check(url), asyncio.run(migrations.acheck(url))):
        assert (found.state, found.revision, found.tables) == (State.EMPTY, None, ())
    assert migrations.current(url) is None
    assert list(tmp_path.iterdir()) == []
