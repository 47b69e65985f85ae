"""The saver's contract beyond the conformance kit, over all ways in."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from cpstore import AsyncOnlyError, CpstoreError, InvalidConfigError, NotMigratedError, SQLAlchemySaver
from tests.conftest import dispose
from tests.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain_core.runnables import RunnableConfig

    from tests.ways import Way

THREAD: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}


def checkpoint(version: Any = None, **values: Any) -> Checkpoint:
    made = empty_checkpoint()
    made["v"] = 4
    made["channel_values"] = values
    made["channel_versions"] = {} if version is None else dict.fromkeys(values, version)
    return made


def id_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["checkpoint_id"])


async def values_of(saver: SQLAlchemySaver, config: RunnableConfig) -> dict[str, Any]:
    found = await saver.aget_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]


# Values


async def test_values_that_no_version_covers_come_back(saver: SQLAlchemySaver) -> None:
    values: dict[str, Any] = {
        "list": [1, "2", None],
        "bytes": b"\0\1",
        "text": "x" * 5000,
        "none": None,
        "nothing": {},
    }
    stored = await saver.aput(THREAD, checkpoint(**values), {}, {})
    found = await saver.aget_tuple(stored)
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    assert "__unversioned__" not in found.checkpoint


async def test_an_unchanged_value_is_found_through_its_version(saver: SQLAlchemySaver) -> None:
    first = checkpoint("1", words=["a"], long="y" * 5000)
    stored = await saver.aput(THREAD, first, {}, first["channel_versions"])
    later = checkpoint()
    later["channel_versions"] = {**first["channel_versions"], "new": "2"}
    later["channel_values"] = {"new": ["b"]}
    again = await saver.aput(stored, later, {}, {"new": "2"})
    assert await values_of(saver, again) == {"words": ["a"], "long": "y" * 5000, "new": ["b"]}


async def test_an_emptied_channel_is_absent_and_none_is_a_value(saver: SQLAlchemySaver) -> None:
    first = checkpoint("1", words=["a"])
    stored = await saver.aput(THREAD, first, {}, first["channel_versions"])
    emptied = checkpoint("2", none=None)
    emptied["channel_versions"] = {"words": "2", "none": "2"}
    again = await saver.aput(stored, emptied, {}, emptied["channel_versions"])
    assert await values_of(saver, again) == {"none": None}
    assert await values_of(saver, stored) == {"words": ["a"]}


async def test_values_are_new_objects_each_time(saver: SQLAlchemySaver) -> None:
    stored = await saver.aput(THREAD, checkpoint("1", words=["a"]), {}, {"words": "1"})
    (await values_of(saver, stored))["words"].append("b")
    assert await values_of(saver, stored) == {"words": ["a"]}


async def test_versions_of_each_kind_are_found(saver: SQLAlchemySaver) -> None:
    versions: dict[str, Any] = {
        "int": 3,
        "float": 1.5,
        "whole": 2.0,
        "large": 1e16,
        "text": "00001.5",
        'q"uo\\te.d': 1,
    }
    made = checkpoint(**{channel: [channel] for channel in versions})
    made["channel_versions"] = versions
    stored = await saver.aput(THREAD, made, {}, versions)
    assert await values_of(saver, stored) == {channel: [channel] for channel in versions}


async def test_a_delta_snapshot_and_unknown_keys_come_back(saver: SQLAlchemySaver) -> None:
    made: Any = checkpoint("1", delta=_DeltaSnapshot([1, 2]), true=True)
    made["of_tomorrow"] = {"a": [1]}
    made["updated_channels"] = ["delta"]
    stored = await saver.aput(THREAD, made, {}, made["channel_versions"])
    found = await saver.aget_tuple(stored)
    assert found is not None
    value = found.checkpoint["channel_values"]["delta"]
    assert type(value) is _DeltaSnapshot
    assert value.value == [1, 2]
    assert {**found.checkpoint, "channel_values": {}} == {**made, "channel_values": {}}


async def test_put_changes_none_of_its_arguments(saver: SQLAlchemySaver) -> None:
    made = checkpoint("1", words=["a"], number=1)
    arguments: tuple[Any, ...] = (THREAD, made, {"step": 1, "x": [1]}, dict(made["channel_versions"]))
    before = repr(arguments)
    await saver.aput(*arguments)
    assert repr(arguments) == before


async def test_many_channels_and_writes_at_once(saver: SQLAlchemySaver) -> None:
    values = {f"channel {number}": [number] for number in range(120)}
    made = checkpoint("1", **values)
    stored = await saver.aput(THREAD, made, {}, {**made["channel_versions"], "empty": "1"})
    await saver.aput_writes(stored, [(f"channel {number}", {number}) for number in range(120)], "task")
    found = await saver.aget_tuple(stored)
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    assert found.pending_writes == [("task", f"channel {number}", {number}) for number in range(120)]


# All or nothing


class _FailsOn:
    """A serializer that cannot encode one value."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.inner = JsonPlusSerializer()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if obj == self.value:
            raise TypeError("refused")
        return self.inner.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self.inner.loads_typed(data)


