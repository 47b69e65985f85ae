"""How much is transferred: what is told at the end, what is told meanwhile, and how much is held at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["KEYS", "Meter", "Progress", "Transferred", "chunks", "size_of_row"]

Item = TypeVar("Item")

KEYS = 1000
"""So many keys are compared at a time."""

_ROWS = 500
_BYTES = 8 << 20
"""So much is read and written at a time; a row that is larger goes alone."""


@dataclass(frozen=True)
class Transferred:
    """What a transfer wrote; nothing of it was there before, or it was another one there.

    Attributes:
        threads: Threads that were looked at.
        changed: Those of which something was written.
        checkpoints: Checkpoints.
        blobs: Channel values.
        writes: Pending writes.
        bytes: What all of these hold: blobs and values of writes in bytes, JSON documents in characters.
    """

    threads: int = 0
    changed: int = 0
    checkpoints: int = 0
    blobs: int = 0
    writes: int = 0
    bytes: int = 0

    def __add__(self, other: Transferred) -> Transferred:
        """Give the sum of two transfers."""
        return Transferred(*(mine + theirs for mine, theirs in zip(_all(self), _all(other), strict=True)))


@dataclass(frozen=True)
class Progress:
    """How far a transfer is.

    Attributes:
        thread_id: The thread that it is at.
        done: Rows of the source that were looked at.
        total: Rows that the source had at the start.
    """

    thread_id: str
    done: int
    total: int


@dataclass
class Meter:
    """Counts rows, and tells about them; never more of a thread than it had at first."""

    total: int
    tell: Callable[[Progress], None] | None
    done: int = 0
    _thread_id: str = ""
    _left: int = field(default=0)

    def begin(self, thread_id: str, rows: int) -> None:
        """Come to a thread that has so many rows."""
        self._thread_id, self._left = thread_id, rows

    def advance(self, rows: int | None = None) -> None:
        """Have looked at so many rows of it, or at all of them."""
        moved = self._left if rows is None else min(rows, self._left)
        self._left -= moved
        self.done += moved
        if self.tell is not None:
            self.tell(Progress(self._thread_id, min(self.done, self.total), self.total))


def chunks(sized: Iterable[tuple[Item, int]]) -> Iterator[list[Item]]:
    """Give items, each with its bytes, in lists that may be held at once."""
    found: list[Item] = []
    size = 0
    for item, more in sized:
        if found and (len(found) == _ROWS or size + more > _BYTES):
            yield found
            found, size = [], 0
        found.append(item)
        size += more
    if found:
        yield found


def size_of_row(row: dict[str, Any]) -> int:
    """Give what a row holds, without its key."""
    return sum(len(row.get(name) or "") for name in ("checkpoint", "metadata", "blob"))


def _all(amounts: Transferred) -> Sequence[int]:
    return list(vars(amounts).values())
