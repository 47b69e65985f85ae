"""Migrations that can be trusted: together, with few rights, on what is read only, from each revision."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import DBAPIError

from cpstore import MigrationTurnError, SQLAlchemySaver, migrations
from cpstore.migrations import State, targets
from cpstore.names import Names
from tests import golden, postgres
from tests.conftest import text_of
from tests.golden.__main__ import ROOT
from tests.together import run_together
from tests.tour import tour

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import URL

    from tests.ways import Dialect

REPOSITORY = Path(__file__).parent.parent
GOLDEN = Path(golden.__file__).parent
TABLES = {"checkpoints", "checkpoint_blobs", "checkpoint_writes", "cpstore_alembic_version"}


@pytest.fixture
def url(postgres_server: postgres.Server) -> Iterator[URL]:
    """An empty database on PostgreSQL."""
    with postgres.temporary_database(postgres_server.url) as made:
        yield made


# Together


@pytest.mark.parametrize("round_", range(5))
def test_six_processes_on_an_empty_database(empty: Engine, empty_dialect_url: str, round_: int) -> None:
    program = "import sys; from cpstore import migrations; migrations.upgrade(sys.argv[1])"
    run_together(6, program, empty_dialect_url)
    assert set(inspect(empty).get_table_names()) == TABLES
    assert migrations.check(empty).state is State.CURRENT


def test_who_waits_too_long_is_told(url: URL, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else holds the turn, and does not end."""
    engine = create_engine(url)
    monkeypatch.setattr(targets, "TURN_SECONDS", 0.2)
    monkeypatch.setattr("cpstore.migrations.steps.TURN_SECONDS", 1)
    with targets.turn(engine, Names()):
        with pytest.raises(MigrationTurnError, match="Another process is migrating"):
            migrations.upgrade(engine)
        with engine.begin() as connection, pytest.raises(MigrationTurnError):
            migrations.upgrade(connection)
    migrations.upgrade(engine)
    engine.dispose()


# Few rights


@pytest.fixture
def role(url: URL) -> Iterator[str]:
    """A role that may connect, and nothing else."""
    name = "app role"
    with psycopg.connect(text_of(url.set(drivername="postgresql")), autocommit=True) as connection:
        connection.execute(f'CREATE ROLE "{name}" LOGIN')
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        yield name
        connection.execute(f'DROP OWNED BY "{name}"')
        connection.execute(f'DROP ROLE "{name}"')


@pytest.mark.parametrize("place", [{}, {"schema": "lg", "prefix": "x_"}], ids=str)
async def test_the_grants_are_what_a_role_needs(url: URL, role: str, place: dict[str, Any]) -> None:
    owner = create_engine(url)
    migrations.upgrade(owner, **place)
    engine = create_engine(url.set(username=role))
    saver = SQLAlchemySaver(engine, **place)
    with pytest.raises(DBAPIError, match="permission denied"):
        saver.get_tuple(ROOT)
    with owner.begin() as connection:
        connection.exec_driver_sql(migrations.grants(role, **place))
    saver.setup()
    await tour(saver)
    with pytest.raises(DBAPIError, match=r"permission denied|must be owner"), engine.begin() as connection:
        connection.execute(
            text(f"DROP TABLE {place.get('schema', 'public')}.{place.get('prefix', '')}checkpoints")
        )
    engine.dispose()
    owner.dispose()


