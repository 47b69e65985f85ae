"""The views for people are where the tables are, and stand in nobody's way, on both databases."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import pytest
from alembic import command
from click.testing import CliRunner
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import NotMigratedError, SQLAlchemySaver, migrations
from cpstore.cli import main
from cpstore.migrations import State, scripts
from cpstore.migrations.scripts import known
from cpstore.names import Names
from tests.conftest import dispose
from tests.test_names import attach
from tests.test_sql_view_rows import checkpoint_row, rows
from tests.tour import put

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from tests.ways import Dialect, Way

VIEWS = {"cpstore_threads", "cpstore_checkpoints"}
ROOT: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def views(engine: Engine, schema: str | None = None) -> set[str]:
    return set(inspect(engine).get_view_names(schema))


# Where they are


@pytest.mark.parametrize(
    "place", [{}, {"prefix": "lg_"}, {"schema": "one"}, {"schema": "one", "prefix": "lg_"}]
)
def test_they_are_where_the_tables_are(
    empty: Engine, empty_dialect_url: str, dialect: Dialect, place: dict[str, str]
) -> None:
    if dialect == "sqlite":
        attach(empty, empty_dialect_url)
    saver = SQLAlchemySaver(empty, **place)  # type: ignore[arg-type]
    saver.setup()
    asyncio.run(put(saver, ROOT, 0, "word"))
    schema, prefix = place.get("schema"), place.get("prefix", "")
    migrations.create_views(empty, **place)
    migrations.create_views(empty, **place)
    assert views(empty, schema) == {prefix + name for name in VIEWS}
    qualified = f"{schema}.{prefix}" if schema else prefix
    (row,) = rows(empty, f"{qualified}cpstore_checkpoints")
    assert row == checkpoint_row(next(saver.history("t")))
    migrations.drop_views(empty, **place)
    migrations.drop_views(empty, **place)
    assert views(empty, schema) == set()


def test_a_schema_translate_map_is_followed(empty: Engine, empty_dialect_url: str, dialect: Dialect) -> None:
    if dialect == "sqlite":
        attach(empty, empty_dialect_url)
    tenant = empty.execution_options(schema_translate_map={None: "two"})
    SQLAlchemySaver(tenant).setup()
    migrations.create_views(tenant)
    assert (views(empty), views(empty, "two")) == (set(), VIEWS)
    migrations.drop_views(tenant)
    assert views(empty, "two") == set()


def test_an_attached_file_has_them_by_any_name(tmp_path: Path) -> None:
    attached, alone = (
        create_engine(f"sqlite:///{tmp_path}/app.db"),
        create_engine(f"sqlite:///{tmp_path}/app.db.one"),
    )
    attach(attached, f"sqlite:///{tmp_path}/app.db")
    migrations.upgrade(attached, schema="one")
    migrations.create_views(attached, schema="one")
    assert rows(alone, "cpstore_threads") == []
    attached.dispose()
    alone.dispose()


async def test_they_are_made_through_every_driver(way: Way, empty_database_url: str) -> None:
    engine = way.engine(empty_database_url)
    if isinstance(engine, AsyncEngine):
        await migrations.aupgrade(engine)
        await migrations.acreate_views(engine)
        async with engine.connect() as connection:
            assert (await connection.execute(text("SELECT * FROM cpstore_threads"))).all() == []
        await migrations.adrop_views(engine)
    else:
        migrations.upgrade(engine)
        migrations.create_views(engine)
        assert rows(engine, "cpstore_threads") == []
        migrations.drop_views(engine)
    await dispose(engine)


def test_on_a_connection_they_roll_back_with_it(database: Engine) -> None:
    with database.connect() as connection:
        migrations.create_views(connection)
        connection.rollback()
    assert views(database) == set()


def run_sql(engine: Engine, sql: str) -> None:
    with engine.begin() as connection:
        for statement in filter(None, (part.strip() for part in sql.split(";\n"))):
            connection.exec_driver_sql(statement)


@pytest.mark.parametrize("place", [{}, {"schema": "one", "prefix": "lg_"}])
def test_the_sql_does_the_same(
    empty: Engine, empty_dialect_url: str, dialect: Dialect, place: dict[str, str]
) -> None:
    if dialect == "sqlite":
        attach(empty, empty_dialect_url)
    run_sql(empty, migrations.sql(f"{dialect}://", **place))
    made = migrations.views_sql(f"{dialect}://", **place)  # type: ignore[arg-type]
    for _ in range(2):
        run_sql(empty, made)
    by_hand = definitions(empty, place.get("schema"))
    assert len(by_hand) == 2
    migrations.create_views(empty, **place)
    assert definitions(empty, place.get("schema")) == by_hand
    assert migrations.check(empty, **place).state is State.CURRENT
    run_sql(empty, migrations.views_sql(f"{dialect}://", drop=True, **place))
    assert views(empty, place.get("schema")) == set()


def definitions(engine: Engine, schema: str | None) -> dict[str, str | None]:
    inspector = inspect(engine)
    return {
        name: inspector.get_view_definition(name, schema=schema) for name in inspector.get_view_names(schema)
    }


# Nobody needs them, and they are in nobody's way


def test_a_database_is_current_with_them_and_without(database: Engine) -> None:
    assert migrations.check(database).state is State.CURRENT
    migrations.create_views(database)
    assert migrations.check(database).state is State.CURRENT


@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_models_and_head_agree_with_views_there(database: Engine) -> None:
    migrations.create_views(database)
    with database.begin() as connection:
        command.check(migrations.config(connection))


def test_they_need_the_tables(empty: Engine) -> None:
    with pytest.raises(NotMigratedError):
        migrations.create_views(empty)
    migrations.drop_views(empty)
    assert views(empty) == set()


@pytest.mark.parametrize("prefix", ["", "lg_"])
def test_a_downgrade_drops_them_with_the_tables(empty: Engine, prefix: str) -> None:
    migrations.upgrade(empty, prefix=prefix)
    migrations.create_views(empty, prefix=prefix)
    with empty.begin() as connection:
        names = Names(None, prefix)
        command.downgrade(migrations.config(connection, names), "base")
    assert views(empty) == set()
    assert set(inspect(empty).get_table_names()) <= {f"{prefix}cpstore_alembic_version"}


def test_a_downgrade_by_hand_drops_them_too(empty: Engine, empty_dialect_url: str) -> None:
    migrations.upgrade(empty)
    migrations.create_views(empty)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "alembic",
            "-x",
            f"url={empty_dialect_url}",
            "downgrade",
            "head:base",
            "--sql",
        ],
        cwd=scripts().parent,
        capture_output=True,
        text=True,
        check=True,
    )
    run_sql(empty, done.stdout)
    assert views(empty) == set()
    assert "checkpoints" not in inspect(empty).get_table_names()


def test_tables_that_have_their_names_are_left_alone(empty: Engine) -> None:
    """With the prefix `cpstore_`, a table is called as a view is without one."""
    migrations.upgrade(empty, prefix="cpstore_")
    migrations.upgrade(empty)
    with pytest.raises(DBAPIError):
        migrations.create_views(empty)
    assert views(empty) == set()
    with empty.begin() as connection:
        command.downgrade(migrations.config(connection), "base")
    assert migrations.check(empty, prefix="cpstore_").state is State.CURRENT


def test_an_upgrade_leaves_them(empty: Engine) -> None:
    migrations.upgrade(empty, "0001")
    migrations.create_views(empty)
    migrations.upgrade(empty)
    assert views(empty) == VIEWS


NEXT = """
from alembic import op
revision, down_revision, branch_labels, depends_on = "9999", "{head}", None, None
def upgrade():
    for view in ("cpstore_threads", "cpstore_checkpoints"):
        op.execute("DROP VIEW IF EXISTS " + view)
    op.execute("ALTER TABLE checkpoint_writes RENAME COLUMN task_path TO place")
    op.execute("ALTER TABLE checkpoint_writes RENAME COLUMN place TO task_path")
