"""What threads and channels take in the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cpstore.storage import ChannelStorage, ThreadStorage

__all__ = ["StorageSum", "channel_document", "ratio", "storage_document"]


def storage_document(thread: ThreadStorage) -> dict[str, Any]:
    """Give the document of what a thread takes.

    `ratio` is what its values would take if each checkpoint had all of them itself, by what they take.
    """
    return {
        "thread_id": thread.thread_id,
        "checkpoints": thread.checkpoints,
        "blobs": thread.blobs,
        "writes": thread.writes,
        "document_bytes": thread.document_bytes,
        "blob_bytes": thread.blob_bytes,
        "write_bytes": thread.write_bytes,
        "bytes": thread.bytes,
        "unshared_bytes": thread.unshared_bytes,
        "ratio": ratio(thread.unshared_bytes, thread.blob_bytes),
    }


def channel_document(channel: ChannelStorage) -> dict[str, Any]:
    """Give the document of what the stored values of a channel take."""
    return {
        "channel": channel.channel,
        "blobs": channel.blobs,
        "bytes": channel.bytes,
        "references": channel.references,
        "unshared_bytes": channel.unshared_bytes,
        "ratio": ratio(channel.unshared_bytes, channel.bytes),
    }


def ratio(unshared: int, stored: int) -> float | None:
    """Give how many times more bytes there would be; None if there are none."""
    return round(unshared / stored, 2) if stored else None


@dataclass
class StorageSum:
    """What several threads take together; they are added one by one.

    Attributes:
        threads: How many were added.
    """

    threads: int = 0
    _total: dict[str, int] = field(default_factory=dict)
    _channels: dict[str, ChannelStorage] = field(default_factory=dict)

    def add(self, thread: ThreadStorage) -> None:
        """Add a thread."""
        self.threads += 1
        for name in _SUMMED:
            self._total[name] = self._total.get(name, 0) + getattr(thread, name)
        for channel in thread.channels:
            sum_ = self._channels.get(channel.channel, ChannelStorage(channel.channel))
            self._channels[channel.channel] = sum_ + channel

    @property
    def channels(self) -> list[ChannelStorage]:
        """Their channels, those with the most bytes first."""
        return sorted(self._channels.values(), key=lambda one: (-one.bytes, one.channel))

    def document(self) -> dict[str, Any]:
        """Give the document of the sum."""
        total = {name: self._total.get(name, 0) for name in _SUMMED}
        return {
            "threads": self.threads,
            **total,
            "ratio": ratio(total["unshared_bytes"], total["blob_bytes"]),
        }


_SUMMED = (
    *("checkpoints", "blobs", "writes", "document_bytes", "blob_bytes", "write_bytes", "bytes"),
    "unshared_bytes",
)
