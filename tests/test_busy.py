"""Writers of one SQLite file wait for each other; one that waited too long gets an error that has a name.

This module is also the program that writes: `python -m tests.test_busy URL NUMBER`.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from cpstore import DatabaseBusyError, SQLAlchemySaver
from cpstore.dialects import dialect_for
from cpstore.models import MODELS
from tests.conftest import connections_in_use, dispose
from tests.ways import WAYS, Way

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from langchain_core.runnables import RunnableConfig

PROCESSES, PUTS = 4, 200
PATIENCE = 0.1  # seconds; nothing depends on how long they are
THREAD: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}


# Processes that write


async def write(url: str, number: int) -> None:
    """Put so many checkpoints into a thread of one's own, from an empty file on."""
    config: RunnableConfig = {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
    async with SQLAlchemySaver.from_url(url) as saver:
        await saver.asetup()
        for step in range(PUTS):
            config = await saver.aput(config, empty_checkpoint(), {"step": step}, {})


@pytest.mark.parametrize("driver", ["sqlite", "sqlite+aiosqlite"])
def test_processes_that_write_at_once_wait_for_each_other(tmp_path: Path, driver: str) -> None:
    url = f"{driver}:///{tmp_path}/chat.db"
    command = [sys.executable, "-m", "tests.test_busy", url]
    root = Path(__file__).parents[1]
    writers = [
        subprocess.Popen([*command, str(number)], cwd=root, stderr=subprocess.PIPE, text=True)
        for number in range(PROCESSES)
    ]
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [("", 0)] * PROCESSES
    with SQLAlchemySaver.from_url(f"sqlite:///{tmp_path}/chat.db") as saver:
        for number in range(PROCESSES):
            found = saver.list({"configurable": {"thread_id": str(number)}})
            assert [each.metadata["step"] for each in found] == list(range(PUTS))[::-1]


# A lock that is not let go


@pytest.fixture(params=[way for way in WAYS if way.dialect == "sqlite"], ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    """Each way into SQLite."""
    chosen: Way = request.param
    return chosen


@pytest.fixture
async def engine(way: Way, database_url: str) -> AsyncIterator[Engine | AsyncEngine]:
    """The engine of an application that does not wait long."""
    create = create_async_engine if way.async_engine else create_engine
    engine = create(database_url, connect_args={"timeout": PATIENCE})
    yield engine
    assert await connections_in_use(engine) == 0
    await dispose(engine)


@contextmanager
def held(url: str, journal: str, *statements: str) -> Iterator[None]:
    """A transaction of somebody else that stays open."""
    with closing(sqlite3.connect(str(make_url(url).database), isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}").close()
        for statement in statements:
            connection.execute(statement).fetchall()
        yield
        connection.execute("ROLLBACK")


HELD = {
    "by a writer": ("wal", ["BEGIN IMMEDIATE"]),
    "by a reader, at commit": ("delete", ["BEGIN", "SELECT * FROM checkpoints"]),
    "whole": ("delete", ["BEGIN EXCLUSIVE"]),
}


def checkpoint(number: int) -> Any:
    versions = {"number": f"{number}.0"}
    values = {"number": number}
    return {**empty_checkpoint(), "v": 4, "channel_values": values, "channel_versions": versions}


async def put(saver: SQLAlchemySaver, number: int) -> RunnableConfig:
    made = checkpoint(number)
    return await saver.aput(THREAD, made, {"step": number}, made["channel_versions"])


async def rows(saver: SQLAlchemySaver) -> list[tuple[Any, Any]]:
    """All checkpoints with their values and writes."""
    return [(found.checkpoint, found.pending_writes) async for found in saver.alist(None)]


@pytest.mark.parametrize("lock", HELD)
async def test_a_lock_that_is_not_let_go_has_a_name(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine, database_url: str, lock: str
) -> None:
    journal, statements = HELD[lock]
    stored = await put(saver, 1)
    await put(saver, 2)
    before = await rows(saver)
    calls: dict[str, Callable[[], Any]] = {
        "put": lambda: put(saver, 3),
        "put_writes": lambda: saver.aput_writes(stored, [("a", 1), ("b", 2)], "task"),
        "copy_thread": lambda: saver.acopy_thread("thread", "copied"),
        "prune": lambda: saver.aprune(["thread"]),
        "delete_thread": lambda: saver.adelete_thread("thread"),
    }
    if lock == "whole":
        calls["get_tuple"] = lambda: saver.aget_tuple(THREAD)
    await dispose(engine)  # a connection of the pool would be in the way of another journal
    with held(database_url, journal, *statements):
        for call in calls.values():
            with pytest.raises(DatabaseBusyError, match="locked for the whole busy timeout") as caught:
                await call()
            assert isinstance(caught.value.__cause__, OperationalError)
    assert await rows(saver) == before
    for call in calls.values():
        await call()
    assert [found.config["configurable"]["thread_id"] async for found in saver.alist(None)] == ["copied"] * 3


async def test_a_migration_that_cannot_begin_has_a_name(way: Way, tmp_path: Path) -> None:
    url = way.url(f"sqlite:///{tmp_path}/another.db")
    create = create_async_engine if way.async_engine else create_engine
    another = create(url, connect_args={"timeout": PATIENCE})
    saver = SQLAlchemySaver(another)
    setup = saver.asetup if way.async_engine else lambda: asyncio.to_thread(saver.setup)
    with held(str(url), "wal", "BEGIN IMMEDIATE"), pytest.raises(DatabaseBusyError):
        await setup()
    await setup()
    await put(saver, 1)
    await dispose(another)


# How it is told


@pytest.mark.parametrize(
    "text", ["database is locked", "database table is locked", "database schema is locked: main"]
)
def test_python_3_10_has_only_the_text(text: str) -> None:
    named = dialect_for("sqlite", MODELS.tables).named
    assert isinstance(named(error_of(sqlite3.OperationalError(text))), DatabaseBusyError)
    assert named(error_of(sqlite3.OperationalError(f"no such column: {text}"))) is None
    assert named(error_of(sqlite3.IntegrityError(text))) is None


@pytest.mark.parametrize(
    ("code", "busy"), [(5, True), (261, True), (517, True), (6, True), (1, False), (8, False)]
)
def test_a_code_decides_and_not_the_text(code: int, busy: bool) -> None:
    error = CodedError("whatever" if busy else "database is locked", code)
    assert (dialect_for("sqlite", MODELS.tables).named(error_of(error)) is not None) == busy


class CodedError(sqlite3.OperationalError):
    """An error of a Python that tells the code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.sqlite_errorcode = code


def error_of(error: Exception) -> OperationalError:
    return OperationalError("SELECT 1", {}, error)


@pytest.mark.parametrize(
    ("url", "options", "milliseconds"),
    [
        ("sqlite://", {}, 30_000),
        ("sqlite:///{}/x.db", {}, 30_000),
        ("sqlite:///{}/x.db?timeout=2", {}, 2_000),
        ("sqlite:///{}/x.db", {"connect_args": {"timeout": 3}}, 3_000),
        ("sqlite://", {"connect_args": {"timeout": 3}}, 3_000),
    ],
)
def test_our_own_engines_wait_half_a_minute_or_as_long_as_they_are_told(
    tmp_path: Path, url: str, options: dict[str, Any], milliseconds: int
) -> None:
    with SQLAlchemySaver.from_url(url.format(tmp_path), **options) as saver:
        saver.setup()
        asyncio.run(saver.aget_tuple(THREAD))  # from another thread
        with saver._door._engine.connect() as connection:  # type: ignore[attr-defined]
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == milliseconds


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], int(sys.argv[2])))
