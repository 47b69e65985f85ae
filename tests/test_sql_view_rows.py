"""The views for people show what the saver tells, whatever is in the tables, on both databases."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, insert, text

from cpstore import CheckpointSummary, SQLAlchemySaver, ThreadSummary, migrations
from cpstore.models import MODELS
from cpstore.times import time_of
from tests.random_histories import History, Player, histories

PROPERTY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def rows(engine: Engine, view: str, thread_id: str | None = None) -> list[dict[str, Any]]:
    """The rows of a view, times as times; newest checkpoint first."""
    query = f"SELECT * FROM {view} WHERE thread_id = coalesce(:thread_id, thread_id)"
    with engine.connect() as connection:
        found = connection.execute(text(query), {"thread_id": thread_id}).mappings().all()
    made = [
        {name: as_time(value) if name.endswith("_at") else value for name, value in row.items()}
        for row in found
    ]
    return sorted(made, key=lambda row: row.get("checkpoint_id", ""), reverse=True)


def as_time(value: str | dt.datetime | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(value) if isinstance(value, str) else value


def thread_row(told: ThreadSummary, checkpoints: list[CheckpointSummary]) -> dict[str, Any]:
    return {
        "thread_id": told.thread_id,
        "created_at": told.created_at,
        "updated_at": told.updated_at,
        "checkpoints": told.checkpoints,
        "namespaces": len(told.namespaces),
        "first_checkpoint_id": told.first_checkpoint_id,
        "last_checkpoint_id": told.last_checkpoint_id,
        "document_bytes": sum(each.document_bytes for each in checkpoints),
    }


def checkpoint_row(told: CheckpointSummary) -> dict[str, Any]:
    return {
        "thread_id": told.thread_id,
        "checkpoint_ns": told.checkpoint_ns,
        "checkpoint_id": told.checkpoint_id,
        "parent_checkpoint_id": told.parent_checkpoint_id,
        "created_at": told.created_at,
        "source": told.metadata.get("source"),
        "step": told.metadata.get("step"),
        "run_id": told.metadata.get("run_id"),
        "document_bytes": told.document_bytes,
        "value_bytes": told.value_bytes,
        "writes": told.writes,
        "write_bytes": told.write_bytes,
    }


def stored_bytes(engine: Engine, thread_id: str) -> dict[str, int]:
    """What all blobs and writes of a thread take."""
    query = "SELECT count(*), coalesce(sum(length(blob)), 0) FROM {} WHERE thread_id = :thread_id"
    with engine.connect() as connection:
        (_, blobs), (writes, bytes_) = (
            connection.execute(text(query.format(table)), {"thread_id": thread_id}).one()
            for table in ("checkpoint_blobs", "checkpoint_writes")
        )
    return {"value_bytes": blobs, "writes": writes, "write_bytes": bytes_}


@PROPERTY
@given(histories())
def test_rows_are_what_the_saver_tells(database: Engine, history: History) -> None:
    migrations.create_views(database)
    player = Player(SQLAlchemySaver(database), lambda: SQLAlchemySaver(database))
    player.play(history)
    told = {thread.thread_id: thread for thread in player.saver.list_threads()}
    for thread_id in player.threads:
        checkpoints = list(player.saver.history(thread_id))
        assert rows(database, "cpstore_checkpoints", thread_id) == [
            checkpoint_row(one) for one in checkpoints
        ]
        expected = []
        if thread_id in told:
            expected = [thread_row(told[thread_id], checkpoints) | stored_bytes(database, thread_id)]
        assert rows(database, "cpstore_threads", thread_id) == expected
        player.saver.delete_thread(thread_id)


def insert_checkpoint(connection: Any, **columns: Any) -> None:
    row = {"thread_id": "t", "checkpoint_ns": "", "checkpoint": {}, "metadata_": {}, **columns}
    connection.execute(insert(MODELS.checkpoint).values(**row))


LANGGRAPHS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""Ids as LangGraph writes them. Python's UUIDs may be written otherwise, too."""


def uuid6_of(number: int) -> str:
    return str(uuid.UUID(int=number & ~(0xF << 76) & ~(3 << 62) | 6 << 76 | 2 << 62))


IDS = st.one_of(
    st.integers(0, 2**128 - 1).map(uuid6_of),
    st.integers(0, 2**128 - 1).map(uuid6_of).map(str.upper),
    st.uuids().map(str),
    st.uuids().map(lambda one: one.hex),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
)


@PROPERTY
@given(st.lists(IDS, unique=True, max_size=20))
@example([uuid6_of(0), uuid6_of(2**128 - 1), uuid6_of(0x1F1EE7C5B712 << 80), "", f"{uuid6_of(1)}\n"])
def test_times_are_those_of_python(database: Engine, ids: list[str]) -> None:
    migrations.create_views(database)
    expected = {one: time_of(one) if LANGGRAPHS.fullmatch(one) else None for one in ids}
    with database.connect() as connection:
        for one in ids:
            insert_checkpoint(connection, checkpoint_id=one)
        query = text("SELECT checkpoint_id, created_at FROM cpstore_checkpoints")
        assert {row[0]: as_time(row[1]) for row in connection.execute(query)} == expected
        connection.rollback()


def test_times_sort_as_text_on_sqlite_too(database: Engine) -> None:
    migrations.create_views(database)
    ids = [uuid6_of(number << 68) for number in (0, 7, 10**12, 10**17, 2**58)]
    with database.begin() as connection:
        for one in sorted(ids):
            insert_checkpoint(connection, checkpoint_id=one)
        query = text("SELECT checkpoint_id FROM cpstore_checkpoints ORDER BY created_at, checkpoint_id")
        assert list(connection.execute(query).scalars()) == sorted(ids)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | st.text("aé1 "),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)


@PROPERTY
@given(JSON, JSON)
def test_columns_of_odd_metadata_are_null(database: Engine, source: Any, step: Any) -> None:
    migrations.create_views(database)
    whole = type(step) is int and abs(step) < 10**18
    with database.connect() as connection:
        insert_checkpoint(connection, checkpoint_id="1", metadata_={"source": source, "step": step})
        found = connection.execute(text("SELECT source, step FROM cpstore_checkpoints")).one()
        assert tuple(found) == (source if isinstance(source, str) else None, step if whole else None)
        connection.rollback()
