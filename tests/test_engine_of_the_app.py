"""The engine that an application hands over stays as it is, whatever it is, and everything works on it."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import aiosqlite
import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest
from sqlalchemy import (
    AssertionPool,
    AsyncAdaptedQueuePool,
    Connection,
    Engine,
    NullPool,
    Pool,
    QueuePool,
    SingletonThreadPool,
    StaticPool,
    event,
    make_url,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.applications import NEW_OPTIONS, ONE, ask, checkpoint, of, rows, sync_of, use
from tests.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.applications import Make
    from tests.ways import Way


LEVELS = {
    "sqlite": ("AUTOCOMMIT", "SERIALIZABLE", "READ UNCOMMITTED"),
    "postgresql": ("AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"),
}


# What a connection is like


def state(connection: Connection) -> dict[str, Any]:
    """All that can be set on a connection: by SQLAlchemy, on the driver, and in the database's session."""
    driver: Any = connection.connection.driver_connection
    adapted: Any = connection.connection.dbapi_connection
    on_driver = {
        f"{where}.{name}": getattr(holder, name)
        for where, holder in (("driver", driver), ("adapted", adapted))
        for name in ("isolation_level", "autocommit", "read_only", "readonly", "deferrable", "in_transaction")
        if not callable(getattr(holder, name, print))
    }
    session = SETTINGS[connection.dialect.name](connection)
    return {**on_driver, **session, "level": connection.get_isolation_level()}


def pragmas(connection: Connection) -> dict[str, Any]:
    names = ("busy_timeout", "foreign_keys", "journal_mode", "read_uncommitted", "synchronous", "temp_store")
    return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}


def settings(connection: Connection) -> dict[str, Any]:
    chosen = "SELECT name, setting FROM pg_settings WHERE source = 'session'"
    shown = connection.exec_driver_sql("SHOW transaction_isolation").scalar()
    return {**dict(connection.exec_driver_sql(chosen).all()), "transaction_isolation": shown}


SETTINGS: dict[str, Callable[[Connection], dict[str, Any]]] = {"sqlite": pragmas, "postgresql": settings}


# What an engine is like


def described(engine: Engine) -> dict[str, Any]:
    """All that can be set on an engine, and who listens to it."""
    dialect: Any = engine.dialect
    parent = getattr(engine, "_proxied", engine)  # of an engine with options
    return {
        "pool": (id(engine.pool), type(engine.pool)),
        "options": dict(engine.get_execution_options()),
        "level": (dialect._on_connect_isolation_level, dialect.default_isolation_level),
        "dialect": {name: vars(dialect)[name] for name in SET if name in vars(dialect)},
        "url": engine.url,
        "echo": engine.echo,
        "listeners": [listeners(one.dispatch) for one in (parent, engine.pool, dialect)],
    }


SET = (
    *("_json_serializer", "_json_deserializer", "paramstyle", "skip_autocommit_rollback", "label_length"),
    *("use_insertmanyvalues", "insertmanyvalues_page_size", "type_compiler", "identifier_preparer"),
)


def listeners(dispatch: Any) -> dict[str, list[Any]]:
    """The functions that listen to each event."""
    return {name: list(getattr(dispatch, name)) for name in dispatch._event_names}


# What every engine gives


async def check(way: Way, engine: Engine | AsyncEngine, url: str) -> None:
    """Run every operation, twice, and find engine and connection as they were."""
    await ask(engine, state)
    before = described(sync_of(engine)), await ask(engine, state)
    for _ in range(2):
        async with way.saver(engine) as saver:
            await use(saver, url)
            assert (described(sync_of(engine)), await ask(engine, state)) == before
        saver.close()
    assert (described(sync_of(engine)), await ask(engine, state)) == before


async def test_an_engine_stays_as_it_is(way: Way, make_engine: Make, database_url: str) -> None:
    await check(way, make_engine(**ONE), database_url)


@pytest.mark.parametrize(
    ("way", "level"),
    [(way, level) for way in WAYS for level in LEVELS[way.dialect]],
    ids=lambda value: getattr(value, "name", value),
)
async def test_any_isolation_level(way: Way, level: str, make_engine: Make, database_url: str) -> None:
    await check(way, make_engine(isolation_level=level, **ONE), database_url)