"""


@pytest.fixture
def _newer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A cpstore with a further revision, which drops the views to change a table."""
    module = sys.modules["cpstore.migrations.scripts"]
    folder = tmp_path / "alembic"
    shutil.copytree(scripts(), folder)
    (folder / "versions" / "9999.py").write_text(NEXT.format(head=migrations.head()))
    monkeypatch.setattr(module, "scripts", lambda: folder)
    known.cache_clear()
    yield
    known.cache_clear()


@pytest.mark.usefixtures("_newer")
@pytest.mark.parametrize("before", [VIEWS, set()])
def test_a_revision_that_drops_them_gets_them_again(empty: Engine, before: set[str]) -> None:
    migrations.upgrade(empty, known()[-2])
    if before:
        migrations.create_views(empty)
    migrations.upgrade(empty)
    assert migrations.current(empty) == "9999"
    assert views(empty) == before


# Rights


def test_who_may_read_them_need_not_read_the_tables(
    dialect_url: str, dialect: Dialect, database: Engine
) -> None:
    if dialect == "sqlite":
        pytest.skip("SQLite has no roles")
    migrations.create_views(database)
    role = f"reader_{uuid.uuid4().hex}"
    with database.connect() as connection:
        connection.execute(text(f"CREATE ROLE {role}"))
        connection.execute(text(f"GRANT SELECT ON cpstore_threads, cpstore_checkpoints TO {role}"))
        migrations.create_views(connection)  # again, and the rights stay
        connection.execute(text(f"SET LOCAL ROLE {role}"))
        assert connection.execute(text("SELECT * FROM cpstore_threads")).all() == []
        assert connection.execute(text("SELECT * FROM cpstore_checkpoints")).all() == []
        with pytest.raises(DBAPIError, match="permission denied"):
            connection.execute(text("SELECT * FROM checkpoints"))
        connection.rollback()


# The command


def test_the_command(empty: Engine, empty_dialect_url: str) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["db", "views", "--url", empty_dialect_url, *arguments])
        return result.exit_code, result.output

    code, output = run()
    assert (code, output.count("\n")) == (1, 1)
    assert "cpstore db upgrade" in output
    migrations.upgrade(empty)
    assert run("--sql") == (0, migrations.views_sql(empty_dialect_url))
    assert views(empty) == set()
    assert run() == (0, "")
    assert views(empty) == VIEWS
    assert run("--sql", "--drop") == (0, migrations.views_sql(empty_dialect_url, drop=True))
    assert run("--drop") == (0, "")
    assert views(empty) == set()
