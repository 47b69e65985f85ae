"""Fixtures: a fresh database per test and way, the application's engine on it, and a saver."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, get_args

import pytest
from sqlalchemy import URL, Engine, QueuePool, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import SQLAlchemySaver
from tests import looked_at, pooler, postgres
from tests.ways import WAYS, Dialect, Door, Way

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator
    from pathlib import Path

    from tests.applications import Make

# The conformance kit asserts in modules of its own: its failures shall show values too.
pytest.register_assert_rewrite("langgraph.checkpoint.conformance.spec")

SECONDS_TO_RETURN_CONNECTIONS = 2.0

SERVER = pytest.StashKey[str]()
POOLER = pytest.StashKey[str]()


LIMIT_OF_LANGGRAPH = "Called get_config outside of a runnable context"
"""On Python 3.10 a task knows nothing of its config, so LangGraph's `interrupt` cannot work in `ainvoke`."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Count as expected failures what LangGraph itself refuses on Python 3.10, by its own words."""
    report = yield
    refused = call.excinfo is not None and LIMIT_OF_LANGGRAPH in str(call.excinfo.value)
    if sys.version_info < (3, 11) and report.failed and refused:
        report.outcome, report.wasxfail = "skipped", "LangGraph on Python 3.10: no interrupt in ainvoke"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    used = config.stash.get(SERVER, "not used")
    terminalreporter.write_line(f"PostgreSQL server of the tests: {used}")
    terminalreporter.write_line(f"Transaction pooler of the tests: {config.stash.get(POOLER, 'not used')}")


# Databases: one migrated template per dialect and session, a copy of it per test.


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> Iterator[postgres.Server]:
    """The session's PostgreSQL server; it starts when the first test asks for it."""
    began = time.perf_counter()
    with postgres.server() as server:
        seconds = time.perf_counter() - began
        version = postgres.ask(server.url, "SHOW server_version")
        pytestconfig.stash[SERVER] = f"{version}, provided by {server.provider} in {seconds:.1f} s"
        yield server


@pytest.fixture(scope="session")
def pgbouncer(pytestconfig: pytest.Config) -> Iterator[pooler.Program]:
    """A pgbouncer to start. Where none can be had its tests are not run, which is said; in CI they fail."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(pooler.program())
        except pooler.NoPoolerError as error:
            pytestconfig.stash[POOLER] = f"NONE, its tests were not run: {error}"
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        pytestconfig.stash[POOLER] = f"{found.version}, provided by {found.provider}"
        yield found


@pytest.fixture(scope="session")
def postgres_template(postgres_server: postgres.Server) -> Iterator[str]:
    """The name of a migrated database, to which nobody is connected."""
    with postgres.temporary_database(postgres_server.url) as url:
        migrate(url)
        assert url.database is not None
        yield url.database


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database that is one file, without a log beside it."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    migrate(URL.create("sqlite", database=str(path)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def migrate(url: URL) -> None:
    """Bring a database to the newest revision, as an application does."""
    with SQLAlchemySaver.from_url(text_of(url)) as saver:
        saver.setup()


def text_of(url: URL) -> str:
    """A URL as applications write it, with its password."""
    return url.render_as_string(hide_password=False)


@contextmanager
def fresh_database(request: pytest.FixtureRequest, dialect: Dialect, *, migrated: bool) -> Iterator[URL]:
    """A database of this test alone; PostgreSQL is asked for only where it is needed."""
    if dialect == "postgresql":
        server: postgres.Server = request.getfixturevalue("postgres_server")
        template = request.getfixturevalue("postgres_template") if migrated else None
        with postgres.temporary_database(server.url, template=template) as url:
            yield url
    else:
        path = request.getfixturevalue("tmp_path") / ("migrated.db" if migrated else "empty.db")
        if migrated:
            shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield URL.create("sqlite", database=str(path))


# Six ways in.


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    """Each way into the saver in turn."""
    chosen: Way = request.param
    return chosen


@pytest.fixture
def door(way: Way) -> Door:
    """The methods of a compiled graph, through this way."""
    return Door(way)


@pytest.fixture
def database_url(request: pytest.FixtureRequest, way: Way) -> Iterator[str]:
    """A migrated database of this test, with this way's driver."""
    with fresh_database(request, way.dialect, migrated=True) as url:
        yield text_of(way.url(url))


