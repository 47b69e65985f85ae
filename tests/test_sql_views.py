"""The views for people show what the saver tells, on both databases, and stand in nobody's way."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
import shutil
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from alembic import command
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, insert, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import CheckpointSummary, NotMigratedError, SQLAlchemySaver, ThreadSummary, migrations
from cpstore.cli import main
from cpstore.migrations import State, scripts
from cpstore.migrations.scripts import known
from cpstore.models import MODELS
from cpstore.names import Names
from cpstore.times import time_of
from tests.conftest import dispose
from tests.random_histories import History, Player, histories
from tests.test_names import attach
from tests.tour import put

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from tests.ways import Dialect, Way

VIEWS = {"cpstore_threads", "cpstore_checkpoints"}
ROOT: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
PROPERTY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def views(engine: Engine, schema: str | None = None) -> set[str]:
    return set(inspect(engine).get_view_names(schema))


def rows(engine: Engine, view: str, thread_id: str | None = None) -> list[dict[str, Any]]:
    """The rows of a view, times as times; newest checkpoint first."""
    query = f"SELECT * FROM {view} WHERE thread_id = coalesce(:thread_id, thread_id)"
    with engine.connect() as connection:
        found = connection.execute(text(query), {"thread_id": thread_id}).mappings().all()
    made = [
        {name: as_time(value) if name.endswith("_at") else value for name, value in row.items()}
        for row in found
    ]
    return sorted(made, key=lambda row: row.get("checkpoint_id", ""), reverse=True)


def as_time(value: str | dt.datetime | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(value) if isinstance(value, str) else value


def thread_row(told: ThreadSummary, checkpoints: list[CheckpointSummary]) -> dict[str, Any]:
    return {
        "thread_id": told.thread_id,
        "created_at": told.created_at,
        "updated_at": told.updated_at,
        "checkpoints": told.checkpoints,
        "namespaces": len(told.namespaces),
        "first_checkpoint_id": told.first_checkpoint_id,
        "last_checkpoint_id": told.last_checkpoint_id,
        "document_bytes": sum(each.document_bytes for each in checkpoints),
    }


def checkpoint_row(told: CheckpointSummary) -> dict[str, Any]:
    return {
        "thread_id": told.thread_id,
        "checkpoint_ns": told.checkpoint_ns,
        "checkpoint_id": told.checkpoint_id,
        "parent_checkpoint_id": told.parent_checkpoint_id,
        "created_at": told.created_at,
        "source": told.metadata.get("source"),
        "step": told.metadata.get("step"),
        "run_id": told.metadata.get("run_id"),
        "document_bytes": told.document_bytes,
        "value_bytes": told.value_bytes,
        "writes": told.writes,
        "write_bytes": told.write_bytes,
    }


def stored_bytes(engine: Engine, thread_id: str) -> dict[str, int]:
    """What all blobs and writes of a thread take."""
    query = "SELECT count(*), coalesce(sum(length(blob)), 0) FROM {} WHERE thread_id = :thread_id"
    with engine.connect() as connection:
        (_, blobs), (writes, bytes_) = (
            connection.execute(text(query.format(table)), {"thread_id": thread_id}).one()
            for table in ("checkpoint_blobs", "checkpoint_writes")
        )
    return {"value_bytes": blobs, "writes": writes, "write_bytes": bytes_}


# What they show


@PROPERTY
@given(histories())
def test_rows_are_what_the_saver_tells(database: Engine, history: History) -> None:
    migrations.create_views(database)
    player = Player(SQLAlchemySaver(database), lambda: SQLAlchemySaver(database))
    player.play(history)
    told = {thread.thread_id: thread for thread in player.saver.list_threads()}
    for thread_id in player.threads:
        checkpoints = list(player.saver.history(thread_id))
        assert rows(database, "cpstore_checkpoints", thread_id) == [
            checkpoint_row(one) for one in checkpoints
        ]
        expected = []
        if thread_id in told:
            expected = [thread_row(told[thread_id], checkpoints) | stored_bytes(database, thread_id)]
        assert rows(database, "cpstore_threads", thread_id) == expected
        player.saver.delete_thread(thread_id)


def insert_checkpoint(connection: Any, **columns: Any) -> None:
    row = {"thread_id": "t", "checkpoint_ns": "", "checkpoint": {}, "metadata_": {}, **columns}
    connection.execute(insert(MODELS.checkpoint).values(**row))


LANGGRAPHS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""Ids as LangGraph writes them. Python's UUIDs may be written otherwise, too."""


def uuid6_of(number: int) -> str:
    return str(uuid.UUID(int=number & ~(0xF << 76) & ~(3 << 62) | 6 << 76 | 2 << 62))


IDS = st.one_of(
    st.integers(0, 2**128 - 1).map(uuid6_of),
    st.integers(0, 2**128 - 1).map(uuid6_of).map(str.upper),
    st.uuids().map(str),
    st.uuids().map(lambda one: one.hex),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
)


@PROPERTY
@given(st.lists(IDS, unique=True, max_size=20))
@example([uuid6_of(0), uuid6_of(2**128 - 1), uuid6_of(0x1F1EE7C5B712 << 80), "", f"{uuid6_of(1)}\n"])
def test_times_are_those_of_python(database: Engine, ids: list[str]) -> None:
    migrations.create_views(database)
    expected = {one: time_of(one) if LANGGRAPHS.fullmatch(one) else None for one in ids}
    with database.connect() as connection:
        for one in ids:
            insert_checkpoint(connection, checkpoint_id=one)
        query = text("SELECT checkpoint_id, created_at FROM cpstore_checkpoints")
        assert {row[0]: as_time(row[1]) for row in connection.execute(query)} == expected
        connection.rollback()


def test_times_sort_as_text_on_sqlite_too(database: Engine) -> None:
    migrations.create_views(database)
    ids = [uuid6_of(number << 68) for number in (0, 7, 10**12, 10**17, 2**58)]
    with database.begin() as connection:
        for one in sorted(ids):
            insert_checkpoint(connection, checkpoint_id=one)
        query = text("SELECT checkpoint_id FROM cpstore_checkpoints ORDER BY created_at, checkpoint_id")
        assert list(connection.execute(query).scalars()) == sorted(ids)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | st.text("aé1 "),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)


@PROPERTY
@given(JSON, JSON)
def test_columns_of_odd_metadata_are_null(database: Engine, source: Any, step: Any) -> None:
    migrations.create_views(database)
    whole = type(step) is int and abs(step) < 10**18
    with database.connect() as connection:
        insert_checkpoint(connection, checkpoint_id="1", metadata_={"source": source, "step": step})
        found = connection.execute(text("SELECT source, step FROM cpstore_checkpoints")).one()
        assert tuple(found) == (source if isinstance(source, str) else None, step if whole else None)
        connection.rollback()


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
