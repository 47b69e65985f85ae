"""Units of work that read checkpoints. All that they return is materialised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from cpstore.dialects import Dialect, Mode, Step
from cpstore.filters import matches
from cpstore.ops.unit import execute, unit
from cpstore.pieces import pieces_before
from cpstore.records import (
    Address,
    Blob,
    BlobKey,
    CheckpointRow,
    HeldValue,
    Key,
    LoadedCheckpoint,
    Page,
    Query,
    Write,
    version_text,
)

__all__ = [
    "blobs_by_key",
    "blobs_with_pieces",
    "checkpoint_rows",
    "found_keys",
    "get",
    "held_by",
    "page",
    "row_at",
    "rows_of_keys",
    "writes_by_key",
]

_PAGE = 25
"""So many checkpoints are loaded at a time: they may be large."""

_SCAN = 2048
"""So many keys are searched at a time: they are small, and finding them may read a whole thread."""


@unit(Mode.LOOK)
def get(connection: Connection, sql: Dialect, address: Address) -> LoadedCheckpoint | None:
    """Load the checkpoint at an address, or None if there is none."""
    found = _loaded(connection, sql, sql.loaded(address))
    return found[0] if found else None


@unit(Mode.LOOK)
def page(connection: Connection, sql: Dialect, query: Query) -> Page[LoadedCheckpoint, Query]:
    """Load the next checkpoints of a query, newest first. A page may be empty and still have a next one.

    The first page is searched and loaded in one statement. For others keys are searched, many at a time, so
    that a thread is not sorted once for each page.
    """
    looks = query.filter is not None and not sql.filters_metadata
    if query.after is None and not query.exhausted and not looks:
        return _first_page(connection, sql, query)
    keys, following = found_keys(connection, sql, query, _PAGE)
    found = _loaded(connection, sql, sql.loaded_keys(keys)) if keys else []
    by_key = {each.row.key: each for each in found}
    return Page([by_key[key] for key in keys if key in by_key], following)


def _first_page(connection: Connection, sql: Dialect, query: Query) -> Page[LoadedCheckpoint, Query]:
    size = _PAGE if query.limit is None else min(query.limit, _PAGE)
    found = _loaded(connection, sql, sql.loaded_page(query, size))
    left = None if query.limit is None else query.limit - len(found)
    if len(found) < size or left == 0:
        return Page(found, None)
    return Page(found, replace(query, limit=left, after=found[-1].row.key))


def _loaded(connection: Connection, sql: Dialect, step: Step) -> list[LoadedCheckpoint]:
    """Load checkpoints with a statement of :class:`~cpstore.dialects.at_once.AtOnce`, in their order."""
    kinds = _kinds(connection, step)
    rows = _checkpoints(kinds[0])
    if not all(sql.tells_versions(row.versions.values()) for row in rows):
        sql.begin(connection, Mode.READ)  # several statements from here on, which shall see one snapshot
        return _complete(connection, sql, _checkpoints(_kinds(connection, step)[0]))
    blobs = {  # by what equals a BlobKey, and is made faster
        (thread_id, namespace, channel, version): Blob(channel, version, kind, blob)
        for _, thread_id, namespace, _, channel, version, kind, _, _, blob in kinds[1]
    }
    sends = dict.fromkeys(map(tuple, kinds[3]))  # once for each child that asks its parent
    return _assembled(rows, blobs, _writes(kinds[2]), _writes(sends))


def _kinds(connection: Connection, step: Step) -> tuple[list[Any], ...]:
    kinds: tuple[list[Any], ...] = ([], [], [], [])
    for row in execute(connection, step).all():
        kinds[row[0]].append(row)
    kinds[0].sort(key=lambda row: row[8] or 0)
    return kinds


def _checkpoints(rows: Iterable[Sequence[Any]]) -> list[CheckpointRow]:
    return [CheckpointRow(Key(*row[1:4]), *row[4:7]) for row in rows]


def _assembled(
    rows: Iterable[CheckpointRow],
    blobs: Mapping[Any, Blob],
    writes: Mapping[Key, Sequence[Write]],
    sends: Mapping[Key, Sequence[Write]],
) -> list[LoadedCheckpoint]:
    """Give each row what is its own; values that several point at are one object."""
    held: dict[Any, HeldValue] = {}
    return [
        LoadedCheckpoint(
            row=row,
            values=_values(row, blobs, held),
            writes=tuple(writes.get(row.key, ())),
            sends=tuple(sends.get(row.sends_key, ())) if row.sends_key else (),
        )
        for row in rows
    ]


def _values(
    row: CheckpointRow, blobs: Mapping[Any, Blob], held: dict[Any, HeldValue]
) -> tuple[HeldValue, ...]:
    thread_id, namespace, _ = row.key
    values = []
    for channel, version in row.versions.items():
        key = (thread_id, namespace, channel, version_text(version))
        value = held.get(key)
        if value is None and key in blobs:
            value = held[key] = _held(blobs, key)
        if value is not None:
            values.append(value)
    return tuple(values)


def _writes(rows: Iterable[Sequence[Any]]) -> dict[Key, list[Write]]:
    found: dict[Key, list[Write]] = defaultdict(list)
    for _, thread_id, namespace, checkpoint_id, task_id, channel, kind, path, idx, blob in rows:
        found[Key(thread_id, namespace, checkpoint_id)].append(Write(task_id, idx, channel, kind, blob, path))
    return found


def row_at(connection: Connection, sql: Dialect, address: Address) -> CheckpointRow | None:
    """Read the row at an address: of the newest checkpoint, if it names none."""
    rows = checkpoint_rows(connection, sql.at(address))
    return rows[0] if rows else None


def found_keys(
    connection: Connection, sql: Dialect, query: Query, count: int
) -> tuple[tuple[Key, ...], Query | None]:
    """Give up to `count` keys that a query asks for, and the query for the next ones."""
    if not query.keys and not query.exhausted:
        query = _search(connection, sql, query)
    keys, rest = query.keys[:count], query.keys[count:]
    return keys, replace(query, keys=rest) if rest or not query.exhausted else None


def _search(connection: Connection, sql: Dialect, query: Query) -> Query:
    """Find the next keys of a query: at most `_SCAN` checkpoints are looked at."""
    looks = query.filter is not None and not sql.filters_metadata
    wanted = _SCAN if query.limit is None or looks else min(query.limit, _SCAN)
    size = 1 << (wanted - 1).bit_length()  # few sizes, so few statements to compile
    rows = execute(connection, sql.scan(query, size)).all()
    found = [Key(*row[:3]) for row in rows if not looks or matches(row[3], query.filter or "{}")]
    left = None if query.limit is None else max(query.limit - len(found), 0)
    return replace(
        query,
        keys=tuple(found[: query.limit]),
        limit=left,
        after=Key(*rows[-1][:3]) if rows else None,
        exhausted=len(rows) < size or left == 0,
    )


def _complete(connection: Connection, sql: Dialect, rows: list[CheckpointRow]) -> list[LoadedCheckpoint]:
    """Bring in blobs, writes and sends of checkpoints: one statement for each kind."""
    blobs = blobs_with_pieces(connection, sql, (key for row in rows for key in row.blob_keys))
    writes = writes_by_key(connection, sql.writes_of([row.key for row in rows]))
    senders = [key for row in rows if (key := row.sends_key)]
    sends = writes_by_key(connection, sql.sends_of(senders)) if senders else {}
    return _assembled(rows, blobs, writes, sends)


def rows_of_keys(connection: Connection, sql: Dialect, keys: Sequence[Key]) -> list[CheckpointRow]:
    """Read rows in the order of their keys; those that are gone meanwhile are left out."""
    if not keys:
        return []
    found = {row.key: row for row in checkpoint_rows(connection, sql.checkpoints_of(keys))}
    return [found[key] for key in keys if key in found]


def checkpoint_rows(connection: Connection, step: Step) -> list[CheckpointRow]:
    """Read rows of checkpoints."""
    return [CheckpointRow(Key(*row[:3]), *row[3:]) for row in execute(connection, step)]


def blobs_by_key(connection: Connection, sql: Dialect, keys: Iterable[BlobKey]) -> dict[BlobKey, Blob]:
    """Read blobs; those that are not there are left out."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    return {BlobKey(*row[:4]): Blob(*row[2:]) for row in execute(connection, sql.blobs_of(wanted))}


