"""Stored values as plain data: each kind has its form, nothing is imported, and nothing is an error."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import json
import os
import pathlib
import pickle
import sys
import uuid
import zoneinfo
from typing import TYPE_CHECKING, Any

import numpy as np
import ormsgpack
import pandas as pd
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel, SecretStr

from cpstore import AESGCMSerializer, Codec, PlainSerializer, Serializer, SQLAlchemySaver, UnreadValue
from cpstore.errors import UnstorableValueError
from cpstore.serde import document
from tests.test_imports import FUNCTIONS, json_row, trap  # noqa: F401, a fixture
from tests.test_serializer import extension

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.runnables import RunnableConfig
    from sqlalchemy import Engine

PLAIN = PlainSerializer()


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: Any


class Form(BaseModel):
    name: str
    at: int


def shown(value: Any, serializer: Any = None) -> Any:
    row = (serializer or Serializer()).dumps_typed(value)
    found = document(PLAIN.loads_typed(row))
    json.dumps(found, allow_nan=False)
    return found


def simple(kind: str, value: Any) -> dict[str, Any]:
    return {"$type": kind, "value": value}


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
HERE = __name__

BOTH: list[tuple[Any, Any]] = [
    ({"a": [1, 2.5, "x", None, True]}, {"a": [1, 2.5, "x", None, True]}),
    (uuid.UUID(int=5), simple("uuid.UUID", "00000000-0000-0000-0000-000000000005")),
    (decimal.Decimal("1.50"), simple("decimal.Decimal", "1.50")),
    (
        dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone.utc),
        simple("datetime.datetime", "2026-01-02T03:00:00+00:00"),
    ),
    (dt.date(2026, 1, 2), simple("datetime.date", "2026-01-02")),
    (dt.timedelta(1, 2, 3), simple("datetime.timedelta", "86402.000003 s")),
    ({1}, simple("set", [1])),
    (frozenset({"a"}), simple("frozenset", ["a"])),
    (Color.RED, simple(f"{HERE}.Color", "red")),
    (Point(1, Color.RED), {"$type": f"{HERE}.Point", "x": 1, "y": simple(f"{HERE}.Color", "red")}),
    (SecretStr("s3cret"), simple("pydantic.types.SecretStr", "**********")),
    (Send("node", {"a": 1}), {"$type": "langgraph.types.Send", "node": "node", "arg": {"a": 1}}),
    (
        np.array([[1, 2], [3, 4]], "<i4"),
        {"$type": "numpy.ndarray", "dtype": "<i4", "shape": [2, 2], "value": [1, 2, 3, 4]},
    ),
    (np.zeros(2000), {"$type": "numpy.ndarray", "dtype": "<f8", "shape": [2000], "bytes": 16000}),
    (_DeltaSnapshot([1]), simple("langgraph.checkpoint.serde.types._DeltaSnapshot", [1])),
    (b"\0\xff", {"$type": "bytes", "base64": "AP8="}),
    (bytearray(b"a"), {"$type": "bytearray", "base64": "YQ=="}),
]


@pytest.mark.parametrize(("value", "expected"), BOTH, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("serializer", [Serializer(), JsonPlusSerializer()], ids=["cpstore", "langgraph"])
def test_values_of_both_serializers(value: Any, expected: Any, serializer: Any) -> None:
    assert shown(value, serializer) == expected


OURS: list[tuple[Any, Any]] = [
    ((1, (2,)), simple("tuple", [1, simple("tuple", [2])])),
    (float("nan"), simple("float", "nan")),
    (2**70, 2**70),
    (1 << 10000, simple("int", hex(1 << 10000))),
    ("\ud800", "\ud800"),
    ({1: "a"}, {"$type": "dict", "items": [[1, "a"]]}),
    ({(1, 2): "a"}, {"$type": "dict", "items": [[simple("tuple", [1, 2]), "a"]]}),
    ({"$type": "fake"}, {"$type": "dict", "items": [["$type", "fake"]]}),
    ({"$unreadable": 1}, {"$type": "dict", "items": [["$unreadable", 1]]}),
    (pathlib.PurePosixPath("/a/b"), simple("pathlib.PurePosixPath", "/a/b")),
    (pathlib.PurePosixPath("a/b"), simple("pathlib.PurePosixPath", "a/b")),
    (pathlib.PurePosixPath("/"), simple("pathlib.PurePosixPath", "/")),
    (pathlib.PurePosixPath(), simple("pathlib.PurePosixPath", ".")),
    (pathlib.PureWindowsPath("c:/a/b"), simple("pathlib.PureWindowsPath", "c:\\a\\b")),
    (1j, {"$type": "complex", "real": 0.0, "imag": 1.0}),
    (range(1, 5), {"$type": "range", "start": 1, "stop": 5, "step": 1}),
    (fractions.Fraction(1, 3), simple("fractions.Fraction", "1/3")),
    (dt.time(1, 2), simple("datetime.time", "01:02:00")),
    (dt.timezone(dt.timedelta(hours=2)), simple("datetime.timezone", "UTC+02:00")),
    (
        dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
        simple("datetime.datetime", "2026-10-25T02:30:00") | {"tzinfo": "Europe/Berlin", "fold": 1},
    ),
    (collections.deque([[1], 2]), simple("collections.deque", [[1], 2])),
    (collections.deque([1], maxlen=3), simple("collections.deque", [1]) | {"maxlen": 3}),
    (collections.defaultdict(list, a=[1]), simple("collections.defaultdict", {"a": [1]})),
    (collections.OrderedDict(a=1), {"$type": "collections.OrderedDict", "items": [["a", 1]]}),
    (collections.Counter("aa"), simple("collections.Counter", {"a": 2})),
    (Form(name="n", at=1), {"$type": f"{HERE}.Form", "name": "n", "at": 1}),
    (ValueError("no"), "ValueError('no')"),
    (np.float32(1.5), simple("numpy.float32", 1.5)),
    (pd.Timestamp(5, unit="ns"), {"$type": "pandas.Timestamp", "nanoseconds": 5, "unit": "ns", "zone": None}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), OURS, ids=lambda value: type(value).__name__)
def test_values_of_ours(value: Any, expected: Any) -> None:
    assert shown(value) == expected


def test_messages_frames_and_commands() -> None:
    message = shown([HumanMessage("hi", id="1")])[0]
    assert message["$type"] == "langchain_core.messages.human.HumanMessage"
    assert (message["content"], message["id"], message["type"]) == ("hi", "1", "human")
    assert next(iter(message)) == "$type"
    interrupt = shown(Interrupt("why?", id="i"))
    assert interrupt | {"$type": "langgraph.types.Interrupt", "value": "why?", "id": "i"} == interrupt
    command = shown(Command(goto="x"))
    assert (command["$type"], command["goto"]) == ("langgraph.types.Command", "x")
    frame = shown(pd.DataFrame({"a": [1, 2]}))
    assert frame["$type"] == "pandas.DataFrame"
    assert frame["data"][0][1]["value"] == [1, 2]


def test_fields_named_like_ours_are_no_lie() -> None:
    row = extension(5, ["app", "Model", {"$type": "other", "x": 1}])
    fields = {"$type": "dict", "items": [["$type", "other"], ["x", 1]]}
    assert document(PLAIN.loads_typed(row)) == {"$type": "app.Model", "fields": fields}


@pytest.mark.parametrize("lc", [1, 2])
def test_rows_of_json(lc: int, trap: Callable[[], bool]) -> None:  # noqa: F811, a fixture
    assert document(PLAIN.loads_typed(json_row(lc, "trap", "Trap"))) == [{"$type": "trap.Trap", "x": 1}]
    date = {"lc": 2, "type": "constructor", "id": ["datetime", "datetime"], "method": "fromisoformat"}
    row = ("json", json.dumps({**date, "args": ["2026-01-02"]}).encode())
    assert document(PLAIN.loads_typed(row)) == simple("datetime.datetime", "2026-01-02")
    assert not trap()


@pytest.mark.parametrize("code", range(6))
def test_nothing_is_imported(code: int, trap: Callable[[], bool]) -> None:  # noqa: F811, a fixture
    row = extension(code, ["trap", "Trap", {"x": 1}, *["load", True][: max(0, code - 2)]])
    assert document(PLAIN.loads_typed(row))["$type"] == "trap.Trap"
    assert not trap()
    assert "trap" not in sys.modules


@pytest.mark.parametrize("name", FUNCTIONS, ids=".".join)
@pytest.mark.parametrize("code", range(6))
def test_nothing_is_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, code: int, name: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments: Any = {2: {"args": "touch done"}, 1: ["touch done"]}.get(code, "touch done")
    PLAIN.loads_typed(extension(code, [*name, arguments, "__call__"]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("pickle", pickle.dumps(1)), "pickled"),
        (("msgpack+aesgcm.k1", os.urandom(20)), "encrypted"),
        (("msgpack:zlib+aesgcm.k1", b""), "encrypted"),
        (("other", b"123"), "of an unknown type"),
        (("msgpack", b"\xc1"), "The stored bytes are no value of ours"),
        (("msgpack", ormsgpack.packb(1) * 2), "The stored bytes are no value of ours: there are too many"),
        (("msgpack:zlib", b"123"), "The compressed bytes are damaged"),
        (("msgpack:lzma", b"123"), "The compression 'lzma' is unknown"),
        (("json", b"{"), "The stored bytes are damaged"),
        (extension(0, [1, 2, 3]), "The stored bytes are no value of ours: a class has no name"),
    ],
)
def test_what_cannot_be_read_is_a_note(row: tuple[str, bytes], why: str) -> None:
    found = PLAIN.loads_typed(row)
    assert found == UnreadValue(why, row[0], len(row[1]))
    assert document(found) == {"$unreadable": why, "type": row[0], "bytes": len(row[1])}


@pytest.mark.parametrize(
    "row",
    [
        extension(1, ["uuid", "UUID", "no hex"]),
        extension(2, ["datetime", "datetime", {"year": 99999}]),
        extension(0, ["builtins", "bytearray", 10**9]),
        extension(6, ["<f8", [10**12], "C", b""]),
        extension(64, ["unknown", 1]),
        extension(77, [1]),
        extension(1, ["langgraph.types", "Send", 5]),
        extension(1, ["pathlib", "Path", 5]),
    ],
)
def test_strange_objects_are_shown_as_they_were_stored(row: tuple[str, bytes]) -> None:
    found = document(PLAIN.loads_typed(row))
    assert "$type" in found
    json.dumps(found)


@pytest.mark.parametrize(
    "row", [("json", b"[" * 500 + b"]" * 500), ("msgpack", b"\x91" * 500 + b"\x90")], ids=["json", "msgpack"]
)
def test_what_is_deep_ends(row: tuple[str, bytes]) -> None:
    text = json.dumps(document(PLAIN.loads_typed(row)))
    assert "nested too deeply" in text


def test_codecs_are_not_needed() -> None:
    serializer = Serializer(codecs=[Codec(slice, "slice", lambda one: [one.start, one.stop], None)])  # type: ignore[arg-type]
    assert shown(slice(1, 2), serializer) == simple("codec slice", [1, 2])


def test_nothing_is_written() -> None:
    with pytest.raises(UnstorableValueError, match="only reads"):
        PLAIN.dumps_typed(1)


# Through a saver


def grown(saver: SQLAlchemySaver, lengths: range) -> RunnableConfig:
    at: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for length in lengths:
        made = empty_checkpoint()
        made["channel_values"] = {"words": [f"word {n}" * 1000 for n in range(length)], "here": 1}
        made["channel_versions"] = {"words": f"{length:032}.1", "here": "1"}
        at = saver.put(at, made, {}, made["channel_versions"])
    return at


def test_lists_in_pieces(keeper: SQLAlchemySaver, database: Engine) -> None:
    at = grown(keeper, range(1, 9))
    found = SQLAlchemySaver(database, serde=PLAIN).get_tuple(at)
    assert found == keeper.get_tuple(at)
    with database.begin() as connection:
        gone = connection.exec_driver_sql(f"DELETE FROM checkpoint_blobs WHERE version = '{5:032}.1'")
        assert gone.rowcount == 1
    note = SQLAlchemySaver(database, serde=PLAIN).get_tuple(at)
    assert note is not None
    words = note.checkpoint["channel_values"]["words"]
    assert isinstance(words, UnreadValue)
    assert "gone" in words.why
    assert note.checkpoint["channel_values"]["here"] == 1


def test_encrypted_values_are_notes(database: Engine) -> None:
    secret = AESGCMSerializer({"k1": bytes(16)})
    saver = SQLAlchemySaver(database, serde=secret)
    at = grown(saver, range(1, 2))
    saver.put_writes(at, [("words", "x")], "task")
    found = SQLAlchemySaver(database, serde=PLAIN).get_tuple(at)
    assert found is not None
    values = found.checkpoint["channel_values"]
    assert [value.why for value in values.values()] == ["encrypted", "encrypted"]
    assert found.pending_writes is not None
    assert found.pending_writes[0][2].why == "encrypted"
