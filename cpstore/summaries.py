"""What can be told of threads and checkpoints without reading any value."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import Any

from cpstore.times import time_of

__all__ = ["CheckpointSummary", "ThreadSummary"]


@dataclass(frozen=True)
class ThreadSummary:
    """A thread at a glance.

    Attributes:
        thread_id: The thread.
        first_checkpoint_id: Its smallest checkpoint id, in any namespace.
        last_checkpoint_id: Its greatest checkpoint id, in any namespace.
        checkpoints: How many checkpoints it has, in all namespaces.
        namespaces: The namespaces that it has, sorted; the root graph's is `""`.
    """

    thread_id: str
    first_checkpoint_id: str
    last_checkpoint_id: str
    checkpoints: int
    namespaces: tuple[str, ...]

    @property
    def created_at(self) -> dt.datetime | None:
        """The time of the first checkpoint in UTC; None if its id is no UUID of version 6."""
        return time_of(self.first_checkpoint_id)

    @property
    def updated_at(self) -> dt.datetime | None:
        """The time of the last checkpoint in UTC; None if its id is no UUID of version 6."""
        return time_of(self.last_checkpoint_id)

    @property
    def cursor(self) -> str:
        """Text to give as `after=`, to go on below this thread."""
        return json.dumps([self.last_checkpoint_id, self.thread_id])


@dataclass(frozen=True)
class CheckpointSummary:
    """A checkpoint without its values.

    Attributes:
        thread_id: The thread.
        checkpoint_ns: The namespace; the root graph's is `""`.
        checkpoint_id: The checkpoint.
        parent_checkpoint_id: The checkpoint that it was made from; None for a first one.
        metadata: What `put` was given, and what the config added.
        updated_channels: The channels that its step changed; None if LangGraph did not say.
        document_bytes: Characters of its JSON documents: inline values, versions, metadata.
        value_bytes: Bytes of all blobs that it points at, those included that other checkpoints share.
        writes: How many pending writes it has.
        write_bytes: Bytes of their values.
        interrupts: How many of them say that a task was interrupted, whether or not it was resumed since.
        errors: How many of them say that a task failed.
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    metadata: dict[str, Any]
    updated_channels: tuple[str, ...] | None
    document_bytes: int
    value_bytes: int
    writes: int
    write_bytes: int
    interrupts: int = 0
    errors: int = 0

    @property
    def total_bytes(self) -> int:
        """All that it takes, values that other checkpoints share included."""
        return self.value_bytes + self.document_bytes + self.write_bytes

    @property
    def created_at(self) -> dt.datetime | None:
        """Its time in UTC; None if its id is no UUID of version 6."""
        return time_of(self.checkpoint_id)
