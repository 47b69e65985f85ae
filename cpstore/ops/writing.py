"""Units of work that write without looking first."""

from __future__ import annotations

from sqlalchemy import Connection

from cpstore.dialects import Dialect, Mode, Step
from cpstore.ops.unit import execute, unit
from cpstore.records import CheckpointRecord, WritesRecord

__all__ = ["delete_thread", "put", "put_writes"]


@unit(Mode.STATEMENT)
def put(connection: Connection, sql: Dialect, record: CheckpointRecord) -> bool:
    """Store a checkpoint with its new blobs; False, and nothing stored, if a blob that it needs is gone."""
    first, *others = sql.put(record)
    result = execute(connection, first)
    if record.needed and result.rowcount == 0:
        return False
    _run(connection, others)
    return True


@unit(Mode.STATEMENT)
def put_writes(connection: Connection, sql: Dialect, record: WritesRecord) -> None:
    """Store the pending writes of one task."""
    _run(connection, sql.put_writes(record))


@unit(Mode.STATEMENT)
def delete_thread(connection: Connection, sql: Dialect, thread_id: str) -> None:
    """Delete a thread from all tables; one that is unknown is no error."""
    _run(connection, sql.delete_thread(thread_id))


def _run(connection: Connection, steps: list[Step]) -> None:
    for step in steps:
        execute(connection, step)
