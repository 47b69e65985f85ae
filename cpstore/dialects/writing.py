"""Statements that write. Each is built once for its shape, so that its compiled form is found again."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Executable, Integer, Table, bindparam, delete, func, select, tuple_

from cpstore.dialects.keys import Keys, Step, bound, number
from cpstore.records import CheckpointRecord, WritesRecord

__all__ = ["Writing"]


class Writing(Keys):
    """The write statements over the three tables."""

    def put(self, record: CheckpointRecord) -> list[Step]:
        """Store a checkpoint and its new blobs: the same id replaces, a blob that is there is kept.

        The first step changes no row, and tells so, if a blob is gone that a list needs. Then the others are
        not to be done.
        """
        row = checkpoint_row(record)
        if record.needed:
            checkpoint = Step(self._put_if_there, row | self.needed_parameters(record))
        else:
            checkpoint = Step(self._put_checkpoint, row)
        return [checkpoint, Step(self._put_blobs, blob_rows(record))] if record.blobs else [checkpoint]

    def put_writes(self, record: WritesRecord) -> list[Step]:
        """Store pending writes: row by row, a special one replaces, an ordinary one keeps what is there."""
        return [Step(self._put_writes, write_rows(record))]

    def delete_thread(self, thread_id: str) -> list[Step]:
        """Delete all rows of a thread."""
        return [Step(statement, {"p_thread_id": thread_id}) for statement in self._thread_deletes]

    def insert(self, table: Table) -> Any:
        """Give the database's own `insert()`, with `on_conflict_do_update` and `on_conflict_do_nothing`.

        Each database overrides it: `ON CONFLICT` is no standard SQL.
        """
        raise NotImplementedError

    @cached_property
    def _put_checkpoint(self) -> Executable:
        return self.upsert_checkpoint(self.insert(self.tables.checkpoints))

    @cached_property
    def _put_if_there(self) -> Executable:
        columns = stored_columns(self.tables.checkpoints)
        row = select(*(bindparam(column.name, type_=column.type) for column in columns))
        insert = self.insert(self.tables.checkpoints)
        return self.upsert_checkpoint(
            insert.from_select([column.name for column in columns], row.where(self.needed_are_there))
        ).execution_options(preserve_rowcount=True)

    @cached_property
    def needed_are_there(self) -> ColumnElement[bool]:
        """The condition that all blobs are there, and of their types, that a record needs.

        Overridden where several parts of one statement have it, which need not ask twice.
        """
        row = self.tables.blobs.alias("b").c
        found = select(func.count()).where(
            row.thread_id == bound("needed_thread_id"),
            row.checkpoint_ns == bound("needed_checkpoint_ns"),
            tuple_(row.channel, row.version, row.type).in_(self.bound_keys(3, "needed")),
        )
        return found.scalar_subquery() == bindparam("p_needed_number", type_=Integer())

    def needed_parameters(self, record: CheckpointRecord) -> dict[str, Any]:
        """Give the parameters of :meth:`needed_are_there`."""
        return self.key_parameters(record.needed, "needed") | {
            "p_needed_thread_id": record.key.thread_id,
            "p_needed_checkpoint_ns": record.key.checkpoint_ns,
            "p_needed_number": len(record.needed),
        }

    @cached_property
    def _put_blobs(self) -> Executable:
        return self.keep_blob(self.insert(self.tables.blobs))

    @cached_property
    def _put_writes(self) -> Executable:
        return self.upsert_write(self.insert(self.tables.writes))

    @cached_property
    def _thread_deletes(self) -> list[Executable]:
        return [delete(table).where(table.c.thread_id == bound("thread_id")) for table in self.tables]

    def upsert_checkpoint(self, insert: Any) -> Executable:
        """Let `insert` replace a checkpoint with the same id, its parent included."""
        replaced = ("parent_checkpoint_id", "checkpoint", "metadata")
        statement: Executable = insert.on_conflict_do_update(
            index_elements=primary_key(self.tables.checkpoints),
            set_={name: insert.excluded[name] for name in replaced},
        )
        return statement

    def keep_blob(self, insert: Any) -> Executable:
        """Let `insert` keep a blob of the same version: a version has one value."""
        statement: Executable = insert.on_conflict_do_nothing(index_elements=primary_key(self.tables.blobs))
        return statement

    def upsert_write(self, insert: Any) -> Executable:
        """Let `insert` replace a write if it is special, and keep the first one otherwise."""
        replaced = ("channel", "type", "blob", "task_path")
        statement: Executable = insert.on_conflict_do_update(
            index_elements=primary_key(self.tables.writes),
            set_={name: insert.excluded[name] for name in replaced},
            where=insert.excluded.idx < number(0),
        )
        return statement


def primary_key(table: Table) -> list[str]:
    """Give the column names of a table's primary key, in its order."""
    return [column.name for column in table.primary_key.columns]


def stored_columns(table: Table) -> list[Any]:
    """Give the columns that are filled: `checkpoints.type` is there for what the official saver made."""
    unused = {"type"} if "checkpoint" in table.c else set()
    return [column for column in table.columns if column.name not in unused]


def checkpoint_row(record: CheckpointRecord) -> dict[str, Any]:
    """Give a checkpoint's row by column name."""
    return record.key._asdict() | {
        "parent_checkpoint_id": record.parent_checkpoint_id,
        "checkpoint": record.checkpoint,
        "metadata": record.metadata,
    }


def blob_rows(record: CheckpointRecord) -> list[dict[str, Any]]:
    """Give the rows of a checkpoint's new blobs by column name."""
    place = {"thread_id": record.key.thread_id, "checkpoint_ns": record.key.checkpoint_ns}
    return [place | blob._asdict() for blob in record.blobs]


def write_rows(record: WritesRecord) -> list[dict[str, Any]]:
    """Give the rows of pending writes by column name."""
    return [record.key._asdict() | vars(write) for write in record.writes]
