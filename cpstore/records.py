"""What codec and ops say to each other: plain frozen records, without LangGraph and without SQL.

A record is complete when it is made. Times and orders: ids of checkpoints are text whose byte order is
their time order; `blob` is bytes as the serializer made them; JSON is text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

__all__ = [
    "TASKS",
    "Address",
    "Blob",
    "BlobKey",
    "CheckpointRecord",
    "CheckpointRow",
    "Key",
    "LoadedCheckpoint",
    "Page",
    "Query",
    "Write",
    "WritesRecord",
    "version_text",
]

TASKS = "__pregel_tasks"
"""LangGraph's channel of pending sends. Before checkpoint format 4 they were writes of the parent."""


def version_text(version: Any) -> str:
    """Give the text by which a blob is found: JSONB writes a float without exponent, so this does too."""
    return f"{Decimal(repr(version)):f}" if isinstance(version, float) else str(version)


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


@dataclass(frozen=True)
class Blob:
    """One channel value at one version. A channel that was emptied has the type `empty` and no bytes."""

    channel: str
    version: str
    type: str
    blob: bytes | None


@dataclass(frozen=True)
class CheckpointRecord:
    """One checkpoint, encoded, with the blobs that are new in it."""

    key: Key
    parent_checkpoint_id: str | None
    checkpoint: str
    metadata: str
    blobs: tuple[Blob, ...]


@dataclass(frozen=True)
class Write:
    """One pending write. A negative `idx` marks a special channel, whose newer write replaces the older."""

    task_id: str
    idx: int
    channel: str
    type: str
    blob: bytes
    task_path: str


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

    @cached_property
    def document(self) -> dict[str, Any]:
        """The checkpoint's JSON, parsed once for ops (which blobs?) and codec (what else?)."""
        return dict(json.loads(self.checkpoint))

    @property
    def blob_keys(self) -> list[BlobKey]:
        """Keys of all the blobs that this checkpoint may point at. Versions are looked up by their text."""
        versions = self.document.get("channel_versions") or {}
        return [
            BlobKey(*self.key[:2], channel, version_text(version)) for channel, version in versions.items()
        ]

    @property
    def sends_key(self) -> Key | None:
        """The parent that holds the pending sends of a checkpoint older than format 4."""
        if self.parent_checkpoint_id is None or self.document.get("v", 1) >= 4:
            return None
        return self.key._replace(checkpoint_id=self.parent_checkpoint_id)


@dataclass(frozen=True)
class LoadedCheckpoint:
    """All that the database knows of one checkpoint, read in one snapshot."""

    row: CheckpointRow
    blobs: tuple[Blob, ...]
    writes: tuple[Write, ...]
    sends: tuple[Write, ...]


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
class Page:
    """Some loaded checkpoints, newest first, and the query for the next page (None after the last)."""

    checkpoints: list[LoadedCheckpoint]
    next: Query | None
