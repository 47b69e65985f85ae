"""What a thread is made of, and which rows of it must stay: pure, and without any value.

The rule behind every deletion: what remains reads as before. A checkpoint that stays may need others:

* Of a delta channel it has a version and no value, only a count of the updates since the last snapshot (in
  the metadata, `counters_since_delta_snapshot`). It is rebuilt from the writes of its ancestors, back to and
  including the nearest one that has a value of that channel. Source: LangGraph's
  `BaseCheckpointSaver.get_delta_channel_history`.
* Before format 4, pending sends are writes of its parent.

Whoever stays for such a reason is a checkpoint like any other, and needs its own in turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

__all__ = [
    "BlobPlace",
    "Chain",
    "Node",
    "Place",
    "Removal",
    "Removed",
    "StoredBlob",
    "StoredWrites",
    "Structure",
    "all_but",
    "chain_of",
    "keep_newest",
    "without_runs",
]


class Place(NamedTuple):
    """A checkpoint within its thread."""

    checkpoint_ns: str
    checkpoint_id: str


class BlobPlace(NamedTuple):
    """A blob within its thread."""

    checkpoint_ns: str
    channel: str
    version: str


_FIRST = Place("", "")


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
    """A blob without its bytes. One that is `empty` tells that the channel had no value."""

    empty: bool
    bytes: int


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


@dataclass(frozen=True)
class Removed:
    """What a deletion took, or would take.

    Attributes:
        threads: Threads of which nothing is left.
        checkpoints: Checkpoints.
        blobs: Channel values.
        writes: Pending writes.
        bytes: What all of these hold: blobs and values of writes in bytes, JSON documents in characters.
        after: The last thread that was looked at, to go on after; None if there are no more.
    """

    threads: int = 0
    checkpoints: int = 0
    blobs: int = 0
    writes: int = 0
    bytes: int = 0
    after: str | None = None

    def __add__(self, other: Removed) -> Removed:
        """Give the sum of two deletions, of which the other is the later."""
        return Removed(
            self.threads + other.threads,
            self.checkpoints + other.checkpoints,
            self.blobs + other.blobs,
            self.writes + other.writes,
            self.bytes + other.bytes,
            other.after,
        )


class Chain(NamedTuple):
    """Rows of one thread that make a checkpoint and its past; and those whose parent is not among them."""

    checkpoints: list[Place]
    blobs: list[BlobPlace]
    writes: list[Place]
    orphans: list[Place]


@dataclass(frozen=True)
class Removal:
    """Rows of one thread that are to go, and checkpoints whose parent goes with them."""

    checkpoints: list[Place]
    blobs: list[BlobPlace]
    writes: list[Place]
    orphans: list[Place]
    counted: Removed


def keep_newest(structure: Structure, count: int) -> Removal:
    """Keep the newest checkpoints of each namespace, and what they need.

    A namespace of one call of a subgraph goes with the root graph's checkpoint that made the call. While that
    one is not saved yet the namespace stays: a run saves in the background, and the call may be first.
    """
    namespaces = structure.namespaces()
    roots = structure.with_needed(node.place for node in namespaces.get("", [])[:count])
    kept = [
        node.place
        for nodes in namespaces.values()
        for node in nodes[:count]
        if not _went_with_root(structure, nodes[0], roots)
    ]
    return all_but(structure, structure.with_needed(kept))


def without_runs(structure: Structure, doomed: Collection[Place]) -> Removal:
    """Remove checkpoints, with the calls of subgraphs that they made; but keep what others need."""
    gone = set(doomed)
    kept = structure.with_needed(place for place in structure.nodes if place not in gone)
    survivors = [
        place
        for place, node in structure.nodes.items()
        if place not in gone and not _went_with_root(structure, node, kept)
    ]
    return all_but(structure, structure.with_needed(survivors))


def all_but(structure: Structure, kept: Collection[Place]) -> Removal:
    """Remove every row that no kept checkpoint needs.

    Writes without a checkpoint stay while they are newer than all checkpoints of their namespace: a run may
    be about to save theirs. If nothing is kept, they go too.
    """
    heads = {name: nodes[0].place for name, nodes in structure.namespaces().items()} if kept else {}
    referenced = {blob for place in kept for blob in structure.nodes[place].blobs}
    checkpoints = [place for place in structure.nodes if place not in kept]
    blobs = [blob for blob in structure.blobs if blob not in referenced]
    gone = set(checkpoints)
    strays = [
        place
        for place in structure.writes
        if place not in structure.nodes and (not kept or place <= heads.get(place.checkpoint_ns, _FIRST))
    ]
    writes = [*checkpoints, *strays]  # those too that came after the writes were looked at
    orphans = [place for place in kept if structure.nodes[place].parent in gone]
    return Removal(checkpoints, blobs, writes, orphans, _count(structure, checkpoints, blobs, writes))


def chain_of(structure: Structure, place: Place) -> Chain:
    """Give a checkpoint of the root graph, its ancestors, and the subgraphs' checkpoints under them.

    What hangs on the checkpoint itself, its writes and the subgraphs that it called, belongs to the children
    that it has, and comes along only if it has none: then it is a run that may be resumed.
    """
    past = [ancestor.place for ancestor in structure.ancestors(structure.nodes[place])]
    roots = set(past) if structure.has_children(place) else {place, *past}
    under = [
        node.place
        for node in structure.nodes.values()
        if node.place.checkpoint_ns and Place("", node.root or "") in roots
    ]
    chain = structure.with_needed([place, *past, *under])
    referenced = {blob for one in chain for blob in structure.nodes[one].blobs}
    return Chain(
        list(chain),
        [blob for blob in structure.blobs if blob in referenced],
        [one for one in structure.writes if one in chain and (one != place or place in roots)],
        [one for one in chain if structure.nodes[one].parent not in chain],
    )


def _went_with_root(structure: Structure, node: Node, kept: Collection[Place]) -> bool:
    root = Place("", node.root or "")
    return node.is_call and root in structure.nodes and root not in kept


def _count(
    structure: Structure, checkpoints: list[Place], blobs: list[BlobPlace], writes: list[Place]
) -> Removed:
    return Removed(
        threads=int(bool(checkpoints) and len(checkpoints) == len(structure.nodes)),
        checkpoints=len(checkpoints),
        blobs=len(blobs),
        writes=sum(structure.writes[place].number for place in writes if place in structure.writes),
        bytes=sum(structure.nodes[place].bytes for place in checkpoints)
        + sum(structure.blobs[blob].bytes for blob in blobs)
        + sum(structure.writes[place].bytes for place in writes if place in structure.writes),
    )