@pytest.mark.parametrize("level", ["AUTOCOMMIT", "SERIALIZABLE"])
async def test_a_level_among_the_options_of_the_engine(
    way: Way, level: str, make_engine: Make, database_url: str
) -> None:
    engine: Any = make_engine(**ONE)
    await check(way, engine.execution_options(isolation_level=level), database_url)


# What an application sets beside SQLAlchemy, which then knows nothing of it


def on_connect(engine: Engine | AsyncEngine, change: Callable[[Any], None]) -> None:
    """Let the application change each new connection, as its driver gives it."""
    event.listen(sync_of(engine), "connect", lambda connection, _record: change(connection))


CHANGES: dict[str, dict[str, Callable[[Any], None]]] = {
    "sqlite": {
        "the driver never begins": lambda connection: setattr(connection, "isolation_level", None),
        "the driver begins at once": lambda connection: setattr(connection, "isolation_level", "IMMEDIATE"),
        "pragmas": lambda connection: run(connection, "PRAGMA foreign_keys = ON", "PRAGMA temp_store = 2"),
    },
    "postgresql": {
        "autocommit": lambda connection: setattr(connection, "autocommit", True),
        "the session's level": lambda connection: run(
            connection, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE"
        ),
        "settings": lambda connection: run(
            connection, "SET lock_timeout = '9s'", "SET bytea_output = escape", "SET timezone = 'Asia/Tokyo'"
        ),
    },
}


def run(connection: Any, *statements: str) -> None:
    """Run statements and commit them, as they outlive the transaction only then."""
    cursor = connection.cursor()
    for statement in statements:
        cursor.execute(statement)
    cursor.close()
    connection.commit()


@pytest.mark.parametrize(
    ("way", "change"),
    [(way, change) for way in WAYS for change in CHANGES[way.dialect]],
    ids=lambda value: getattr(value, "name", value),
)
async def test_what_an_application_sets_on_a_connection(
    way: Way, change: str, make_engine: Make, database_url: str
) -> None:
    engine = make_engine(**ONE)
    on_connect(engine, CHANGES[way.dialect][change])
    await check(way, engine, database_url)


@pytest.mark.parametrize("way", [way for way in WAYS if "psycopg" in way.name], ids=lambda way: way.name)
async def test_an_autocommit_in_connect_args(way: Way, make_engine: Make, database_url: str) -> None:
    await check(way, make_engine(connect_args={"autocommit": True}, **ONE), database_url)


