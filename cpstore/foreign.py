"""The tables of langgraph-checkpoint-sqlite, which are read and never written.

Its `SqliteSaver` has two tables. A document is one value of its serializer with all channel values in it, so
there are no blobs; metadata are JSON in bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Column, Integer, LargeBinary, MetaData, Table, Text

from cpstore.models import Tables

__all__ = ["NAMES", "sqlite_saver_tables"]

NAMES = ("checkpoints", "writes")

_metadata = MetaData()

_checkpoints = Table(
    "checkpoints",
    _metadata,
    Column("thread_id", Text(), primary_key=True),
    Column("checkpoint_ns", Text(), primary_key=True),
    Column("checkpoint_id", Text(), primary_key=True),
    Column("parent_checkpoint_id", Text()),
    Column("type", Text()),
    Column("checkpoint", LargeBinary()),
    Column("metadata", LargeBinary()),
)


def _writes(metadata: MetaData, *more: Column[str]) -> Table:
    return Table(
        "writes",
        metadata,
        Column("thread_id", Text(), primary_key=True),
        Column("checkpoint_ns", Text(), primary_key=True),
        Column("checkpoint_id", Text(), primary_key=True),
        Column("task_id", Text(), primary_key=True),
        Column("idx", Integer(), primary_key=True),
        Column("channel", Text()),
        Column("type", Text()),
        Column("value", LargeBinary(), key="blob"),
        *more,
    )


_NEW = Tables(_checkpoints, _checkpoints, _writes(_metadata, Column("task_path", Text())))
_OLD = Tables(_checkpoints, _checkpoints, _writes(MetaData()))  # at first, tasks had no path


def sqlite_saver_tables(columns: Mapping[str, Collection[str]]) -> Tables | None:
    """Give the tables of a file of `SqliteSaver`, by the columns that its tables have; None if it is none.

    They stand for cpstore's three: those that hold the blobs are the checkpoints.
    """
    for tables in (_NEW, _OLD):
        if all({each.name for each in table.columns} <= set(columns.get(table.name, ())) for table in tables):
            return tables
    return None
