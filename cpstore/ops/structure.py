"""Units of work over whole threads: prune, delete by run, copy. No value is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

from cpstore.dialects import Dialect, Mode
from cpstore.dialects.structure import PARTS, ROWS
from cpstore.errors import ThreadExistsError, UnknownCheckpointError
from cpstore.ops.unit import execute, unit
from cpstore.pieces import pieces_before
from cpstore.plans import Chain, Removal, Removed, all_but, chain_of, keep_newest, litter, without_runs
from cpstore.records import EMPTY, UNVERSIONED, Key, format_of, object_in, parsed_object, version_text
from cpstore.storage import ThreadStorage, storage_of
from cpstore.structure import BlobPlace, Node, Place, StoredBlob, StoredWrites, Structure

__all__ = [
    "checkpoints_of_runs",
    "copy_thread",
    "delete_checkpoints",
    "prune",
    "reclaim",
    "retain",
    "storage",
    "sweep",
]

Rebinds = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Gives a row of a table, by column names, as it is to stand in another thread."""

_COPIED = PARTS[::-1]
"""The tables in the order in which a thread is copied."""

_KEYS = 5000
"""So many keys go with one statement."""


@unit(Mode.WRITE)
def prune(connection: Connection, sql: Dialect, thread_id: str, keep: int) -> None:
    """Keep the newest checkpoints of each namespace of a thread; none: delete the thread."""
    _prune(connection, sql, thread_id, keep, dry_run=False)


@unit(Mode.WRITE, repeatable=False)
def retain(
    connection: Connection, sql: Dialect, thread_id: str, keep: int, newest: str | None, dry_run: bool
) -> Removed:
    """Prune a thread as :func:`prune` does, and tell what went, or would go.

    If the newest checkpoint must be `newest`, a thread that went on since then is left alone.
    """
    return _prune(connection, sql, thread_id, keep, dry_run, newest)


def _prune(
    connection: Connection, sql: Dialect, thread_id: str, keep: int, dry_run: bool, newest: str | None = None
) -> Removed:
    structure = _read(connection, sql, thread_id)
    if newest is not None and structure.newest() != newest:
        return Removed()
    removal = keep_newest(structure, keep) if keep else all_but(structure, ())
    return _remove(connection, sql, thread_id, removal, dry_run)


@unit(Mode.WRITE)
def delete_checkpoints(connection: Connection, sql: Dialect, thread_id: str, doomed: Sequence[Key]) -> None:
    """Delete checkpoints of a thread, with what only they need."""
    places = [Place(*key[1:]) for key in doomed]
    structure = _read(connection, sql, thread_id)
    _remove(connection, sql, thread_id, without_runs(structure, places), False)


@unit(Mode.WRITE, repeatable=False)
def sweep(connection: Connection, sql: Dialect, thread_id: str, dry_run: bool) -> Removed:
    """Delete what no checkpoint of a thread needs, and tell what went, or would go."""
    structure = _read(connection, sql, thread_id)
    return _remove(connection, sql, thread_id, litter(structure), dry_run)


@unit(Mode.READ)
def storage(connection: Connection, sql: Dialect, thread_id: str) -> ThreadStorage:
    """Tell what a thread takes. No value is read."""
    return storage_of(thread_id, _read(connection, sql, thread_id))


@unit(Mode.READ)
def checkpoints_of_runs(connection: Connection, sql: Dialect, run_ids: Sequence[str]) -> list[Key]:
    """Find the checkpoints that runs made, in all threads."""
    found: list[Key] = []
    for some in _portions(run_ids):
        found += (Key(*row) for row in execute(connection, sql.checkpoints_of_runs(some)))
    return found


