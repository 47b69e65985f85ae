"""Laws of values, through all ways in: they come back as they were, and no connection is held meanwhile."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import json
import math
import threading
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.types import Interrupt
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from cpstore import Serializer, SQLAlchemySaver
from cpstore.metadata import dump_metadata
from tests.conftest import dispose
from tests.test_serializer import Colour, Customer, Level
from tests.values import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from langchain_core.runnables import RunnableConfig

    from tests.ways import Way

THREAD: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}


def checkpoint(values: dict[str, Any]) -> Checkpoint:
    made = empty_checkpoint()
    made["v"] = 4
    made["channel_values"] = values
    made["channel_versions"] = dict.fromkeys(values, "1")
    return made


# As channel, as write, as interrupt

TEXTS = st.text(max_size=300) | st.text(st.characters(categories=["Cs", "Cc"]), min_size=1, max_size=3)
HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(2**63), 2**64, 1e16, -0.0, math.inf, math.nan, 5e-324])
    | st.floats()
    | st.complex_numbers()
    | TEXTS
    | st.binary(max_size=20)
    | st.sampled_from([Colour.RED, Level.HIGH, np.float64(0.1), np.int8(3)])
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.uuids()
    | st.datetimes(timezones=st.none() | st.just(dt.timezone.utc)),
    lambda inner: st.tuples(inner) | st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
VALUES = st.recursive(
    HASHABLE | st.binary(max_size=20).map(bytearray),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS, inner, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(HASHABLE, max_size=4)
    ),
    max_leaves=12,
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(values=st.lists(VALUES, min_size=15, max_size=30))
def test_any_value_comes_back_as_it_was(way: Way, database_url: str, values: list[Any]) -> None:
    asyncio.run(_round_trip(way, database_url, values))


async def _round_trip(way: Way, url: str, values: list[Any]) -> None:
    engine = way.engine(url)
    saver = way.saver(engine)
    channels = {f"channel {number}": value for number, value in enumerate(values)}
    made = checkpoint({**channels, "bare": values})
    del made["channel_versions"]["bare"]
    thread: RunnableConfig = {"configurable": {"thread_id": uuid.uuid4(), "checkpoint_ns": ""}}
    stored = await saver.aput(thread, made, {}, made["channel_versions"])
    writes = [*channels.items(), ("__interrupt__", [Interrupt(value=values, id="i")]), ("__resume__", values)]
    await saver.aput_writes(stored, writes, "task")
    found = await saver.aget_tuple(stored)
    await dispose(engine)
    assert found is not None
    read = found.checkpoint["channel_values"]
    assert read.keys() == made["channel_values"].keys()
    written = {channel: value for _, channel, value in found.pending_writes or []}
    for channel, value in channels.items():
        assert same(read[channel], value), repr(value)
        assert same(written[channel], value), repr(value)
    assert same(read["bare"], values)
    assert same(written["__interrupt__"][0].value, values)
    assert same(written["__resume__"], values)


@pytest.mark.parametrize(
    "value", [Colour.RED, Level.HIGH, np.float64(1.5), "x" * 5000, 10**30, math.nan], ids=type
)
async def test_what_json_would_change_is_a_blob(saver: SQLAlchemySaver, value: Any) -> None:
    stored = await saver.aput(THREAD, checkpoint({"c": value}), {}, {"c": "1"})
    found = await saver.aget_tuple(stored)
    assert found is not None
    assert same(found.checkpoint["channel_values"], {"c": value})


# Read when handed over


class Paused(Serializer):
    """A serializer that waits, once it has begun, until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.going = threading.Event(), threading.Event()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        encoded = super().dumps_typed(obj)
        self.begun.set()
        assert self.going.wait(10)
        return encoded


async def test_a_value_that_is_changed_right_after_the_call_is_stored_as_it_was(
    way: Way, engine: Engine | AsyncEngine
) -> None:
    saver = SQLAlchemySaver(engine)
    value = ["as it was"]
    place: RunnableConfig = {"configurable": {**THREAD["configurable"], "checkpoint_id": "1"}}
    made: Any = {**checkpoint({"c": value}), "id": "1"}
    calls = [
        asyncio.ensure_future(saver.aput(THREAD, made, {}, {"c": "1"})),
        asyncio.ensure_future(saver.aput_writes(place, [("w", value)], "task")),
    ]
    await asyncio.sleep(0)  # they begin, and run to where they first wait
    value.append("changed")
    made["channel_values"]["c"] = "other"
    await asyncio.gather(*calls)
    await _is_as_it_was(saver, place)


