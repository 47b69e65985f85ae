"""Migrations: from nothing to head by every way, the same tables as the models, and no step that harms."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from alembic import command
from sqlalchemy import Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import Base, SQLAlchemySaver, migrations
from tests.conftest import dispose

if TYPE_CHECKING:
    from tests.ways import Dialect, Way

ROOT = Path(__file__).parent.parent
TABLES = {"checkpoints", "checkpoint_blobs", "checkpoint_writes", "cpstore_alembic_version"}


def tables(engine: Engine) -> set[str]:
    return set(inspect(engine).get_table_names())


def schema(engine: Engine, dialect: Dialect) -> list[Any]:
    """All that the database says of our tables and indexes, in its own words."""
    queries = {
        "sqlite": "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'cpstore%' AND sql IS NOT NULL",
        "postgresql": (
            "SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default"
            " FROM information_schema.columns WHERE table_name LIKE 'checkpoint%'"
            " UNION ALL SELECT tablename, indexname, indexdef, '', '', '' FROM pg_indexes"
            " WHERE tablename LIKE 'checkpoint%'"
        ),
    }
    with engine.connect() as connection:
        rows = connection.execute(text(queries[dialect])).all()
    return sorted(tuple(" ".join(str(value).split()) for value in row) for row in rows)


async def migrate_through(way: Way, url: str) -> Engine | AsyncEngine:
    engine = way.engine(url)
    saver = way.saver(engine)
    if way.sync:
        saver.setup()
        saver.setup()
    else:
        await saver.asetup()
        await saver.asetup()
    return engine


async def test_setup_migrates_through_every_driver_inside_an_event_loop(
    way: Way, empty_database_url: str
) -> None:
    engine = await migrate_through(way, empty_database_url)
    if isinstance(engine, AsyncEngine):
        assert await migrations.acurrent(engine) == migrations.head()
    else:
        assert migrations.current(engine) == migrations.head()
    await dispose(engine)


def test_setup_of_a_migrated_database_only_reads(dialect_url: str) -> None:
    engine = create_engine(dialect_url)
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    SQLAlchemySaver(engine).setup()
    engine.dispose()
    assert statements
    assert {statement.split()[0].upper() for statement in statements} <= {"SELECT", "PRAGMA", "SHOW"}


@pytest.mark.filterwarnings("ignore:.*expression-based index")  # SQLite cannot reflect one; compared below
def test_models_and_head_agree(empty: Engine) -> None:
    migrations.upgrade(empty)
    with empty.begin() as connection:
        command.check(migrations.config(connection))


def test_migrations_make_what_the_models_say(empty: Engine, dialect: Dialect) -> None:
    migrations.upgrade(empty)
    migrated = schema(empty, dialect)
    with empty.begin() as connection:
        command.downgrade(migrations.config(connection), "base")
    assert tables(empty) <= {"cpstore_alembic_version"}
    Base.metadata.create_all(empty)
    assert schema(empty, dialect) == migrated
    assert len(migrated) >= 4


def test_other_tables_are_left_alone(empty: Engine) -> None:
    with empty.begin() as connection:
        connection.execute(text("CREATE TABLE mine (id INTEGER PRIMARY KEY)"))
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('theirs')"))
    migrations.upgrade(empty)
    with empty.begin() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [
            "theirs"
        ]
        command.downgrade(migrations.config(connection), "base")
    assert tables(empty) >= {"mine", "alembic_version"}


def test_a_migration_that_fails_leaves_nothing(empty: Engine, dialect: Dialect) -> None:
    """The last index is in the way, so all that was made before it must go again."""
    with empty.begin() as connection:
        connection.execute(text("CREATE TABLE mine (x INTEGER)"))
        connection.execute(text("CREATE INDEX checkpoints_checkpoint_id_idx ON mine (x)"))
    with pytest.raises(DBAPIError, match="already exists"):
        migrations.upgrade(empty)
    assert tables(empty) == {"mine"}


def run(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@pytest.mark.parametrize("round_", range(2))
def test_processes_that_start_together_all_succeed(
    empty: Engine, empty_dialect_url: str, round_: int
) -> None:
    program = "import sys; from cpstore import SQLAlchemySaver as S; S.from_url(sys.argv[1]).setup()"
    started = [run("-W", "ignore::ResourceWarning", "-c", program, empty_dialect_url) for _ in range(5)]
    for process in started:
        finish(process)
    assert tables(empty) == TABLES
    assert migrations.current(empty) == migrations.head()


async def test_tasks_that_start_together_all_succeed(way: Way, empty_database_url: str) -> None:
    engine = way.engine(empty_database_url)
    saver = SQLAlchemySaver(engine)
    await asyncio.gather(*(saver.asetup() for _ in range(5)))
    await dispose(engine)


def test_alembic_takes_the_url_from_x(empty: Engine, empty_dialect_url: str) -> None:
    finish(run("-m", "alembic", "-x", f"url={empty_dialect_url}", "upgrade", "head"))
    assert tables(empty) == TABLES


def test_alembic_takes_the_url_from_the_environment(empty: Engine, empty_dialect_url: str) -> None:
    finish(run("-m", "alembic", "upgrade", "head", CPSTORE_DATABASE_URL=empty_dialect_url))
    assert tables(empty) == TABLES


def test_alembic_takes_the_url_from_the_config(empty: Engine, empty_dialect_url: str, tmp_path: Path) -> None:
    ini = tmp_path / "alembic.ini"
    ini.write_text(f"[alembic]\nscript_location = {ROOT}/alembic\nsqlalchemy.url = {empty_dialect_url}\n")
    finish(run("-m", "alembic", "-c", str(ini), "upgrade", "head"))
    assert tables(empty) == TABLES


async def test_alembic_works_through_every_driver(way: Way, empty_database_url: str) -> None:
    await asyncio.to_thread(
        finish, run("-m", "alembic", "-x", f"url={empty_database_url}", "upgrade", "head")
    )
    engine = way.engine(empty_database_url)
    if isinstance(engine, AsyncEngine):
        assert await migrations.acurrent(engine) == migrations.head()
    else:
        assert migrations.current(engine) == migrations.head()
    await dispose(engine)


def test_alembic_without_a_url_says_where_to_put_one() -> None:
    process = run("-m", "alembic", "upgrade", "head", CPSTORE_DATABASE_URL="")
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "CPSTORE_DATABASE_URL" in err


def test_offline_sql_makes_the_same_tables(empty: Engine, empty_dialect_url: str, dialect: Dialect) -> None:
    sql = finish(run("-m", "alembic", "-x", f"url={empty_dialect_url}", "upgrade", "head", "--sql"))
    with empty.connect() as connection:
        for statement in filter(None, (part.strip() for part in sql.split(";\n"))):
            connection.exec_driver_sql(statement)
        connection.commit()
    made = schema(empty, dialect)
    assert tables(empty) == TABLES
    with empty.begin() as connection:
        command.downgrade(migrations.config(connection), "base")
    Base.metadata.create_all(empty)
    assert schema(empty, dialect) == made