@unit(Mode.COPY, repeatable=False)
def copy_thread(
    connection: Connection,
    sql: Dialect,
    source: str,
    target: str,
    checkpoint_id: str | None,
    rebinder: Rebinds | None,
) -> None:
    """Copy a thread, or a checkpoint of its root graph with its past and what belongs to them.

    Rows are copied inside the database, unless their values are bound to the thread that they are in.
    Checkpoints come first: where each statement sees a newer state, as in a caller's READ COMMITTED, the
    blobs of whatever checkpoint was seen are there.
    """
    if connection.execute(sql.any_checkpoint, {"p_thread_id": target}).first() is not None:
        raise ThreadExistsError
    if checkpoint_id is None and rebinder is None:
        for part in _COPIED:
            execute(connection, sql.copy_all(part, source, target))
        return
    chain = _chosen(_read(connection, sql, source, _COPIED), checkpoint_id)
    for part in PARTS:
        for some in _portions(getattr(chain, part)):
            if rebinder is None:
                execute(connection, sql.copy_rows(part, source, target, some))
            else:
                _copy_rebound(connection, sql, part, [(source, *place) for place in some], target, rebinder)
    for some in _portions(chain.orphans):
        execute(connection, sql.make_roots(target, some))


def _chosen(structure: Structure, checkpoint_id: str | None) -> Chain:
    if checkpoint_id is None:
        return Chain(list(structure.nodes), list(structure.blobs), list(structure.writes), [])
    if Place("", checkpoint_id) not in structure.nodes:
        raise UnknownCheckpointError
    return chain_of(structure, Place("", checkpoint_id))


def _copy_rebound(
    connection: Connection,
    sql: Dialect,
    part: str,
    keys: Sequence[tuple[str, ...]],
    target: str,
    rebinder: Rebinds,
) -> None:
    """Copy rows through here, because each value has to be bound to the thread that it comes to."""
    rows = [
        rebinder(part, dict(row)) | {"thread_id": target}
        for row in execute(connection, sql.stored_rows(part, keys)).mappings()
    ]
    if rows:
        connection.execute(sql.insert_rows(part), rows)


@unit(Mode.ALONE)
def reclaim(connection: Connection, sql: Dialect) -> None:
    """Give the space of deleted rows back to the file system."""
    sql.reclaim(connection)


def _remove(connection: Connection, sql: Dialect, thread_id: str, removal: Removal, dry_run: bool) -> Removed:
    if dry_run:
        return removal.counted
    for part in ("checkpoints", "blobs", "writes"):
        for some in _portions(getattr(removal, part)):
            execute(connection, sql.delete_rows(part, thread_id, some))
    for some in _portions(removal.orphans):
        execute(connection, sql.make_roots(thread_id, some))
    return removal.counted


def _portions(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (keys[start : start + _KEYS] for start in range(0, len(keys), _KEYS))


def _read(connection: Connection, sql: Dialect, thread_id: str, parts: Sequence[str] = PARTS) -> Structure:
    structure = Structure()
    add: dict[str, Callable[[Structure, Any], tuple[str, ...]]] = {
        "blobs": _add_blob,
        "writes": _add_writes,
        "checkpoints": _add_node,
    }
    for part in parts:
        after: tuple[str, ...] | None = None
        full = True
        while full:
            rows = execute(connection, sql.structure(part, thread_id, after)).all()
            for row in rows:
                after = add[part](structure, row)
            full = len(rows) == ROWS
    return structure


def _add_blob(structure: Structure, row: Any) -> BlobPlace:
    place = BlobPlace(*row[:3])
    structure.blobs[place] = StoredBlob(row[3] == EMPTY, int(row[4]), pieces_before(row[3]))
    return place


def _add_writes(structure: Structure, row: Any) -> Place:
    place = Place(*row[:2])
    structure.writes[place] = StoredWrites(int(row[2]), int(row[3]), bool(row[4]))
    return place


def _add_node(structure: Structure, row: Any) -> Place:
    place, parent = Place(*row[:2]), row[2]
    checkpoint, metadata = parsed_object(row[3]) or {}, parsed_object(row[4]) or {}
    versions = object_in(checkpoint, "channel_versions")
    counted = object_in(metadata, "counters_since_delta_snapshot")
    root = object_in(metadata, "parents").get("")
    structure.nodes[place] = Node(
        place=place,
        parent=None if parent is None else place._replace(checkpoint_id=parent),
        format=format_of(checkpoint),
        versions={channel: version_text(version) for channel, version in versions.items()},
        inline=frozenset(object_in(checkpoint, "channel_values") | object_in(checkpoint, UNVERSIONED)),
        delta=frozenset(versions if "delta_writes_versioned" in metadata else counted),
        root=root if isinstance(root, str) else None,
        bytes=len(row[3]) + len(row[4]),
    )
    return place