@pytest.fixture
def empty_database_url(request: pytest.FixtureRequest, way: Way) -> Iterator[str]:
    """A database of this test without any table, with this way's driver."""
    with fresh_database(request, way.dialect, migrated=False) as url:
        yield text_of(way.url(url))


@pytest.fixture
async def engine(way: Way, database_url: str) -> AsyncIterator[Engine | AsyncEngine]:
    """The application's engine on `database_url`; the test fails if it leaves a connection checked out."""
    engine = way.engine(database_url)
    try:
        yield engine
        assert await connections_in_use(engine) == 0, "a connection did not come back to the pool"
    finally:
        await dispose(engine)


@pytest.fixture
async def make_engine(way: Way, database_url: str) -> AsyncIterator[Make]:
    """Makes engines on `database_url` with options of the application's own."""
    made: list[Engine | AsyncEngine] = []

    def make(**options: Any) -> Engine | AsyncEngine:
        made.append(way.engine(options.pop("url", database_url), **options))
        return made[-1]

    yield make
    for engine in made:
        await dispose(engine)


@pytest.fixture
def saver(way: Way, engine: Engine | AsyncEngine) -> SQLAlchemySaver:
    """A saver on the application's engine, whose async methods lead through this way."""
    return way.saver(engine)


async def connections_in_use(engine: Engine | AsyncEngine) -> int:
    """How many connections the pool misses, once worker threads had time to return theirs."""
    pool = engine.pool
    assert isinstance(pool, QueuePool)
    deadline = time.monotonic() + SECONDS_TO_RETURN_CONNECTIONS
    while pool.checkedout() and time.monotonic() < deadline:  # noqa: ASYNC110, a pool has no event for it
        await asyncio.sleep(0.01)
    return pool.checkedout()


async def dispose(engine: Engine | AsyncEngine) -> None:
    """Close all connections of an engine of either kind."""
    if isinstance(engine, AsyncEngine):
        await engine.dispose()
    else:
        engine.dispose()


# Two dialects, for what has one door only.


@pytest.fixture(params=get_args(Dialect))
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """Each dialect in turn."""
    chosen: Dialect = request.param
    return chosen


@pytest.fixture
def dialect_url(request: pytest.FixtureRequest, dialect: Dialect) -> Iterator[str]:
    """A migrated database of this test, with the dialect's sync driver."""
    with fresh_database(request, dialect, migrated=True) as url:
        yield text_of(url)


@pytest.fixture
def empty_dialect_url(request: pytest.FixtureRequest, dialect: Dialect) -> Iterator[str]:
    """A database of this test without any table, with the dialect's sync driver."""
    with fresh_database(request, dialect, migrated=False) as url:
        yield text_of(url)


@pytest.fixture
def empty(empty_dialect_url: str) -> Iterator[Engine]:
    """The application's engine on each dialect, on a database without any table."""
    engine = create_engine(empty_dialect_url)
    yield engine
    engine.dispose()


@pytest.fixture
def database(dialect_url: str) -> Iterator[Engine]:
    """The application's engine on each dialect."""
    engine = create_engine(dialect_url)
    yield engine
    engine.dispose()


@pytest.fixture
def keeper(database: Engine) -> SQLAlchemySaver:
    """A saver with one door, on each dialect."""
    return SQLAlchemySaver(database)


@pytest.fixture
def stranger(dialect_url: str) -> Iterator[SQLAlchemySaver]:
    """Another saver on the same database, which knows nothing of the first."""
    engine = create_engine(dialect_url)
    yield SQLAlchemySaver(engine)
    engine.dispose()


@pytest.fixture
def told(dialect_url: str) -> str:
    """The URL of a database with threads to look at."""
    with SQLAlchemySaver.from_url(dialect_url) as saver:
        looked_at.tell(saver)
    return dialect_url
