"""What codec and ops say to each other: plain frozen records, without LangGraph and without SQL.

A record is complete when it is made. Times and orders: ids of checkpoints are text whose byte order is
their time order; `blob` is bytes as the serializer made them; JSON is text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from cpstore.errors import UnreadableValueError
from cpstore.pieces import PieceRow

__all__ = [
    "EMPTY",
    "ERROR",
    "INTERRUPT",
    "TASKS",
    "UNVERSIONED",
    "Address",
    "Blob",
    "BlobKey",
    "ChannelHistory",
    "CheckpointRecord",
    "CheckpointRow",
    "HeldValue",
    "Key",
    "LoadedCheckpoint",
    "Page",
    "Query",
    "StoredList",
    "ThreadQuery",
    "Write",
    "WritesRecord",
    "format_of",
    "object_in",
    "parsed_object",
    "version_text",
]

Item = TypeVar("Item")
Asked = TypeVar("Asked")

TASKS = "__pregel_tasks"
"""LangGraph's channel of pending sends. Before checkpoint format 4 they were writes of the parent."""

INTERRUPT, ERROR = "__interrupt__", "__error__"
"""LangGraph's channels of writes that say that a task was interrupted, or failed."""

UNVERSIONED = "__unversioned__"
"""Where a checkpoint's document holds encoded values that have no version, and so can have no blob; and, of
a checkpoint that another saver made, those that differ from the blob of their version."""

EMPTY = "empty"
"""The type of a blob that tells that its channel had no value at this version. It has no bytes."""


def version_text(version: Any) -> str:
    """Give the text by which a blob is found: JSONB writes a float without exponent, so this does too."""
    if type(version) is str:
        return version
    return f"{Decimal(repr(version)):f}" if isinstance(version, float) else str(version)


def parsed_object(text: str) -> dict[str, Any] | None:
    """Give the JSON object that a text is; None if it is none."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def object_in(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Give an object in a JSON object; an empty one if something else is there, or nothing."""
    part = document.get(name)
    return part if isinstance(part, dict) else {}


def format_of(document: Mapping[str, Any]) -> int:
    """Give the format of a checkpoint's document; the first one if it does not say."""
    version = document.get("v")
    return version if isinstance(version, int) else 1


class Key(NamedTuple):
    """The three-part address of one stored checkpoint."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str


class BlobKey(NamedTuple):
    """The primary key of one stored channel value."""

    thread_id: str
    checkpoint_ns: str
    channel: str
    version: str


@dataclass(frozen=True)
class Address:
    """Where a caller's config points. Without a `checkpoint_id` the newest checkpoint is meant."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str | None


class Blob(NamedTuple):
    """One channel value at one version. A channel that was emptied has the type `empty` and no bytes."""

    channel: str
    version: str
    type: str
    blob: bytes | None


class HeldValue(NamedTuple):
    """A blob, and those that hold the beginning of its list; None for each that is not there."""

    blob: Blob
    before: tuple[Blob | None, ...]


@dataclass(frozen=True)
class StoredList:
    """A list that is stored in pieces.

    Attributes:
        channel: Its channel.
        line: The blobs that hold it, in the order of their items. The last one is new.
        data: All of it in MessagePack.
        items: The number of its items.
    """

    channel: str
    line: tuple[PieceRow, ...]
    data: bytes
    items: int


@dataclass(frozen=True)
class CheckpointRecord:
    """One checkpoint, encoded, with the blobs that are new in it; those of `lists` are among them."""

    key: Key
    parent_checkpoint_id: str | None
    checkpoint: str
    metadata: str
    blobs: tuple[Blob, ...]
    lists: tuple[StoredList, ...] = ()

    @property
    def needed(self) -> list[tuple[str, str, str]]:
        """Channel, version and type of the blobs that must be there, or the lists could not be read."""
        return [(each.channel, row.version, row.type) for each in self.lists for row in each.line[:-1]]


@dataclass(frozen=True)
class Write:
    """One pending write. A negative `idx` marks a special channel, whose newer write replaces the older."""

    task_id: str
    idx: int
    channel: str
    type: str
    blob: bytes
    task_path: str

    def order(self) -> tuple[str, str, int]:
        """Give the order of writes under a checkpoint: LangGraph's `writes_sort_key`, by code point.

        It is sorted by in Python, so that the collation of a database has no part in it.
        """
        return self.task_path, self.task_id, self.idx


@dataclass(frozen=True)
class WritesRecord:
    """The writes of one task under one checkpoint."""

    key: Key
    writes: tuple[Write, ...]