async def test_a_sync_call_has_encoded_before_it_hands_anything_over(
    way: Way, engine: Engine | AsyncEngine
) -> None:
    """The call waits in the serializer, in its own thread: no other has been given the value."""
    saver = SQLAlchemySaver(engine)
    await saver.aget_tuple(THREAD)  # an async engine serves the thread from this loop
    value = ["as it was"]
    place: RunnableConfig = {"configurable": {**THREAD["configurable"], "checkpoint_id": "1"}}
    made: Any = {**checkpoint({"c": value}), "id": "1"}
    for call in (
        lambda: saver.put(THREAD, made, {}, {"c": "1"}),
        lambda: saver.put_writes(place, [("w", value[:1])], "task"),
    ):
        saver.serde = serde = Paused()
        running = asyncio.ensure_future(asyncio.to_thread(call))
        await asyncio.to_thread(serde.begun.wait, 10)
        value.append("changed")
        serde.going.set()
        await running
    saver.serde = Serializer()
    await _is_as_it_was(saver, place)


async def _is_as_it_was(saver: SQLAlchemySaver, place: RunnableConfig) -> None:
    found = await saver.aget_tuple(place)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"c": ["as it was"]}
    assert [value for _, _, value in found.pending_writes or []] == [["as it was"]]


# No connection meanwhile


class Idle(Serializer):
    """A serializer that finds the pool full at each call."""

    def __init__(self, engine: Any) -> None:
        super().__init__()
        self.pool, self.calls = engine.pool, 0

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        self._check()
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self._check()
        return super().loads_typed(data)

    def _check(self) -> None:
        assert self.pool.checkedout() == 0
        self.calls += 1


@pytest.fixture
async def single(way: Way, database_url: str) -> AsyncIterator[Engine | AsyncEngine]:
    """An engine with one connection."""
    create: Any = create_async_engine if way.async_engine else create_engine
    engine = create(way.url(database_url), pool_size=1, max_overflow=0, pool_timeout=5)
    yield engine
    await dispose(engine)


async def test_no_connection_is_taken_while_values_are_encoded_and_decoded(
    way: Way, single: Engine | AsyncEngine
) -> None:
    saver = way.saver(single)
    saver.serde = serde = Idle(single)
    large = "x" * 300_000
    stored = await saver.aput(THREAD, checkpoint({"c": [1], "large": [large]}), {}, {"c": "1", "large": "1"})
    made: Any = {**checkpoint({"bare": [1]}), "channel_versions": {}}
    child = await saver.aput(stored, made, {}, {})
    await saver.aput_writes(stored, [("w", [1])], "task")
    encoded = serde.calls
    assert encoded >= 4
    await saver.aget_tuple(stored)
    assert len([found async for found in saver.alist(None)]) == 2
    await saver.aget_delta_channel_history(config=child, channels=["c", "w"])
    assert serde.calls >= encoded + 8
    await saver.acopy_thread("thread", "copy")
    await saver.aprune(["thread"])
    await saver.adelete_thread("thread")


