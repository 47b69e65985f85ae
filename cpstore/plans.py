"""Which rows of a thread are to go, and which are to be copied: pure decisions on its structure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from cpstore.structure import BlobPlace, Node, Place, Structure

__all__ = ["Chain", "Removal", "Removed", "all_but", "chain_of", "keep_newest", "litter", "without_runs"]

_FIRST = Place("", "")


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
    referenced = structure.blobs_of(kept)
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


def litter(structure: Structure) -> Removal:
    """Remove what no checkpoint needs: values that nobody points at, writes whose checkpoint never came.

    Of a thread, or a namespace, without checkpoints the writes stay: a run may be about to save the first.
    """
    if structure.nodes:
        return all_but(structure, structure.nodes.keys())
    blobs = list(structure.blobs)
    return Removal([], blobs, [], [], _count(structure, [], blobs, []))


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
    referenced = structure.blobs_of(chain)
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
