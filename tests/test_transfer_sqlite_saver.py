"""Files of langgraph-checkpoint-sqlite: what is transferred reads as `SqliteSaver` itself reads it."""

from __future__ import annotations

import json
import pickle
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import INTERRUPT, TASKS, _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, Send
from sqlalchemy import text

from cpstore import (
    AESGCMSerializer,
    InvalidConfigError,
    OtherHistoryError,
    Serializer,
    SQLAlchemySaver,
    TypeNotAllowedError,
    UnknownSourceError,
    UnreadableValueError,
)
from cpstore.transfer import Transferred, atransfer, transfer
from tests.graphs import (
    archive_graph,
    chat_graph,
    guarded_graph,
    harvest_graph,
    inn_graph,
    ledger_graph,
    nested_graph,
    new_thread,
    walk_graph,
)
from tests.test_transfer import CrashError, crash_after, engine_of, rows_of, set_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

KEY = b"k" * 32


@dataclass
class Customer:
    name: str
    id: UUID


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    set_batches(monkeypatch, 3, 2, 4000)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "official.db"


@pytest.fixture
def official(file: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(file)) as saver:
        saver.setup()
        yield saver


@pytest.fixture
def source(file: Path) -> str:
    return f"sqlite:///{file}"


@pytest.fixture
def target(dialect_url: str) -> Iterator[SQLAlchemySaver]:
    with SQLAlchemySaver.from_url(dialect_url) as saver:
        yield saver


def tuples(saver: BaseCheckpointSaver[Any]) -> list[CheckpointTuple]:
    """All checkpoints; those with one id in several threads in an order that both can have."""
    return sorted(
        saver.list(None),
        key=lambda found: (found.checkpoint["id"], json.dumps(found.config["configurable"])),
        reverse=True,
    )


def assert_same(official: BaseCheckpointSaver[Any], target: SQLAlchemySaver) -> None:
    expected = tuples(official)
    assert expected
    assert tuples(target) == expected
    for found in expected:
        assert target.get_tuple(found.config) == official.get_tuple(found.config) == found
    for place in {json.dumps(found.config["configurable"] | {"checkpoint_id": None}) for found in expected}:
        config: RunnableConfig = {"configurable": json.loads(place)}
        assert target.get_tuple(config) == official.get_tuple(config)