def blobs_with_pieces(connection: Connection, sql: Dialect, keys: Iterable[BlobKey]) -> dict[BlobKey, Blob]:
    """Read blobs, and those that hold the beginnings of their lists, as far as they are there."""
    found = blobs_by_key(connection, sql, keys)
    beginnings = {
        key._replace(version=version) for key, blob in found.items() for version in pieces_before(blob.type)
    }
    return found | blobs_by_key(connection, sql, beginnings - found.keys())


def held_by(blobs: Mapping[Any, Blob], key: BlobKey | None) -> HeldValue | None:
    """Give the blob of a key, with those that hold the beginning of its list; None if it is not there."""
    return _held(blobs, key) if key is not None and key in blobs else None


def _held(blobs: Mapping[Any, Blob], key: tuple[str, ...]) -> HeldValue:
    blob = blobs[key]
    before = pieces_before(blob.type)
    return HeldValue(blob, tuple(blobs.get((*key[:-1], version)) for version in before))


def writes_by_key(connection: Connection, step: Step) -> dict[Key, list[Write]]:
    """Read writes, by the checkpoint that they are under."""
    found: dict[Key, list[Write]] = defaultdict(list)
    for row in execute(connection, step):
        found[Key(*row[:3])].append(Write(*row[3:]))
    return found
