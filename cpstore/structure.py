"""What a thread is made of, without any value, and what in it needs what.

The rule behind every deletion: what remains reads as before. A checkpoint that stays may need others:

* Of a delta channel it has a version and no value, only a count of the updates since the last snapshot (in
  the metadata, `counters_since_delta_snapshot`). It is rebuilt from the writes of its ancestors, back to and
  including the nearest one that has a value of that channel. Source: LangGraph's
  `BaseCheckpointSaver.get_delta_channel_history`.
* Before format 4, pending sends are writes of its parent.

A blob that stays may need others, too: those that hold the beginning of its list.

Whoever stays for such a reason is a checkpoint like any other, and needs its own in turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

__all__ = ["BlobPlace", "Node", "Place", "StoredBlob", "StoredWrites", "Structure"]


class Place(NamedTuple):
    """A checkpoint within its thread."""

    checkpoint_ns: str
    checkpoint_id: str


class BlobPlace(NamedTuple):
    """A blob within its thread."""

    checkpoint_ns: str
    channel: str
    version: str


@dataclass(frozen=True)
class Node:
    """A checkpoint without its values: what it points at, and what it is to others."""

    place: Place
    parent: Place | None
    format: int
    versions: dict[str, str]
    inline: frozenset[str]
    delta: frozenset[str]
    root: str | None
    bytes: int

    @property
    def is_call(self) -> bool:
        """Whether it belongs to one call of a subgraph, whose namespace has its task's id after a colon."""
        return ":" in self.place.checkpoint_ns

    @property
    def blobs(self) -> Iterator[BlobPlace]:
        """The blobs that it may point at."""
        return (BlobPlace(self.place.checkpoint_ns, *version) for version in self.versions.items())


class StoredBlob(NamedTuple):
    """A blob without its bytes. One that is `empty` tells that the channel had no value.

    Of a list it may hold only the last items: then `before` has the versions of those that hold the others.
    """

    empty: bool
    bytes: int
    before: tuple[str, ...] = ()


class StoredWrites(NamedTuple):
    """The writes under a checkpoint without their bytes."""

    number: int
    bytes: int
    sends: bool


@dataclass
class Structure:
    """All rows of one thread."""

    nodes: dict[Place, Node] = field(default_factory=dict)
    blobs: dict[BlobPlace, StoredBlob] = field(default_factory=dict)
    writes: dict[Place, StoredWrites] = field(default_factory=dict)

    def newest(self) -> str | None:
        """The greatest checkpoint id in any namespace."""
        return max((place.checkpoint_id for place in self.nodes), default=None)

    def namespaces(self) -> dict[str, list[Node]]:
        """The checkpoints of each namespace, newest first."""
        found: dict[str, list[Node]] = {}
        for place in sorted(self.nodes, reverse=True):
            found.setdefault(place.checkpoint_ns, []).append(self.nodes[place])
        return found

    def has_value(self, node: Node, channel: str) -> bool:
        """Whether a checkpoint has a value of a channel, in its document or in a blob."""
        if channel in node.inline:
            return True
        version = node.versions.get(channel, "")
        blob = self.blobs.get(BlobPlace(node.place.checkpoint_ns, channel, version))
        return blob is not None and not blob.empty

    def blobs_of(self, places: Iterable[Place]) -> set[BlobPlace]:
        """Give the blobs that checkpoints may point at, and those that hold the beginnings of their lists."""
        own = {blob for place in places for blob in self.nodes[place].blobs}
        before = (
            blob._replace(version=version)
            for blob in own
            if blob in self.blobs
            for version in self.blobs[blob].before
        )
        return own.union(before)

    def ancestors(self, node: Node) -> Iterator[Node]:
        """The parents of a checkpoint, nearest first, as far as they are there."""
        seen = {node.place}
        parent = node.parent
        while parent is not None and parent not in seen and parent in self.nodes:
            seen.add(parent)
            yield self.nodes[parent]
            parent = self.nodes[parent].parent

    def has_children(self, place: Place) -> bool:
        """Whether another checkpoint was made from this one."""
        return any(node.parent == place for node in self.nodes.values())

    def with_needed(self, kept: Iterable[Place]) -> set[Place]:
        """Give checkpoints together with all that they need."""
        done: set[Place] = set()
        waiting = list(kept)
        while waiting:
            place = waiting.pop()
            if place not in done:
                done.add(place)
                waiting += self._needed(self.nodes[place])
        return done

    def _needed(self, node: Node) -> Iterator[Place]:
        if node.format < 4 and node.parent in self.nodes and self._sends(node.parent):
            yield node.parent
        for channel in self._deltas[node.place.checkpoint_ns] & node.versions.keys():
            if not self.has_value(node, channel):
                yield from self._back_to_value(node, channel)

    @cached_property
    def _deltas(self) -> dict[str, set[str]]:
        """The channels of each namespace that any checkpoint counts updates of.

        The newest graph may not know any more that they were delta channels: their values are rebuilt for it
        all the same.
        """
        found: dict[str, set[str]] = defaultdict(set)
        for place, node in self.nodes.items():
            found[place.checkpoint_ns] |= node.delta
        return found

    def _sends(self, place: Place) -> bool:
        return place in self.writes and self.writes[place].sends

    def _back_to_value(self, node: Node, channel: str) -> Iterator[Place]:
        for ancestor in self.ancestors(node):
            yield ancestor.place
            if self.has_value(ancestor, channel):
                return