def place(thread: str, **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


def put(
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    values: dict[str, Any],
    versions: Any,
    **more: Any,
) -> RunnableConfig:
    checkpoint: Any = {
        **empty_checkpoint(),
        "v": 4,
        "id": str(uuid6()),
        "channel_values": values,
        "channel_versions": versions,
        **more,
    }
    return saver.put(config, checkpoint, {"source": "loop", "step": 1, "parents": {}}, versions)


# Graphs


def run_chat(saver: Any) -> None:
    graph, config = chat_graph().compile(checkpointer=saver), new_thread()
    graph.invoke({"messages": [HumanMessage("A hotel, please", id="m1")]}, config)
    fork = list(graph.get_state_history(config))[1].config
    graph.invoke(Command(resume="yes"), config)
    graph.update_state(fork, {"messages": [AIMessage("Or a tent?", id="m9")]}, as_node="model")


def run_nested(saver: Any) -> None:
    graph, config = nested_graph().compile(checkpointer=saver), new_thread()
    graph.invoke({"item": "lamp"}, config)
    graph.invoke(Command(resume="yes"), config)
    graph.invoke({"item": "chair"}, config)


def run_walk(saver: Any) -> None:
    graph = walk_graph().compile(checkpointer=saver)
    for _ in range(3):
        config = new_thread()
        for mood in ("gay", "grim"):
            graph.invoke({"mood": mood}, {**config, "metadata": {"user": "ada", "price": 1e16}})
        graph.invoke({"mood": "fork"}, list(graph.get_state_history(config))[3].config)


def run_guarded(saver: Any) -> None:
    graph, config = guarded_graph().compile(checkpointer=saver), new_thread()
    graph.invoke({"done": []}, config)


def run_harvest(saver: Any) -> None:
    harvest_graph().compile(checkpointer=saver).invoke({"seeds": list(range(5))}, new_thread())


def run_inn(saver: Any) -> None:
    graph, config = inn_graph().compile(checkpointer=saver), new_thread()
    for guest in ("ada", "bob"):
        graph.invoke({"guest": guest}, config)
        graph.invoke(Command(resume="welcome"), config)


@pytest.mark.parametrize(
    "run", [run_chat, run_nested, run_walk, run_guarded, run_harvest, run_inn], ids=lambda run: run.__name__
)
def test_graphs(
    official: SqliteSaver, source: str, target: SQLAlchemySaver, run: Callable[[Any], None]
) -> None:
    run(official)
    done = transfer(source, target)
    assert_same(official, target)
    before = rows_of(target)
    assert transfer(source, target) == Transferred(threads=done.threads)
    assert rows_of(target) == before


@pytest.mark.parametrize("graph", [ledger_graph, archive_graph], ids=lambda graph: graph.__name__)
def test_delta_channels(
    official: SqliteSaver, source: str, target: SQLAlchemySaver, graph: Callable[[], Any]
) -> None:
    config = new_thread()
    compiled = graph().compile(checkpointer=official)
    compiled.invoke({"pages": 7}, config)
    expected = [(found.config, found.values) for found in compiled.get_state_history(config)]
    transfer(source, target)
    for found, before in zip(tuples(target), tuples(official), strict=True):
        values, values_before = (one.checkpoint["channel_values"] for one in (found, before))
        for channel in values.keys() - values_before.keys():  # it has the version of a snapshot
            assert isinstance(values.pop(channel), _DeltaSnapshot)
        assert found == before
    moved = graph().compile(checkpointer=target)
    assert [(found.config, found.values) for found in moved.get_state_history(config)] == expected
    assert moved.invoke({"pages": 2}, config) == compiled.invoke({"pages": 2}, config)


def test_an_interrupted_run_goes_on_in_the_target(
    official: SqliteSaver, source: str, target: SQLAlchemySaver
) -> None:
    config = new_thread()
    chat_graph().compile(checkpointer=official).invoke({"messages": [HumanMessage("hi", id="m1")]}, config)
    transfer(source, target)
    graph = chat_graph().compile(checkpointer=target)
    assert graph.get_state(config).next == ("human",)
    done = graph.invoke(Command(resume="yes"), config)
    assert [message.id for message in done["messages"]] == ["m1", "m2", "m3"]
    with pytest.raises(OtherHistoryError):
        transfer(source, target)


async def test_a_file_of_the_async_saver(
    file: Path, source: str, database_url: str, saver: SQLAlchemySaver
) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(file)) as official:
        graph, config = harvest_graph().compile(checkpointer=official), new_thread()
        await graph.ainvoke({"seeds": [1, 2, 3]}, config)
        await graph.aupdate_state(config, {"basket": "more"})
        await atransfer(source, saver)
        expected = [found async for found in official.alist(None)]
    assert len(expected) == 6
    assert [found async for found in saver.alist(None)] == expected
    url = source.replace("sqlite:", "sqlite+aiosqlite:")
    assert await atransfer(url, saver) == Transferred(threads=1)
    assert await atransfer(SQLAlchemySaver.from_url(source), database_url) == Transferred(threads=1)


# Documents


VALUES: dict[str, Any] = {
    "messages": [HumanMessage("hi", id="1"), AIMessage("ho", id="2")],
    "customer": Customer("ada", uuid4()),
    "keys": {1: "one", (2, 3): "two", None: "none", b"x": 4, 1.5: 5, False: 6},
    "set": {1, 2},
    "bytes": b"\x00\xff",
    "none": None,
    "true": True,
    "small": 1,
    "large": 2**64 - 1,
    "float": 1.5,
    "exact": 1e16,
    "minus": -0.0,
    "word": "word",
    "long": "long " * 100,
    "nul": "a\0b",
    "empty": {},
}


