"""Which checkpoint stands under which: forks, and calls of subgraphs under the step that made them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from cpstore.summaries import CheckpointSummary

__all__ = ["Forest", "Place", "Row"]


class Place(NamedTuple):
    """A checkpoint within its thread."""

    checkpoint_ns: str
    checkpoint_id: str


class Row(NamedTuple):
    """A checkpoint where it is drawn: one below the other, each after its parent.

    Attributes:
        number: Its row, from 0.
        depth: How far it is from the left.
        above: The number of the row that it hangs on; None for one that hangs on nothing.
        kind: `step`: it goes on from its parent. `fork`: another one goes on from there, too, further below.
            `call`: it is the first of a subgraph, which that row called. `root`: nothing is above it.
        goes_on: Whether what hangs on `above` is drawn below this one and all that hangs on it.
        checkpoint: The checkpoint.
        is_head: Whether it is the newest of its namespace.
    """

    number: int
    depth: int
    above: int | None
    kind: str
    goes_on: bool
    checkpoint: CheckpointSummary
    is_head: bool


class _Waiting(NamedTuple):
    place: Place
    depth: int
    above: int | None
    kind: str
    goes_on: bool


@dataclass(frozen=True)
class Forest:
    """The checkpoints of a thread.

    Attributes:
        checkpoints: They, by namespace and id, in the order of their ids.
        heads: The newest of each namespace.
    """

    checkpoints: dict[Place, CheckpointSummary]
    heads: frozenset[Place]
    _forks: dict[Place, list[Place]] = field(repr=False)
    _calls: dict[Place, list[Place]] = field(repr=False)
    _roots: list[Place] = field(repr=False)

    @classmethod
    def of(cls, history: Iterable[CheckpointSummary]) -> Forest:
        """Make the forest of a light history, in whatever order it is."""
        unsorted = {Place(one.checkpoint_ns, one.checkpoint_id): one for one in history}
        order = sorted(unsorted, key=lambda place: (place.checkpoint_id, place.checkpoint_ns))
        checkpoints = {place: unsorted[place] for place in order}
        forks, calls = defaultdict(list), defaultdict(list)
        roots: list[Place] = []
        for place, one in checkpoints.items():
            parent, caller = _parent(one), _caller(one)
            if parent in checkpoints and _caller(checkpoints[parent]) == caller:
                forks[parent].append(place)
            elif caller in checkpoints:
                calls[caller].append(place)
            else:
                roots.append(place)
        heads = {place.checkpoint_ns: place for place in checkpoints}
        made = cls(checkpoints, frozenset(heads.values()), forks, calls, roots)
        made._open_circles()
        return made

    def _open_circles(self) -> None:
        """Make a root of a checkpoint that is its own ancestor: nothing would lead to it."""
        reached = set(self._reached(self._roots))
        for place, one in self.checkpoints.items():
            if place not in reached:
                for group in (self._forks, self._calls):
                    for above in (_parent(one), _caller(one)):
                        if above is not None and place in group.get(above, ()):
                            group[above].remove(place)
                self._roots.append(place)
                reached.update(self._reached([place]))

    def _reached(self, roots: Iterable[Place]) -> Iterator[Place]:
        waiting = list(roots)
        while waiting:
            place = waiting.pop()
            yield place
            waiting += [*self.children(place), *self.calls(place)]

    def children(self, place: Place) -> list[Place]:
        """Give the checkpoints that were made from one, the older ones first."""
        return self._forks.get(place, [])

    def calls(self, place: Place) -> list[Place]:
        """Give the first checkpoints of the subgraphs that a step called."""
        return self._calls.get(place, [])

    @cached_property
    def rows(self) -> list[Row]:
        """All checkpoints in the order in which they are drawn.

        Below a checkpoint come the subgraphs that it called, then the forks that were left, then the one that
        leads to what is newest, straight on.
        """
        rows: list[Row] = []
        waiting = [_Waiting(root, 0, None, "root", False) for root in reversed(self._roots)]
        while waiting:
            place, depth, above, kind, goes_on = waiting.pop()
            number = len(rows)
            rows.append(
                Row(number, depth, above, kind, goes_on, self.checkpoints[place], place in self.heads)
            )
            waiting += reversed(list(self._below(place, number, depth)))
        return rows

    def _below(self, place: Place, number: int, depth: int) -> Iterator[_Waiting]:
        children, calls = self.children(place), self.calls(place)
        straight = max(children, key=self._newest.__getitem__, default=None)
        beside = [(call, "call") for call in calls]
        beside += [(child, "fork") for child in children if child != straight]
        for position, (one, kind) in enumerate(beside):
            last = straight is None and position == len(beside) - 1
            yield _Waiting(one, depth + 1, number, kind, not last)
        if straight is not None:
            yield _Waiting(straight, depth, number, "step", False)

    @cached_property
    def _newest(self) -> dict[Place, str]:
        """The newest checkpoint of a line, by each checkpoint in it: children have greater ids, mostly."""
        found = {place: place.checkpoint_id for place in self.checkpoints}
        for place in reversed(list(self._reached(self._roots))):
            parent = _parent(self.checkpoints[place])
            if parent is not None and place in self.children(parent):
                found[parent] = max(found[parent], found[place])
        return found


def _parent(one: CheckpointSummary) -> Place | None:
    parent = one.parent_checkpoint_id
    return None if parent is None else Place(one.checkpoint_ns, parent)


def _caller(one: CheckpointSummary) -> Place | None:
    """Give the checkpoint whose step called the subgraph: metadata names one of each graph above."""
    parents = one.metadata.get("parents")
    above = one.checkpoint_ns.rpartition("|")[0]
    caller = parents.get(above) if isinstance(parents, dict) and one.checkpoint_ns else None
    return Place(above, caller) if isinstance(caller, str) else None