def test_a_migrated_database_may_be_read_only(
    empty: Engine, empty_dialect_url: str, dialect: Dialect
) -> None:
    saver = SQLAlchemySaver(empty)
    saver.setup()
    stored = saver.put(ROOT, {"v": 4, "id": "1"}, {"run_id": "r"}, {})  # type: ignore[typeddict-item]
    empty.dispose()
    target = make_url(empty_dialect_url)
    if dialect == "sqlite":
        target = target.set(database=f"file:{target.database}").update_query_dict(
            {"mode": "ro", "uri": "true"}
        )
    else:
        target = target.update_query_dict({"options": "-c default_transaction_read_only=on"})
    for made in (SQLAlchemySaver(create_engine(target)), SQLAlchemySaver.from_url(target)):
        made.setup()
        assert made.get_tuple(stored) is not None
        assert [one.thread_id for one in made.list_threads()] == ["golden"]
        with pytest.raises(DBAPIError):
            made.put(ROOT, {"v": 4, "id": "2"}, {}, {})  # type: ignore[typeddict-item]
        made._door.close()


def test_start_up_only_selects(empty: Engine) -> None:
    migrations.upgrade(empty)
    statements: list[str] = []
    event.listen(empty, "before_cursor_execute", lambda *given: statements.append(given[2]))
    SQLAlchemySaver(empty).setup()
    assert statements
    assert {statement.split()[0].upper() for statement in statements} <= {"SELECT", "PRAGMA"}


# SQL to run by hand


@pytest.mark.parametrize("place", [{}, {"schema": "lg", "prefix": "x_"}], ids=str)
def test_offline_sql_makes_the_same_tables(empty: Engine, dialect: Dialect, place: dict[str, Any]) -> None:
    if dialect == "sqlite" and place:
        place = {"schema": "main", "prefix": "x_"}
    script = migrations.sql(f"{dialect}://", **place)
    with empty.connect() as connection:
        driver: Any = connection.connection.driver_connection
        (driver.executescript if dialect == "sqlite" else driver.execute)(script)
        driver.commit()
    assert migrations.check(empty, **place).state is State.CURRENT
    assert place == {} or f"{place['schema']}.x_checkpoints" in script
    SQLAlchemySaver(empty, **place).setup()
    SQLAlchemySaver(empty, **place).put(ROOT, {"v": 4, "id": "1"}, {}, {})  # type: ignore[typeddict-item]


def test_offline_sql_from_a_revision(empty: Engine, dialect: Dialect) -> None:
    migrations.upgrade(empty, "0001")
    script = migrations.sql(f"{dialect}://", start="0001")
    assert "CREATE TABLE" not in script
    with empty.connect() as connection:
        driver: Any = connection.connection.driver_connection
        (driver.executescript if dialect == "sqlite" else driver.execute)(script)
        driver.commit()
    assert migrations.check(empty).state is State.CURRENT


# Golden databases


def revisions() -> list[str]:
    return sorted(path.name.split(".")[0] for path in GOLDEN.glob("*.sqlite"))


def test_each_revision_has_golden_databases() -> None:
    known = sorted(path.name.split("_")[0] for path in (REPOSITORY / "alembic" / "versions").glob("*.py"))
    assert revisions() == known
    assert sorted(path.name.split(".")[0] for path in GOLDEN.glob("*.postgresql.sql")) == known


@pytest.mark.parametrize("revision", revisions())
async def test_a_golden_database_is_upgraded_and_used(empty: Engine, dialect: Dialect, revision: str) -> None:
    if dialect == "sqlite":
        shutil.copyfile(GOLDEN / f"{revision}.sqlite", str(empty.url.database))
    else:
        with empty.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute((GOLDEN / f"{revision}.postgresql.sql").read_text())
            driver.commit()
    assert migrations.current(empty) == revision
    saver = SQLAlchemySaver(empty)
    saver.setup()
    assert migrations.check(empty).state is State.CURRENT
    found = saver.get_tuple(ROOT)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"word": "word", "list": ["word", "word"]}
    assert [write[1:] for write in found.pending_writes or []] == [("__error__", "e"), ("log", [2])]
    assert len(list(saver.history("golden"))) == 4
    await tour(saver)
    assert len(list(saver.history("golden"))) == 2  # the tour deletes what a run of its own name made
    if dialect == "sqlite":
        with closing(sqlite3.connect(str(empty.url.database))) as file:
            assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