def test_values(official: SqliteSaver, source: str, target: SQLAlchemySaver) -> None:
    versions = {name: official.get_next_version(None, None) for name in VALUES}
    config = put(official, place("1"), VALUES, versions)
    versions["word"] = official.get_next_version(versions["word"], None)
    config = put(official, config, VALUES | {"word": "other", "bare": [1], "short": 1}, versions)
    official.put_writes(config, [*VALUES.items(), (INTERRUPT, "question")], "task", "~path")
    done = transfer(source, target)
    assert_same(official, target)
    found = target.get_tuple(config)
    assert found is not None
    values = found.checkpoint["channel_values"]
    assert {name: type(value) for name, value in values.items()} == {
        name: type(value) for name, value in (VALUES | {"bare": [1], "short": 1}).items()
    }
    assert str(values["minus"]) == "-0.0"
    assert done.blobs == len(VALUES) - 5, "a value goes once, and short ones stay in the document"


def test_no_class_is_imported(
    official: SqliteSaver, file: Path, source: str, target: SQLAlchemySaver
) -> None:
    versions = {"customer": "1.1"}
    put(official, place("1"), {"customer": Customer("ada", uuid4())}, versions)
    put_doc = official.conn.execute("SELECT checkpoint FROM checkpoints").fetchone()[0]
    gone = put_doc.replace(__name__.encode(), b"x" * len(__name__))
    official.conn.execute("UPDATE checkpoints SET checkpoint = ?", (gone,))
    official.conn.commit()
    assert transfer(source, target).blobs == 1
    with pytest.raises(UnreadableValueError, match="customer"):
        target.get_tuple(place("1"))
    assert "x" * len(__name__) not in sys.modules
    assert gone.count(rows_of(target)[1][0][-1]) == 1, "the same bytes"


def test_values_that_changed_in_place_or_whose_versions_repeat(
    official: SqliteSaver, source: str, target: SQLAlchemySaver
) -> None:
    """Each checkpoint has its own values in the file, whatever their versions say."""
    first = put(official, place("1"), {"a": [1], "b": ["b"]}, {"a": "1.1", "b": "1.1"})
    put(official, first, {"a": [1, 2], "b": ["b"]}, {"a": "1.1", "b": "1.1"})
    for value in (["one fork"], ["another"], "short", 3, "long " * 100):
        put(
            official,
            place("forks", checkpoint_id=first["configurable"]["checkpoint_id"]),
            {"a": value},
            {"a": 7},
        )
    transfer(source, target)
    assert_same(official, target)
    assert transfer(source, target) == Transferred(threads=2)
    assert len(rows_of(target)[1]) == 3


