"""Threads, and a thread's checkpoints, without their values."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from sqlalchemy import Engine, create_engine, event

from cpstore import InvalidConfigError, Only, SQLAlchemySaver
from cpstore.models import MODELS
from cpstore.times import time_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.runnables import RunnableConfig
    from sqlalchemy.ext.asyncio import AsyncEngine

    from tests.ways import Dialect


class Refuses:
    """A serializer that must not be asked."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "refused", b"12345"

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise AssertionError("a value was decoded")


async def put(saver: SQLAlchemySaver, thread_id: str, namespace: str = "", **metadata: Any) -> RunnableConfig:
    made = empty_checkpoint()
    made["channel_values"] = {"words": ["a"], "number": 1}
    made["channel_versions"] = {"words": "1", "number": "1"}
    made["updated_channels"] = ["words"]
    place: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
    return await saver.aput(place, made, metadata, made["channel_versions"])  # type: ignore[arg-type]


async def test_threads_are_listed_newest_first(saver: SQLAlchemySaver, engine: Engine | AsyncEngine) -> None:
    began = dt.datetime.now(dt.timezone.utc)
    saver = type(saver)(engine, serde=Refuses(), metadata_keys=Only("user"))
    first = await put(saver, "a", user=1)
    for thread_id, namespace in [("b", ""), ("c", "sub"), ("c", ""), ("a", "x:1")]:
        last = await put(saver, thread_id, namespace, user=ord(thread_id) % 2)
    found = await saver.alist_threads()
    assert [thread.thread_id for thread in found] == ["a", "c", "b"]
    assert [thread.checkpoints for thread in found] == [2, 2, 1]
    assert [thread.namespaces for thread in found] == [("", "x:1"), ("", "sub"), ("",)]
    assert found[0].first_checkpoint_id == first["configurable"]["checkpoint_id"]
    assert found[0].last_checkpoint_id == last["configurable"]["checkpoint_id"]
    created, updated = found[0].created_at, found[0].updated_at
    assert created is not None
    assert updated is not None
    assert began - dt.timedelta(seconds=1) < created < updated <= dt.datetime.now(dt.timezone.utc)

    pages = [await saver.alist_threads(limit=1)]
    while pages[-1]:
        pages.append(await saver.alist_threads(limit=1, after=pages[-1][-1].cursor))
    assert [thread.thread_id for page in pages for thread in page] == ["a", "c", "b"]
    by_id = await saver.alist_threads(order="thread_id")
    assert [thread.thread_id for thread in by_id] == ["a", "b", "c"]
    rest = await saver.alist_threads(order="thread_id", after=by_id[0].cursor)
    assert [thread.thread_id for thread in rest] == ["b", "c"]
    assert [thread.thread_id for thread in await saver.alist_threads(filter={"user": 1})] == ["a", "c"]
    assert [thread.thread_id for thread in await saver.alist_threads(filter={"user": 1}, limit=1)] == ["a"]
    assert await saver.alist_threads(filter={"user": "1"}) == []
    assert await saver.alist_threads(limit=0) == []


