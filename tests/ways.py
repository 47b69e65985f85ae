"""The ways into the saver: six drivers and doors, and one interface of a graph for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import URL, AsyncAdaptedQueuePool, Engine, QueuePool, create_engine, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from cpstore import SQLAlchemySaver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        DeltaChannelHistory,
    )
    from langgraph.pregel import Pregel
    from langgraph.types import StateSnapshot

    from cpstore.saver.checkpoints import OnError

    AnyGraph = Pregel[Any, Any, Any, Any]

Dialect = Literal["sqlite", "postgresql"]


@dataclass(frozen=True)
class Way:
    """One way into the saver.

    Attributes:
        name: what the tests call it.
        dialect: the database below.
        url_driver: the `drivername` of the engine's URL.
        sync: the sync methods of saver and graph are used, else the async ones.
        async_engine: the application's engine is an `AsyncEngine`, else an `Engine`.
    """

    name: str
    dialect: Dialect
    url_driver: str
    sync: bool = False
    async_engine: bool = False

    def url(self, database: str | URL) -> URL:
        """The same database, through this way's driver."""
        return make_url(database).set(drivername=self.url_driver)

    def engine(self, url: str | URL, **options: Any) -> Engine | AsyncEngine:
        """The engine of an application that knows nothing of cpstore, with options of its own."""
        create: Any = create_async_engine if self.async_engine else create_engine
        # The default for most; but SQLAlchemy before 2.0.38 gives aiosqlite no pool by itself.
        pool = AsyncAdaptedQueuePool if self.async_engine else QueuePool
        made: Engine | AsyncEngine = create(self.url(url), **{"poolclass": pool, **options})
        return made

    def saver(self, engine: Engine | AsyncEngine) -> SQLAlchemySaver:
        """A saver whose async methods lead through this way."""
        return SyncDoor(engine) if self.sync else SQLAlchemySaver(engine)


WAYS = (
    Way("pysqlite", "sqlite", "sqlite", sync=True),
    Way("sqlite-threads", "sqlite", "sqlite"),
    Way("aiosqlite", "sqlite", "sqlite+aiosqlite", async_engine=True),
    Way("psycopg", "postgresql", "postgresql+psycopg", sync=True),
    Way("psycopg-async", "postgresql", "postgresql+psycopg", async_engine=True),
    Way("asyncpg", "postgresql", "postgresql+asyncpg", async_engine=True),
)


class SyncDoor(SQLAlchemySaver):
    """A saver whose async methods call its sync ones, so that an async test body tests those."""

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self.put_writes(config, writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.get_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
        on_error: OnError | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for found in self.list(config, filter=filter, before=before, limit=limit, on_error=on_error):
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str, **options: Any) -> None:
        self.copy_thread(source_thread_id, target_thread_id, **options)

    async def aprune(self, thread_ids: Sequence[str], **options: Any) -> None:
        self.prune(thread_ids, **options)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self.get_delta_channel_history(config=config, channels=channels)


@dataclass(frozen=True)
class Door:
    """The methods of a compiled graph, sync or async as the way has it; streams come as lists."""

    way: Way

    async def invoke(self, graph: AnyGraph, value: Any, config: RunnableConfig, **options: Any) -> Any:
        if self.way.sync:
            return graph.invoke(value, config, **options)
        return await graph.ainvoke(value, config, **options)

    async def stream(self, graph: AnyGraph, value: Any, config: RunnableConfig, **options: Any) -> list[Any]:
        if self.way.sync:
            return list(graph.stream(value, config, **options))
        return [part async for part in graph.astream(value, config, **options)]

    async def get_state(self, graph: AnyGraph, config: RunnableConfig, **options: Any) -> StateSnapshot:
        if self.way.sync:
            return graph.get_state(config, **options)
        return await graph.aget_state(config, **options)

    async def get_state_history(
        self, graph: AnyGraph, config: RunnableConfig, **options: Any
    ) -> list[StateSnapshot]:
        if self.way.sync:
            return list(graph.get_state_history(config, **options))
        return [snapshot async for snapshot in graph.aget_state_history(config, **options)]

    async def update_state(
        self, graph: AnyGraph, config: RunnableConfig, values: Any, **options: Any
    ) -> RunnableConfig:
        if self.way.sync:
            return graph.update_state(config, values, **options)
        return await graph.aupdate_state(config, values, **options)
