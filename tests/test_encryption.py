"""Encrypted rows: those that do not belong are refused, keys rotate, databases move, copies are readable."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine, create_engine, text

from cpstore import (
    AESGCMSerializer,
    ConfigurationError,
    Serializer,
    SQLAlchemySaver,
    UnreadableValueError,
    UnstorableValueError,
)
from tests.test_serializer import Order
from tests.test_values import checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.runnables import RunnableConfig

KEY, OTHER = b"k" * 32, b"o" * 32

SEALING = AESGCMSerializer({"k": KEY})


@pytest.fixture
def engine(dialect_url: str) -> Iterator[Engine]:
    made = create_engine(dialect_url)
    yield made
    made.dispose()


# Rows that do not belong


THREAD: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def fill(saver: SQLAlchemySaver) -> RunnableConfig:
    """Two threads; in each two channels and two writes, and a value without a version."""
    for thread in ("other", "t"):
        config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        made: Any = {**checkpoint({"a": ["a"], "b": "b", "bare": ["c"]}), "id": "1"}
        made["channel_versions"] = {"a": "1", "b": "1"}
        stored = saver.put(config, made, {}, made["channel_versions"])
        saver.put_writes(stored, [("v", "v"), ("w", ["w"])], "task 1")
        later: Any = {**made, "id": "2", "channel_versions": {"a": "2", "b": "1"}}
        saver.put(stored, later, {}, {"a": "2"})
    return stored


def execute(engine: Engine, statement: str, **parameters: Any) -> None:
    with engine.begin() as connection:
        assert connection.execute(text(statement), parameters).rowcount


VALUES = {"a": ["a"], "b": "b", "bare": ["c"]}

BLOB = "WHERE thread_id = 't' AND channel = 'a' AND version = '1'"
WRITE = "WHERE thread_id = 't' AND idx = 0"


def moved_blob(thread: str, channel: str, version: str) -> str:
    """Put the blob of another place into that of thread `t`, channel `a`, version `1`."""
    source = f"o.thread_id = '{thread}' AND o.channel = '{channel}' AND o.version = '{version}'"
    return (
        f"UPDATE checkpoint_blobs SET blob = (SELECT blob FROM checkpoint_blobs AS o WHERE {source}) {BLOB}"
    )


MOVES = {
    "blob to another thread": moved_blob("other", "a", "1"),
    "blob to another channel": moved_blob("t", "b", "1"),
    "blob to another version": moved_blob("t", "a", "2"),
    "write to another task": f"UPDATE checkpoint_writes SET task_id = 'task 2' {WRITE}",
    "write to another position": f"UPDATE checkpoint_writes SET idx = 7 {WRITE}",
    "write to another channel": f"UPDATE checkpoint_writes SET channel = 'z' {WRITE}",
    "write to another thread": (
        "UPDATE checkpoint_writes SET thread_id = 't', idx = 9 WHERE thread_id = 'other' AND idx = 0"
    ),
    "type changed": f"UPDATE checkpoint_blobs SET type = 'bytes+aesgcm.k' {BLOB}",
    "tag taken away": f"UPDATE checkpoint_blobs SET type = 'msgpack' {BLOB}",
    "plain row": f"UPDATE checkpoint_blobs SET type = 'null', blob = CAST('' AS {{bytes}}) {BLOB}",
    "unknown key": f"UPDATE checkpoint_writes SET type = 'msgpack+aesgcm.z' {WRITE}",
    "value without a version": (
        "UPDATE checkpoints SET checkpoint = (SELECT o.checkpoint FROM checkpoints AS o WHERE o.thread_id ="
        " 'other' AND o.checkpoint_id = '1') WHERE thread_id = 't' AND checkpoint_id = '1'"
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_row_that_does_not_belong_is_refused(engine: Engine, name: str) -> None:
    saver = SQLAlchemySaver(engine, serde=SEALING)
    stored = fill(saver)
    found = saver.get_tuple(stored)
    assert found is not None
    assert found.checkpoint["channel_values"] == VALUES
    execute(engine, MOVES[name].format(bytes="BLOB" if engine.dialect.name == "sqlite" else "BYTEA"))
    with pytest.raises(UnreadableValueError, match="thread 't'"):
        saver.get_tuple(stored)


def test_an_inline_value_is_refused(engine: Engine) -> None:
    saver = SQLAlchemySaver(engine, serde=SEALING)
    stored = fill(saver)
    execute(
        engine,
        """UPDATE checkpoints SET checkpoint = '{"v": 4, "channel_values": {"admin": true}}'
        WHERE thread_id = 't' AND checkpoint_id = '1'""",
    )
    with pytest.raises(UnreadableValueError):
        saver.get_tuple(stored)


def test_a_copy_names_what_it_cannot_bind(engine: Engine) -> None:
    saver = SQLAlchemySaver(engine, serde=SEALING)
    fill(saver)
    execute(engine, MOVES["blob to another channel"])
    with pytest.raises(UnreadableValueError, match="channel 'a' of thread 't'"):
        saver.copy_thread("t", "copy")
    assert list(saver.list({"configurable": {"thread_id": "copy"}})) == []


class Chatty(Serializer):
    """Its errors tell what they are about, as those of many classes do."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if obj == "secret":
            raise ValueError(f"bad {obj}")
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise ValueError(f"bad {data[1]!r}")


