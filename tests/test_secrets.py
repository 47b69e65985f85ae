"""With encryption on, no secret stands in clear anywhere in the tables."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from sqlalchemy import Engine, create_engine, inspect, text

from cpstore import (
    AESGCMSerializer,
    Except,
    Only,
    Serializer,
    SQLAlchemySaver,
)
from tests.test_values import checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.serde.base import SerializerProtocol

KEY = b"k" * 32

MARKERS = {
    name: f"mark{number}{name}"
    for number, name in enumerate(
        ("inline", "blob", "write", "interrupt", "error", "configurable", "metadata", "unversioned")
    )
}


class Xor:
    """A cipher for tests: it hides texts, and nothing more."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "xor", bytes(byte ^ 0x55 for byte in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "xor"
        return self.encrypt(ciphertext)[1]


SERIALIZERS: dict[str, SerializerProtocol] = {
    "aesgcm": AESGCMSerializer({"k": KEY}),
    "aesgcm compressed": AESGCMSerializer({"k": KEY}, serde=Serializer(compression="zlib")),
    "langgraph": EncryptedSerializer(Xor()),
    "langgraph ours": EncryptedSerializer(Xor(), Serializer()),
}


@pytest.fixture
def engine(dialect_url: str) -> Iterator[Engine]:
    made = create_engine(dialect_url)
    yield made
    made.dispose()


# A dump


class State(TypedDict, total=False):
    short: str
    large: list[str]


def run(saver: SQLAlchemySaver) -> None:
    """Runs that leave a secret in each kind of place."""

    def write(state: State) -> State:
        return {"short": MARKERS["inline"], "large": [MARKERS["blob"]] * 200}

    def wait(state: State) -> State:
        return {"short": interrupt({"ask": MARKERS["interrupt"]})}

    def succeed(state: State) -> State:
        return {"large": [MARKERS["write"]]}

    def fail(state: State) -> State:
        raise ValueError(MARKERS["error"])

    def graph(thread: str, *nodes: Any) -> None:
        builder = StateGraph(State)
        builder.add_node("write", write)
        builder.add_edge(START, "write")
        for node in nodes:
            builder.add_node(node.__name__, node)
            builder.add_edge("write", node.__name__)
        configurable = {**config["configurable"], "thread_id": thread}
        builder.compile(checkpointer=saver).invoke({"short": "a"}, {**config, "configurable": configurable})

    config: RunnableConfig = {
        "configurable": {"thread_id": "1", "api_key": MARKERS["configurable"]},
        "metadata": {"note": MARKERS["metadata"]},
    }
    graph("1", wait, succeed)
    with pytest.raises(ValueError, match=MARKERS["error"]):
        graph("2", fail)
    bare: Any = {**checkpoint({"bare": [MARKERS["unversioned"]]}), "channel_versions": {}}
    saver.put({"configurable": {**config["configurable"], "checkpoint_ns": "bare"}}, bare, {}, {})


def everything(saver: SQLAlchemySaver) -> str:
    """All that the saver reads: the secrets have to be there."""
    return repr(list(saver.list(None)))


def dump(engine: Engine) -> bytes:
    """Every column of every table, as bytes; of SQLite its file too."""
    found = []
    with engine.connect() as connection:
        for table in inspect(connection).get_table_names():
            for row in connection.execute(text(f"SELECT * FROM {table}")):
                found += [value if isinstance(value, bytes) else str(value).encode() for value in row]
    if engine.dialect.name == "sqlite":
        path = str(engine.url.database)
        engine.dispose()
        with closing(sqlite3.connect(path)) as connection_:
            connection_.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for name in (path, f"{path}-wal"):
            if os.path.exists(name):
                with open(name, "rb") as file:
                    found.append(file.read())
    return b"\n".join(found)


@pytest.mark.parametrize("name", SERIALIZERS)
def test_no_secret_stands_in_a_dump(engine: Engine, name: str) -> None:
    saver = SQLAlchemySaver(engine, serde=SERIALIZERS[name])
    run(saver)
    read, dumped = everything(saver), dump(engine)
    assert len(dumped) > 2000
    for place, marker in MARKERS.items():
        assert marker.encode() not in dumped, place
        assert (marker in read) == (place not in ("configurable", "metadata")), place


def test_the_search_finds_secrets_that_are_there(engine: Engine) -> None:
    saver = SQLAlchemySaver(engine)
    run(saver)
    dumped = dump(engine)
    found = {place for place, marker in MARKERS.items() if marker.encode() in dumped}
    assert found >= MARKERS.keys() - {"unversioned"}  # in base 64
    assert set(MARKERS) == {place for place, marker in MARKERS.items() if marker in everything(saver)}


def test_a_subclass_that_encrypts_inlines_nothing(engine: Engine) -> None:
    class Hiding(Serializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            kind, data = super().dumps_typed(obj)
            return kind, Xor().encrypt(data)[1]

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return super().loads_typed((data[0], Xor().encrypt(data[1])[1]))

    run(SQLAlchemySaver(engine, serde=Hiding()))
    assert MARKERS["inline"].encode() not in dump(engine)


# Metadata


@pytest.mark.parametrize(
    ("keys", "serde", "kept"),
    [
        (None, None, {"api_key", "user", "note", "own"}),
        (Except("api_key", "own"), None, {"user", "note"}),
        (Only("user"), None, {"user"}),
        (Only(), None, set()),
        (None, SERIALIZERS["aesgcm"], set()),
        (Only("note"), SERIALIZERS["aesgcm"], {"note"}),
        (None, SERIALIZERS["langgraph"], set()),
    ],
)
def test_metadata_keys(engine: Engine, keys: Any, serde: Any, kept: set[str]) -> None:
    saver = SQLAlchemySaver(engine, serde=serde, metadata_keys=keys)
    config: RunnableConfig = {
        "configurable": {"thread_id": "t", "checkpoint_ns": "", "api_key": "sk-marker", "user": "ada"},
        "metadata": {"note": "n"},
    }
    metadata: Any = {"source": "loop", "step": 1, "parents": {}, "run_id": "r", "own": {"deep": "sk-marker"}}
    stored = saver.put(config, empty_checkpoint(), metadata, {})
    found = saver.get_tuple(stored)
    assert found is not None
    assert found.metadata.keys() == {"source", "step", "parents", "run_id"} | kept
    assert (b"sk-marker" in dump(engine)) == bool(kept & {"api_key", "own"})
