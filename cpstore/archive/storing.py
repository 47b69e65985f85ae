"""Rows of an archive into the tables, in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from sqlalchemy import Connection

from cpstore.archive.importing import Imported
from cpstore.archive.lines import Row
from cpstore.dialects import Dialect, Mode
from cpstore.errors import ThreadExistsError
from cpstore.ops import Unit
from cpstore.transfer.amounts import chunks, size_of_row

__all__ = ["import_rows"]

Rows = Callable[[], Iterable[tuple[str, Row]]]


def _import(connection: Connection, sql: Dialect, rows: Rows) -> Imported:
    """Store the rows of whole threads, none of which has a checkpoint."""
    counts: Counter[str] = Counter()
    threads: set[str] = set()
    for batch in chunks(((part, row), size_of_row(row)) for part, row in rows()):
        for thread_id in sorted({row["thread_id"] for _, row in batch} - threads):
            _check(connection, sql, thread_id)
            threads.add(thread_id)
        for part, some in _by_part(batch):
            connection.execute(sql.store_rows(part), some)
            counts[part] += len(some)
    return Imported(len(threads), counts["checkpoints"], counts["blobs"], counts["writes"])


import_rows: Unit[[Rows], Imported] = Unit(Mode.WRITE, _import, repeatable=False)
"""Stores all rows, or none."""


def _check(connection: Connection, sql: Dialect, thread_id: str) -> None:
    if connection.execute(sql.any_checkpoint, {"p_thread_id": thread_id}).first() is not None:
        raise ThreadExistsError(
            f"The database has checkpoints of thread {thread_id!r} already, and two histories cannot be one."
            " Delete that thread first. Nothing was imported."
        )


def _by_part(batch: list[tuple[str, Row]]) -> Iterator[tuple[str, list[Row]]]:
    for part in ("blobs", "writes", "checkpoints"):
        if some := [row for of, row in batch if of == part]:
            yield part, some