def test_no_error_shows_what_is_encrypted(engine: Engine) -> None:
    saver = SQLAlchemySaver(engine, serde=AESGCMSerializer({"k": KEY}, serde=Chatty()))
    stored = saver.put(THREAD, checkpoint({"a": "a"}), {}, {"a": "1"})
    with pytest.raises(UnstorableValueError) as writing:
        saver.put_writes(stored, [("a", "secret")], "task")
    with pytest.raises(UnreadableValueError) as reading:
        saver.get_tuple(stored)
    for raised in (writing, reading):
        assert "bad" not in "".join(traceback.format_exception(raised.value))


def test_tampered_bytes_are_refused() -> None:
    serde = AESGCMSerializer({"k": KEY})
    kind, data = serde.dumps_at(["value"], b"place")
    assert serde.loads_at((kind, data), b"place") == ["value"]
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(UnreadableValueError, match="was changed"):
            serde.loads_at((kind, bytes(changed)), b"place")
    for cut in (b"", data[:5], data[:-1], data + b"x"):
        with pytest.raises(UnreadableValueError):
            serde.loads_at((kind, cut), b"place")
    assert serde.dumps_at(["value"], b"place")[1] != data


# Moving, rotating, copying


def test_plain_rows_are_read_only_while_a_database_is_moved(engine: Engine) -> None:
    stored = fill(SQLAlchemySaver(engine))
    with pytest.raises(UnreadableValueError, match="not encrypted, and plain_rows is off"):
        SQLAlchemySaver(engine, serde=AESGCMSerializer({"k": KEY})).get_tuple(stored)
    moving = SQLAlchemySaver(engine, serde=AESGCMSerializer({"k": KEY}, plain_rows=True))
    found = moving.get_tuple(stored)
    assert found is not None
    assert found.checkpoint["channel_values"] == VALUES
    assert [value for *_, value in found.pending_writes or []] == ["v", ["w"]]
    moving.copy_thread("t", "copy")
    strict = SQLAlchemySaver(engine, serde=AESGCMSerializer({"k": KEY}))
    copied: RunnableConfig = {"configurable": {**stored["configurable"], "thread_id": "copy"}}
    found = strict.get_tuple(copied)
    assert found is not None
    assert {**VALUES, **found.checkpoint["channel_values"]} == VALUES


def test_keys_are_rotated(engine: Engine) -> None:
    old = SQLAlchemySaver(engine, serde=AESGCMSerializer({"old": KEY}))
    stored = fill(old)
    both = SQLAlchemySaver(engine, serde=AESGCMSerializer({"old": KEY, "new": OTHER}))
    found = both.get_tuple(stored)
    assert found is not None
    assert found.checkpoint["channel_values"] == VALUES
    both.copy_thread("t", "copy")
    new = SQLAlchemySaver(engine, serde=AESGCMSerializer({"new": OTHER}))
    copied: RunnableConfig = {"configurable": {**stored["configurable"], "thread_id": "copy"}}
    found = new.get_tuple(copied)
    assert found is not None
    assert found.checkpoint["channel_values"] == VALUES
    with pytest.raises(UnreadableValueError, match="The key 'old' is missing"):
        new.get_tuple(stored)
    with pytest.raises(UnreadableValueError, match="was changed, or belongs to another place or key"):
        SQLAlchemySaver(engine, serde=AESGCMSerializer({"old": OTHER})).get_tuple(stored)


@pytest.mark.parametrize("checkpoint_id", [None, "2"])
def test_a_copied_thread_is_readable_and_bound_to_its_own_name(
    engine: Engine, checkpoint_id: str | None
) -> None:
    saver = SQLAlchemySaver(engine, serde=SEALING)
    fill(saver)
    saver.copy_thread("t", "copy", checkpoint_id=checkpoint_id)
    source, copy = (list(saver.list({"configurable": {"thread_id": name}})) for name in ("t", "copy"))
    assert [(one.checkpoint, one.metadata, one.pending_writes) for one in source] == [
        (one.checkpoint, one.metadata, one.pending_writes) for one in copy
    ]
    assert [one.checkpoint["channel_values"] for one in copy] == [VALUES, VALUES]
    with engine.connect() as connection:
        blobs = list(connection.execute(text("SELECT blob FROM checkpoint_blobs")).scalars())
    assert len(set(blobs)) == len(blobs)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "at least one key"),
        ({"k": b"short"}, "5 bytes"),
        ({"k.1": KEY}, "id of a key"),
        ({"": KEY}, "id"),
    ],
)
def test_keys_that_are_none(keys: dict[str, bytes], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        AESGCMSerializer(keys)


def test_an_allowlist_reaches_the_values() -> None:
    strict = AESGCMSerializer({"k": KEY}, serde=Serializer(allowed_types=[]))
    row = strict.dumps_typed(Order(1, []))
    with pytest.raises(UnreadableValueError, match="not an allowed type"):
        strict.loads_typed(row)
    assert strict.with_msgpack_allowlist([Order]).loads_typed(row) == Order(1, [])