@pytest.mark.parametrize("way", [way for way in WAYS if way.dialect == "sqlite"], ids=lambda way: way.name)
async def test_an_application_that_begins_by_an_event(way: Way, make_engine: Make, database_url: str) -> None:
    """SQLAlchemy's recipe for pysqlite: the driver never begins, a listener does."""
    engine = make_engine(**ONE)
    on_connect(engine, CHANGES["sqlite"]["the driver never begins"])
    event.listen(sync_of(engine), "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    await check(way, engine, database_url)


# Options


def refuse(*_: Any) -> Any:
    raise AssertionError("JSON of cpstore is its own affair")


def change(*_: Any) -> str:
    return '{"changed": true}'


OPTIONS: dict[str, dict[str, Any]] = {
    "echo": {"echo": True},
    "future": {"future": True},
    "no cache of statements": {"query_cache_size": 0},
    "hidden parameters": {"hide_parameters": True},
    "no insertmanyvalues": {"use_insertmanyvalues": False},
    "small insertmanyvalues": {"insertmanyvalues_page_size": 1},
    "short labels": {"label_length": 12},
    "raising JSON": {"json_serializer": refuse, "json_deserializer": refuse},
    "other JSON": {"json_serializer": change, "json_deserializer": change},
    "no reset": {"pool_reset_on_return": None},
    "commit on return": {"pool_reset_on_return": "commit"},
    "ping": {"pool_pre_ping": True, "pool_use_lifo": True},
    "no compiled cache": {"execution_options": {"compiled_cache": None}},
    "a token": {"execution_options": {"logging_token": "app"}, "logging_name": "app"},
    **NEW_OPTIONS,
}

BEGINS: dict[str, dict[str, Any]] = {
    f"autocommit={value}": {"connect_args": {"autocommit": value}}
    for value in (True, False)
    if sys.version_info >= (3, 12)
}
"""What Python can say to `sqlite3` since 3.12: the driver never begins and never ends, or always does."""

OPTIONS_OF: dict[str, dict[str, dict[str, Any]]] = {
    "pysqlite": {**{style: {"paramstyle": style} for style in ("qmark", "named")}, **BEGINS},
    "sqlite-threads": BEGINS,
    "aiosqlite": {**{style: {"paramstyle": style} for style in ("qmark", "named")}, **BEGINS},
    "psycopg": {
        **{style: {"paramstyle": style} for style in ("format", "pyformat")},
        "always prepared": {"connect_args": {"prepare_threshold": 0}},
        "never prepared": {"connect_args": {"prepare_threshold": None}},
    },
    "psycopg-async": {"always prepared": {"connect_args": {"prepare_threshold": 0}}},
    "asyncpg": {
        "no statements": {"connect_args": {"statement_cache_size": 0, "prepared_statement_cache_size": 0}}
    },
}


@pytest.mark.parametrize(
    ("way", "option"),
    [(way, option) for way in WAYS for option in (*OPTIONS, *OPTIONS_OF[way.name])],
    ids=lambda value: getattr(value, "name", value),
)
async def test_any_option(way: Way, option: str, make_engine: Make, database_url: str) -> None:
    options = (OPTIONS | OPTIONS_OF[way.name])[option]
    await check(way, make_engine(**options, **ONE), database_url)


# Pools


SYNC_POOLS: dict[type[Pool], dict[str, Any]] = {
    QueuePool: {"pool_size": 3},
    NullPool: {},
    StaticPool: {},
    SingletonThreadPool: {},
    AssertionPool: {},
}
ASYNC_POOLS: dict[type[Pool], dict[str, Any]] = {
    AsyncAdaptedQueuePool: {"pool_size": 3},
    NullPool: {},
    StaticPool: {},
    AssertionPool: {},
}


@pytest.mark.parametrize(
    ("way", "pool"),
    [(way, pool) for way in WAYS for pool in (ASYNC_POOLS if way.async_engine else SYNC_POOLS)],
    ids=lambda value: getattr(value, "name", getattr(value, "__name__", value)),
)
async def test_any_pool(way: Way, pool: type[Pool], make_engine: Make, database_url: str) -> None:
    options = (ASYNC_POOLS if way.async_engine else SYNC_POOLS)[pool]
    if way.dialect == "sqlite" and pool in (StaticPool, AssertionPool):
        options = {**options, "connect_args": {"check_same_thread": False}}
    engine = make_engine(poolclass=pool, **options)
    saver = way.saver(engine)
    await use(saver, database_url)
    if pool is not AssertionPool:  # which asserts that nobody else is there
        await asyncio.gather(*(saver.aput(of(number), checkpoint(), {}, {}) for number in range(20)))
        assert rows(database_url)[0] == 20
    assert type(engine.pool) is pool


# Creators: connections that the application makes itself


def creators(way: Way, url: str) -> dict[str, Any]:
    """The options of an engine whose connections come from a function, and whose URL says nothing."""
    parsed = make_url(url)
    dsn = parsed.set(drivername="postgresql").render_as_string(hide_password=False)
    path = str(parsed.database)
    options: dict[str, dict[str, Any]] = {
        "pysqlite": {"creator": lambda: sqlite3.connect(path, check_same_thread=False)},
        "sqlite-threads": {"creator": lambda: sqlite3.connect(path, check_same_thread=False)},
        "aiosqlite": {"async_creator": lambda: aiosqlite.connect(path)},
        "psycopg": {"creator": lambda: psycopg.connect(dsn, autocommit=True)},
        "psycopg-async": {"async_creator": lambda: psycopg.AsyncConnection.connect(dsn, autocommit=True)},
        "asyncpg": {"async_creator": lambda: asyncpg.connect(dsn)},
    }
    return options[way.name]


async def test_any_creator(way: Way, make_engine: Make, database_url: str) -> None:
    pool = AsyncAdaptedQueuePool if way.async_engine else QueuePool
    options = {**creators(way, database_url), **ONE, "poolclass": pool, "url": f"{way.url_driver}://"}
    await check(way, make_engine(**options), database_url)
