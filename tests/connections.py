"""Connections that end: by whom, when, and what a saver on them does meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import Connection, Engine, event, make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from tests import postgres
from tests.cluster import DRIVER
from tests.ways import WAYS, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from langchain_core.runnables import RunnableConfig
    from sqlalchemy import URL

    from cpstore import SQLAlchemySaver

POSTGRES_WAYS = (
    *(way for way in WAYS if way.dialect == "postgresql"),
    Way("psycopg-threads", "postgresql", "postgresql+psycopg"),
)
"""Each way whose connections can die."""

THREAD: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}

OTHERS = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
BLOCKED = f"{OTHERS} AND wait_event_type = 'Lock'"
SECONDS = 20.0

COMMIT = "COMMIT"


def administrator(url: str | URL) -> Connection:
    """Somebody else in the same database, without transactions."""
    return postgres.connected(make_url(url).set(drivername=DRIVER))


def kill_connections(url: str | URL, which: str = OTHERS) -> None:
    """Do what a proxy or an administrator does: end connections to a database, all others by default."""
    with administrator(url) as connection:
        found = f"SELECT pid FROM pg_stat_activity WHERE {which}"
        pids = ", ".join(map(str, connection.exec_driver_sql(found).scalars())) or "0"
        killed = f"FROM pg_stat_activity WHERE pid IN ({pids})"
        connection.exec_driver_sql(f"SELECT pg_terminate_backend(pid) {killed}")
        wait_until(connection, f"SELECT count(*) = 0 {killed}")


def wait_until(connection: Connection, question: str) -> None:
    """Ask until the answer is yes."""
    deadline = time.monotonic() + SECONDS
    while not connection.exec_driver_sql(question).scalar_one():
        assert time.monotonic() < deadline, question
        time.sleep(0.01)


async def blocked(url: str) -> None:
    """Wait until a statement waits for a lock."""

    def wait() -> None:
        with administrator(url) as connection:
            wait_until(connection, f"SELECT count(*) = 1 FROM pg_stat_activity WHERE {BLOCKED}")

    await asyncio.to_thread(wait)


def sync_engine(engine: Engine | AsyncEngine) -> Engine:
    return engine.sync_engine if isinstance(engine, AsyncEngine) else engine


def beside(way: Way, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
    """Begin a call of the saver; the sync one would hold up the test."""
    return asyncio.ensure_future(asyncio.to_thread(asyncio.run, work) if way.sync else work)


@contextmanager
def noted(engine: Engine | AsyncEngine) -> Iterator[list[str | None]]:
    """The SQLSTATE of each error that comes from the engine's database within the block."""
    seen: list[str | None] = []

    def note(context: Any) -> None:
        seen.append(getattr(context.original_exception, "sqlstate", None))

    event.listen(sync_engine(engine), "handle_error", note)
    try:
        yield seen
    finally:
        event.remove(sync_engine(engine), "handle_error", note)


@contextmanager
def dying(engine: Engine | AsyncEngine, when: Callable[[str], bool]) -> Iterator[list[str]]:
    """Kill the connection just before it sends the first statement that is meant, or its COMMIT.

    A COMMIT takes effect, and nobody hears of it.
    """
    killed: list[str] = []

    def kill(connection: Connection, what: str) -> None:
        if killed or not when(what):
            return
        killed.append(what)
        if what == COMMIT:
            connection.exec_driver_sql(COMMIT)
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        kill_connections(connection.engine.url, f"pid = {pid}")

    def statement(connection: Connection, _cursor: Any, sql: str, *_: Any) -> None:
        if not killed:
            kill(connection, sql)

    def commit(connection: Connection) -> None:
        kill(connection, COMMIT)

    event.listen(sync_engine(engine), "before_cursor_execute", statement)
    event.listen(sync_engine(engine), "commit", commit)
    try:
        yield killed
    finally:
        event.remove(sync_engine(engine), "before_cursor_execute", statement)
        event.remove(sync_engine(engine), "commit", commit)


def checkpoint(saver: SQLAlchemySaver, number: int = 0) -> Any:
    """A checkpoint with one value."""
    versions = {"number": saver.get_next_version(None, None)}
    values = {"number": number}
    return {**empty_checkpoint(), "v": 4, "channel_values": values, "channel_versions": versions}


async def put(saver: SQLAlchemySaver, made: Any) -> RunnableConfig:
    return await saver.aput(THREAD, made, {"step": 0}, made["channel_versions"])


async def stored_number(saver: SQLAlchemySaver) -> Any:
    found = await saver.aget_tuple(THREAD)
    return found and found.checkpoint["channel_values"]["number"]
