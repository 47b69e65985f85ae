"""Fuzz: whatever a row holds, only named errors come out, nothing is imported, and memory stays bounded.

`CPSTORE_FUZZ_EXAMPLES` sets the number of examples of each test.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tracemalloc
import zlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import ormsgpack
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from cpstore import AESGCMSerializer, CpstoreError, Serializer, SQLAlchemySaver, UnreadableValueError
from cpstore.codec import decode
from cpstore.records import Blob, CheckpointRow, HeldValue, Key, LoadedCheckpoint, Write
from tests.test_serializer import ALLOWED, KEPT_BY_BOTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

FUZZ = settings(
    max_examples=int(os.environ.get("CPSTORE_FUZZ_EXAMPLES", "300")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
MOST_BYTES = 64 << 20

STRICT = Serializer(allowed_types=ALLOWED, max_bytes=1 << 20)

SEEDS = [
    Serializer(compression=method).dumps_typed(value)
    for one in KEPT_BY_BOTH
    for method, value in ((None, one), ("zlib", [one, "x" * 600]), ("zstd", [one, "x" * 600]))
]


def words(text: str) -> list[str]:
    return text.split()


WORDS = words(
    "builtins set tuple bytearray bytes int range os system subprocess Popen this turtledemo collections"
    " deque Counter OrderedDict fractions Fraction numpy float64 int64 re compile decimal Decimal ipaddress"
    " IPv4Network 0.0.0.0/0 1E999999 array frame series index scalar text dict codec defaultdict timestamp"
    " multi plain <f8 |O M8[ns] langchain_core.messages.human HumanMessage langgraph.types Send datetime"
    " fromisoformat tests.test_serializer Order Customer Colour zoneinfo ZoneInfo ../../etc/passwd content"
)
"""What names something that a reader might call, or find out too late to be large."""


def _packed_extension(parts: tuple[int, Any]) -> ormsgpack.Ext:
    return ormsgpack.Ext(parts[0], ormsgpack.packb(parts[1]))


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([10**9, 10**12, 0, -1, 1])
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    | st.binary(max_size=9)
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3)
        | st.tuples(st.sampled_from([*range(9), 64, 99]), st.lists(inner, max_size=5)).map(_packed_extension)
        | st.tuples(st.sampled_from(["msgpack", "json"]), inner).map(list)
    ),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ["msgpack", "json", "pickle", "bytes", "null", "empty", "", "msgpack:zlib", "msgpack:zstd", "json:zlib"]
) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A row as we write it, with some bytes changed, cut out or put in."""
    kind, data = draw(st.sampled_from(SEEDS))
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(changed)))
        changed[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return draw(st.just(kind) | KINDS), bytes(changed)


ROWS = (
    mutated()
    | st.tuples(KINDS, st.binary(max_size=60))
    | TREES.map(lambda tree: ("msgpack", ormsgpack.packb(tree)))
    | TREES.map(lambda tree: ("msgpack:zlib", zlib.compress(ormsgpack.packb(tree))))
)


# Values


class _Imports:
    """A finder that finds nothing, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def find_spec(self, name: str, *_: Any) -> None:
        self.names.add(name.partition(".")[0])


ALLOWED_IMPORTS = {
    "dateutil",
    "encodings",
    "numpy",
    "pandas",
    "pytz",
    "tzdata",
    "zoneinfo",
    "_strptime",
    "pyarrow",
}
"""What numpy and pandas import late for themselves, and Python for time zones and encodings."""


@contextmanager
def watched() -> Iterator[None]:
    """Only named errors, no import, and little memory."""
    imports = _Imports()
    sys.meta_path.insert(0, imports)
    tracemalloc.start()
    try:
        with suppress(CpstoreError):
            yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
        sys.meta_path.remove(imports)
    assert imports.names <= ALLOWED_IMPORTS


ARRAY_TOO_MANY = (
    "msgpack",
    b"\x00\xc7<\x06\x94\xa3<f8\x92\x02\x03\xa1F\xc40" + b"\x00\x00\x00\x00\x00\x00\xf0?" * 6,
)
"""A value, and an array after it, which compares item by item."""


@FUZZ
@given(ROWS)
@example(ARRAY_TOO_MANY)
def test_values(row: tuple[str, bytes]) -> None:
    with watched():
        STRICT.loads_typed(row)


@FUZZ
@given(ROWS)
@example(ARRAY_TOO_MANY)
def test_raw_values(row: tuple[str, bytes]) -> None:
    with watched():
        Serializer(allowed_types=ALLOWED, max_bytes=1 << 20, on_error="raw").loads_typed(row)


@FUZZ
@given(ROWS, st.binary(max_size=20))
def test_encrypted_values_let_none_through(row: tuple[str, bytes], place: bytes) -> None:
    sealed = AESGCMSerializer({"k": b"k" * 32}, serde=STRICT)
    for kind in (row[0], f"{row[0]}+aesgcm.k"):
        with pytest.raises(UnreadableValueError):
            sealed.loads_at((kind, row[1]), place)


# Documents

FIELDS = words(
    "v id ts channel_values channel_versions versions_seen updated_channels __unversioned__ word empty"
    " parents run_id source step counters_since_delta_snapshot delta_writes_versioned __pregel_tasks"
)
TEXTS = st.sampled_from(
    [*FIELDS, "", "1", "4", "1.5", "\0", "\ud800", "msgpack", base64.b64encode(b"\x01").decode()]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.sampled_from([4, 10**30, 1e300]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)
GOOD = {
    **empty_checkpoint(),
    "v": 4,
    "channel_values": {"word": "x"},
    "channel_versions": {"word": "1", "list": "1"},
    "__unversioned__": {"bare": ["msgpack", base64.b64encode(b"\x01").decode()]},
}


@st.composite
def documents(draw: st.DrawFn) -> str:
    """JSON texts: of the right form with wrong parts, of any form, and none at all."""
    document: Any = draw(st.one_of(st.just(GOOD), st.dictionaries(TEXTS, JSON, max_size=6), JSON))
    if isinstance(document, dict):
        document = document | draw(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=2))
    written = json.dumps(document)
    if draw(st.booleans()) and draw(st.booleans()):
        at = draw(st.integers(0, len(written)))
        written = written[:at] + draw(st.text('{}[]",:\\u0d8', max_size=3)) + written[at + 2 :]
    return written


KEY = Key("t", "", "1")


@FUZZ
@given(documents(), documents(), ROWS, ROWS)
def test_checkpoints(document: str, metadata: str, blob: tuple[str, bytes], write: tuple[str, bytes]) -> None:
    loaded = LoadedCheckpoint(
        CheckpointRow(KEY, "0", document, metadata),
        (HeldValue(Blob("list", "1", *blob), ()),),
        (Write("task", 0, "c", *write, ""),),
        (Write("task", 0, "__pregel_tasks", *write, ""),),
    )
    with watched():
        decode(STRICT, loaded)


# Through a database


@pytest.fixture
def engine(tmp_path: Path, sqlite_template: Path) -> Iterator[Engine]:
    path = tmp_path / "hostile.db"
    path.write_bytes(sqlite_template.read_bytes())
    made = create_engine(f"sqlite:///{path}")
    yield made
    made.dispose()


CONFIG: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def fill(saver: SQLAlchemySaver) -> RunnableConfig:
    """A thread of two checkpoints, with a value of each kind of place."""
    for thread in ("t", "copy"):
        saver.delete_thread(thread)
    first: Any = {**empty_checkpoint(), "v": 4}
    stored = saver.put(CONFIG, first, {}, {})
    made: Any = {**empty_checkpoint(), **GOOD, "channel_values": {"word": "x", "list": [1], "bare": (1,)}}
    made["id"] = empty_checkpoint()["id"]
    stored = saver.put(stored, made, {"step": 1}, {"word": "1", "list": "1"})
    saver.put_writes(stored, [("c", [1])], "task")
    return stored


CALLS: list[Callable[[SQLAlchemySaver, RunnableConfig], Any]] = [
    lambda saver, stored: saver.get_tuple(stored),
    lambda saver, stored: list(saver.list(None)),
    lambda saver, stored: list(saver.list(None, filter={"step": 1}, on_error=lambda config, error: None)),
    lambda saver, stored: list(saver.history("t")),
    lambda saver, stored: saver.list_threads(filter={"step": 1}),
    lambda saver, stored: saver.get_delta_channel_history(config=stored, channels=["word", "list", "bare"]),
    lambda saver, stored: saver.copy_thread("t", "copy"),
    lambda saver, stored: saver.copy_thread(
        "t", "copy", checkpoint_id=stored["configurable"]["checkpoint_id"]
    ),
    lambda saver, stored: saver.prune(["t"]),
    lambda saver, stored: saver.delete_for_runs(["1"]),
    lambda saver, stored: saver.delete_thread("t"),
]


def spoil(engine: Engine, document: str | None, metadata: str | None, row: tuple[str, bytes] | None) -> None:
    """Put something else in all rows; some of it the database refuses itself."""
    with engine.begin() as connection:
        for column, value in (("checkpoint", document), ("metadata", metadata)):
            if value is not None:
                statement = f"UPDATE checkpoints SET {column} = :value WHERE parent_checkpoint_id IS NOT NULL"
                connection.execute(text(statement), {"value": value})
        for table in ("checkpoint_blobs", "checkpoint_writes") if row else ():
            connection.execute(
                text(f"UPDATE {table} SET type = :kind, blob = :blob"),
                {"kind": row[0], "blob": row[1]},  # type: ignore[index]
            )


@settings(FUZZ, max_examples=FUZZ.max_examples // 2)
@given(st.none() | documents(), st.none() | documents(), st.none() | ROWS, st.booleans())
def test_rows_of_a_database(
    engine: Engine, document: str | None, metadata: str | None, row: tuple[str, bytes] | None, sealed: bool
) -> None:
    serde: Any = AESGCMSerializer({"k": b"k" * 32}, serde=STRICT) if sealed else STRICT
    saver = SQLAlchemySaver(engine, serde=serde)
    stored = fill(saver)
    try:
        spoil(engine, document, metadata, row)
    except OperationalError:
        assume(False)
    with watched():
        for call in CALLS:
            with suppress(CpstoreError):
                call(saver, stored)


DAMAGED_DOCUMENTS: dict[str, tuple[Any, dict[str, Any], dict[str, Any], int]] = {
    "delta history": (STRICT, {"__unversioned__": {"bare": 3}}, {}, 5),
    "encrypted copy": (AESGCMSerializer({"k": b"k" * 32}), {"__unversioned__": {"bare": ["x"]}}, {}, 6),
    "prune": (STRICT, {}, {"parents": {"": [1]}}, 8),
}
"""By whom a document is read, what is in it and in the metadata, and in which call."""


@pytest.mark.parametrize("name", DAMAGED_DOCUMENTS)
def test_damaged_documents(engine: Engine, name: str) -> None:
    serde, document, metadata, call = DAMAGED_DOCUMENTS[name]
    saver = SQLAlchemySaver(engine, serde=serde)
    stored = fill(saver)
    child: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": "node:task"}}
    saver.put(child, {**empty_checkpoint(), "v": 4}, {}, {})
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE checkpoints SET checkpoint = :document, metadata = :metadata"),
            {"document": json.dumps({**GOOD, **document}), "metadata": json.dumps(metadata)},
        )
    with suppress(CpstoreError):
        CALLS[call](saver, stored)
