"""A saver's checkpoints: put, read, list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from cpstore import addresses, codec, lists, ops, queries
from cpstore.errors import UnreadableValueError
from cpstore.records import CheckpointRecord, LoadedCheckpoint, Query
from cpstore.saver.connected import Connected

__all__ = ["Checkpoints", "OnError"]

Decoded = TypeVar("Decoded")

OnError = Callable[[RunnableConfig, Exception], None]
"""What is told of a checkpoint that cannot be read."""

_LARGE_BYTES = 256 * 1024
"""What takes milliseconds to decode. A thread for less would hold the event loop up as long: Python lets
another thread have its turn after five of them."""


class Checkpoints(Connected):
    """Encode, run one unit of work through the door, decode."""

    def _encode(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> CheckpointRecord:
        return codec.encode_checkpoint(
            self.serde, config, checkpoint, metadata, new_versions, self._metadata_keys, self._appends
        )

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
            UnstorableValueError: A value cannot be stored so that it comes back as it is.
            NotMigratedError: The tables are not there.
        """
        record = self._encode(config, checkpoint, metadata, new_versions)
        if not self._door.run(ops.put, record):
            record = lists.without_pieces(self.serde, record)
            self._door.run(ops.put, record)
        self._appends.remember(lists.lines_stored(record))
        return addresses.config_of(record.key)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async version of :meth:`put`."""
        record = self._encode(config, checkpoint, metadata, new_versions)
        if not await self._door.arun(ops.put, record):
            record = lists.without_pieces(self.serde, record)
            await self._door.arun(ops.put, record)
        self._appends.remember(lists.lines_stored(record))
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
            UnstorableValueError: A value cannot be stored so that it comes back as it is.
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
            UnreadableValueError: A stored value cannot be read; the message names its place.
            NotMigratedError: The tables are not there.
        """
        loaded = self._door.run(ops.get, addresses.address_of(config))
        return None if loaded is None else self._decoded(loaded, codec.decode(self.serde, loaded))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async version of :meth:`get_tuple`."""
        loaded = await self._door.arun(ops.get, addresses.address_of(config))
        return None if loaded is None else self._decoded(loaded, await self._adecode(loaded))

    def _decoded(self, loaded: LoadedCheckpoint, decoded: CheckpointTuple) -> CheckpointTuple:
        """Remember where the lists of a checkpoint are: a run that begins with it continues them."""
        self._appends.remember(lists.lines_read(loaded))
        return decoded

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
        on_error: OnError | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Read checkpoints, newest first (by descending id). No connection is held while it yields.

        Args:
            config: None, or without keys: all threads. Without `checkpoint_ns`: all namespaces; `""` is the
                root graph's. With a `checkpoint_id`: that one.
            filter: A JSON object that the metadata must contain, as PostgreSQL's `@>` defines it. Keys are
                literal text; True is not 1, 1 equals 1.0, None matches only a null that is there.
            before: Only ids that are smaller than its `checkpoint_id`, whatever thread that belongs to.
            limit: At most so many, after all conditions. None: all of them.
            on_error: Called with the config and the error of a checkpoint that cannot be read; the list then
                goes on without it. None: the error is raised.

        Raises:
            ValueError: `limit` is negative.
            UnreadableValueError: A stored value cannot be read, and there is no `on_error`.
            NotMigratedError: The tables are not there.
        """
        query: Query | None = queries.query(config, filter, before, limit)
        while query is not None:
            page = self._door.run(ops.page, query)
            shared: dict[int, Any] = {}
            for loaded in page.items:
                try:
                    found = codec.decode(self.serde, loaded, shared)
                except UnreadableValueError as error:
                    if on_error is None:
                        raise
                    on_error(addresses.config_of(loaded.row.key), error)
                else:
                    yield found
            query = page.next

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
        on_error: OnError | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async version of :meth:`list`."""
        query: Query | None = queries.query(config, filter, before, limit)
        while query is not None:
            page = await self._door.arun(ops.page, query)
            shared: dict[int, Any] = {}
            for loaded in page.items:
                try:
                    found = await self._adecode(loaded, shared)
                except UnreadableValueError as error:
                    if on_error is None:
                        raise
                    on_error(addresses.config_of(loaded.row.key), error)
                else:
                    yield found
            query = page.next

    async def _adecode(
        self, loaded: LoadedCheckpoint, shared: dict[int, Any] | None = None
    ) -> CheckpointTuple:
        return await _decoded(loaded.bytes, codec.decode, self.serde, loaded, shared)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read what rebuilds delta channels at a checkpoint: its ancestors' writes, and where they begin.

        For each channel the walk goes up the parents to the nearest ancestor with a value of it.

        Args:
            config: The checkpoint; without a `checkpoint_id`, the newest of that thread and namespace.
            channels: The channels to rebuild.

        Returns:
            For each channel its `writes`, oldest first, those of the ancestors from the one with a value
            (its own included) down to the parent; and that value as `seed`, absent if no ancestor has one.

        Raises:
            InvalidConfigError: `thread_id` is missing, or an identifier cannot have been stored.
            NotMigratedError: The tables are not there.
        """
        wanted = queries.channels_of(channels)
        if not wanted:
            return {}
        histories = self._door.run(ops.delta_history, addresses.address_of(config), wanted)
        return codec.decode_histories(self.serde, histories)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Async version of :meth:`get_delta_channel_history`."""
        wanted = queries.channels_of(channels)
        if not wanted:
            return {}
        histories = await self._door.arun(ops.delta_history, addresses.address_of(config), wanted)
        size = sum(history.bytes for history in histories.values())
        return await _decoded(size, codec.decode_histories, self.serde, histories)


async def _decoded(size: int, decode: Callable[..., Decoded], *arguments: Any) -> Decoded:
    """Decode what is small at once, and what is large in a thread, so that the event loop goes on."""
    if size < _LARGE_BYTES:
        return decode(*arguments)
    return await asyncio.to_thread(decode, *arguments)
