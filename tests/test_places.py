"""Errors of values name their place and never the value: at write, before anything is stored, and at read."""

from __future__ import annotations

import dataclasses
import logging
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from sqlalchemy import create_engine, text

from cpstore import (
    Codec,
    CpstoreError,
    Serializer,
    SQLAlchemySaver,
    TypeNotAllowedError,
    UnreadableValueError,
    UnstorableValueError,
)
from tests.test_serializer import Customer, Order, extension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.runnables import RunnableConfig
    from sqlalchemy import Engine

MARKER = "marker-7f3a"

CONFIG: RunnableConfig = {"configurable": {"thread_id": "thread-t", "checkpoint_ns": "space-s"}}


@dataclasses.dataclass
class Narrow:
    word: str

    def __post_init__(self) -> None:
        """A test replaces it by one that refuses."""


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents


def refuse(value: Any) -> Any:
    raise ValueError(f"bad {value!r}")


MONEY = Codec(Money, "money", lambda one: [MARKER, one.cents], lambda stored: Money(stored[1]))


@pytest.fixture
def engine(dialect_url: str) -> Iterator[Engine]:
    made = create_engine(dialect_url)
    yield made
    made.dispose()


def checkpoint(value: Any) -> Checkpoint:
    made = empty_checkpoint()
    made["channel_values"] = {"channel-c": value}
    made["channel_versions"] = {"channel-c": "1"}
    return made


def rows(engine: Engine) -> int:
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    with engine.connect() as connection:
        return sum(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() for table in tables)


# At write


def cycle() -> Any:
    made: list[Any] = [MARKER]
    made.append(made)
    return made


def deep(kind: type) -> Any:
    made: Any = MARKER
    for _ in range(3000):
        made = kind([made])
    return made


def local() -> Any:
    @dataclasses.dataclass
    class Local:
        word: str = MARKER

    return Local()


REFUSED: dict[str, Callable[[], Any]] = {
    "function": lambda: [lambda: MARKER],
    "local": local,
    "lock": lambda: {MARKER: threading.Lock()},
    "objects": lambda: np.array([MARKER, object()]),
    "view": lambda: {"a": memoryview(MARKER.encode())},
    "cycle": cycle,
    "deep list": lambda: deep(list),
    "deep tuple": lambda: deep(tuple),
    "error inside": lambda: [ValueError(MARKER)],
    "class": lambda: [Order],
    "attributes": lambda: _with_attribute(),
}


class Word(str):
    pass


def _with_attribute() -> Any:
    made = Word(MARKER)
    made.more = 1  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_its_place_and_stores_nothing(engine: Engine, name: str) -> None:
    value, saver = REFUSED[name](), SQLAlchemySaver(engine)
    place: RunnableConfig = {"configurable": {**CONFIG["configurable"], "checkpoint_id": "id-i"}}
    made = checkpoint(value)
    bare: Any = {**made, "channel_versions": {}}
    kind = type(value).__qualname__
    for call, where in (
        (lambda: saver.put(CONFIG, made, {}, {"channel-c": "1"}), str(made["id"])),
        (lambda: saver.put(CONFIG, bare, {}, {}), str(made["id"])),
        (lambda: saver.put_writes(place, [("a", 1), ("channel-c", value)], "task-t"), "task 'task-t'"),
    ):
        with pytest.raises(UnstorableValueError) as caught:
            call()
        message = str(caught.value)
        for word in ("thread-t", "space-s", "channel-c", kind, where):
            assert word in message
        assert MARKER not in message
    assert rows(engine) == 0


# At read


def gone() -> Any:
    module = sys.modules["gone_module"] = ModuleType("gone_module")
    made = dataclasses.make_dataclass("Gone", ["word"])
    made.__module__ = "gone_module"
    module.Gone = made  # type: ignore[attr-defined]
    return made(MARKER)


UNREADABLE: dict[str, tuple[Any, Any, str]] = {
    # how it was written, by whom it is read, what the error names
    "class gone": (gone, Serializer(), "gone_module.Gone is gone"),
    "not allowed": (lambda: Order(1, [MARKER]), Serializer(allowed_types=[]), "Order is not an allowed type"),
    "constructor": (lambda: Narrow(MARKER), Serializer(), "Narrow refused what was stored (ValueError)"),
    "no codec": (lambda: Money(5), Serializer(), "no codec with the name 'money'"),
    "codec": (
        lambda: Money(5),
        Serializer(codecs=[dataclasses.replace(MONEY, decode=refuse)]),
        "codec.money refused what was stored (ValueError)",
    ),
}


def put(engine: Engine, value: Any) -> RunnableConfig:
    saver = SQLAlchemySaver(engine, serde=Serializer(codecs=[MONEY]))
    stored = saver.put(CONFIG, checkpoint(value), {}, {"channel-c": "1"})
    saver.put_writes(stored, [("a", 1), ("channel-w", value)], "task-t")
    return stored