def test_blobs_that_were_forgotten_are_asked_for(
    official: SqliteSaver, source: str, target: SQLAlchemySaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpstore.transfer.sqlite_saver._REMEMBERED", 0)
    config = place("1")
    for step in range(7):
        config = put(official, config, {"a": [step // 3], "b": ["b"]}, {"a": "1.1", "b": "1.1"})
    transfer(source, target)
    assert_same(official, target)
    assert transfer(source, target) == Transferred(threads=1)


def test_documents_before_format_4(official: SqliteSaver, source: str, target: SQLAlchemySaver) -> None:
    """Sends were writes of the parent, or stood beside the channels; LangGraph wants them in a channel."""
    first = put(official, place("1"), {"a": [1]}, {"a": 1}, v=2, current_tasks={}, pending_sends=[])
    official.put_writes(first, [("a", 1)], "task")
    second = put(official, first, {"a": [1, 2]}, {"a": 2}, v=1)
    transfer(source, target)
    assert_same(official, target)

    official.put_writes(second, [(TASKS, Send("node", 1))], "task")
    third = put(official, second, {"a": [1, 2]}, {"a": 2}, v=3)
    fourth = put(official, third, {"a": [3]}, {"a": 3}, v=1, pending_sends=[Send("node", 2)])
    transfer(source, target)
    for config, sends in ((third, [Send("node", 1)]), (fourth, [Send("node", 2)])):
        found, expected = target.get_tuple(config), official.get_tuple(config)
        assert found is not None
        assert expected is not None
        assert found.checkpoint["channel_values"].pop(TASKS) == sends
        assert found.checkpoint["channel_values"] == expected.checkpoint["channel_values"]
        assert found.parent_config == expected.parent_config


def test_documents_of_json(official: SqliteSaver, source: str, target: SQLAlchemySaver) -> None:
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "hi", "id": "1"},
    }
    values = {"messages": [message], "word": "word", "list": [1, None, "x"], "float": 1e16}
    config = put(official, place("1"), values, dict.fromkeys(values, "1.1"))
    document = official.serde.loads_typed(
        official.conn.execute("SELECT type, checkpoint FROM checkpoints").fetchone()
    )
    official.conn.execute(
        "UPDATE checkpoints SET type = 'json', checkpoint = ?", (json.dumps(document).encode(),)
    )
    official.conn.commit()
    transfer(source, target)
    found, expected = target.get_tuple(config), official.get_tuple(config)
    assert found is not None
    assert expected is not None
    assert found.checkpoint["channel_values"]["messages"] == [HumanMessage("hi", id="1")]
    assert found == expected


def test_a_pickled_document_needs_a_serializer_that_reads_it(
    official: SqliteSaver, source: str, target: SQLAlchemySaver
) -> None:
    config = put(official, place("1"), {"a": [1], "b": "word"}, {"a": "1.1", "b": "1.1"})
    document = official.get_tuple(config)
    assert document is not None
    official.conn.execute(
        "UPDATE checkpoints SET type = 'pickle', checkpoint = ?", (pickle.dumps(document.checkpoint),)
    )
    official.conn.commit()
    with pytest.raises(UnreadableValueError, match="'pickle': pass the serde="):
        transfer(source, target)
    with pytest.raises(TypeNotAllowedError, match="pickle is off"):
        transfer(source, target, serde=Serializer())
    assert rows_of(target) == [[], [], []]
    transfer(source, target, serde=Serializer(pickle=True))
    official.serde = JsonPlusSerializer(pickle_fallback=True)
    assert_same(official, target)
    assert transfer(source, target, serde=Serializer(pickle=True)) == Transferred(threads=1)


class Cipher(CipherProtocol):
    """A toy: no two encryptions are alike, as with a real one."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        nonce = uuid4().bytes
        return "toy", nonce + bytes(each ^ nonce[0] for each in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return bytes(each ^ ciphertext[0] for each in ciphertext[16:])


def test_an_encrypted_file(official: SqliteSaver, source: str, target: SQLAlchemySaver) -> None:
    official.serde = EncryptedSerializer(Cipher())
    first = put(official, place("1"), {"a": ["secret"], "b": "secret"}, {"a": "1.1", "b": "1.1"})
    second = put(
        official, first, {"a": ["secret"], "b": "secret", "bare": "secret"}, {"a": "1.1", "b": "1.1"}
    )
    official.put_writes(second, [("a", "secret")], "task")
    with pytest.raises(UnreadableValueError, match=r"'msgpack\+toy': pass the serde="):
        transfer(source, target)
    done = transfer(source, target, serde=official.serde)
    assert (done.checkpoints, done.blobs) == (2, 2)
    target.serde = official.serde
    assert_same(official, target)
    assert "secret" not in repr(rows_of(target))
    assert transfer(source, target, serde=official.serde) == Transferred(threads=1)


def test_to_encryption(official: SqliteSaver, source: str, target: SQLAlchemySaver) -> None:
    first = put(official, place("1"), {"a": ["secret"], "b": "secret"}, {"a": "1.1", "b": "1.1"})
    second = put(
        official, first, {"a": ["secret", 2], "b": "secret", "bare": "secret"}, {"a": "1.1", "b": "1.1"}
    )
    official.put_writes(second, [("a", "secret"), (INTERRUPT, "secret")], "task")
    moving = AESGCMSerializer({"1": KEY}, plain_rows=True)
    transfer(source, target, serde=moving)
    assert "secret" not in repr(rows_of(target))
    assert transfer(source, target, serde=moving) == Transferred(threads=1)
    target.serde = AESGCMSerializer({"1": KEY})
    assert_same(official, target)


# Files


def test_a_run_that_broke_off_anywhere_is_completed(
    official: SqliteSaver, source: str, target: SQLAlchemySaver
) -> None:
    run_nested(official)
    run_chat(official)
    whole = transfer(source, target)
    threads = {found.config["configurable"]["thread_id"] for found in tuples(official)}
    for calls in range(0, 20, 3):
        for thread in threads:
            target.delete_thread(thread)
        with pytest.raises(CrashError):
            transfer(source, target, on_progress=crash_after(calls))
        expected = tuples(official)
        assert all(found in expected for found in tuples(target))
        rest = transfer(source, target)
        assert rest.checkpoints <= whole.checkpoints
        assert_same(official, target)


def test_what_came_meanwhile_comes_with_the_next_run(
    official: SqliteSaver, source: str, target: SQLAlchemySaver
) -> None:
    first = put(official, place("1"), {"a": [1]}, {"a": "1.1"})
    official.put_writes(first, [(INTERRUPT, "old")], "task")
    transfer(source, target)
    put(
        official,
        place("1"),
        {"a": [1], "b": "new"},
        {"a": "1.1", "b": "1.1"},
        id=first["configurable"]["checkpoint_id"],
    )
    put(official, first, {"a": [2]}, {"a": "2.1"})
    official.put_writes(first, [(INTERRUPT, "new")], "task")
    done = transfer(source, target)
    assert (done.checkpoints, done.blobs, done.writes) == (2, 1, 1)
    assert_same(official, target)


def test_a_file_from_before_task_paths(file: Path, source: str, target: SQLAlchemySaver) -> None:
    with SqliteSaver.from_conn_string(str(file)) as official:
        config = put(official, place("1"), {"a": [1]}, {"a": "1.1"})
        official.put_writes(config, [("a", 1)], "task")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
        connection.execute("UPDATE checkpoints SET metadata = NULL, parent_checkpoint_id = ''")
        connection.commit()
    transfer(source, target)
    with SqliteSaver.from_conn_string(str(file)) as official:
        assert_same(official, target)


def test_the_file_is_not_changed(
    official: SqliteSaver, file: Path, source: str, target: SQLAlchemySaver
) -> None:
    run_chat(official)
    official.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = file.read_bytes()
    transfer(source, target)
    assert file.read_bytes() == before


def test_other_tables_are_not_taken_for_it(file: Path, source: str, target: SQLAlchemySaver) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id TEXT, checkpoint BLOB)")
        connection.execute("CREATE TABLE writes (thread_id TEXT, value BLOB)")
    with pytest.raises(UnknownSourceError):
        transfer(source, target)


@pytest.mark.parametrize("document", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\xa1x"])
def test_a_damaged_document_is_named(
    official: SqliteSaver, source: str, target: SQLAlchemySaver, document: bytes
) -> None:
    put(official, place("1"), {"a": [1]}, {"a": "1.1"})
    official.conn.execute("UPDATE checkpoints SET checkpoint = ?", (document,))
    official.conn.commit()
    with pytest.raises(UnreadableValueError, match="thread '1'"):
        transfer(source, target)


def test_names_that_cannot_be_stored_are_named(
    official: SqliteSaver, source: str, target: SQLAlchemySaver
) -> None:
    put(official, place("1"), {"a\0": [1]}, {"a\0": "1.1"})
    with pytest.raises(InvalidConfigError, match="NUL"):
        transfer(source, target)
    put(official, place("2" * 600), {"a": [1]}, {"a": "1.1"})
    with pytest.raises(InvalidConfigError, match="600 bytes"):
        transfer(source, target, threads=["2" * 600])


def test_metadata_that_postgresql_cannot_store(
    official: SqliteSaver, source: str, target: SQLAlchemySaver
) -> None:
    config = put(official, place("1", note="a\0b"), {"a": [1]}, {"a": "1.1"})
    transfer(source, target)
    found = target.get_tuple(config)
    assert found is not None
    assert found.metadata["step"] == 1
    with engine_of(target).connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM checkpoints")).scalar_one() == 1
