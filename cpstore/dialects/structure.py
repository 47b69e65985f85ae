"""Statements over whole threads: what they are made of, and the rows to delete and to copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Executable,
    Insert,
    Select,
    Table,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    select,
    tuple_,
    update,
)

from cpstore.dialects.keys import Keys, Step, bound, key_columns, number, size_of, text_of
from cpstore.models import run_id_of
from cpstore.records import TASKS

__all__ = ["PARTS", "ROWS", "Structuring"]

PARTS = ("blobs", "writes", "checkpoints")
"""The tables in the order in which a thread is read. A checkpoint is there as soon as its blobs and writes
are, so whatever has been seen of those and has no checkpoint in the end will never have one."""

_DOCUMENTS = {"checkpoint", "metadata"}

ROWS = 5000
"""So many rows of a thread are read at a time."""


class Structuring(Keys):
    """The statements over all rows of a thread."""

    # Reading

    def structure(self, part: str, thread_id: str, after: tuple[str, ...] | None) -> Step:
        """The next rows of a thread in one table, in the order of their keys, without any value."""
        parameters = {"p_thread_id": thread_id}
        if after is not None:
            parameters |= {f"p_after_{position}": value for position, value in enumerate(after)}
        return Step(self._structure(part, after is not None), parameters)

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _structure(self, part: str, goes_on: bool) -> Select[Any]:
        table: Table = getattr(self.tables, part)
        keys = [table.c[name] for name in key_columns(table)[1:]]
        statement = select(*keys, *self._facts(table)).where(table.c.thread_id == bound("thread_id"))
        if goes_on:
            cursor = [bound(f"after_{position}") for position in range(len(keys))]
            statement = statement.where(tuple_(*keys) > tuple_(*cursor))
        if table is self.tables.writes:
            statement = statement.group_by(*keys)
        return statement.order_by(*keys).limit(number(ROWS))

    def _facts(self, table: Table) -> list[ColumnElement[Any]]:
        row = table.c
        if table is self.tables.blobs:
            return [row.type, size_of(row.blob)]
        if table is self.tables.writes:
            is_send = case((row.channel == literal_column(f"'{TASKS}'"), number(1)), else_=number(0))
            return [func.count(), func.sum(size_of(row.blob)), func.max(is_send)]
        return [row.parent_checkpoint_id, text_of(row.checkpoint), text_of(row.metadata)]

    def checkpoints_of_runs(self, run_ids: Sequence[str]) -> Step:
        """The keys of all checkpoints that runs made."""
        return Step(self._of_runs, self.key_parameters([(run_id,) for run_id in run_ids]))

    @cached_property
    def _of_runs(self) -> Select[Any]:
        row = self.tables.checkpoints.c
        return select(row.thread_id, row.checkpoint_ns, row.checkpoint_id).where(
            self.among_keys([run_id_of(row.metadata)])
        )

    # Deleting

    def delete_rows(self, part: str, thread_id: str, places: Sequence[tuple[str, ...]]) -> Step:
        """Delete rows of a thread by their keys: of writes, all under a checkpoint."""
        return Step(self._delete_rows(part), self.thread_parameters(thread_id, places))

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _delete_rows(self, part: str) -> Executable:
        table: Table = getattr(self.tables, part)
        return delete(table).where(self.among_keys_of_thread(table))

    def make_roots(self, thread_id: str, places: Sequence[tuple[str, ...]]) -> Step:
        """Take away the parents of checkpoints."""
        return Step(self._make_roots, self.thread_parameters(thread_id, places))

    @cached_property
    def _make_roots(self) -> Executable:
        table = self.tables.checkpoints
        return update(table).where(self.among_keys_of_thread(table)).values(parent_checkpoint_id=None)

    # Copying

    def copy_all(self, part: str, source: str, target: str) -> Step:
        """Copy all rows of a thread in one table to another thread."""
        return Step(self._copy(part, False), {"p_thread_id": source, "p_target_id": target})

    def copy_rows(self, part: str, source: str, target: str, places: Sequence[tuple[str, ...]]) -> Step:
        """Copy rows of a thread by their keys: of writes, all under a checkpoint."""
        parameters = self.thread_parameters(source, places) | {"p_target_id": target}
        return Step(self._copy(part, True), parameters)

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _copy(self, part: str, chosen: bool) -> Insert:
        table: Table = getattr(self.tables, part)
        names = [column.name for column in table.columns]
        target = bindparam("p_target_id", type_=table.c.thread_id.type).label("thread_id")
        source = select(*(target if name == "thread_id" else table.c[name] for name in names))
        condition = self.among_keys_of_thread(table) if chosen else table.c.thread_id == bound("thread_id")
        return table.insert().from_select(names, source.where(condition))

    def stored_rows(self, part: str, keys: Sequence[tuple[str, ...]]) -> Step:
        """All columns of rows of one thread by their keys: of writes, all under a checkpoint."""
        return Step(self._stored_rows(part), self.thread_parameters(keys[0][0], [key[1:] for key in keys]))

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _stored_rows(self, part: str) -> Select[Any]:
        table: Table = getattr(self.tables, part)
        columns = [
            text_of(each).label(each.name) if each.key in _DOCUMENTS else each for each in table.columns
        ]
        return select(*columns).where(self.among_keys_of_thread(table))

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def insert_rows(self, part: str) -> Insert:
        """Insert rows by column names."""
        table: Table = getattr(self.tables, part)
        return table.insert()

    @cached_property
    def any_checkpoint(self) -> Select[Any]:
        """Whether a thread has a checkpoint."""
        row = self.tables.checkpoints.c
        return select(row.checkpoint_id).where(row.thread_id == bound("thread_id")).limit(number(1))
