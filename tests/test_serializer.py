"""The serializer: the table of docs/values.md, langgraph-checkpoint's format, strict types, compression."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid
import zoneinfo
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import ormsgpack
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel, SecretStr

from cpstore import ConfigurationError, Serializer, TypeNotAllowedError, UnreadableValueError
from tests.test_docs import DOCS, blocks, module, run
from tests.values import same

__all__ = ["module"]

ROOT = pathlib.Path(__file__).parent.parent
VALUES = DOCS / "values.md"


class Colour(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Order:
    number: int
    lines: list[Any]


@dataclasses.dataclass(frozen=True)
class LikeSend:
    """It has the attributes of a `Send`, and one more."""

    node: str
    arg: int
    more: int


class Customer(BaseModel):
    name: str
    order: Order | None = None


class Moment(dt.datetime):
    """As freezegun's, which stands for `datetime` in people's tests."""


class Outer:
    @dataclasses.dataclass
    class Inner:
        number: int


def written(value: Any, serializer: Any = None) -> Any:
    """What a value comes back as."""
    serializer = serializer or Serializer()
    return serializer.loads_typed(serializer.dumps_typed(value))


def extension(code: int, content: Any) -> tuple[str, bytes]:
    """A stored value of an extension type, as anybody may write it."""
    return "msgpack", ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(content)))


# The table


def table() -> list[tuple[str, str]]:
    """Examples of the table in docs/values.md, and what it says of them."""
    text = VALUES.read_text(encoding="utf-8")
    lines = text[text.index("| type | example |") :].split("\n\n")[0].splitlines()[2:]
    cells = [re.split(r"(?<!\\)\|", line) for line in lines]
    return [(row[2].strip().strip("`").replace("\\|", "|"), row[3].strip()) for row in cells]


@pytest.mark.parametrize(("example", "kept"), table())
def test_the_table_is_true(module: ModuleType, example: str, kept: str) -> None:
    run(blocks(VALUES)[0], VALUES, module)
    value = eval(example, module.__dict__)  # noqa: S307 - our own page
    if kept == "refused":
        with pytest.raises(TypeError):
            Serializer().dumps_typed(value)
    elif kept == "as text":
        assert written(value) == repr(value)
    else:
        assert kept == "itself"
        assert same(written(value), value)
        assert same(written({"deep": [(value,)]}), {"deep": [(value,)]})


def test_the_table_has_rows_of_each_kind() -> None:
    assert len(table()) > 40
    assert {kept for _, kept in table()} == {"itself", "refused", "as text"}


# What langgraph-checkpoint keeps right


KEPT_BY_BOTH: list[Any] = [
    *(None, True, 1, -(2**63), 2**64 - 1, 0.5, float("inf"), "ä\0", b"\0", bytearray(b"x")),
    *([1, [2]], {"a": {"b": []}}, {1: 2, None: 3, 1.5: 4, False: 5, b"k": 6}),
    *({1, 2}, frozenset({"a"}), collections.deque([1]), uuid.UUID(int=7), decimal.Decimal("1.10")),
    *(dt.datetime(2025, 1, 2, 3, 4, 5, 6), dt.datetime(2025, 1, 2, tzinfo=dt.timezone.utc)),
    *(dt.date(2025, 1, 2), dt.time(3, 4, 5, 6), dt.timedelta(1, 2, 3), dt.timezone(dt.timedelta(hours=1))),
    *(zoneinfo.ZoneInfo("Europe/Berlin"), pathlib.Path("/a/b"), re.compile("a", re.I)),
    *map(ipaddress.ip_address, ("1.2.3.4", "::1")),
    *(ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_interface("::1/64")),
    *(Colour.RED, Level.HIGH, Point(1, 2), Order(1, [Point(3, 4)]), Customer(name="a"), SecretStr("s")),
    *(HumanMessage("a", id="1"), ToolMessage("b", tool_call_id="1"), Document("text", metadata={"a": 1})),
    AIMessage("", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "1", "type": "tool_call"}]),
    *(Send("node", {"a": [1]}), Command(goto="node"), Interrupt(value="a", id="1"), _DeltaSnapshot([1])),
    *(np.arange(6).reshape(2, 3), np.asfortranarray(np.ones((2, 3))), np.array([True])),
]

ALLOWED: list[Any] = [Colour, Level, Point, Order, Customer, SecretStr]


@pytest.mark.parametrize("value", KEPT_BY_BOTH, ids=lambda value: f"{type(value).__name__}")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_either_serializer_reads_what_the_other_wrote(value: Any, strict: bool) -> None:
    ours = Serializer(allowed_types=ALLOWED if strict else None)
    theirs = JsonPlusSerializer(allowed_msgpack_modules=ALLOWED if strict else True)
    assert same(written(value, theirs), value), "the list is of what both keep"
    assert same(ours.loads_typed(theirs.dumps_typed(value)), value)
    assert same(theirs.loads_typed(ours.dumps_typed(value)), value)


def test_errors_are_read_as_texts_by_both() -> None:
    error = ValueError("bad")
    assert Serializer().loads_typed(JsonPlusSerializer().dumps_typed(error)) == repr(error)
    assert JsonPlusSerializer().loads_typed(Serializer().dumps_typed(error)) == repr(error)


@pytest.mark.parametrize(
    ("envelope", "value"),
    [
        ({"id": ["uuid", "UUID"], "args": ["0" * 31 + "7"]}, uuid.UUID(int=7)),
        ({"id": ["decimal", "Decimal"], "args": ["1.10"]}, decimal.Decimal("1.10")),
        ({"id": ["builtins", "set"], "args": [[1, 2]]}, {1, 2}),
        ({"id": ["datetime", "timedelta"], "args": [1, 2, 3]}, dt.timedelta(1, 2, 3)),
        (
            {"id": ["datetime", "datetime"], "method": "fromisoformat", "args": ["2025-01-02"]},
            dt.datetime(2025, 1, 2),
        ),
        ({"id": ["re", "compile"], "args": ["a", 2]}, re.compile("a", 2)),
        ({"id": ["langgraph.types", "Send"], "kwargs": {"node": "n", "arg": 1}}, Send("n", 1)),
        (
            {"lc": 1, "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "a"}},
            HumanMessage("a"),
        ),
    ],
)
def test_json_rows_of_older_versions_are_read(envelope: dict[str, Any], value: Any) -> None:
    document = {"lc": 2, "type": "constructor", **envelope}
    row = ("json", json.dumps({"a": [document]}).encode())
    for serializer in (Serializer(), Serializer(allowed_types=[])):
        assert serializer.loads_typed(row) == {"a": [value]}


# What only ours keeps


@pytest.mark.parametrize(
    "value",
    [
        *(2**64, -(10**5000), fractions.Fraction(1, 3), complex(-0.0, float("nan")), range(3)),
        *("\ud800", {"\ud800": "\udfff"}, {(1, "\ud800"): 1}, {(1, (2,)): 3}, {Colour.RED: {Level.HIGH: 1}}),
        *((1, (2, (3,))), {(1, 2), frozenset({(3,)})}, [[(1,)], {"a": (2,)}]),
        *(
            Moment(2025, 1, 2, 3, 4),
            LikeSend("n", 1, 2),
            Outer.Inner(1),
            Customer(name="a", order=Order(1, [])),
        ),
        *(collections.deque([1], maxlen=2), collections.Counter("aab"), collections.defaultdict(int, a=1)),
        *(np.float64(0.1), np.float32(0.1), np.int16(3), np.datetime64("2025"), np.ones((2, 0))),
        *({np.int64(1): np.str_("x")}, np.array([(1, b"a")], dtype=[("n", "<i4"), ("s", "S1")])),
        *([bytearray(b"x"), b"y"], {"a": [bytearray(b"")]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_only_ours_keeps(value: Any) -> None:
    assert same(written(value), value)
    assert same(written([{"a": value}]), [{"a": value}])


def test_nesting_costs_once() -> None:
    """Each level is looked at closely, for its key, its bytes or its surrogate; what is inside, only once."""
    value: Any = None
    for _ in range(30):
        value = Order(1, [{"a": value, 2: bytearray(b"x")}, "\ud800"])
    assert same(written(value), value)


@pytest.mark.parametrize("text", ["1.5", "not a number"])
def test_a_fields_class_that_changed_meanwhile_decides_itself(text: str) -> None:
    row = extension(5, [__name__, "Customer", {"name": text, "gone": 1}, "model_validate_json", True])
    assert Serializer().loads_typed(row) == Customer(name=text)


# Strict


@pytest.mark.parametrize(
    "value", [Order(1, []), Customer(name="a"), Colour.RED, Outer.Inner(1), SecretStr("s")]
)
def test_a_blocked_type_is_an_error_and_not_a_dict(value: Any) -> None:
    row = Serializer().dumps_typed([value])
    with pytest.raises(TypeNotAllowedError, match=type(value).__name__):
        Serializer(allowed_types=[]).loads_typed(row)
    assert Serializer(allowed_types=[type(value)]).loads_typed(row) == [value]
    named = Serializer(allowed_types=[(type(value).__module__, type(value).__name__)])
    assert named.loads_typed(row) == [value], "LangGraph names classes by their last name"


def test_an_allowlist_makes_a_new_serializer_only_if_it_adds_something() -> None:
    permissive, strict = Serializer(), Serializer(allowed_types=[Order])
    assert permissive.with_msgpack_allowlist([Customer]) is permissive
    assert strict.with_msgpack_allowlist([Order]) is strict
    row = strict.dumps_typed(Customer(name="a"))
    assert strict.with_msgpack_allowlist([Customer]).loads_typed(row) == Customer(name="a")
    with pytest.raises(TypeNotAllowedError):
        strict.loads_typed(row)


STRICT_GRAPH = """
import dataclasses
from typing import Any, TypedDict
from cpstore import SQLAlchemySaver, TypeNotAllowedError
from langgraph.graph import START, StateGraph

