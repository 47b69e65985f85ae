"""`cpstore db doctor`, `db wait` and `db downgrade`: through each driver, on well and unwell databases."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine, make_url

from cpstore import NotMigratedError, SQLAlchemySaver, UnknownRevisionError, UnknownSourceError, migrations
from cpstore.errors import ForeignTablesError, NewerDatabaseError
from cpstore.migrations import waiting
from tests.commands import refusal, run
from tests.looked_at import tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.ext.asyncio import AsyncEngine

    from tests.ways import Dialect, Way


def found(url: str, *options: str) -> tuple[int, dict[str, str], dict[str, str]]:
    """The exit code, what was looked at, and what is wrong with it."""
    told = run("db", "doctor", "--json", *options, url=url)
    findings = json.loads(told.out)
    return (
        told.code,
        {one["name"]: one["value"] for one in findings},
        {one["name"]: one["problem"] for one in findings if one["problem"]},
    )


def serious(problems: dict[str, str]) -> dict[str, str]:
    """Problems that are not those of the tests' own server, which does not care for crashes."""
    careless = ("fsync", "full_page_writes", "synchronous_commit")
    return {name: told for name, told in problems.items() if name not in careless}


def test_a_well_database_through_every_driver(way: Way, database_url: str) -> None:
    code, values, problems = found(database_url)
    assert serious(problems) == {}
    assert code == (6 if problems else 0)
    drivers = ("pysqlite", "aiosqlite") if way.dialect == "sqlite" else ("psycopg", "asyncpg")
    assert values["driver"] in drivers
    assert values["revision"] == f"{migrations.head()}, current; the newest is {migrations.head()}"
    assert {"Python", "SQLAlchemy", "langgraph-checkpoint", "table checkpoints"} <= set(values)
    assert values["index checkpoints_run_id_idx"] == "whole"


async def test_findings_through_every_engine(engine: Engine | AsyncEngine, way: Way) -> None:
    if isinstance(engine, Engine):
        findings = migrations.examine(engine)
    else:
        findings = await migrations.aexamine(engine)
    names = [one.name for one in findings]
    assert ("PostgreSQL" if way.dialect == "postgresql" else "SQLite") in names


def test_the_text(dialect_url: str) -> None:
    told = run("db", "doctor", url=dialect_url)
    assert told.out.splitlines()[0].split() == ["WHAT", "HOW"]
    lines = run("db", "doctor", "--jsonl", url=dialect_url).out.splitlines()
    assert len(lines) == len(told.out.splitlines()) - 1
    problems = [json.loads(line) for line in lines]
    assert [
        f"! {one['name']}: {one['problem']}" for one in problems if one["problem"]
    ] == told.err.splitlines()


def test_a_missing_index(dialect_url: str, database: Engine) -> None:
    with database.begin() as connection:
        connection.exec_driver_sql("DROP INDEX checkpoints_run_id_idx")
    code, values, problems = found(dialect_url)
    assert code == 6
    assert values["index checkpoints_run_id_idx"] == "missing"
    assert "cpstore db upgrade" in serious(problems)["index checkpoints_run_id_idx"]


def test_a_database_that_is_behind(empty_dialect_url: str) -> None:
    migrations.upgrade(empty_dialect_url, "0001")
    code, values, problems = found(empty_dialect_url)
    assert code == 6
    assert values["revision"].startswith("0001, behind")
    assert "cpstore db upgrade" in problems["revision"]


