"""The saver: encode, run one unit of work through a door, decode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from sqlalchemy import URL, Engine
from sqlalchemy.ext.asyncio import AsyncEngine
from typing_extensions import Self

from cpstore import addresses, codec, engines, ops
from cpstore.doors import door_of
from cpstore.engines import Engines
from cpstore.models import TABLES
from cpstore.records import Query

__all__ = ["SQLAlchemySaver"]


class SQLAlchemySaver(BaseCheckpointSaver[str]):
    """Saves LangGraph's checkpoints in a SQL database through SQLAlchemy.

    One saver serves `invoke` and `ainvoke`, from any number of threads and tasks. With an `Engine`, async
    methods run in worker threads. With an `AsyncEngine`, sync methods work only from threads beside the
    event loop that uses the saver, and raise :class:`~cpstore.AsyncOnlyError` elsewhere.

    Args:
        engine: The application's engine, or an :class:`~cpstore.Engines` of both kinds on one database. It is
            never changed and never disposed.
        serde: The serializer of values; by default LangGraph's `JsonPlusSerializer`.

    Raises:
        UnsupportedDatabaseError: It is neither SQLite nor PostgreSQL.
        MemoryDatabaseError: Each connection would have an empty SQLite database of its own.
    """

    def __init__(
        self, engine: Engine | AsyncEngine | Engines, *, serde: SerializerProtocol | None = None
    ) -> None:
        super().__init__(serde=serde)
        self._door = door_of(engine, TABLES)
        self._owns_engines = False

    @classmethod
    def from_url(
        cls, url: str | URL, *, serde: SerializerProtocol | None = None, **engine_options: Any
    ) -> Self:
        """Make a saver with engines of its own, to be used as it is, in `with`, or in `async with`.

        Args:
            url: A database URL. `postgres://` and `postgresql://` mean psycopg 3, for sync and async;
                `sqlite://` is a database in memory.
            serde: As for the class.
            engine_options: Given to SQLAlchemy's `create_engine` and `create_async_engine` as they are.

        Raises:
            ConfigurationError: The URL is none, or names a database or driver that is not supported.
            MissingDriverError: The driver is not installed; the message names the extra that brings it.
        """
        saver = cls(engines.from_url(url, **engine_options), serde=serde)
        saver._owns_engines = True
        return saver

    def setup(self) -> None:
        """Migrate the database to the newest revision. Safe to call always, and from many processes at once.

        Raises:
            MigrationTurnError: Another process migrates and did not end in time.
        """
        self._door.migrate()

    async def asetup(self) -> None:
        """Async version of :meth:`setup`."""
        await self._door.amigrate()

    def close(self) -> None:
        """Dispose the engines that :meth:`from_url` made; an application's own are left alone.

        An `AsyncEngine` can only be disposed by :meth:`aclose`.
        """
        if self._owns_engines:
            self._door.close()

    async def aclose(self) -> None:
        """Async version of :meth:`close`."""
        if self._owns_engines:
            await self._door.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Give the channel version after `current`: `{n:032}.{random}`, never the same twice.

        Source of the rule: LangGraph's savers. Two forks that count on from one version share no blob.
        """
        return addresses.next_version(current)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, all or nothing. The same id again replaces it, its parent included.

        Args:
            config: Where: `thread_id`, `checkpoint_ns` (absent: the root graph's), and as `checkpoint_id` the
                parent (absent, None or empty: it has none).
            checkpoint: What; its `id` is the new checkpoint's.
            metadata: Stored as JSON, with what the config's `metadata` and `configurable` add.
            new_versions: The channels that changed. Only they are encoded and stored.

        Returns:
            A config with exactly the three keys of the new checkpoint.

        Raises:
            InvalidConfigError: `thread_id` is missing, or an identifier cannot be stored.
            NotMigratedError: The tables are not there.
        """
        record = codec.encode_checkpoint(self.serde, config, checkpoint, metadata, new_versions)
        self._door.run(ops.put, record)
        return addresses.config_of(record.key)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async version of :meth:`put`."""
        record = codec.encode_checkpoint(self.serde, config, checkpoint, metadata, new_versions)
        await self._door.arun(ops.put, record)
        return addresses.config_of(record.key)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the pending writes of a task, all or nothing.

        Row by row: a write to a special channel (`WRITES_IDX_MAP`) replaces the one before it, an ordinary
        write keeps the one that is there. The checkpoint need not exist yet.

        Args:
            config: The checkpoint, by all three keys.
            writes: Pairs of channel and value. None of them is no error.
            task_id: The task.
            task_path: The task's place in the graph; writes are read in the order of path, task, position.

        Raises:
            InvalidConfigError: A key is missing, or an identifier cannot be stored.
            NotMigratedError: The tables are not there.
        """
        record = codec.encode_writes(self.serde, config, writes, task_id, task_path)
        if record.writes:
            self._door.run(ops.put_writes, record)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Async version of :meth:`put_writes`."""
        record = codec.encode_writes(self.serde, config, writes, task_id, task_path)
        if record.writes:
            await self._door.arun(ops.put_writes, record)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint with its values and pending writes.

        Args:
            config: Its keys. Without a `checkpoint_id`, the newest of that thread and namespace.

        Returns:
            None if there is none. Values are new objects each time; pending writes are in the order of task
            path, task and position.

        Raises:
            InvalidConfigError: `thread_id` is missing, or an identifier cannot have been stored.
            NotMigratedError: The tables are not there.
        """
        loaded = self._door.run(ops.get, addresses.address_of(config))
        return None if loaded is None else codec.decode(self.serde, loaded)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async version of :meth:`get_tuple`."""
        loaded = await self._door.arun(ops.get, addresses.address_of(config))
        return None if loaded is None else codec.decode(self.serde, loaded)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Read checkpoints, newest first (by descending id). No connection is held while it yields.

        Args:
            config: None, or without keys: all threads. Without `checkpoint_ns`: all namespaces; `""` is the
                root graph's. With a `checkpoint_id`: that one.
            filter: A JSON object that the metadata must contain, as PostgreSQL's `@>` defines it. Keys are
                literal text; True is not 1, 1 equals 1.0, None matches only a null that is there.
            before: Only ids that are smaller than its `checkpoint_id`, whatever thread that belongs to.
            limit: At most so many, after all conditions. None: all of them.

        Raises:
            ValueError: `limit` is negative.
            NotMigratedError: The tables are not there.
        """
        query: Query | None = codec.encode_query(config, filter, before, limit)
        while query is not None:
            page = self._door.run(ops.page, query)
            for loaded in page.checkpoints:
                yield codec.decode(self.serde, loaded)
            query = page.next

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async version of :meth:`list`."""
        query: Query | None = codec.encode_query(config, filter, before, limit)
        while query is not None:
            page = await self._door.arun(ops.page, query)
            for loaded in page.checkpoints:
                yield codec.decode(self.serde, loaded)
            query = page.next

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints, blobs and writes of a thread. One that is unknown is no error.

        Raises:
            InvalidConfigError: The id cannot have been stored.
            NotMigratedError: The tables are not there.
        """
        self._door.run(ops.delete_thread, addresses.identifier("thread_id", thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Async version of :meth:`delete_thread`."""
        await self._door.arun(ops.delete_thread, addresses.identifier("thread_id", thread_id))
