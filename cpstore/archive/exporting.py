"""Threads to lines."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from cpstore import ops
from cpstore.archive.lines import HEAD, KINDS, dump, row_line
from cpstore.doors import Door
from cpstore.errors import UnknownThreadError
from cpstore.transfer.amounts import KEYS, chunks
from cpstore.transfer.steps import Call, call

__all__ = ["export_steps"]

_THREADS = 500
"""So many ids of threads are read at a time."""

Lines = Generator[Call | str, Any, int]
"""Yields units of work, whose results it is sent, and lines; returns how many rows it has written."""


def export_steps(door: Door, threads: Sequence[str] | None) -> Lines:
    """Export threads; None: all."""
    if threads is not None:
        yield from call(door, ops.all_thread_ids, None, 1)  # an error comes before the first line
        yield HEAD
        for thread_id in dict.fromkeys(threads):
            if not (yield from _thread(door, thread_id)):
                raise UnknownThreadError(f"There is no thread {thread_id!r}.")
        return 0
    found = yield from call(door, ops.all_thread_ids, None, _THREADS)
    yield HEAD
    while found:
        for thread_id in found:
            yield from _thread(door, thread_id)
        found = yield from call(door, ops.all_thread_ids, found[-1], _THREADS)
    return 0


def _thread(door: Door, thread_id: str) -> Lines:
    counts = {}
    for kind, part in KINDS.items():
        counts[part] = yield from _table(door, kind, thread_id)
    if any(counts.values()):
        yield dump({"kind": "end", "thread_id": thread_id, **counts})
    return sum(counts.values())


def _table(door: Door, kind: str, thread_id: str) -> Lines:
    part, count = KINDS[kind], 0
    after: tuple[Any, ...] | None = None
    full = True
    while full:
        page = yield from call(door, ops.row_keys, part, thread_id, after, KEYS)
        for keys in chunks(page):
            for row in (yield from call(door, ops.rows, part, thread_id, keys)):
                count += 1
                yield row_line(kind, row)
        full = len(page) == KEYS
        after = page[-1][0] if page else None
    return count