def test_a_prefix(empty_dialect_url: str) -> None:
    migrations.upgrade(empty_dialect_url, prefix="my_")
    _, values, problems = found(empty_dialect_url, "--prefix", "my_")
    assert serious(problems) == {}
    assert "table my_checkpoints" in values
    assert "cpstore db upgrade" in found(empty_dialect_url)[2]["revision"]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_sqlite_file(dialect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(make_url(dialect_url).database)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    monkeypatch.setattr(os, "access", lambda *_: False)
    code, values, problems = found(dialect_url)
    assert (code, values["journal_mode"], values["file"]) == (6, "delete", file)
    assert problems.keys() == {"journal_mode", "file"}
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    none = tmp_path / "none.db"
    assert "There is no file" in refusal("db", "doctor", url=f"sqlite:///{none}")
    assert not none.exists()


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_a_role_without_rights(dialect_url: str, database: Engine) -> None:
    with database.begin() as connection:
        connection.exec_driver_sql("CREATE ROLE patient_of_tests LOGIN")
        connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO patient_of_tests")
    url = make_url(dialect_url).set(username="patient_of_tests").render_as_string(hide_password=False)
    try:
        code, values, problems = found(url)
    finally:
        with database.begin() as connection:
            connection.exec_driver_sql("DROP OWNED BY patient_of_tests")
            connection.exec_driver_sql("DROP ROLE patient_of_tests")
    assert (code, values["role"]) == (6, "patient_of_tests")
    assert "needs INSERT, UPDATE, DELETE: see `cpstore db grants" in problems["rights on checkpoints"]
    assert "rights on cpstore_alembic_version" not in problems


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_settings_that_lose_checkpoints(dialect_url: str) -> None:
    options = make_url(dialect_url).update_query_dict({"options": "-c synchronous_commit=off"})
    _, values, problems = found(options.render_as_string(hide_password=False))
    assert values["synchronous_commit"] == "off"
    assert "A crash may lose what was saved" in problems["synchronous_commit"]
    assert "synchronous_commit" not in found(dialect_url)[2]


# Waiting


def test_a_current_database_is_not_waited_for(way: Way, database_url: str) -> None:
    assert run("db", "wait", "--timeout", "0", url=database_url) == (0, f"{migrations.head()} (newest)\n", "")


def test_one_that_is_not_migrated_is_given_up(dialect: Dialect, empty_dialect_url: str) -> None:
    if dialect == "sqlite":
        Path(str(make_url(empty_dialect_url).database)).touch()
    told = run("db", "wait", "--timeout", "0", url=empty_dialect_url)
    assert (told.code, told.out) == (3, f"not migrated (newest is {migrations.head()})\n")


def test_one_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    server, file = "postgresql://user:secret@127.0.0.1:1/n", f"sqlite:///{tmp_path}/no"
    for url, words in ((server, "refused"), (file, "no file")):
        told = refusal("db", "wait", "--timeout", "0", url=url)
        assert words in told
        assert "secret" not in told
    with pytest.raises(UnknownSourceError):
        migrations.wait_for(f"sqlite:///{tmp_path}/no", timeout=0)


@pytest.fixture
def migrating(empty_dialect_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database that another thread migrates once somebody has looked at it and waits."""
    looked = threading.Event()
    migrated = threading.Event()

    def pause(_seconds: float) -> None:
        looked.set()
        assert migrated.wait(60)

    def migrate() -> None:
        looked.wait(60)
        migrations.upgrade(empty_dialect_url)
        migrated.set()

    monkeypatch.setattr(waiting, "pause", pause)
    thread = threading.Thread(target=migrate)
    thread.start()
    yield empty_dialect_url
    thread.join()


def test_one_that_is_migrated_meanwhile(migrating: str) -> None:
    assert migrations.wait_for(migrating, timeout=600).state is migrations.State.CURRENT


# Going back


def test_down_and_up_again(way: Way, database_url: str) -> None:
    sync = make_url(database_url).set(
        drivername="sqlite" if way.dialect == "sqlite" else "postgresql+psycopg"
    )
    with SQLAlchemySaver.from_url(sync) as saver:
        tell(saver)
    told = run("db", "downgrade", "0001", "--yes", url=database_url)
    assert told == (
        0,
        f"0001 (newest is {migrations.head()})\n",
        "This goes from 0002 to 0001. There are 3 threads, 9 checkpoints, 5.1 kB: no row is deleted.\n",
    )
    assert run("db", "upgrade", url=database_url).code == 0
    assert len(run("history", "trip", "--jsonl", url=database_url).out.splitlines()) == 7
    dropped = run("db", "downgrade", "base", "--yes", url=database_url)
    assert dropped.out.startswith("not migrated")
    assert dropped.err.endswith("all of it is dropped.\n")
    assert "cpstore db upgrade" in refusal("threads", url=database_url)
    assert run("db", "upgrade", url=database_url).code == 0


async def test_down_through_every_engine(engine: Engine | AsyncEngine) -> None:
    if isinstance(engine, Engine):
        migrations.downgrade(engine, "0001")
        assert migrations.current(engine) == "0001"
    else:
        await migrations.adowngrade(engine, "0001")
        assert await migrations.acurrent(engine) == "0001"


def test_there_is_no_way_down(dialect_url: str) -> None:
    migrations.downgrade(dialect_url, "0001")
    with pytest.raises(UnknownRevisionError, match="below 0002"):
        migrations.downgrade(dialect_url, "head")
    with pytest.raises(UnknownRevisionError, match="knows no revision 'x'"):
        migrations.downgrade(dialect_url, "x")
    assert migrations.current(dialect_url) == "0001"
    migrations.downgrade(dialect_url, "base")
    with pytest.raises(NotMigratedError):
        migrations.downgrade(dialect_url, "base")


def test_what_is_not_ours_is_left_alone(dialect_url: str, database: Engine) -> None:
    with database.begin() as connection:
        connection.exec_driver_sql("UPDATE cpstore_alembic_version SET version_num = 'future'")
    with pytest.raises(NewerDatabaseError):
        migrations.downgrade(dialect_url, "base")
    with database.begin() as connection:
        connection.exec_driver_sql("DROP TABLE cpstore_alembic_version")
        connection.exec_driver_sql("ALTER TABLE checkpoints RENAME COLUMN checkpoint TO document")
    with pytest.raises(ForeignTablesError):
        migrations.downgrade(dialect_url, "base")
    with database.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM checkpoints").scalar() == 0
