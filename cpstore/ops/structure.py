"""Units of work over whole threads: prune, delete by run, copy. No value is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

from cpstore.dialects import Dialect, Mode
from cpstore.dialects.structure import PARTS
from cpstore.errors import ThreadExistsError, UnknownCheckpointError
from cpstore.ops.unit import unit
from cpstore.records import EMPTY, UNVERSIONED, Key, version_text
from cpstore.structure import (
    BlobPlace,
    Node,
    Place,
    Removal,
    Removed,
    StoredBlob,
    StoredWrites,
    Structure,
    all_but,
    chain_of,
    keep_newest,
    without_runs,
)

__all__ = ["checkpoints_of_runs", "copy_chain", "copy_thread", "delete_checkpoints", "prune", "reclaim"]

_KEYS = 1000
"""So many keys go with one statement."""


@unit(Mode.WRITE)
def prune(connection: Connection, sql: Dialect, thread_id: str, keep: int, dry_run: bool) -> Removed:
    """Keep the newest checkpoints of each namespace of a thread; none: delete the thread."""
    structure = _read(connection, sql, thread_id)
    removal = keep_newest(structure, keep) if keep else all_but(structure, ())
    return _remove(connection, sql, thread_id, removal, dry_run)


@unit(Mode.WRITE)
def delete_checkpoints(connection: Connection, sql: Dialect, thread_id: str, doomed: Sequence[Key]) -> None:
    """Delete checkpoints of a thread, with what only they need."""
    places = [Place(*key[1:]) for key in doomed]
    structure = _read(connection, sql, thread_id)
    _remove(connection, sql, thread_id, without_runs(structure, places), False)


@unit(Mode.READ)
def checkpoints_of_runs(connection: Connection, sql: Dialect, run_ids: Sequence[str]) -> list[Key]:
    """Find the checkpoints that runs made, in all threads."""
    found: list[Key] = []
    for some in _portions(run_ids):
        step = sql.checkpoints_of_runs(some)
        found += (Key(*row) for row in connection.execute(step.statement, step.parameters))
    return found


@unit(Mode.COPY)
def copy_thread(connection: Connection, sql: Dialect, source: str, target: str) -> None:
    """Copy a thread. One that is unknown is no error."""
    _refuse_existing(connection, sql, target)
    for part in PARTS:
        step = sql.copy_all(part, source, target)
        connection.execute(step.statement, step.parameters)


@unit(Mode.COPY)
def copy_chain(connection: Connection, sql: Dialect, source: str, target: str, checkpoint_id: str) -> None:
    """Copy a checkpoint of the root graph, its ancestors, and what belongs to them."""
    _refuse_existing(connection, sql, target)
    structure = _read(connection, sql, source)
    place = Place("", checkpoint_id)
    if place not in structure.nodes:
        raise UnknownCheckpointError
    chain = chain_of(structure, place)
    rows: dict[str, Sequence[tuple[str, ...]]] = {
        "checkpoints": chain.checkpoints,
        "blobs": chain.blobs,
        "writes": chain.writes,
    }
    for part, places in rows.items():
        for some in _portions(places):
            step = sql.copy_rows(part, source, target, some)
            connection.execute(step.statement, step.parameters)


@unit(Mode.ALONE)
def reclaim(connection: Connection, sql: Dialect) -> None:
    """Give the space of deleted rows back to the file system."""
    sql.reclaim(connection)


def _refuse_existing(connection: Connection, sql: Dialect, thread_id: str) -> None:
    if connection.execute(sql.any_checkpoint, {"p_thread_id": thread_id}).first() is not None:
        raise ThreadExistsError


def _remove(connection: Connection, sql: Dialect, thread_id: str, removal: Removal, dry_run: bool) -> Removed:
    rows: dict[str, Sequence[tuple[str, ...]]] = {
        "checkpoints": removal.checkpoints,
        "blobs": removal.blobs,
        "writes": removal.writes,
    }
    if dry_run:
        return removal.counted
    for part, places in rows.items():
        for some in _portions(places):
            step = sql.delete_rows(part, thread_id, some)
            connection.execute(step.statement, step.parameters)
    for some in _portions(removal.orphans):
        step = sql.make_roots(thread_id, some)
        connection.execute(step.statement, step.parameters)
    return removal.counted


def _portions(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (keys[start : start + _KEYS] for start in range(0, len(keys), _KEYS))


def _read(connection: Connection, sql: Dialect, thread_id: str) -> Structure:
    structure = Structure()
    add: dict[str, Callable[[Structure, Any], tuple[str, ...]]] = {
        "blobs": _add_blob,
        "writes": _add_writes,
        "checkpoints": _add_node,
    }
    for part in PARTS:
        after: tuple[str, ...] | None = None
        while rows := _rows(connection, sql, part, thread_id, after):
            for row in rows:
                after = add[part](structure, row)
    return structure


def _rows(
    connection: Connection, sql: Dialect, part: str, thread_id: str, after: tuple[str, ...] | None
) -> Sequence[Any]:
    step = sql.structure(part, thread_id, after)
    return connection.execute(step.statement, step.parameters).all()


def _add_blob(structure: Structure, row: Any) -> BlobPlace:
    place = BlobPlace(*row[:3])
    structure.blobs[place] = StoredBlob(row[3] == EMPTY, int(row[4]))
    return place


def _add_writes(structure: Structure, row: Any) -> Place:
    place = Place(*row[:2])
    structure.writes[place] = StoredWrites(int(row[2]), int(row[3]), bool(row[4]))
    return place


def _add_node(structure: Structure, row: Any) -> Place:
    place, parent = Place(*row[:2]), row[2]
    checkpoint, metadata = json.loads(row[3]), json.loads(row[4])
    versions = checkpoint.get("channel_versions") or {}
    counted = metadata.get("counters_since_delta_snapshot") or {}
    structure.nodes[place] = Node(
        place=place,
        parent=None if parent is None else place._replace(checkpoint_id=parent),
        format=checkpoint.get("v", 1),
        versions={channel: version_text(version) for channel, version in versions.items()},
        inline=frozenset((checkpoint.get("channel_values") or {}) | checkpoint.get(UNVERSIONED, {})),
        delta=frozenset(versions if "delta_writes_versioned" in metadata else counted),
        root=(metadata.get("parents") or {}).get(""),
        bytes=len(row[3]) + len(row[4]),
    )
    return place
