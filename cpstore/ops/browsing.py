"""Units of work that look around: threads, and a thread's checkpoints without their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection

from cpstore.dialects import Dialect, Mode
from cpstore.filters import matches
from cpstore.ops.reading import found_keys, rows_of_keys
from cpstore.ops.unit import execute, unit
from cpstore.records import BlobKey, CheckpointRow, Key, Page, Query, ThreadQuery, parsed_object
from cpstore.summaries import CheckpointSummary, ThreadSummary

__all__ = ["history", "thread_ids", "threads"]

_ENTRIES = 500
"""So many entries of the index are read together."""

_CHECKPOINTS = 500
"""So many checkpoints are told of together."""


class _Namespace(NamedTuple):
    thread_id: str
    checkpoint_ns: str
    smallest: str
    greatest: str
    checkpoints: int


@unit(Mode.READ)
def thread_ids(
    connection: Connection, sql: Dialect, after: str | None, limit: int, chosen: Sequence[str] | None
) -> list[tuple[str, str]]:
    """Give thread ids in their order, with the greatest checkpoint id of each; of chosen ones, or of all."""
    rows = execute(connection, sql.thread_ids(after, limit, chosen))
    return [(thread_id, newest) for newest, thread_id in rows]


@unit(Mode.READ)
def threads(connection: Connection, sql: Dialect, query: ThreadQuery) -> Page[ThreadSummary, ThreadQuery]:
    """Give the next threads. A page may be empty and still have a next one."""
    candidates = _by_id(connection, sql, query) if query.by_id else _by_newest(connection, sql, query)
    facts = _facts(connection, sql, [thread_id for _, thread_id in candidates])
    chosen = [
        facts[thread_id]
        for newest, thread_id in candidates
        if thread_id in facts and facts[thread_id][0].greatest == newest
    ]
    if query.filter is not None:
        chosen = _filtered(connection, sql, chosen, query.filter)
    summaries = [_summary(namespaces) for namespaces in chosen]
    return Page(summaries, replace(query, after=candidates[-1]) if candidates else None)


@unit(Mode.READ)
def history(connection: Connection, sql: Dialect, query: Query) -> Page[CheckpointSummary, Query]:
    """Give the next checkpoints of one thread without their values, newest first."""
    keys, following = found_keys(connection, sql, query, _CHECKPOINTS)
    rows = rows_of_keys(connection, sql, keys)
    blobs = _blob_sizes(connection, sql, rows)
    writes = _write_sizes(connection, sql, rows)
    return Page([_told(row, blobs, writes.get(row.key, (0, 0, 0, 0))) for row in rows], following)


def _by_id(connection: Connection, sql: Dialect, query: ThreadQuery) -> list[tuple[str, str]]:
    rows = execute(connection, sql.thread_ids(query.after and query.after[1], query.size, None))
    return [(newest, thread_id) for newest, thread_id in rows]


def _by_newest(connection: Connection, sql: Dialect, query: ThreadQuery) -> list[tuple[str, str]]:
    """Give the first entries of threads in the index, newest first.

    Each thread that was seen is left out of the next search, so that one with many checkpoints is passed
    over inside the database.
    """
    found: dict[str, str] = {}
    after = query.after
    while len(found) < query.size:
        entries = execute(connection, sql.newest_entries(after, list(found), _ENTRIES)).all()
        for newest, thread_id in entries:
            found.setdefault(thread_id, newest)
        if len(entries) < _ENTRIES:
            break
        after = entries[-1]
    return [(newest, thread_id) for thread_id, newest in found.items()][: query.size]


def _facts(connection: Connection, sql: Dialect, ids: Sequence[str]) -> dict[str, list[_Namespace]]:
    """Give the namespaces of threads; that with the newest checkpoint first."""
    if not ids:
        return {}
    found: dict[str, list[_Namespace]] = defaultdict(list)
    for row in execute(connection, sql.thread_facts(ids)):
        found[row[0]].append(_Namespace(*row))
    return {
        thread_id: sorted(namespaces, key=lambda namespace: namespace.greatest, reverse=True)
        for thread_id, namespaces in found.items()
    }


def _filtered(
    connection: Connection, sql: Dialect, threads: list[list[_Namespace]], pattern: str
) -> list[list[_Namespace]]:
    if not threads:
        return []
    newest = [namespaces[0] for namespaces in threads]
    keys = [Key(one.thread_id, one.checkpoint_ns, one.greatest) for one in newest]
    rows = execute(connection, sql.metadata_of(keys))
    matching = {thread_id for thread_id, metadata in rows if matches(metadata, pattern)}
    return [namespaces for namespaces in threads if namespaces[0].thread_id in matching]


def _summary(namespaces: list[_Namespace]) -> ThreadSummary:
    return ThreadSummary(
        namespaces[0].thread_id,
        first_checkpoint_id=min(namespace.smallest for namespace in namespaces),
        last_checkpoint_id=namespaces[0].greatest,
        checkpoints=sum(namespace.checkpoints for namespace in namespaces),
        namespaces=tuple(sorted(namespace.checkpoint_ns for namespace in namespaces)),
    )


def _blob_sizes(connection: Connection, sql: Dialect, rows: list[CheckpointRow]) -> dict[BlobKey, int]:
    keys = sorted({key for row in rows for key in row.blob_keys})
    if not keys:
        return {}
    found = execute(connection, sql.blob_sizes(keys[0].thread_id, keys))
    return {BlobKey(*row[:4]): row[5] for row in found}


def _write_sizes(
    connection: Connection, sql: Dialect, rows: list[CheckpointRow]
) -> dict[Key, tuple[int, ...]]:
    if not rows:
        return {}
    found = execute(connection, sql.write_sizes(rows[0].key.thread_id, [row.key for row in rows]))
    return {Key(*row[:3]): tuple(map(int, row[3:])) for row in found}


def _told(row: CheckpointRow, blobs: dict[BlobKey, int], writes: tuple[int, ...]) -> CheckpointSummary:
    updated = row.updated_channels
    return CheckpointSummary(
        *row.key,
        parent_checkpoint_id=row.parent_checkpoint_id,
        metadata=parsed_object(row.metadata) or {},
        updated_channels=tuple(updated) if isinstance(updated, list) else None,
        document_bytes=len(row.checkpoint) + len(row.metadata),
        value_bytes=sum(blobs.get(key, 0) for key in row.blob_keys),
        writes=writes[0],
        write_bytes=writes[1],
        interrupts=writes[2],
        errors=writes[3],
    )
