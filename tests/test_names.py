"""Schema and prefix: every operation reaches the tables where they are, and no other ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, MetaData, Table, create_engine, event, inspect, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import ConfigurationError, ForeignTablesError, NotMigratedError, SQLAlchemySaver, migrations
from cpstore.cli import main
from tests.conftest import dispose
from tests.tour import put, tour
from tests.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from tests.ways import Dialect, Way

OURS = {"checkpoints", "checkpoint_blobs", "checkpoint_writes", "cpstore_alembic_version"}
ROOT: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
async def app(way: Way, empty_database_url: str) -> AsyncIterator[Engine | AsyncEngine]:
    """The application's engine on an empty database that has room for two tenants."""
    engine = way.engine(empty_database_url)
    if way.dialect == "sqlite":
        attach(engine, empty_database_url)
    yield engine
    await dispose(engine)


def attach(engine: Engine | AsyncEngine, url: str) -> None:
    """Give each connection of SQLite two more files: its schemas."""
    file = url.split("///")[1]

    def attached(connection: Any, _record: Any) -> None:
        for schema in ("one", "two"):
            connection.execute(f"ATTACH '{file}.{schema}' AS {schema}")

    event.listen(getattr(engine, "sync_engine", engine), "connect", attached)


async def tables(engine: Engine | AsyncEngine, schema: str | None = None) -> set[str]:
    if isinstance(engine, AsyncEngine):
        async with engine.connect() as connection:
            return set(await connection.run_sync(lambda each: inspect(each).get_table_names(schema)))
    return set(inspect(engine).get_table_names(schema))


def saver_of(way: Way, engine: Engine | AsyncEngine, **place: Any) -> SQLAlchemySaver:
    return type(way.saver(engine))(engine, **place)


async def number(saver: SQLAlchemySaver) -> int:
    return len([one async for one in saver.alist(None)])


@pytest.mark.parametrize(
    "place", [{"prefix": "lg_"}, {"schema": "one"}, {"schema": "one", "prefix": "Lg2_"}], ids=str
)
async def test_every_operation_works_there(
    way: Way, app: Engine | AsyncEngine, place: dict[str, Any]
) -> None:
    saver = saver_of(way, app, **place)
    await saver.asetup()
    await saver.asetup()
    await tour(saver)
    schema, prefix = place.get("schema"), place.get("prefix", "")
    assert await tables(app, schema) == {prefix + name for name in OURS}
    if schema is not None:
        assert await tables(app) == set()


async def test_places_do_not_see_each_other(way: Way, app: Engine | AsyncEngine) -> None:
    places: list[dict[str, Any]] = [
        {},
        {"prefix": "a_"},
        {"prefix": "b_"},
        {"schema": "one"},
        {"schema": "two"},
    ]
    savers = [saver_of(way, app, **place) for place in places]
    for position, saver in enumerate(savers):
        with pytest.raises(NotMigratedError):
            await saver.aget_tuple(ROOT)
        await saver.asetup()
        assert [await number(other) for other in savers[: position + 1]] == [1] * position + [0]
        await put(saver, ROOT, 0, f"word {position}")
    for position, saver in enumerate(savers):
        found = await saver.aget_tuple(ROOT)
        assert found is not None
        assert found.checkpoint["channel_values"]["word"] == f"word {position}"
    await savers[1].adelete_thread("t")
    assert [await number(saver) for saver in savers] == [1, 0, 1, 1, 1]


async def test_tenants_are_schemas_of_the_applications_engine(way: Way, app: Engine | AsyncEngine) -> None:
    savers = {}
    for tenant in ("one", "two"):
        translated = app.execution_options(schema_translate_map={None: tenant})
        savers[tenant] = saver_of(way, translated)
        with pytest.raises(NotMigratedError):
            await savers[tenant].aput_writes(
                {"configurable": {**ROOT["configurable"], "checkpoint_id": "1"}}, [("c", 1)], "t"
            )
        await savers[tenant].asetup()
        await savers[tenant].asetup()
        assert await tables(app, tenant) == OURS
    assert await tables(app) == set()
    await put(savers["one"], ROOT, 5, "one's")
    assert await savers["two"].aget_tuple(ROOT) is None
    await tour(savers["two"], "t")
    await tour(savers["one"], "other")
    found = await savers["one"].aget_tuple(ROOT)
    assert found is not None
    assert found.checkpoint["channel_values"]["word"] == "one's"


