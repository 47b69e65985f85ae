"""The codec: what stays in the document, what becomes a blob, and the formats before the fourth."""

from __future__ import annotations

import enum
import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import TASKS
from langgraph.types import Send
from sqlalchemy import create_engine

from cpstore import InvalidConfigError, SQLAlchemySaver, addresses, codec
from cpstore.metadata import dump_metadata

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

SERDE = JsonPlusSerializer()
THREAD: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

PRIMITIVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
)
NESTED = st.recursive(
    PRIMITIVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4)
    ),
)


def checkpoint(values: dict[str, Any], version: Any = "1", v: int = 4) -> Checkpoint:
    made = empty_checkpoint()
    made["v"] = v
    made["channel_values"] = values
    made["channel_versions"] = dict.fromkeys(values, version)
    return made


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same type all the way down; zeros have signs."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=NESTED, bare=NESTED)
def test_any_value_comes_back_as_it_was(dialect_url: str, value: Any, bare: Any) -> None:
    engine = create_engine(dialect_url)
    saver = SQLAlchemySaver(engine)
    made = checkpoint({"value": value})
    made["channel_values"]["bare"] = bare
    stored = saver.put(THREAD, made, {}, {"value": "1"})
    saver.put_writes(stored, [("write", value), ("__interrupt__", bare)], "task")
    found = saver.get_tuple(stored)
    assert found is not None
    assert same(found.checkpoint["channel_values"], {"value": value, "bare": bare})
    assert [
        same(written, wanted)
        for (_, _, written), wanted in zip(found.pending_writes or [], [bare, value], strict=True)
    ] == [True, True]
    saver.delete_thread("t")
    engine.dispose()


class Colour(str, enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "value", [1, -(2**62), 0.5, 2.0, -1.25, "text", "", "ä", True, False, None, "x" * 256]
)
def test_short_primitives_stay_in_the_document(value: Any) -> None:
    record = codec.encode_checkpoint(SERDE, THREAD, checkpoint({"c": value}), {}, {"c": "1"})
    assert json.loads(record.checkpoint)["channel_values"] == {"c": value}
    assert record.blobs == ()


@pytest.mark.parametrize(
    "value",
    [
        1e16,
        1e-7,
        -0.0,
        math.inf,
        math.nan,
        2**63,
        "nul\0",
        "\ud800",
        "x" * 257,
        Colour.RED,
        [1],
        {},
        b"",
        (1,),
    ],
    ids=repr,
)
def test_everything_else_is_a_blob(value: Any) -> None:
    class Serde:
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            return "test", b"encoded"

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            raise AssertionError

    record = codec.encode_checkpoint(Serde(), THREAD, checkpoint({"c": value}), {}, {"c": "1"})
    assert json.loads(record.checkpoint)["channel_values"] == {}
    assert [(blob.channel, blob.version, blob.type, blob.blob) for blob in record.blobs] == [
        ("c", "1", "test", b"encoded")
    ]


@pytest.mark.parametrize("v", [1, 2, 3])
def test_sends_of_a_parent_before_format_four_are_moved(dialect_url: str, v: int) -> None:
    """Over several threads and namespaces at once, each with its own parent's sends, in order."""
    engine = create_engine(dialect_url)
    saver = SQLAlchemySaver(engine)
    places = [("t1", ""), ("t1", "sub"), ("t2", "")]
    shared = checkpoint({"words": ["a"]}, version=3, v=v)
    child = checkpoint({"words": ["b"], "text": "x"}, version=4, v=v)
    child["channel_versions"]["text"] = "00005.1"
    for thread_id, namespace in places:
        here: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
        parent = saver.put(here, shared, {}, {"words": 3})
        for path, task in (("~2", "a"), ("~1", "b")):
            saver.put_writes(parent, [(TASKS, Send(f"{thread_id}{namespace}", path)), ("x", 1)], task, path)
        saver.put(parent, child, {}, {"words": 4})
    listed = [found for found in saver.list(None) if found.parent_config]
    read = [saver.get_tuple(found.config) for found in listed]
    assert len(listed) == 3
    for found in (*listed, *(one for one in read if one)):
        configurable = found.config["configurable"]
        node = configurable["thread_id"] + configurable["checkpoint_ns"]
        assert found.checkpoint["channel_values"][TASKS] == [Send(node, "~1"), Send(node, "~2")]
        assert found.checkpoint["channel_versions"][TASKS] == "00005.1"
    engine.dispose()


