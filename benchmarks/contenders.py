"""Who is measured: cpstore and the official saver, in pairs, through each way to a database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import URL

from benchmarks.databases import Dialect, dsn_of, file_of, text_of
from benchmarks.workloads import Step
from cpstore import SQLAlchemySaver

OURS, OFFICIAL = "cpstore", "official"


@dataclass(frozen=True)
class Contender:
    """A saver whose methods are awaited, whether its sync or its async ones are meant.

    A sync method runs at once, in this thread: the await costs it about 0.1 microseconds.
    """

    name: str
    saver: BaseCheckpointSaver[str]
    sync: bool

    async def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        if self.sync:
            return self.saver.put(config, checkpoint, metadata, new_versions)
        return await self.saver.aput(config, checkpoint, metadata, new_versions)

    async def put_writes(self, config: RunnableConfig, writes: list[tuple[str, Any]], task_id: str) -> None:
        if self.sync:
            self.saver.put_writes(config, writes, task_id)
        else:
            await self.saver.aput_writes(config, writes, task_id)

    async def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        if self.sync:
            return self.saver.get_tuple(config)
        return await self.saver.aget_tuple(config)

    async def list(self, config: RunnableConfig, limit: int) -> list[CheckpointTuple]:
        if self.sync:
            return list(self.saver.list(config, limit=limit))
        return [found async for found in self.saver.alist(config, limit=limit)]

    async def delete_thread(self, thread_id: str) -> None:
        if self.sync:
            self.saver.delete_thread(thread_id)
        else:
            await self.saver.adelete_thread(thread_id)

    async def store(self, config: RunnableConfig, step: Step) -> RunnableConfig:
        """Do all of a step, and give the config of the next one."""
        stored = await self.put(config, step.checkpoint, step.metadata, step.new_versions)
        await self.put_writes(stored, step.writes, step.task_id)
        return stored


def thread(thread_id: str) -> RunnableConfig:
    """The config of a thread."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


Opened = AbstractAsyncContextManager[BaseCheckpointSaver[str]]


@dataclass(frozen=True)
class Backend:
    """A way to a database, and how the official saver goes it.

    Attributes:
        name: what reports call it.
        dialect: the database.
        driver: that of cpstore's URL.
        sync: the sync methods are measured.
        official: opens the official saver.
        pooled: opens it on a pool of connections, if it can have one.
    """

    name: str
    dialect: Dialect
    driver: str
    sync: bool
    official: Callable[[URL], Opened]
    pooled: Callable[[URL, int], Opened] | None = None

    @asynccontextmanager
    async def ours(self, url: URL, **options: Any) -> AsyncIterator[Contender]:
        """cpstore, with tables."""
        async with SQLAlchemySaver.from_url(text_of(url, self.driver), **options) as saver:
            if self.sync:
                saver.setup()
            else:
                await saver.asetup()
            yield Contender(OURS, saver, self.sync)

    @asynccontextmanager
    async def theirs(self, url: URL, pool_size: int | None = None) -> AsyncIterator[Contender]:
        """The official saver, with tables."""
        opening = self.official(url)
        if pool_size is not None:
            assert self.pooled is not None  # noqa: S101, callers have looked
            opening = self.pooled(url, pool_size)
        async with opening as saver:
            yield Contender(OFFICIAL, saver, self.sync)


@asynccontextmanager
async def postgres_sync(url: URL) -> AsyncIterator[PostgresSaver]:
    with PostgresSaver.from_conn_string(dsn_of(url)) as saver:
        saver.setup()
        yield saver


@asynccontextmanager
async def postgres_async(url: URL) -> AsyncIterator[AsyncPostgresSaver]:
    async with AsyncPostgresSaver.from_conn_string(dsn_of(url)) as saver:
        await saver.setup()
        yield saver


@asynccontextmanager
async def sqlite_sync(url: URL) -> AsyncIterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(file_of(url)) as saver:
        saver.setup()
        yield saver


@asynccontextmanager
async def sqlite_async(url: URL) -> AsyncIterator[AsyncSqliteSaver]:
    async with AsyncSqliteSaver.from_conn_string(file_of(url)) as saver:
        await saver.setup()
        yield saver


CONNECTION = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
"""As the official savers make their own connections."""


@asynccontextmanager
async def postgres_sync_pool(url: URL, size: int) -> AsyncIterator[PostgresSaver]:
    options: Any = {"min_size": size, "max_size": size, "kwargs": CONNECTION}
    with ConnectionPool(dsn_of(url), open=True, **options) as pool:
        saver = PostgresSaver(pool)
        saver.setup()
        yield saver


@asynccontextmanager
async def postgres_async_pool(url: URL, size: int) -> AsyncIterator[AsyncPostgresSaver]:
    options: Any = {"min_size": size, "max_size": size, "kwargs": CONNECTION}
    async with AsyncConnectionPool(dsn_of(url), open=False, **options) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        yield saver


BACKENDS = (
    Backend("postgres sync", "postgresql", "postgresql+psycopg", True, postgres_sync, postgres_sync_pool),
    Backend("postgres async", "postgresql", "postgresql+psycopg", False, postgres_async, postgres_async_pool),
    Backend(
        "postgres asyncpg", "postgresql", "postgresql+asyncpg", False, postgres_async, postgres_async_pool
    ),
    Backend("sqlite sync", "sqlite", "sqlite", True, sqlite_sync),
    Backend("sqlite async", "sqlite", "sqlite", False, sqlite_async),
    Backend("sqlite aiosqlite", "sqlite", "sqlite+aiosqlite", False, sqlite_async),
)


def backend(dialect: Dialect) -> Backend:
    """The sync way to a database."""
    return next(found for found in BACKENDS if found.dialect == dialect and found.sync)
