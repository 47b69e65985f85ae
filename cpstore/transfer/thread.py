"""One thread from database to database.

In the order in which a crash, or a run that goes on meanwhile, leaves nothing that reads wrong: checkpoints
are read first and stored last. All blobs and writes that a checkpoint needs are older than it is, so whatever
the source has of those once the checkpoint was read goes before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

from cpstore import ops
from cpstore.doors import Door
from cpstore.places import Rebinder
from cpstore.transfer.amounts import KEYS, Meter, Transferred, chunks, size_of_row
from cpstore.transfer.steps import Steps, call

__all__ = ["Row", "RowKey", "ThreadTransfer"]

Row = dict[str, Any]
RowKey = tuple[Any, ...]

_KEY_COLUMNS = {
    "checkpoints": ("checkpoint_ns", "checkpoint_id"),
    "blobs": ("checkpoint_ns", "channel", "version"),
    "writes": ("checkpoint_ns", "checkpoint_id", "task_id", "idx"),
}


class ThreadTransfer:
    """Brings what the target lacks of a thread, from a database with the same three tables.

    Args:
        source: The door to read through.
        target: The door to write through.
        thread_id: The thread, the same in both.
        rebinder: What seals values anew; None: rows stay as they are.
        meter: What counts rows of the source.
    """

    parts: ClassVar[Sequence[str]] = ("blobs", "writes")
    """Tables of the source whose rows come before the checkpoints."""

    def __init__(
        self, source: Door, target: Door, thread_id: str, rebinder: Rebinder | None, meter: Meter
    ) -> None:
        self.source = source
        self.target = target
        self.thread_id = thread_id
        self.rebinder = rebinder
        self.meter = meter
        self.written = Transferred(threads=1)
        self.held: dict[str, int] = {}
        """The number of rows that the target has in each table."""
        self.read: dict[str, int] = {"checkpoints": 0}
        """The number of rows that the source was seen to have."""

    def steps(self) -> Steps[bool]:
        """Transfer the thread; tells whether it was done: False if the target has a history of its own."""
        counts = yield from call(self.source, ops.row_counts, self.thread_id)
        self.meter.begin(self.thread_id, sum(counts[part] for part in ("checkpoints", *self.parts)))
        self.held = yield from call(self.target, ops.row_counts, self.thread_id)
        if (yield from self._has_other_history()):
            return False
        if self.held["writes"]:
            yield from self._replace_writes()
        yield from self._bring_checkpoints()
        if not self.read["checkpoints"]:
            yield from self._bring_rest()
        self.meter.advance()
        return True

    def differs(self) -> Steps[bool]:
        """Tell whether the target has another number of rows than were read."""
        held = yield from call(self.target, ops.row_counts, self.thread_id)
        return held != self.held | self.read

    def as_stored(self, part: str, row: Row) -> Row:
        """Give a row of the source as one of ours; its values as they are."""
        return row

    def store_checkpoints(self, rows: Sequence[Row]) -> Steps[None]:
        """Store checkpoints of the source, whose blobs and writes are there."""
        yield from self.store_changed("checkpoints", rows)

    # What is there

    def _has_other_history(self) -> Steps[bool]:
        """Tell whether the target's thread has a row that the source has not."""
        for part in ("checkpoints", *self.parts):
            after: RowKey | None = None
            full = bool(self.held[part])
            while full:
                page = yield from call(self.target, ops.row_keys, part, self.thread_id, after, KEYS)
                keys = [key for key, _ in page]
                if keys and set(keys) - (yield from self._present(self.source, part, keys)):
                    return True
                full = len(keys) == KEYS
                after = keys[-1] if keys else None
        return False

    def _present(self, door: Door, part: str, keys: Sequence[RowKey]) -> Steps[set[RowKey]]:
        found: set[RowKey] = yield from call(door, ops.present_keys, part, self.thread_id, keys)
        return found

    # What is brought

    def _bring_checkpoints(self) -> Steps[None]:
        after: RowKey | None = None
        full = True
        while full:
            page = yield from call(self.source, ops.row_keys, "checkpoints", self.thread_id, after, KEYS)
            for keys in chunks(page):
                rows = yield from self.rows(self.source, "checkpoints", keys)
                yield from self._bring_rest()
                yield from self.store_checkpoints(rows)
                self.read["checkpoints"] += len(rows)
                self.meter.advance(len(rows))
            full = len(page) == KEYS
            after = page[-1][0] if page else None

    def _bring_rest(self) -> Steps[None]:
        """Bring blobs and writes, if the source has others than are there.

        All that are there are the source's, so their numbers tell.
        """
        counts = yield from call(self.source, ops.row_counts, self.thread_id)
        for part in self.parts:
            self.read[part] = counts[part]
            if counts[part] != self.held[part]:
                self.read[part] = yield from self._bring(part)

    def _bring(self, part: str) -> Steps[int]:
        """Bring the rows of a table that are not there; gives the number of all rows that were seen."""
        seen = 0
        after: RowKey | None = None
        full = True
        while full:
            page = yield from call(self.source, ops.row_keys, part, self.thread_id, after, KEYS)
            there: set[RowKey] = set()
            if page and self.held[part]:
                there = yield from self._present(self.target, part, [key for key, _ in page])
            for keys in chunks(each for each in page if each[0] not in there):
                rows = yield from self.rows(self.source, part, keys)
                yield from self.store(part, [self.as_stored(part, row) for row in rows], new=len(rows))
            seen += len(page)
            self.meter.advance(len(page))
            full = len(page) == KEYS
            after = page[-1][0] if page else None
        return seen

    def _replace_writes(self) -> Steps[None]:
        """Bring special writes that are there and differ: the newer one replaces the older."""
        after: RowKey | None = None
        full = True
        while full:
            page = yield from call(self.source, ops.row_keys, "writes", self.thread_id, after, KEYS, True)
            there: set[RowKey] = set()
            if page:
                there = yield from self._present(self.target, "writes", [key for key, _ in page])
            for keys in chunks(each for each in page if each[0] in there):
                rows = yield from self.rows(self.source, "writes", keys)
                yield from self.store_changed("writes", [self.as_stored("writes", row) for row in rows])
            full = len(page) == KEYS
            after = page[-1][0] if page else None

    # Reading and storing

    def rows(self, door: Door, part: str, keys: Sequence[RowKey]) -> Steps[list[Row]]:
        """Read rows of the thread."""
        found: list[Row] = yield from call(door, ops.rows, part, self.thread_id, keys)
        return found

    def store_changed(self, part: str, rows: Sequence[Row]) -> Steps[None]:
        """Store those of some rows that are not there, or not like that."""
        there: dict[RowKey, Row] = {}
        if rows and self.held[part]:
            keys = [key_of(part, row) for row in rows]
            there = {key_of(part, row): row for row in (yield from self.rows(self.target, part, keys))}
        new = [row for row in rows if key_of(part, row) not in there]
        changed = [
            row
            for row in rows
            if (old := there.get(key_of(part, row))) is not None and not self.same(part, row, old)
        ]
        yield from self.store(part, [*new, *changed], new=len(new))

    def store(self, part: str, rows: Sequence[Row], *, new: int) -> Steps[None]:
        """Store rows, of which so many are new."""
        if not rows:
            return
        if self.rebinder is not None:
            rows = [self.rebinder(part, row) for row in rows]
        yield from call(self.target, ops.store_rows, part, rows)
        self.held[part] += new
        size = self.written.bytes + sum(map(size_of_row, rows))
        number = getattr(self.written, part) + len(rows)
        self.written = replace(self.written, changed=1, bytes=size, **{part: number})

    def same(self, part: str, mine: Row, theirs: Row) -> bool:
        """Tell whether two rows with one key say the same."""
        if self.rebinder is not None:
            mine, theirs = self.rebinder.opened(part, mine), self.rebinder.opened(part, theirs)
        return bool(comparable(part, mine) == comparable(part, theirs))


def key_of(part: str, row: Mapping[str, Any]) -> RowKey:
    """Give the primary key of a row, without its thread."""
    return tuple(row[name] for name in _KEY_COLUMNS[part])


def comparable(part: str, row: Mapping[str, Any]) -> Any:
    """Give what is replaced of a row with the same key; JSON as what it says, which databases write anew."""
    if part == "checkpoints":
        return row["parent_checkpoint_id"], _parsed(row["checkpoint"]), _parsed(row["metadata"])
    return row["type"], row["blob"], row["channel"], row["task_path"]


def _parsed(text: str) -> Any:
    """Parse JSON; numbers as decimals, because PostgreSQL writes 1e30 with all its digits."""
    try:
        return json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except ValueError:
        return text