async def rows(engine: Engine | AsyncEngine, *tables: str) -> list[int]:
    statement = text("SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables))
    if isinstance(engine, AsyncEngine):
        async with engine.connect() as connection:
            return list((await connection.execute(statement)).one())
    with engine.connect() as connection:
        return list(connection.execute(statement).one())


async def test_what_cannot_be_encoded_stores_nothing(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine
) -> None:
    saver.serde = _FailsOn(["bad"])
    made = checkpoint("1", good=["good"], bad=["bad"])
    with pytest.raises(TypeError, match="refused"):
        await saver.aput(THREAD, made, {}, made["channel_versions"])
    place: RunnableConfig = {"configurable": {**THREAD["configurable"], "checkpoint_id": "1"}}
    with pytest.raises(TypeError, match="refused"):
        await saver.aput_writes(place, [("a", 1), ("b", ["bad"])], "task")
    assert await rows(engine, "checkpoints", "checkpoint_blobs", "checkpoint_writes") == [0, 0, 0]


REFUSALS = {
    "sqlite": (
        "CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} WHEN NEW.{column} LIKE '%refuse%'"
        " BEGIN SELECT RAISE(ABORT, 'refused'); END"
    ),
    "postgresql": "ALTER TABLE {table} ADD CHECK ({column}::text NOT LIKE '%refuse%')",
}


async def refuse(way: Way, engine: Engine | AsyncEngine, table: str, column: str) -> None:
    """Let the database itself refuse rows of a table whose column says so."""
    statement = text(REFUSALS[way.dialect].format(table=table, column=column))
    if isinstance(engine, AsyncEngine):
        async with engine.begin() as connection:
            await connection.execute(statement)
    else:
        with engine.begin() as connection:
            connection.execute(statement)


@pytest.mark.parametrize("count", [3, 40])
async def test_put_stores_all_or_nothing(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine, way: Way, count: int
) -> None:
    await refuse(way, engine, "checkpoints", "metadata")
    made = checkpoint("1", **{f"channel {number}": [number] for number in range(count)})
    with pytest.raises(DBAPIError):
        await saver.aput(THREAD, made, {"source": "refuse"}, made["channel_versions"])  # type: ignore[typeddict-item]
    assert await rows(engine, "checkpoints", "checkpoint_blobs") == [0, 0]


@pytest.mark.parametrize("count", [3, 40])
async def test_put_writes_stores_all_or_nothing(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine, way: Way, count: int
) -> None:
    await refuse(way, engine, "checkpoint_writes", "channel")
    place = await saver.aput(THREAD, checkpoint(), {}, {})
    writes = [*((f"channel {number}", number) for number in range(count)), ("refuse", 0)]
    with pytest.raises(DBAPIError):
        await saver.aput_writes(place, writes, "task")
    assert await rows(engine, "checkpoint_writes") == [0]


# Conflicts


async def test_the_same_id_again_replaces_all_but_blobs(saver: SQLAlchemySaver) -> None:
    made = checkpoint("1", words=["a"])
    parent = await saver.aput(THREAD, checkpoint(), {}, {})
    first = await saver.aput(parent, made, {"step": 1}, {"words": "1"})
    changed: Checkpoint = {**made, "channel_values": {"words": ["other"], "number": 7}}
    again = await saver.aput(THREAD, changed, {"step": 2}, {"words": "1"})
    assert again == first
    found = await saver.aget_tuple(first)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"words": ["a"], "number": 7}
    assert found.metadata == {"step": 2}
    assert found.parent_config is None
    assert len([one async for one in saver.alist(THREAD)]) == 2