@dataclass(frozen=True)
class CheckpointRow:
    """A row of `checkpoints` as it was read; both JSON documents still text."""

    key: Key
    parent_checkpoint_id: str | None
    checkpoint: str
    metadata: str

    @property
    def document(self) -> dict[str, Any]:
        """The checkpoint's JSON, parsed once for ops (which blobs?) and codec (what else?).

        Raises:
            UnreadableValueError: It is no JSON object.
        """
        if self._parsed is None:
            thread_id, namespace, checkpoint_id = self.key
            raise UnreadableValueError(
                f"The document of thread {thread_id!r}, namespace {namespace!r}, checkpoint {checkpoint_id!r}"
                " is no JSON object"
            )
        return self._parsed

    def part(self, name: str) -> dict[str, Any]:
        """Give an object in the document; an empty one if it is not there, or damaged.

        Who looks for rows goes on past a damaged document. It is told of when the checkpoint is decoded.
        """
        return object_in(self._parsed or {}, name)

    @cached_property
    def _parsed(self) -> dict[str, Any] | None:
        return parsed_object(self.checkpoint)

    @property
    def updated_channels(self) -> Any:
        """The channels that its step changed, as the document says it; None if it does not."""
        return (self._parsed or {}).get("updated_channels")

    @property
    def unversioned(self) -> dict[str, Any]:
        """Values that no blob can hold: their type, and their bytes in base 64."""
        return self.part(UNVERSIONED)

    def has_inline(self, channel: str) -> bool:
        """Whether the document itself has a value of a channel."""
        return channel in self.part("channel_values") or channel in self.unversioned

    def blob_key(self, channel: str) -> BlobKey | None:
        """The key of the blob that a channel may have; None if it has no version here."""
        if channel not in self.versions:
            return None
        return BlobKey(*self.key[:2], channel, version_text(self.versions[channel]))

    @property
    def versions(self) -> dict[str, Any]:
        """The versions of all channels, as the document has them."""
        return self.part("channel_versions")

    @property
    def blob_keys(self) -> list[BlobKey]:
        """Keys of all the blobs that this checkpoint may point at. Versions are looked up by their text."""
        place, versions = self.key[:2], self.versions.items()
        return [BlobKey(*place, channel, version_text(version)) for channel, version in versions]

    @property
    def sends_key(self) -> Key | None:
        """The parent that holds the pending sends of a checkpoint older than format 4."""
        if self.parent_checkpoint_id is None or format_of(self._parsed or {}) >= 4:
            return None
        return self.key._replace(checkpoint_id=self.parent_checkpoint_id)


@dataclass(frozen=True)
class LoadedCheckpoint:
    """All that the database knows of one checkpoint, read in one snapshot."""

    row: CheckpointRow
    values: tuple[HeldValue, ...]
    writes: tuple[Write, ...]
    sends: tuple[Write, ...]

    @property
    def bytes(self) -> int:
        """How much there is to decode."""
        writes = sum(len(write.blob) for write in (*self.writes, *self.sends))
        return sum(map(_bytes_of, self.values)) + writes + len(self.row.checkpoint) + len(self.row.metadata)


@dataclass(frozen=True)
class Query:
    """Which checkpoints `list` is asked for, and where it stands. None means: no condition.

    `filter` is a JSON object that the metadata must contain. `keys` were found by the last page and wait
    to be loaded; the search goes on below `after` unless it is `exhausted`.
    """

    thread_id: str | None = None
    checkpoint_ns: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    filter: str | None = None
    limit: int | None = None
    after: Key | None = None
    keys: tuple[Key, ...] = ()
    exhausted: bool = False


@dataclass(frozen=True)
class ThreadQuery:
    """Which threads `list_threads` is asked for, and where it stands.

    `size` threads are looked at together. `after` is a pair of checkpoint id and thread id: the search goes
    on below it. `filter` is a JSON object that the metadata of a thread's newest checkpoint must contain.
    """

    size: int
    by_id: bool = False
    after: tuple[str, str] | None = None
    filter: str | None = None


@dataclass(frozen=True)
class Page(Generic[Item, Asked]):
    """Some of what was asked for, in its order, and the query for the next page (None after the last)."""

    items: list[Item]
    next: Asked | None


@dataclass(frozen=True)
class ChannelHistory:
    """What the ancestors of a checkpoint tell of one channel: writes, oldest first, and where they begin."""

    writes: tuple[tuple[Key, Write], ...]
    seed: tuple[CheckpointRow, HeldValue | None] | None

    @property
    def bytes(self) -> int:
        """How much there is to decode."""
        row, value = self.seed or (None, None)
        seed = (len(row.checkpoint) if row else 0) + (_bytes_of(value) if value else 0)
        return seed + sum(len(write.blob) for _, write in self.writes)


def _bytes_of(value: HeldValue) -> int:
    blob, before = value
    size = len(blob.blob or b"")
    for beginning in before:
        size += 0 if beginning is None else len(beginning.blob or b"")
    return size