@pytest.mark.parametrize("way", [way for way in WAYS if way.dialect == "postgresql"], indirect=True)
async def test_nothing_depends_on_the_search_path(way: Way, empty_database_url: str) -> None:
    engine = way.engine(empty_database_url)

    def lost(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("SET SESSION search_path = nowhere")
        cursor.close()
        connection.commit()

    event.listen(getattr(engine, "sync_engine", engine), "connect", lost)
    saver = saver_of(way, engine, schema="one")
    await saver.asetup()
    await tour(saver)
    assert await tables(engine, "one") == OURS
    await dispose(engine)


# Tables that are not ours


@pytest.mark.parametrize("name", ["checkpoints", "checkpoint_blobs", "checkpoint_writes"])
def test_a_foreign_table_is_left_untouched(empty: Engine, name: str) -> None:
    with empty.begin() as connection:
        connection.execute(text(f"CREATE TABLE {name} (id INTEGER, thread_id TEXT)"))
        connection.execute(text(f"INSERT INTO {name} VALUES (1, 't')"))
    saver = SQLAlchemySaver(empty)
    calls: list[Callable[[], Any]] = [
        saver.setup,
        lambda: migrations.adopt(empty),
        partial(saver.get_tuple, ROOT),
    ]
    for call in calls:
        with pytest.raises(ForeignTablesError, match=f"It is: {name}\\.$"):
            call()
    with empty.connect() as connection:
        assert connection.execute(text(f"SELECT * FROM {name}")).all() == [(1, "t")]
    assert set(inspect(empty).get_table_names()) == {name}
    SQLAlchemySaver(empty, prefix="lg_").setup()
    assert set(inspect(empty).get_table_names()) == {name} | {f"lg_{each}" for each in OURS}


@pytest.mark.parametrize(
    "place",
    [
        *({"prefix": prefix} for prefix in ("1a", "a-b", "a b", 'a"', "a" * 31, "ä", "a.")),
        {"schema": ""},
        {"schema": "a" * 64},
    ],
    ids=str,
)
def test_what_cannot_be_a_name_is_refused(place: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"prefix|schema"):
        SQLAlchemySaver.from_url("sqlite://", **place)
    with pytest.raises(ConfigurationError):
        migrations.upgrade("sqlite://", **place)


@pytest.mark.parametrize("schema", ['we"ird', "Mixed Case", "select", "100%", ":name", "semi;colon"])
def test_a_schema_may_have_any_name(request: pytest.FixtureRequest, schema: str) -> None:
    server = request.getfixturevalue("postgres_server")
    from tests import postgres

    with postgres.temporary_database(server.url) as url:
        engine = create_engine(url)
        saver = SQLAlchemySaver(engine, schema=schema)
        saver.setup()
        stored = saver.put(ROOT, {"v": 4, "id": "1"}, {"run_id": "r"}, {})  # type: ignore[typeddict-item]
        assert saver.get_tuple(stored) is not None
        saver.delete_for_runs(["r"])
        assert saver.get_tuple(stored) is None
        assert set(inspect(engine).get_table_names(schema)) == OURS
        with engine.begin() as connection:
            connection.execute(text("CREATE ROLE stranger"))
            connection.exec_driver_sql(migrations.grants("stranger", schema=schema))
            connection.execute(text("DROP OWNED BY stranger"))
            connection.execute(text("DROP ROLE stranger"))
        engine.dispose()


def test_the_command_line_takes_them(empty_dialect_url: str, empty: Engine, dialect: Dialect) -> None:
    schema = "main" if dialect == "sqlite" else "one"
    environment = {"CPSTORE_DATABASE_URL": empty_dialect_url, "CPSTORE_SCHEMA": schema}
    for command in (["upgrade"], ["current"], ["check"], ["stamp", "head"]):
        result = CliRunner().invoke(main, ["db", *command, "--prefix", "lg_"], env=environment)
        assert (result.exit_code, result.output) == (0, f"{migrations.head()} (newest)\n")
    assert set(inspect(empty).get_table_names(schema)) == {f"lg_{name}" for name in OURS}
    with empty.connect() as connection:
        version = Table(
            f"lg_{'cpstore_alembic_version'}", MetaData(), schema=schema, autoload_with=connection
        )
        assert connection.scalars(select(version)).all() == [migrations.head()]


def test_an_attached_file_is_a_schema(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/app.db")
    attach(engine, f"sqlite:///{tmp_path}/app.db")
    saver = SQLAlchemySaver(engine, schema="one")
    saver.setup()
    assert {path.name for path in tmp_path.iterdir()} >= {"app.db.one"}
    assert inspect(engine).get_table_names("main") == []
    engine.dispose()