async def test_each_row_of_a_batch_has_its_own_rule(saver: SQLAlchemySaver) -> None:
    place = await saver.aput(THREAD, checkpoint(), {}, {})
    special = list(WRITES_IDX_MAP)
    await saver.aput_writes(place, [("a", 1), *((channel, "old") for channel in special)], "task", "p1")
    await saver.aput_writes(
        place, [("a", 2), *((channel, "new") for channel in special), ("b", 3)], "task", "p2"
    )
    found = await saver.aget_tuple(place)
    assert found is not None
    written = {channel: value for _, channel, value in found.pending_writes or []}
    assert written == {"a": 1, "b": 3, **dict.fromkeys(special, "new")}


async def test_writes_are_read_by_path_task_and_position(saver: SQLAlchemySaver) -> None:
    place = await saver.aput(THREAD, checkpoint(), {}, {})
    for path, task in [("~a", "1"), ("Z", "3"), ("a", "2"), ("a", "10"), ("", "9"), ("é", "0")]:
        await saver.aput_writes(place, [(f"{path}{task}", number) for number in range(12)], task, path)
    found = await saver.aget_tuple(place)
    assert found is not None
    order = ["9", "Z3", "a10", "a2", "~a1", "é0"]
    assert [(channel, value) for _, channel, value in found.pending_writes or []] == [
        (channel, number) for channel in order for number in range(12)
    ]


async def test_writes_may_come_before_their_checkpoint(saver: SQLAlchemySaver) -> None:
    made = checkpoint()
    place: RunnableConfig = {"configurable": {**THREAD["configurable"], "checkpoint_id": made["id"]}}
    await saver.aput_writes(place, [("a", None), ("b", False), ("c", "")], "task")
    assert await saver.aget_tuple(place) is None
    await saver.aput(THREAD, made, {}, {})
    found = await saver.aget_tuple(place)
    assert found is not None
    assert found.pending_writes == [("task", "a", None), ("task", "b", False), ("task", "c", "")]


async def test_no_writes_are_no_statement(saver: SQLAlchemySaver, engine: Engine | AsyncEngine) -> None:
    place: RunnableConfig = {"configurable": {**THREAD["configurable"], "checkpoint_id": "1"}}
    await saver.aput_writes(place, [], "task")
    assert await rows(engine, "checkpoint_writes") == [0]


# Addresses


@pytest.mark.parametrize("thread_id", [7, uuid.UUID(int=5)])
async def test_a_thread_id_is_taken_as_its_text(saver: SQLAlchemySaver, thread_id: Any) -> None:
    stored = await saver.aput({"configurable": {"thread_id": thread_id}}, checkpoint(), {}, {})
    assert stored["configurable"] == {
        "thread_id": str(thread_id),
        "checkpoint_ns": "",
        "checkpoint_id": id_of(stored),
    }
    assert await saver.aget_tuple({"configurable": {"thread_id": thread_id}}) is not None
    assert len([found async for found in saver.alist({"configurable": {"thread_id": thread_id}})]) == 1
    await saver.adelete_thread(thread_id)
    assert await saver.aget_tuple(stored) is None