@pytest.mark.parametrize(
    "wrong",
    [{"limit": -1}, {"order": "size"}, {"after": "a"}, {"after": "[1]"}, {"after": "{}"}, {"after": "7"}],
)
async def test_a_wrong_question_is_refused(saver: SQLAlchemySaver, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        await saver.alist_threads(**wrong)


async def test_a_light_history_decodes_nothing(saver: SQLAlchemySaver) -> None:
    saver.serde = Refuses()
    root = await put(saver, "t", step=-1, source="input")
    await saver.aput_writes(root, [("words", "b"), ("number", 2)], "task")
    inner = await put(saver, "t", "sub", step=0)
    await put(saver, "other")
    found = [one async for one in saver.ahistory("t")]
    assert [one.checkpoint_id for one in found] == [
        inner["configurable"]["checkpoint_id"],
        root["configurable"]["checkpoint_id"],
    ]
    newest, oldest = found
    assert (oldest.thread_id, oldest.checkpoint_ns, oldest.parent_checkpoint_id) == ("t", "", None)
    assert oldest.metadata == {"step": -1, "source": "input"}
    assert oldest.updated_channels == ("words",)
    assert (oldest.value_bytes, oldest.writes, oldest.write_bytes) == (10, 2, 10)
    assert (newest.value_bytes, newest.writes, newest.write_bytes) == (10, 0, 0)
    assert oldest.document_bytes > 100
    assert oldest.created_at is not None
    assert [one.checkpoint_ns async for one in saver.ahistory("t", checkpoint_ns="")] == [""]
    assert len([one async for one in saver.ahistory("t", limit=1)]) == 1
    assert [one async for one in saver.ahistory("unknown")] == []
    with pytest.raises(InvalidConfigError):
        await anext(aiter(saver.ahistory("nul\0")))


async def test_a_light_history_tells_of_interrupts_and_errors(saver: SQLAlchemySaver) -> None:
    saver.serde = Refuses()
    asked, failed = await put(saver, "t"), await put(saver, "t", "sub")
    await saver.aput_writes(asked, [("__interrupt__", 1)], "task 1")
    await saver.aput_writes(asked, [("__interrupt__", 1), ("words", 2)], "task 2")
    await saver.aput_writes(failed, [("__error__", 1)], "task 3")
    found = [one async for one in saver.ahistory("t")]
    assert [(one.writes, one.interrupts, one.errors) for one in found] == [(1, 0, 1), (3, 2, 0)]


async def test_a_light_history_follows_the_parents(saver: SQLAlchemySaver) -> None:
    configs = [await put(saver, "t", step=0)]
    for step in range(1, 4):
        made = empty_checkpoint()
        configs.append(await saver.aput(configs[-1], made, {"step": step}, {}))
    ids = [config["configurable"]["checkpoint_id"] for config in configs]
    found = [one async for one in saver.ahistory("t")]
    assert [one.parent_checkpoint_id for one in found] == [*ids[2::-1], None]


def test_times_are_those_of_the_ids() -> None:
    made = dt.datetime.now(dt.timezone.utc)
    found = time_of(str(uuid6()))
    assert found is not None
    assert abs(found - made) < dt.timedelta(seconds=5)
    assert time_of("no uuid") is None
    assert time_of("00000000-0000-4000-8000-000000000000") is None


# Plans, on 5,000 threads with states of 10 kB


@pytest.fixture
def large(dialect_url: str, dialect: Dialect) -> Iterator[Engine]:
    engine = create_engine(dialect_url)
    document = json.dumps({"v": 4, "channel_values": {"state": "x" * 10_000}, "channel_versions": {"a": "1"}})
    rows = [
        {
            "thread_id": f"t{number % 5000}",
            "checkpoint_ns": "",
            "checkpoint_id": str(uuid6()),
            "checkpoint": document,
            "metadata": json.dumps({"user": number % 10}),
        }
        for number in range(10_000)
    ]
    with engine.begin() as connection:
        connection.execute(MODELS.tables.checkpoints.insert(), rows)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE" if dialect == "sqlite" else "VACUUM ANALYZE")
    yield engine
    engine.dispose()


@pytest.mark.parametrize("order", ["newest", "thread_id"])
@pytest.mark.parametrize("filter_", [None, {"user": 3}])
def test_the_first_page_of_threads_reads_no_whole_table(
    large: Engine, dialect: Dialect, order: str, filter_: dict[str, Any] | None
) -> None:
    """Every table is read through an index; and one that is scanned is covered by it and limited."""
    saver = SQLAlchemySaver(large)
    asked: list[tuple[str, Any]] = []

    @event.listens_for(large, "before_cursor_execute")
    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if statement.startswith("SELECT"):
            asked.append((statement, parameters))

    assert len(saver.list_threads(limit=20, order=order, filter=filter_)) == 20
    event.remove(large, "before_cursor_execute", note)
    assert 2 <= len(asked) <= 30
    explain = {"sqlite": "EXPLAIN QUERY PLAN ", "postgresql": "EXPLAIN (COSTS OFF) "}[dialect]
    with large.connect() as connection:
        for statement, parameters in asked:
            plan = [str(row[-1]) for row in connection.exec_driver_sql(explain + statement, parameters)]
            assert not any("Seq Scan" in line or line == "SCAN checkpoints" for line in plan), plan
            scans = [line for line in plan if "SCAN checkpoints" in line]
            assert all("USING COVERING INDEX" in line and "LIMIT" in statement for line in scans), plan


def test_a_thread_with_many_checkpoints_hides_no_other(dialect_url: str) -> None:
    engine = create_engine(dialect_url)
    rows = [
        {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": f"{number:08}", "checkpoint": "{}"}
        for number, thread in enumerate(["small", *(["large"] * 3000), "last", *(["large"] * 1000)])
    ]
    with engine.begin() as connection:
        connection.execute(MODELS.tables.checkpoints.insert(), rows)
    saver = SQLAlchemySaver(engine)
    assert [thread.thread_id for thread in saver.list_threads()] == ["large", "last", "small"]
    assert [thread.checkpoints for thread in saver.list_threads()] == [4000, 1, 1]
    after = saver.list_threads(limit=1)[0].cursor
    assert [thread.thread_id for thread in saver.list_threads(after=after)] == ["last", "small"]
    engine.dispose()
