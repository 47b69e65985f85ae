"""What threads take in the database: pure sums over their structure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from cpstore.structure import BlobPlace, Structure

__all__ = ["ChannelStorage", "ThreadStorage", "storage_of"]


@dataclass(frozen=True)
class ChannelStorage:
    """The stored values of a channel, in all namespaces of a thread or of several threads.

    Attributes:
        channel: The channel.
        blobs: Its stored values; of a list that grows, the pieces of it.
        bytes: Their bytes.
        references: How many times a checkpoint points at a value of it.
        unshared_bytes: The bytes that these would take if each checkpoint had all its values itself.
    """

    channel: str
    blobs: int = 0
    bytes: int = 0
    references: int = 0
    unshared_bytes: int = 0

    def __add__(self, other: ChannelStorage) -> ChannelStorage:
        """Give the sum of two, under the name of the first."""
        return ChannelStorage(
            self.channel,
            self.blobs + other.blobs,
            self.bytes + other.bytes,
            self.references + other.references,
            self.unshared_bytes + other.unshared_bytes,
        )


@dataclass(frozen=True)
class ThreadStorage:
    """What a thread takes. Short values that stand in documents count with these.

    Attributes:
        thread_id: The thread.
        checkpoints: Its checkpoints, in all namespaces.
        document_bytes: Characters of their JSON documents.
        writes: Its pending writes.
        write_bytes: Bytes of their values.
        channels: Its channels that have stored values, by their names in order.
    """

    thread_id: str
    checkpoints: int
    document_bytes: int
    writes: int
    write_bytes: int
    channels: tuple[ChannelStorage, ...]

    @property
    def blobs(self) -> int:
        """Its stored values."""
        return sum(channel.blobs for channel in self.channels)

    @property
    def blob_bytes(self) -> int:
        """Their bytes."""
        return sum(channel.bytes for channel in self.channels)

    @property
    def unshared_bytes(self) -> int:
        """The bytes that they would take if each checkpoint had all its values itself."""
        return sum(channel.unshared_bytes for channel in self.channels)

    @property
    def bytes(self) -> int:
        """All that it takes."""
        return self.document_bytes + self.blob_bytes + self.write_bytes


@dataclass
class _Count:
    blobs: int = 0
    bytes: int = 0
    references: int = 0
    unshared_bytes: int = 0


def storage_of(thread_id: str, structure: Structure) -> ThreadStorage:
    """Give what the thread of a structure takes."""
    counts: dict[str, _Count] = defaultdict(_Count)
    for place, blob in structure.blobs.items():
        count = counts[place.channel]
        count.blobs += 1
        count.bytes += blob.bytes
    for place in _references(structure):
        count = counts[place.channel]
        count.references += 1
        count.unshared_bytes += _whole(structure, place)
    channels = (
        ChannelStorage(channel, one.blobs, one.bytes, one.references, one.unshared_bytes)
        for channel, one in sorted(counts.items())
    )
    return ThreadStorage(
        thread_id,
        checkpoints=len(structure.nodes),
        document_bytes=sum(node.bytes for node in structure.nodes.values()),
        writes=sum(writes.number for writes in structure.writes.values()),
        write_bytes=sum(writes.bytes for writes in structure.writes.values()),
        channels=tuple(channels),
    )


def _references(structure: Structure) -> Iterator[BlobPlace]:
    return (blob for node in structure.nodes.values() for blob in node.blobs if blob in structure.blobs)


def _whole(structure: Structure, place: BlobPlace) -> int:
    """Give the bytes of a value; of a list in pieces, those of all pieces."""
    blob = structure.blobs[place]
    before = (structure.blobs.get(place._replace(version=version)) for version in blob.before)
    return blob.bytes + sum(piece.bytes for piece in before if piece is not None)