@dataclasses.dataclass
class Named:
    number: int

@dataclasses.dataclass
class Hidden:
    number: int

class State(TypedDict, total=False):
    named: Named
    hidden: Any

def graph_of(saver):
    builder = StateGraph(State)
    def node(state):
        return {"named": Named(1), "hidden": Hidden(2) if "hidden" in state else 1}
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=saver)

with SQLAlchemySaver.from_url("sqlite:///strict.db") as saver:
    saver.setup()
    graph = graph_of(saver)
    for thread, value in (("1", {"named": Named(0)}), ("2", {"named": Named(0), "hidden": 0})):
        graph.invoke(value, {"configurable": {"thread_id": thread}})
    print(graph.get_state({"configurable": {"thread_id": "1"}}).values)
    try:
        graph.get_state({"configurable": {"thread_id": "2"}})
    except TypeNotAllowedError as error:
        print(error)
"""


def test_strict_msgpack_as_langgraph_means_it(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STRICT_GRAPH],
        env={**os.environ, "PYTHONPATH": str(ROOT), "LANGGRAPH_STRICT_MSGPACK": "true"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    values, error = done.stdout.splitlines()
    assert values == "{'named': Named(number=1), 'hidden': 1}"
    assert "thread '2'" in error
    assert "'hidden'" in error
    assert "__main__.Hidden is not an allowed type" in error


# Compression


@pytest.mark.parametrize("method", ["zlib", "zstd", "auto"])
def test_compressed_rows(method: str) -> None:
    serializer = Serializer(compression=method)
    values = ["x" * 5000, b"y" * 5000, bytearray(b"z" * 5000), [{"a": "b" * 5000}]]
    for value in values:
        kind, data = serializer.dumps_typed(value)
        assert kind.partition(":")[2] == ("zstd" if method == "auto" else method)
        assert len(data) < 500
        assert same(Serializer().loads_typed((kind, data)), value)
        assert same(serializer.loads_typed(Serializer().dumps_typed(value)), value)
    assert serializer.dumps_typed("short")[0] == "msgpack"
    random = os.urandom(5000)
    assert serializer.dumps_typed(random) == ("bytes", random)


@pytest.mark.parametrize("method", ["zlib", "zstd"])
def test_compressed_rows_are_bounded_and_whole(method: str) -> None:
    kind, data = Serializer(compression=method).dumps_typed(bytes(1 << 20))
    assert len(Serializer(max_bytes=1 << 20).loads_typed((kind, data))) == 1 << 20
    with pytest.raises(UnreadableValueError, match="raise max_bytes"):
        Serializer(max_bytes=(1 << 20) - 1).loads_typed((kind, data))
    for damaged in (b"", data[:-1], data[: len(data) // 2], b"x" + data, data[:4] + b"\xff" * 9):
        with pytest.raises(UnreadableValueError):
            Serializer().loads_typed((kind, damaged))


def test_compression_that_is_unknown() -> None:
    with pytest.raises(ConfigurationError, match="auto, zlib, zstd"):
        Serializer(compression="lzma")
    with pytest.raises(UnreadableValueError, match="lzma"):
        Serializer().loads_typed(("msgpack:lzma", b""))
