"""Lines to rows: checked one by one, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cpstore.archive.lines import HEAD, KINDS, Row, load, row_of
from cpstore.errors import DamagedLineError

__all__ = ["Imported", "rows_of"]


@dataclass(frozen=True)
class Imported:
    """What an import stored.

    Attributes:
        threads: Threads.
        checkpoints: Checkpoints.
        blobs: Channel values.
        writes: Pending writes.
    """

    threads: int = 0
    checkpoints: int = 0
    blobs: int = 0
    writes: int = 0


def rows_of(lines: Iterable[str]) -> Iterator[tuple[str, Row]]:
    """Give the table and the row of each line.

    Raises:
        DamagedLineError: A line is damaged, or lines are missing; the message has its number.
    """
    number = 0
    checked = _Checked()
    for number, line in enumerate(lines, 1):
        try:
            found = checked.row(line.strip())
        except DamagedLineError as error:
            raise DamagedLineError(f"Line {number} {error}. Nothing was imported.") from error.__cause__
        if found is not None:
            yield found
    if not checked.complete:
        raise DamagedLineError(f"The archive ends at line {number}, too early. Nothing was imported.")


class _Checked:
    """What was seen so far: each thread ends with a line that counts its rows."""

    def __init__(self) -> None:
        self._begun = False
        self._thread_id: str | None = None
        self._counts: Counter[str] = Counter()

    @property
    def complete(self) -> bool:
        return self._begun and self._thread_id is None

    def row(self, line: str) -> tuple[str, Row] | None:
        if not line:
            return None
        document = load(line)
        if not self._begun:
            self._begin(document)
            return None
        if document.get("kind") == "end":
            self._end(document)
            return None
        part, row = row_of(document)
        if self._thread_id not in (None, row["thread_id"]):
            raise DamagedLineError("is of another thread: the one before has no end")
        self._thread_id = row["thread_id"]
        self._counts[part] += 1
        return part, row

    def _begin(self, document: dict[str, Any]) -> None:
        if document != load(HEAD):
            raise DamagedLineError("is no beginning of an archive that this cpstore knows")
        self._begun = True

    def _end(self, document: dict[str, Any]) -> None:
        counts = {part: document.get(part) for part in KINDS.values()}
        if document.get("thread_id") != self._thread_id or counts != {
            part: self._counts[part] for part in KINDS.values()
        }:
            raise DamagedLineError("ends a thread that had other rows: lines before it are missing")
        self._thread_id = None
        self._counts.clear()
