"""The unit of work behind delta channels: the writes of a checkpoint's ancestors, and where they begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import Connection

from cpstore.dialects import Dialect, Mode
from cpstore.ops.reading import (
    blobs_with_pieces,
    checkpoint_rows,
    held_by,
    row_at,
    writes_by_key,
)
from cpstore.ops.unit import execute, unit
from cpstore.records import EMPTY, Address, BlobKey, ChannelHistory, CheckpointRow, Key, Write

__all__ = ["PAGE", "delta_history"]

PAGE = 256
"""So many ancestors are looked at together."""


@unit(Mode.READ)
def delta_history(
    connection: Connection, sql: Dialect, address: Address, channels: Sequence[str]
) -> dict[str, ChannelHistory]:
    """Walk up the parents of a checkpoint, for each channel to the nearest one that has a value of it."""
    chain: list[CheckpointRow] = []
    seeds: dict[str, CheckpointRow] = {}
    target = row_at(connection, sql, address)
    for page in _pages(connection, sql, target):
        chain += page
        _find_seeds(connection, sql, page, set(channels) - set(seeds), seeds)
        if len(seeds) == len(channels):
            break
    writes = _writes(connection, sql, chain, channels)
    blobs = blobs_with_pieces(connection, sql, _seed_blobs(seeds))
    histories = {}
    for channel in channels:
        seed = seeds.get(channel)
        key = None if seed is None else seed.blob_key(channel)
        histories[channel] = ChannelHistory(
            tuple(_oldest_first(chain, seed, writes, channel)),
            None if seed is None else (seed, held_by(blobs, key)),
        )
    return histories


def _pages(
    connection: Connection, sql: Dialect, target: CheckpointRow | None
) -> Iterator[list[CheckpointRow]]:
    """Give the ancestors, nearest first. A parent that is its own ancestor ends the walk."""
    seen = set() if target is None else {target.key}
    cursor = _parent(target)
    while cursor is not None and cursor not in seen:
        page = []
        for row in checkpoint_rows(connection, sql.ancestors(cursor, PAGE)):
            if row.key in seen:
                break
            seen.add(row.key)
            page.append(row)
        yield page
        cursor = _parent(page[-1]) if page else None


def _parent(row: CheckpointRow | None) -> Key | None:
    if row is None or row.parent_checkpoint_id is None:
        return None
    return row.key._replace(checkpoint_id=row.parent_checkpoint_id)


def _find_seeds(
    connection: Connection,
    sql: Dialect,
    page: Sequence[CheckpointRow],
    missing: set[str],
    seeds: dict[str, CheckpointRow],
) -> None:
    stored = _stored(connection, sql, [key for row in page for c in missing if (key := row.blob_key(c))])
    for row in page:
        for channel in missing - seeds.keys():
            if row.has_inline(channel) or row.blob_key(channel) in stored:
                seeds[channel] = row


def _stored(connection: Connection, sql: Dialect, keys: Sequence[BlobKey]) -> set[BlobKey]:
    """Tell which blobs are there and hold a value."""
    if not keys:
        return set()
    found = execute(connection, sql.blob_sizes(keys[0].thread_id, sorted(set(keys))))
    return {BlobKey(*row[:4]) for row in found if row[4] != EMPTY}


def _seed_blobs(seeds: dict[str, CheckpointRow]) -> Iterator[BlobKey]:
    return (key for channel, row in seeds.items() if (key := row.blob_key(channel)))


def _writes(
    connection: Connection, sql: Dialect, chain: Sequence[CheckpointRow], channels: Sequence[str]
) -> dict[Key, list[Write]]:
    found: dict[Key, list[Write]] = {}
    for start in range(0, len(chain), PAGE):
        keys = [row.key for row in chain[start : start + PAGE]]
        found |= writes_by_key(connection, sql.writes_in_channels(keys[0].thread_id, keys, channels))
    return found


def _oldest_first(
    chain: Iterable[CheckpointRow],
    seed: CheckpointRow | None,
    writes: dict[Key, list[Write]],
    channel: str,
) -> list[tuple[Key, Write]]:
    """Give the writes to a channel from its seed, whose own are included, down to the nearest ancestor."""
    steps: list[list[tuple[Key, Write]]] = []
    for row in chain:
        mine = [write for write in writes.get(row.key, ()) if write.channel == channel]
        steps.append([(row.key, write) for write in sorted(mine, key=Write.order)])
        if row is seed:
            break
    return [write for step in reversed(steps) for write in step]