class Where(Serializer):
    """A serializer that knows by which threads it was called to decode."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self.threads.add(threading.get_ident())
        return super().loads_typed(data)


@pytest.mark.parametrize("large", [False, True])
async def test_the_event_loop_decodes_only_what_is_small(engine: Engine | AsyncEngine, large: bool) -> None:
    serde = Where()
    saver = SQLAlchemySaver(engine, serde=serde)
    values = {f"c{number}": ["x" * 4000] for number in range(100 if large else 1)}
    stored = await saver.aput(THREAD, checkpoint(values), {}, dict.fromkeys(values, "1"))
    await saver.aput_writes(stored, [("w", value) for value in values.values()], "task")
    child = await saver.aput(stored, checkpoint({}), {}, {})
    for reading in (
        lambda: saver.aget_tuple(stored),
        lambda: _all(saver),
        lambda: saver.aget_delta_channel_history(config=child, channels=["w"]),
        lambda: saver.aget_delta_channel_history(config=child, channels=list(values)),
    ):
        serde.threads.clear()
        await reading()
        assert serde.threads
        assert (threading.get_ident() in serde.threads) != large


async def _all(saver: SQLAlchemySaver) -> list[Any]:
    return [found async for found in saver.alist(None)]


# Metadata


class Shouting(enum.Enum):
    LOUD = uuid.UUID(int=1)


ODD_METADATA: list[tuple[Any, Any]] = [
    # a value, and what is read instead
    *((None, None), (True, True), (0, 0), (-(2**70), -(2**70)), (0.1, 0.1), ("ä", "ä")),
    *((math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")),
    *((["a\0b"], ["a\ufffdb"]), ("\ud800", "\ufffd"), ("\\u0000", "\\u0000"), ("\\", "\\")),
    *((b"\xff\0", "ff00"), (dt.datetime(2025, 1, 2), "2025-01-02T00:00:00"), (dt.time(1), "01:00:00")),
    *((dt.date(2025, 1, 2), "2025-01-02"), (uuid.UUID(int=1), str(uuid.UUID(int=1)))),
    *((decimal.Decimal("1.10"), "1.10"), (Colour.RED, "red"), (Level.HIGH, 3)),
    *((Shouting.LOUD, str(uuid.UUID(int=1))), ((1, (2,)), [1, [2]]), ({1}, [1]), ([], []), ({}, {})),
    *(({1: {2.5: None}}, {"1": {"2.5": None}}), ({"k\0": {"\ud800": 1}}, {"k\ufffd": {"\ufffd": 1}})),
    *((5e-324, 5e-324), (1e-7, 1e-7), (0.0, 0.0), (1e16, 1e16), (np.float64(0.5), 0.5)),
]


async def test_metadata_have_one_rule(saver: SQLAlchemySaver) -> None:
    given_ = {f"k{number}": value for number, (value, _) in enumerate(ODD_METADATA)}
    stored = await saver.aput(THREAD, checkpoint({}), given_, {})  # type: ignore[arg-type]
    found = await saver.aget_tuple(stored)
    assert found is not None
    expected = {f"k{number}": value for number, (_, value) in enumerate(ODD_METADATA)}
    assert found.metadata == expected
    for key, value in given_.items():
        listed = [one async for one in saver.alist(THREAD, filter={key: value})]
        assert len(listed) == 1, key


async def test_a_large_float_in_metadata(saver: SQLAlchemySaver) -> None:
    stored = await saver.aput(THREAD, checkpoint({}), {"x": 1.5e300}, {})  # type: ignore[typeddict-unknown-key]
    found = await saver.aget_tuple(stored)
    assert found is not None
    assert found.metadata == {"x": 1.5e300}


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no text")


def looped() -> Any:
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    "value", [Unspeakable(), looped(), Customer, {Unspeakable(): 1}], ids=["text", "cycle", "model", "key"]
)
def test_metadata_never_fail_a_run(value: Any) -> None:
    json.loads(dump_metadata({"odd": [value]}))


async def test_messages_in_metadata_are_objects(saver: SQLAlchemySaver) -> None:
    stored = await saver.aput(THREAD, checkpoint({}), {"m": [HumanMessage("a\0")]}, {})  # type: ignore[typeddict-unknown-key]
    found = await saver.aget_tuple(stored)
    assert found is not None
    (message,) = found.metadata["m"]  # type: ignore[typeddict-item]
    assert message["content"] == "a\ufffd"
    assert len([one async for one in saver.alist(THREAD, filter={"m": [{"type": "human"}]})]) == 1


@pytest.mark.parametrize("value", ["a\0b", "\0", ["a\0b"], {"a\0": "\0"}, "\\u0000", "\ud800", 1e300, -1e16])
async def test_a_filter_finds_what_was_stored(saver: SQLAlchemySaver, value: Any) -> None:
    config: RunnableConfig = {"configurable": {**THREAD["configurable"], "extra": value}}
    await saver.aput(config, checkpoint({}), {"x": value}, {})  # type: ignore[typeddict-unknown-key]
    filters = [{"x": value}] if isinstance(value, (list, dict)) else [{"x": value}, {"extra": value}]
    for asked in filters:
        assert len([one async for one in saver.alist(THREAD, filter=asked)]) == 1
        assert len(await saver.alist_threads(filter=asked)) == 1
