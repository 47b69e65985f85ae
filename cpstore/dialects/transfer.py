"""Statements that move rows between databases: which there are, what is in them, and how they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Select,
    Table,
    Text,
    cast,
    func,
    select,
    tuple_,
    union,
)

from cpstore.dialects.keys import Step, bound, number, size_of, text_of
from cpstore.dialects.writing import Writing
from cpstore.models import JSONDocument

__all__ = ["Transferring"]


class Transferring(Writing):
    """The statements over rows by their whole primary keys, each of which is a tuple without its thread."""

    def identity(self, connection: Connection) -> tuple[Any, ...] | None:
        """Give what only connections to the same tables have in common; None if the database does not say.

        Overridden where a database can tell. Whoever is not told loses nothing but an error: what is
        transferred to itself is there already.
        """
        return None

    def all_thread_ids(self, after: str | None, size: int) -> Step:
        """The next ids of threads that have any row, in their order."""
        return Step(
            self._all_thread_ids(after is not None, size), {} if after is None else {"p_after": after}
        )

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _all_thread_ids(self, goes_on: bool, size: int) -> Select[Any]:
        found = union(*(self._some_thread_ids(table, goes_on, size) for table in self.tables)).subquery()
        return select(found.c.thread_id).order_by(found.c.thread_id).limit(number(size))

    def _some_thread_ids(self, table: Table, goes_on: bool, size: int) -> Select[Any]:
        row = table.c
        ids = select(row.thread_id).distinct().order_by(row.thread_id).limit(number(size))
        return select((ids.where(row.thread_id > bound("after")) if goes_on else ids).subquery().c.thread_id)

    @cached_property
    def all_row_counts(self) -> Select[Any]:
        """The number of rows in each of the tables."""
        return select(*(select(func.count()).select_from(table).scalar_subquery() for table in self.tables))

    def row_counts(self, thread_id: str) -> Step:
        """The number of a thread's rows in each of the tables."""
        return Step(self._row_counts, {"p_thread_id": thread_id})

    @cached_property
    def _row_counts(self) -> Select[Any]:
        return select(
            *(
                select(func.count()).where(table.c.thread_id == bound("thread_id")).scalar_subquery()
                for table in self.tables
            )
        )

    def row_keys(
        self, part: str, thread_id: str, after: tuple[Any, ...] | None, size: int, *, special: bool = False
    ) -> Step:
        """The next keys of a thread's rows in one table, in their order, each with the bytes of its row.

        Of writes, perhaps only the special ones, which are replaced.
        """
        parameters: dict[str, Any] = {"p_thread_id": thread_id}
        if after is not None:
            parameters |= {f"p_after_{position}": str(value) for position, value in enumerate(after)}
        return Step(self._row_keys(part, after is not None, size, special), parameters)

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _row_keys(self, part: str, goes_on: bool, size: int, special: bool) -> Select[Any]:
        table: Table = getattr(self.tables, part)
        keys = _row_key(table)
        statement = select(*keys, _row_size(table)).where(table.c.thread_id == bound("thread_id"))
        if special:
            statement = statement.where(table.c.idx < number(0))
        if goes_on:
            cursor = [_as_key(key, bound(f"after_{position}")) for position, key in enumerate(keys)]
            statement = statement.where(tuple_(*keys) > tuple_(*cursor))
        return statement.order_by(*keys).limit(number(size))

    def present_keys(self, part: str, thread_id: str, keys: Sequence[tuple[Any, ...]]) -> Step:
        """Those of a thread's keys that have a row."""
        return Step(self._present_keys(part), self._row_parameters(thread_id, keys))

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _present_keys(self, part: str) -> Select[Any]:
        table: Table = getattr(self.tables, part)
        return select(*_row_key(table)).where(self._among_row_keys(table))

    def rows(self, part: str, thread_id: str, keys: Sequence[tuple[Any, ...]]) -> Step:
        """All columns of a thread's rows by their keys."""
        return Step(self._rows(part), self._row_parameters(thread_id, keys))

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _rows(self, part: str) -> Select[Any]:
        table: Table = getattr(self.tables, part)
        columns = [(text_of(each) if _is_document(each) else each).label(each.key) for each in table.columns]
        return select(*columns).where(self._among_row_keys(table))

    def store_rows(self, part: str) -> Executable:
        """Store rows by column names, under the rules of `put` and `put_writes`."""
        rules = {"blobs": self._put_blobs, "writes": self._put_writes, "checkpoints": self._put_checkpoint}
        return rules[part]

    def _among_row_keys(self, table: Table) -> ColumnElement[bool]:
        columns = _row_key(table)
        keys = self.bound_keys(len(columns))
        given = (_as_key(key, each) for key, each in zip(columns, keys.selected_columns, strict=True))
        typed = keys.with_only_columns(*given, maintain_column_froms=True)
        return (table.c.thread_id == bound("thread_id")) & tuple_(*columns).in_(typed)

    def _row_parameters(self, thread_id: str, keys: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        return self.thread_parameters(thread_id, [tuple(map(str, key)) for key in keys])


def _row_key(table: Table) -> list[ColumnElement[Any]]:
    return [column for column in table.primary_key.columns if column.name != "thread_id"]


def _as_key(column: ColumnElement[Any], value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Give a bound text as what a key's column is: a text, or a number."""
    return cast(value, Integer()) if isinstance(column.type, Integer) else value


def _row_size(table: Table) -> ColumnElement[int]:
    if "checkpoint" in table.c:
        return _document_size(table.c.checkpoint) + _document_size(table.c.metadata)
    return size_of(table.c.blob)


def _document_size(column: ColumnElement[Any]) -> ColumnElement[int]:
    return size_of(cast(column, Text()) if _is_document(column) else column)


def _is_document(column: ColumnElement[Any]) -> bool:
    return isinstance(column.type, JSONDocument)