def replace(engine: Engine, table: str, kind: str, blob: bytes) -> None:
    """Put another value in the place of the last one."""
    where = "WHERE channel LIKE 'channel-%'"
    with engine.begin() as connection:
        connection.execute(
            text(f"UPDATE {table} SET type = :kind, blob = :blob {where}"), {"kind": kind, "blob": blob}
        )


def delete(engine: Engine, table: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(f"DELETE FROM {table}"))


def read_error(saver: SQLAlchemySaver, stored: RunnableConfig) -> str:
    with pytest.raises(UnreadableValueError) as caught:
        saver.get_tuple(stored)
    with pytest.raises(UnreadableValueError):
        next(saver.list(None))
    message = str(caught.value)
    for word in ("thread-t", "space-s", stored["configurable"]["checkpoint_id"]):
        assert word in message
    assert MARKER not in message
    return message


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_rebuilt_names_its_place(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make, serializer, words = UNREADABLE[name]
    stored = put(engine, make())
    monkeypatch.setattr(Narrow, "__post_init__", refuse)
    sys.modules.pop("gone_module", None)
    saver = SQLAlchemySaver(engine, serde=serializer)
    message = read_error(saver, stored)
    assert words in message
    assert "channel 'channel-c'" in message
    delete(engine, "checkpoint_blobs")
    message = read_error(saver, stored)
    assert words in message
    assert "task 'task-t'" in message
    assert "'channel-w'" in message


DAMAGED = {
    "cut off": ("msgpack", b"\x92\xa4mark", "no value of ours"),
    "nothing": ("msgpack", b"", "no value of ours"),
    "type": ("tomorrow", b"1", "'tomorrow' is unknown"),
    "extension": ("msgpack", b"\xd4\x63\x01", "extension type 99 is unknown"),
    "array": (*extension(6, ["<f8", [7], "C", MARKER.encode()]), "numpy.ndarray refused"),
    "frame": (*extension(64, ["frame", MARKER, [], []]), "pandas.DataFrame refused"),
    "kind": (*extension(64, ["tomorrow", MARKER]), "unknown kind"),
    "no name": (*extension(0, [[MARKER], 1, MARKER]), "a class has no name"),
    "json": ("json", b'{"a": "marker', "JSON is damaged"),
    "pickle": ("pickle", MARKER.encode(), "pickle is off"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_values_name_their_place(engine: Engine, name: str) -> None:
    kind, blob, words = DAMAGED[name]
    stored = put(engine, [MARKER])
    saver = SQLAlchemySaver(engine)
    replace(engine, "checkpoint_blobs", kind, blob)
    assert "channel 'channel-c'" in (message := read_error(saver, stored))
    assert words in message
    delete(engine, "checkpoint_blobs")
    replace(engine, "checkpoint_writes", kind, blob)
    assert "task 'task-t'" in (message := read_error(saver, stored))
    assert words in message


def test_errors_are_of_one_tree() -> None:
    assert issubclass(TypeNotAllowedError, UnreadableValueError)
    assert issubclass(UnreadableValueError, CpstoreError)
    assert issubclass(UnstorableValueError, (CpstoreError, TypeError))


# Raw


def test_raw_gives_the_data_and_tells_once_for_each_class(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    lost = gone()
    value = [lost, lost, Order(1, []), Customer(name="a"), Money(5), {"a": Order(2, [])}]
    stored = put(engine, value)
    del sys.modules["gone_module"]
    saver = SQLAlchemySaver(engine, serde=Serializer(allowed_types=[Customer], on_error="raw"))
    with caplog.at_level(logging.WARNING, "cpstore.serde"):
        for _ in range(3):
            found = saver.get_tuple(stored)
            assert found is not None
            assert found.checkpoint["channel_values"]["channel-c"] == [
                *({"word": MARKER}, {"word": MARKER}, {"number": 1, "lines": []}, Customer(name="a")),
                *([MARKER, 5], {"a": {"number": 2, "lines": []}}),
            ]
    told = [(record.stored_type, record.reason) for record in caplog.records]  # type: ignore[attr-defined]
    assert sorted(told) == [
        ("codec.money", "UnreadableValueError"),
        ("gone_module.Gone", "TypeNotAllowedError"),
        ("tests.test_serializer.Order", "TypeNotAllowedError"),
    ]
    assert MARKER not in caplog.text


@pytest.mark.parametrize(
    ("row", "raw"),
    [
        (extension(6, ["zz", [1], "C", b""]), ["zz", [1], "C", b""]),
        (extension(1, ["tests.test_places", "Narrow", [1]]), [1]),
        (extension(2, ["tests.test_places", "Narrow", {"gone": 1}]), {"gone": 1}),
        (extension(64, ["defaultdict", ["os", "system"], {"a": 1}]), {"a": 1}),
    ],
)
def test_raw_data_of_each_kind(row: tuple[str, bytes], raw: Any) -> None:
    assert Serializer(on_error="raw").loads_typed(row) == raw
    with pytest.raises(UnreadableValueError):
        Serializer().loads_typed(row)


def test_damaged_bytes_are_an_error_even_then() -> None:
    with pytest.raises(UnreadableValueError):
        Serializer(on_error="raw").loads_typed(("msgpack", b"\x92"))