@pytest.mark.parametrize("bad", ["nul\0", "\ud800", "x" * 3000])
@pytest.mark.parametrize("name", ["thread_id", "checkpoint_ns", "checkpoint_id"])
async def test_an_identifier_that_cannot_be_stored_is_the_same_error_everywhere(
    saver: SQLAlchemySaver, name: str, bad: str
) -> None:
    config: RunnableConfig = {
        "configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1", name: bad}
    }
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: saver.aput(config, checkpoint(), {}, {}),
        lambda: saver.aput_writes(config, [("a", 1)], "task"),
        lambda: saver.aget_tuple(config),
        lambda: anext(aiter(saver.alist(config))),
    ]
    if name == "thread_id":
        calls.append(lambda: saver.adelete_thread(bad))
    for call in calls:
        with pytest.raises(InvalidConfigError, match=name):
            await call()


@pytest.mark.parametrize("config", [{}, {"configurable": {}}, {"configurable": {"thread_id": None}}])
async def test_a_config_without_thread_is_refused(saver: SQLAlchemySaver, config: Any) -> None:
    with pytest.raises(InvalidConfigError, match="no thread_id"):
        await saver.aget_tuple(config)
    with pytest.raises(InvalidConfigError, match="no thread_id"):
        await saver.aput(config, checkpoint(), {}, {})


async def test_writes_without_a_checkpoint_are_refused(saver: SQLAlchemySaver) -> None:
    with pytest.raises(InvalidConfigError, match="no checkpoint_id"):
        await saver.aput_writes(THREAD, [("a", 1)], "task")


# Listing


async def test_a_listing_holds_no_connection_while_it_yields(way: Way, database_url: str) -> None:
    engine = way.engine(database_url) if way.dialect == "sqlite" else _with_one_connection(way, database_url)
    saver = way.saver(engine)
    for _ in range(60):
        await saver.aput(THREAD, checkpoint("1", words=["a"]), {}, {"words": "1"})
    seen = [await saver.aget_tuple(found.config) async for found in saver.alist(THREAD)]
    assert len(seen) == 60
    await dispose(engine)


def _with_one_connection(way: Way, url: str) -> Engine | AsyncEngine:
    create: Any = create_async_engine if way.async_engine else create_engine
    made: Engine | AsyncEngine = create(way.url(url), pool_size=1, max_overflow=0, pool_timeout=5)
    return made


async def test_a_listing_is_newest_first_over_all_threads(saver: SQLAlchemySaver) -> None:
    ids = [
        id_of(
            await saver.aput(
                {"configurable": {"thread_id": f"t{number % 3}", "checkpoint_ns": f"n{number % 2}"}},
                checkpoint("1", words=[number]),
                {"step": number},
                {"words": "1"},
            )
        )
        for number in range(70)
    ]
    assert [id_of(found.config) async for found in saver.alist(None)] == ids[::-1]
    assert [id_of(found.config) async for found in saver.alist({"configurable": {}}, limit=30)] == ids[
        :-31:-1
    ]
    one: RunnableConfig = {"configurable": {"thread_id": "t1"}}
    assert [found.metadata["step"] async for found in saver.alist(one)] == list(range(67, 0, -3))
    before: RunnableConfig = {"configurable": {"thread_id": "elsewhere", "checkpoint_id": ids[10]}}
    assert [id_of(found.config) async for found in saver.alist(None, before=before)] == ids[9::-1]
    assert len([found async for found in saver.alist(None, before=THREAD)]) == 70


async def test_the_same_id_in_many_threads_is_listed_once_each(saver: SQLAlchemySaver) -> None:
    made = checkpoint()
    for number in range(60):
        await saver.aput({"configurable": {"thread_id": f"{number:03}"}}, made, {}, {})
    found = [one.config["configurable"]["thread_id"] async for one in saver.alist(None)]
    assert sorted(found) == [f"{number:03}" for number in range(60)]


async def test_limits(saver: SQLAlchemySaver) -> None:
    for number in range(5):
        await saver.aput(THREAD, checkpoint(), {"step": number % 2}, {})
    assert [found async for found in saver.alist(THREAD, limit=0)] == []
    assert len([found async for found in saver.alist(THREAD, limit=3)]) == 3
    assert len([found async for found in saver.alist(THREAD, filter={"step": 1}, limit=2)]) == 2
    assert len([found async for found in saver.alist(THREAD, filter={"step": 1}, limit=9)]) == 2
    with pytest.raises(ValueError, match="limit"):
        await anext(aiter(saver.alist(THREAD, limit=-1)))


