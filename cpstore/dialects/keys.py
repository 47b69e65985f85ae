"""Keys in statements: what all other statements are built with.

Keys are bound, never written into SQL; and for any number of them a statement is the same text, so that it
is compiled, and prepared by the database, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Executable,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    func,
    literal_column,
    tuple_,
)

from cpstore.models import Tables
from cpstore.records import BlobKey, Key

__all__ = ["Keys", "Step", "bound", "checkpoint_columns", "key_columns", "number", "size_of", "text_of"]


class Step(NamedTuple):
    """A statement and its parameters; a list of them means: once for each."""

    statement: Executable
    parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Keys:
    """The tables, and how a list of keys is bound."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def bound_keys(self, width: int, name: str = "keys") -> Select[Any]:
        """Give a select of the keys that are bound by `name`, which have `width` columns.

        Each database overrides it: there is no standard way to bind rows.
        """
        raise NotImplementedError

    def key_parameters(self, keys: Sequence[tuple[str, ...]], name: str = "keys") -> dict[str, Any]:
        """Give the parameters that :meth:`bound_keys` asks for."""
        raise NotImplementedError

    def among_keys(self, columns: Sequence[ColumnElement[Any]]) -> ColumnElement[bool]:
        """Give the condition that `columns` are one of the bound keys.

        SQLite and PostgreSQL find each key in the primary key by it, which they do not for a list of values.
        """
        keys = self.bound_keys(len(columns))
        return columns[0].in_(keys) if len(columns) == 1 else tuple_(*columns).in_(keys)

    def among_keys_of_threads(self, table: Table) -> ColumnElement[bool]:
        """Give the condition that a row is one of the bound keys, which begin with their thread.

        Overridden where a planner has to be told that a few threads are a small part of a table.
        """
        return self.among_keys([table.c[name] for name in key_columns(table)])

    def among_keys_of_thread(self, table: Table) -> ColumnElement[bool]:
        """Give the condition that a row is of the bound thread and one of the bound keys in it."""
        columns = [table.c[name] for name in key_columns(table)[1:]]
        return (table.c.thread_id == bound("thread_id")) & self.among_keys(columns)

    def thread_parameters(self, thread_id: str, keys: Sequence[tuple[str, ...]]) -> dict[str, Any]:
        """Give the parameters of :meth:`among_keys_of_thread`; the keys begin with the namespace."""
        return self.key_parameters(keys) | {"p_thread_id": thread_id}


def bound(name: str) -> BindParameter[str]:
    """Give a bound text that no column's name can be confused with."""
    return bindparam(f"p_{name}", type_=Text())


def number(value: int) -> ColumnElement[int]:
    """Give a number of ours as a literal: PostgreSQL plans a bound LIMIT for any, which costs more."""
    return literal_column(str(int(value)))


def text_of(document: ColumnElement[Any]) -> ColumnElement[str]:
    """Give a JSON column as the text that it is."""
    return cast(document, Text()).label(f"{document.key}_text")


def size_of(column: ColumnElement[Any]) -> ColumnElement[int]:
    """Give the bytes of a blob without reading it; 0 if there is none."""
    return func.coalesce(func.length(column), number(0))


def key_columns(table: Table) -> tuple[str, ...]:
    """Give the columns by which rows are looked up: of writes, those of their checkpoint."""
    return BlobKey._fields if "version" in table.c else Key._fields


def checkpoint_columns(checkpoints: Table) -> list[ColumnElement[Any]]:
    """Give what is read of a checkpoint's row: its key, its parent, and both documents as text."""
    row = checkpoints.c
    keys = [row[name] for name in (*Key._fields, "parent_checkpoint_id")]
    return [*keys, text_of(row.checkpoint), text_of(row.metadata)]
