"""Engines from a URL: which ones, how they are configured, and what is refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import QueuePool, StaticPool, create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from cpstore import (
    ConfigurationError,
    Engines,
    MemoryDatabaseError,
    MissingDriverError,
    SQLAlchemySaver,
    UnsupportedDatabaseError,
    engines,
)

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

POSTGRESQL = "postgresql+psycopg://user:secret@host/name"


@pytest.mark.parametrize(
    ("url", "drivername"),
    [
        ("sqlite:///x.db", "sqlite+pysqlite"),
        ("sqlite+aiosqlite:///x.db", "sqlite+aiosqlite"),
        ("postgres://user@host/name", "postgresql+psycopg"),
        ("postgresql://user@host/name", "postgresql+psycopg"),
        ("postgresql+asyncpg://user@host/name", "postgresql+asyncpg"),
    ],
)
def test_a_url_names_its_driver(url: str, drivername: str) -> None:
    assert engines.normalise(url).drivername == drivername


@pytest.mark.parametrize("url", ["mysql://host/name", "postgresql+psycopg2://host/name", "oracle://x"])
def test_another_database_is_refused(url: str) -> None:
    with pytest.raises(UnsupportedDatabaseError, match="speaks SQLite"):
        SQLAlchemySaver.from_url(url)


@pytest.mark.parametrize("url", ["chat.db", "", "postgresql"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="no database URL"):
        SQLAlchemySaver.from_url(url)


def test_what_is_no_engine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not str"):
        SQLAlchemySaver("sqlite:///x.db")  # type: ignore[arg-type]


def kinds(made: Engines) -> tuple[str | None, str | None]:
    sync, asynchronous = made
    return (
        None if sync is None else sync.url.drivername,
        None if asynchronous is None else asynchronous.url.drivername,
    )


def test_each_driver_gives_what_it_can() -> None:
    assert kinds(engines.from_url("sqlite:///x.db")) == ("sqlite+pysqlite", None)
    assert kinds(engines.from_url("sqlite+aiosqlite:///x.db")) == (None, "sqlite+aiosqlite")
    assert kinds(engines.from_url(POSTGRESQL)) == ("postgresql+psycopg", "postgresql+psycopg")


def test_asyncpg_has_psycopg_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql+asyncpg://user@host/name"
    assert kinds(engines.from_url(url)) == ("postgresql+psycopg", "postgresql+asyncpg")
    assert kinds(engines.from_url(f"{url}?ssl=require")) == (None, "postgresql+asyncpg")
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert kinds(engines.from_url(url)) == (None, "postgresql+asyncpg")


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("sqlite+aiosqlite:///x.db", "aiosqlite", "sqlite"),
        (POSTGRESQL, "psycopg", "postgres"),
        ("postgresql+asyncpg://user@host/name", "asyncpg", "asyncpg"),
    ],
)
def test_a_missing_driver_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, url: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(MissingDriverError, match=rf"pip install 'cpstore\[{extra}\]'") as caught:
        SQLAlchemySaver.from_url(url)
    assert "secret" not in str(caught.value)


def test_importing_cpstore_loads_no_driver() -> None:
    program = (
        "import sys, cpstore;"
        "loaded = {'psycopg', 'asyncpg', 'aiosqlite', 'alembic'} & set(sys.modules);"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_our_sqlite_engines_are_durable_and_concurrent(tmp_path: Path) -> None:
    pragmas = {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 30_000}
    sync, _ = engines.from_url(f"sqlite:///{tmp_path}/one.db")
    _, asynchronous = engines.from_url(f"sqlite+aiosqlite:///{tmp_path}/two.db")
    assert sync is not None
    assert asynchronous is not None
    with sync.connect() as connection:
        for name, value in pragmas.items():
            assert connection.exec_driver_sql(f"PRAGMA {name}").scalar() == value
    async with asynchronous.connect() as connected:
        for name, value in pragmas.items():
            assert (await connected.exec_driver_sql(f"PRAGMA {name}")).scalar() == value
    sync.dispose()
    await asynchronous.dispose()


# Databases in memory


def config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def put_from_threads(saver: SQLAlchemySaver, count: int) -> list[BaseException]:
    """Put once in each of many threads at once; give what they raised."""
    raised: list[BaseException] = []

    def put(number: int) -> None:
        try:
            stored = saver.put(config(str(number)), empty_checkpoint(), {"step": number}, {})
            saver.put_writes(stored, [("channel", number)], "task")
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"])
def test_memory_is_shared_by_all_threads(url: str) -> None:
    with SQLAlchemySaver.from_url(url) as saver:
        saver.setup()
        assert put_from_threads(saver, 16) == []
        assert sorted(found.metadata["step"] for found in saver.list(None)) == list(range(16))


async def test_memory_is_shared_by_all_tasks() -> None:
    async with SQLAlchemySaver.from_url("sqlite+aiosqlite://") as saver:
        await saver.asetup()
        stored = await saver.aput(config("1"), empty_checkpoint(), {}, {})
        assert await saver.aget_tuple(stored) is not None


def test_one_connection_for_everybody_is_taken_in_turn() -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    saver = SQLAlchemySaver(engine)
    saver.setup()
    assert put_from_threads(saver, 16) == []
    assert len(list(saver.list(None))) == 16
    engine.dispose()


async def test_one_async_connection_for_everybody_is_taken_in_turn() -> None:
    engine = create_async_engine("sqlite+aiosqlite://", poolclass=StaticPool)
    saver = SQLAlchemySaver(engine)
    await saver.asetup()
    await asyncio.gather(*(saver.aput(config(str(n)), empty_checkpoint(), {}, {}) for n in range(16)))
    assert len([found async for found in saver.alist(None)]) == 16
    await engine.dispose()


@pytest.mark.parametrize("options", [{}, {"poolclass": QueuePool}])
def test_a_memory_database_for_each_connection_is_refused(options: dict[str, type]) -> None:
    with pytest.raises(MemoryDatabaseError, match="poolclass=StaticPool"):
        SQLAlchemySaver(create_engine("sqlite://", **options))
