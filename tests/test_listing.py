"""A listing comes in pages: few statements, little memory, and nothing held while it yields."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import Engine, QueuePool, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from cpstore import SQLAlchemySaver
from tests.conftest import dispose
from tests.statements import checkpoint_id, fill, sent_by

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple

    from tests.ways import Way

THREAD: RunnableConfig = {"configurable": {"thread_id": "t0", "checkpoint_ns": ""}}

SMALL_PAGE = 25
"""A listing of so many checkpoints is at most one page."""

MANY = 20_000
TRACED = 3_000
VALUE_BYTES = 1_500
MEGABYTE = 1024**2


def id_of(found: CheckpointTuple) -> str:
    return str(found.config["configurable"]["checkpoint_id"])


def newest_first(count: int) -> list[str]:
    return [checkpoint_id(number) for number in reversed(range(count))]


def checked_out(engine: Engine | AsyncEngine) -> int:
    pool = engine.pool
    assert isinstance(pool, QueuePool)
    return pool.checkedout()


# Statements.


async def statements_of_a_listing(saver: SQLAlchemySaver, engine: Engine | AsyncEngine, limit: int) -> int:
    with sent_by(engine) as texts:
        found = [one async for one in saver.alist(None, limit=limit)]
    assert len(found) == limit
    assert all(len(one.checkpoint["channel_values"]) == 5 and one.pending_writes for one in found)
    return len(texts)


async def test_statements_grow_with_pages_not_with_rows(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine, database_url: str
) -> None:
    fill(database_url, 200, channels=5, threads=7)
    few, page, pages = [
        await statements_of_a_listing(saver, engine, count) for count in (2, SMALL_PAGE, 8 * SMALL_PAGE)
    ]
    assert few == page == 1
    assert pages <= 8 * 2 + 1  # the first page is searched and loaded at once


async def test_statements_of_a_search_that_finds_nothing(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine, database_url: str
) -> None:
    fill(database_url, 200)
    with sent_by(engine) as texts:
        assert [one async for one in saver.alist(None, filter={"step": -1})] == []
    assert len(texts) <= 6


async def test_no_checkpoints_are_asked_for_in_no_statement(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine
) -> None:
    with sent_by(engine) as texts:
        assert [one async for one in saver.alist(None, limit=0)] == []
    assert [text for text in texts if not text.startswith("BEGIN")] == []


# Connections.


async def test_no_connection_is_held_while_a_listing_yields(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine, database_url: str
) -> None:
    fill(database_url, 60)
    held = [(id_of(found), checked_out(engine)) async for found in saver.alist(None)]
    assert held == [(name, 0) for name in newest_first(60)]


@pytest.fixture
async def alone(way: Way, database_url: str) -> AsyncIterator[SQLAlchemySaver]:
    """A saver on an engine that has one connection and waits in vain for a second."""
    create: Any = create_async_engine if way.async_engine else create_engine
    engine = create(way.url(database_url), pool_size=1, max_overflow=0, pool_timeout=5)
    yield way.saver(engine)
    assert checked_out(engine) == 0
    await dispose(engine)


async def test_the_saver_is_used_inside_its_listing(alone: SQLAlchemySaver, database_url: str) -> None:
    fill(database_url, 60)
    seen: list[str] = []
    async for found in alone.alist(THREAD):
        seen.append(id_of(found))
        assert await alone.aget_tuple(found.config) == found
        await alone.aput_writes(found.config, [("c0", "inside")], "task")
        inner = [id_of(one) async for one in alone.alist(THREAD, before=found.config, limit=2)]
        assert inner == newest_first(int(seen[-1]))[:2]
    assert seen == newest_first(60)


async def test_two_listings_take_turns(alone: SQLAlchemySaver, database_url: str) -> None:
    fill(database_url, 60)
    first, second = aiter(alone.alist(THREAD)), aiter(alone.alist(THREAD))
    for name in newest_first(60):
        assert [id_of(await anext(first)), id_of(await anext(second))] == [name, name]


async def test_a_listing_goes_on_while_checkpoints_come_and_go(
    alone: SQLAlchemySaver, database_url: str
) -> None:
    fill(database_url, 100, threads=2)
    seen: list[str] = []
    async for found in alone.alist(None):
        seen.append(id_of(found))
        if len(seen) == 10:
            await alone.aput(THREAD, {**empty_checkpoint(), "id": "9"}, {}, {})
            await alone.adelete_thread("t0")
    assert seen == sorted(set(seen), reverse=True)
    assert "9" not in seen
    assert set(seen) >= {checkpoint_id(number) for number in range(1, 100, 2)}
    assert [found async for found in alone.alist(THREAD)] == []


# Generators that are left.


async def test_a_listing_that_is_left_early_holds_nothing(alone: SQLAlchemySaver, database_url: str) -> None:
    fill(database_url, 60)
    async for _ in alone.alist(None):
        break
    assert await alone.aget_tuple(THREAD) is not None


async def test_a_listing_is_closed_late_and_by_another_task(
    alone: SQLAlchemySaver, database_url: str
) -> None:
    fill(database_url, 60)
    listings: list[Any] = [alone.alist(None) for _ in range(3)]
    for listing in listings:
        assert id_of(await anext(listing)) == checkpoint_id(59)
    assert await alone.aget_tuple(THREAD) is not None

    async def close(listing: Any) -> None:
        await listing.aclose()

    await asyncio.gather(*(asyncio.create_task(close(listing)) for listing in listings))
    assert await alone.aget_tuple(THREAD) is not None


async def test_a_listing_may_never_be_begun(saver: SQLAlchemySaver, engine: Engine | AsyncEngine) -> None:
    with sent_by(engine) as texts:
        await saver.alist(None).aclose()  # type: ignore[attr-defined]
    assert texts == []


# Memory.


@dataclass
class Memory:
    """What a listing needs at most, in bytes while it begins, and in objects all the time.

    Counting bytes makes Python three times slower, so that ends after some thousand checkpoints: whoever
    reads all of them at first has done so, and whoever keeps something of each shows by its objects.
    """

    bytes: int = 0
    objects: int = 0

    def watch(self, listing: Iterator[CheckpointTuple]) -> Iterator[CheckpointTuple]:
        """Pass the checkpoints on."""
        before = sys.getallocatedblocks()
        tracemalloc.start()
        try:
            for number, found in enumerate(listing):
                if number == TRACED:
                    self.bytes = tracemalloc.get_traced_memory()[1]
                    tracemalloc.stop()
                if number % SMALL_PAGE == 0:
                    self.objects = max(self.objects, sys.getallocatedblocks() - before)
                yield found
        finally:
            tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_checkpoints(dialect_url: str) -> None:
    fill(dialect_url, MANY, size=VALUE_BYTES, threads=50)
    engine = create_engine(dialect_url)
    saver = SQLAlchemySaver(engine)
    memory = Memory()
    for expected, found in zip(newest_first(MANY), memory.watch(saver.list(None)), strict=True):
        assert id_of(found) == expected
    assert 0 < memory.bytes < 5 * MEGABYTE < MANY * VALUE_BYTES
    assert 0 < memory.objects < MANY
    assert [id_of(found) for found in saver.list(None, filter={"step": 7})] == [checkpoint_id(7)]
    engine.dispose()


async def test_an_empty_thread_id_is_one_thread(alone: SQLAlchemySaver) -> None:
    """It does not stand for all of them, which are other people's."""
    await alone.aput(THREAD, empty_checkpoint(), {}, {})
    empty: RunnableConfig = {"configurable": {"thread_id": "", "checkpoint_ns": ""}}
    assert [found async for found in alone.alist(empty)] == []
    assert [found async for found in alone.ahistory("")] == []
    stored = await alone.aput(empty, empty_checkpoint(), {}, {})
    assert [found.config async for found in alone.alist(empty)] == [stored]
    assert [found.thread_id async for found in alone.ahistory("")] == [""]
