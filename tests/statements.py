"""Statements as an engine sends them, and rows that come into its database beside the saver."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from sqlalchemy import create_engine, event, insert, make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import Checkpoint, CheckpointBlob, CheckpointWrite
from tests.cluster import DRIVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import URL, Engine


Row = dict[str, Any]

BATCH = 1000
"""So many checkpoints are inserted with one statement."""


@contextmanager
def sent_by(engine: Engine | AsyncEngine) -> Iterator[list[str]]:
    """The text of each statement that the engine sends within the block."""
    sync = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
    texts: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        texts.append(statement)

    event.listen(sync, "before_cursor_execute", note)
    try:
        yield texts
    finally:
        event.remove(sync, "before_cursor_execute", note)


def checkpoint_id(number: int) -> str:
    """An id that sorts as its number."""
    return f"{number:08}"


def fill(url: str | URL, count: int, *, channels: int = 1, size: int = 10, threads: int = 1) -> None:
    """Insert checkpoints, each with its own values of some channels and a pending write, all at once.

    Args:
        url: the database, with any driver.
        count: the number of checkpoints; their metadata tells their number as `step`.
        channels: the number of values that each has.
        size: the bytes of a value.
        threads: the number of threads that have them in turn.
    """
    backend = make_url(url).get_backend_name()
    engine = create_engine(make_url(url).set(drivername=DRIVER if backend == "postgresql" else backend))
    with engine.begin() as connection:
        for number in range(0, count, BATCH):
            rows = [
                rows_of(n, f"t{n % threads}", channels, size)
                for n in range(number, min(number + BATCH, count))
            ]
            connection.execute(insert(Checkpoint), [one for one, _, _ in rows])
            connection.execute(insert(CheckpointBlob), [blob for _, some, _ in rows for blob in some])
            connection.execute(insert(CheckpointWrite), [write for _, _, write in rows])
    engine.dispose()


def rows_of(number: int, thread_id: str, channels: int, size: int) -> tuple[Row, list[Row], Row]:
    """The rows of a checkpoint, of its values and of its pending write."""
    versions = {f"c{channel}": f"{number}.{channel}" for channel in range(channels)}
    document = {
        "v": 4,
        "id": checkpoint_id(number),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {},
        "channel_versions": versions,
        "versions_seen": {},
    }
    place = {"thread_id": thread_id, "checkpoint_id": checkpoint_id(number)}
    checkpoint = {**place, "checkpoint": document, "metadata": {"step": number}}
    value = typed(b"x" * size)
    blobs = [
        {"thread_id": thread_id, "channel": channel, "version": version, **value}
        for channel, version in versions.items()
    ]
    return checkpoint, blobs, {**place, "task_id": "t", "idx": 0, "channel": "c0", **typed(b"")}


def typed(value: Any) -> Row:
    """A value as the saver stores it."""
    kind, blob = JsonPlusSerializer().dumps_typed(value)
    return {"type": kind, "blob": blob}