# Doors


async def every_call(saver: SQLAlchemySaver) -> list[Awaitable[Any]]:
    place: RunnableConfig = {"configurable": {**THREAD["configurable"], "checkpoint_id": "1"}}
    return [
        saver.aput(THREAD, checkpoint(), {}, {}),
        saver.aput_writes(place, [("a", 1)], "task"),
        saver.aget_tuple(THREAD),
        saver.aget_tuple(place),
        anext(aiter(saver.alist(None))),
        saver.adelete_thread("thread"),
    ]


async def test_every_method_tells_that_the_tables_are_missing(way: Way, empty_database_url: str) -> None:
    engine = way.engine(empty_database_url)
    for call in await every_call(way.saver(engine)):
        with pytest.raises(NotMigratedError, match="cpstore db upgrade"):
            await call
    await dispose(engine)


async def test_another_error_of_the_database_stays_what_it_is(
    way: Way, saver: SQLAlchemySaver, engine: Engine | AsyncEngine
) -> None:
    await refuse(way, engine, "checkpoints", "metadata")
    with pytest.raises(DBAPIError) as caught:
        await saver.aput(THREAD, checkpoint(), {"source": "refuse"}, {})  # type: ignore[typeddict-item]
    assert not isinstance(caught.value, CpstoreError)


async def test_sync_calls_of_an_async_engine(way: Way, engine: Engine | AsyncEngine) -> None:
    """In the loop's own thread they are refused at once; from another thread the loop serves them."""
    saver = SQLAlchemySaver(engine)
    if isinstance(engine, AsyncEngine):
        calls: list[Callable[[], Any]] = [
            saver.setup,
            lambda: saver.get_tuple(THREAD),
            lambda: next(saver.list(None)),
        ]
        for call in calls:
            with pytest.raises(AsyncOnlyError, match="async methods"):
                call()
        with pytest.raises(AsyncOnlyError):
            await asyncio.to_thread(saver.get_tuple, THREAD)
        await saver.aget_tuple(THREAD)
    stored = await asyncio.to_thread(saver.put, THREAD, checkpoint(), {}, {})
    assert await saver.aget_tuple(stored) == await asyncio.to_thread(saver.get_tuple, stored)


@pytest.mark.parametrize("way", [way for way in WAYS if way.async_engine], ids=lambda way: way.name)
async def test_an_async_engine_without_its_loop_is_refused(way: Way, database_url: str) -> None:
    engine = create_async_engine(way.url(database_url))
    saver = SQLAlchemySaver(engine)

    async def use() -> None:
        await saver.aget_tuple(THREAD)
        await dispose(engine)

    await asyncio.to_thread(asyncio.run, use())
    with pytest.raises(AsyncOnlyError):
        await asyncio.to_thread(saver.get_tuple, THREAD)


# Clones


async def test_a_clone_shares_the_engine_and_has_its_own_serializer(saver: SQLAlchemySaver) -> None:
    saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    clone = saver.with_allowlist([("tests.test_saver", "_FailsOn")])
    assert clone is not saver
    assert clone.serde is not saver.serde
    stored = await clone.aput(THREAD, checkpoint("1", words=["a"]), {}, {"words": "1"})
    assert await saver.aget_tuple(stored) == await clone.aget_tuple(stored)


def test_versions_never_repeat() -> None:
    saver = SQLAlchemySaver(create_engine("sqlite:///unused.db"))
    versions: list[Any] = [None]
    for _ in range(100):
        versions.append(saver.get_next_version(versions[-1], None))
    assert sorted(versions[1:]) == versions[1:]
    assert (
        len({saver.get_next_version("00000000000000000000000000000003.5", None) for _ in range(100)}) == 100
    )
    assert saver.get_next_version(7, None).startswith("00000000000000000000000000000008.")  # type: ignore[arg-type]