def test_format_four_has_its_sends_itself(dialect_url: str) -> None:
    engine = create_engine(dialect_url)
    saver = SQLAlchemySaver(engine)
    parent = saver.put(THREAD, checkpoint({}), {}, {})
    saver.put_writes(parent, [(TASKS, Send("node", 1))], "task")
    child = saver.get_tuple(saver.put(parent, checkpoint({}), {}, {}))
    assert child is not None
    assert child.checkpoint["channel_values"] == {}
    engine.dispose()


def test_metadata_never_fails_and_keeps_what_json_keeps() -> None:
    odd: dict[Any, Any] = {
        "nul": "a\0b",
        "surrogate": "\ud800",
        "six": "\\u0000",
        "nan": math.nan,
        "infinite": [-math.inf],
        "huge": 10**5000,
        "bytes": b"\xff",
        "set": {1},
        "object": object,
        "enum": Colour.RED,
        3: {"nested\0": None},
    }
    kept = json.loads(dump_metadata(odd))
    assert kept["nul"] == "a\ufffdb"
    assert kept["surrogate"] == "\ufffd"
    assert kept["six"] == "\\u0000"
    assert (kept["nan"], kept["infinite"]) == ("NaN", ["-Infinity"])
    assert (kept["bytes"], kept["set"], kept["enum"]) == ("ff", [1], "red")
    assert kept["3"] == {"nested\ufffd": None}


@given(st.lists(st.integers(0, 10**6) | st.text("0123456789.", min_size=1, max_size=8), max_size=5))
def test_mixed_versions_can_be_ordered(versions: list[Any]) -> None:
    assert len(sorted(versions, key=addresses.version_order)) == len(versions)


@pytest.mark.parametrize("name", ["nul\0", "\ud800"])
def test_a_name_that_cannot_be_stored_is_refused_on_both_databases(dialect_url: str, name: str) -> None:
    engine = create_engine(dialect_url)
    saver = SQLAlchemySaver(engine)
    made = checkpoint({})
    made["versions_seen"] = {name: {"channel": "1"}}
    with pytest.raises(InvalidConfigError, match="a name in the checkpoint"):
        saver.put(THREAD, made, {}, {})
    with pytest.raises(InvalidConfigError):
        saver.put(THREAD, checkpoint({name: 1}), {}, {name: "1"})
    assert list(saver.list(None)) == []
    made["versions_seen"] = {"\\u0000 \U0001f600": {"\\ud800": "1"}}
    stored = saver.get_tuple(saver.put(THREAD, made, {}, {}))
    assert stored is not None
    assert stored.checkpoint["versions_seen"] == made["versions_seen"]
    engine.dispose()


@pytest.mark.parametrize("name", addresses.BYTES)
def test_identifiers_have_a_length_in_bytes(name: str) -> None:
    longest = addresses.BYTES[name]
    assert addresses.identifier(name, "ä" * (longest // 2)) == "ä" * (longest // 2)
    with pytest.raises(InvalidConfigError, match=f"at most {longest}"):
        addresses.identifier(name, "ä" * (longest // 2) + "aa")


def test_identifiers_fit_an_index_row_of_postgresql() -> None:
    blob = sum(addresses.BYTES[name] for name in ("thread_id", "checkpoint_ns", "channel", "version"))
    write = sum(addresses.BYTES[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id"))
    assert max(blob, write) + 5 * 8 < 2704
