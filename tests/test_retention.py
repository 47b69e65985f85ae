"""Retention by example: what it counts, where it goes on, how old is old, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import Engine, event, select

from cpstore import SQLAlchemySaver
from cpstore.models import MODELS

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from tests.ways import Dialect

NOW = datetime.now(timezone.utc)
DAY = timedelta(days=1)
GREGORIAN = datetime(1582, 10, 15, tzinfo=timezone.utc)


def id_at(moment: datetime) -> str:
    """A UUIDv6 of that moment: the number of 100 ns since the Gregorian reform, its high bits first."""
    ticks = (moment - GREGORIAN) // timedelta(microseconds=1) * 10
    return f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}-6{ticks & 0xFFF:03x}-8000-000000000000"


def fill(
    saver: SQLAlchemySaver, thread: str, count: int, *, newest: datetime = NOW, namespace: str = ""
) -> list[str]:
    """Save a chain of checkpoints, a minute apart, each with a blob and a write of its own."""
    place: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
    ids = [id_at(newest - timedelta(minutes=count - 1 - number)) for number in range(count)]
    for number, checkpoint_id in enumerate(ids):
        made = empty_checkpoint()
        made["v"] = 4
        made["id"] = checkpoint_id
        made["channel_values"] = {"words": [number]}
        made["channel_versions"] = {"words": f"{number}"}
        place = saver.put(place, made, {"step": number}, {"words": f"{number}"})
        saver.put_writes(place, [("words", number)], "task")
    return ids


def ids_of(saver: SQLAlchemySaver, thread: str) -> list[str]:
    """The ids of a thread's checkpoints, oldest first."""
    found = saver.list({"configurable": {"thread_id": thread}})
    return [one.checkpoint["id"] for one in found][::-1]


def everything(engine: Engine) -> list[Any]:
    with engine.begin() as connection:
        return [sorted(connection.execute(select(table)).all(), key=repr) for table in MODELS.tables]


# What retention counts and how it goes on


def test_a_dry_run_tells_what_is_removed(keeper: SQLAlchemySaver, database: Engine) -> None:
    fill(keeper, "old", 3, newest=NOW - 9 * DAY)
    fill(keeper, "new", 5)
    before = everything(database)
    announced = keeper.retention(older_than=5 * DAY, keep=2, dry_run=True)
    assert everything(database) == before
    removed = keeper.retention(older_than=5 * DAY, keep=2)
    assert removed == announced
    assert (removed.threads, removed.checkpoints, removed.blobs, removed.writes) == (1, 6, 6, 6)
    assert removed.bytes > 0
    assert removed.after is None
    again = keeper.retention(older_than=5 * DAY, keep=2)
    assert (again.threads, again.checkpoints, again.blobs, again.writes, again.bytes) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("dry_run", [True, False])
def test_retention_goes_on_where_it_stopped(keeper: SQLAlchemySaver, dry_run: bool) -> None:
    threads = ["Z", "a", "~", "b", "é", "c1", "c10"]
    for thread in threads:
        fill(keeper, thread, 3)
    whole = keeper.retention(keep=1, dry_run=True)
    after, removed, calls = None, 0, 0
    while after is not None or not calls:
        part = keeper.retention(keep=1, limit=3, after=after, dry_run=dry_run)
        assert part.checkpoints <= 6
        removed, calls, after = removed + part.checkpoints, calls + 1, part.after
        assert calls < 9
    assert removed == whole.checkpoints == 14
    assert calls in (3, 4)
    expected = 3 if dry_run else 1
    assert [len(ids_of(keeper, thread)) for thread in threads] == [expected] * 7


def test_retention_of_given_threads(keeper: SQLAlchemySaver) -> None:
    for thread in "abc":
        fill(keeper, thread, 3)
    assert keeper.retention(thread_ids=["a", "c", "unknown"], keep=1).checkpoints == 4
    assert keeper.retention(thread_ids=[], keep=1).checkpoints == 0
    assert [len(ids_of(keeper, thread)) for thread in "abc"] == [1, 3, 1]
    first = keeper.retention(thread_ids=["b", "c"], keep=2, limit=1)
    assert (first.checkpoints, first.after) == (1, "b")


@pytest.mark.parametrize("as_time", [False, True])
def test_the_age_of_a_thread_is_that_of_its_newest_checkpoint(keeper: SQLAlchemySaver, as_time: bool) -> None:
    fill(keeper, "old", 2, newest=NOW - 9 * DAY)
    fill(keeper, "in between", 2, newest=NOW - 2 * DAY)
    fill(keeper, "woken", 1, newest=NOW - 9 * DAY)
    fill(keeper, "woken", 1, namespace="sub")
    removed = keeper.retention(older_than=NOW - 5 * DAY if as_time else 5 * DAY)
    assert (removed.threads, removed.checkpoints) == (1, 2)
    assert [len(ids_of(keeper, thread)) for thread in ("old", "in between", "woken")] == [0, 2, 2]
    elsewhere = (NOW - DAY).astimezone(timezone(timedelta(hours=5)))
    assert keeper.retention(older_than=elsewhere).threads == 1


def test_a_thread_that_wakes_meanwhile_is_not_old(
    keeper: SQLAlchemySaver, stranger: SQLAlchemySaver, database: Engine
) -> None:
    """Between the look at its age and its deletion someone goes on with it."""
    fill(keeper, "t", 2, newest=NOW - 9 * DAY)
    event.listen(database, "checkin", lambda *_: fill(stranger, "t", 1), once=True)
    removed = keeper.retention(older_than=5 * DAY)
    assert (removed.threads, removed.checkpoints) == (0, 0)
    assert len(ids_of(keeper, "t")) == 3


def test_keep_is_a_number_per_namespace(keeper: SQLAlchemySaver) -> None:
    roots, subs = fill(keeper, "t", 5), fill(keeper, "t", 4, namespace="sub")
    keeper.retention(keep=3)
    assert sorted(ids_of(keeper, "t")) == sorted(roots[-3:] + subs[-3:])
    assert keeper.retention(keep=9).checkpoints == 0


# Wrong arguments change nothing


WRONG: dict[str, Callable[[SQLAlchemySaver], Any]] = {
    "nothing asked for": lambda saver: saver.retention(),
    "keep none": lambda saver: saver.retention(keep=0),
    "keep fewer": lambda saver: saver.retention(keep=-1, older_than=DAY),
    "naive time": lambda saver: saver.retention(older_than=datetime(2100, 1, 1)),  # noqa: DTZ001, RUF100
    "unknown strategy": lambda saver: saver.prune(["t"], strategy="keep_oldest"),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
def test_wrong_arguments(keeper: SQLAlchemySaver, database: Engine, call: Callable[..., Any]) -> None:
    fill(keeper, "t", 3, newest=NOW - 9 * DAY)
    before = everything(database)
    with pytest.raises(ValueError, match=r"keep|older_than|strategy"):
        call(keeper)
    assert everything(database) == before


@pytest.mark.parametrize("strategy", ["keep_latest", "delete"])
def test_prune_takes_no_bare_text(keeper: SQLAlchemySaver, database: Engine, strategy: str) -> None:
    fill(keeper, "t", 3)
    before = everything(database)
    with pytest.raises(TypeError):
        keeper.prune("t", strategy=strategy)
    assert everything(database) == before


# Space


def test_space_is_given_back(keeper: SQLAlchemySaver, database: Engine, dialect: Dialect) -> None:
    place: RunnableConfig = {"configurable": {"thread_id": "large", "checkpoint_ns": ""}}
    for number in range(20):
        made = empty_checkpoint()
        made["channel_values"] = {"text": f"{number}" * 100_000}
        made["channel_versions"] = {"text": f"{number}"}
        place = keeper.put(place, made, {}, {"text": f"{number}"})
    fill(keeper, "small", 3)
    keeper.delete_thread("large")
    keeper.reclaim_space()
    assert len(ids_of(keeper, "small")) == 3
    if dialect == "sqlite":
        assert database.url.database is not None
        assert Path(database.url.database).stat().st_size < 500_000


# Every way in


async def test_every_way_removes_and_copies(saver: SQLAlchemySaver) -> None:
    place: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    places = []
    for number in range(6):
        made = empty_checkpoint()
        made["v"] = 4
        made["channel_values"] = {"words": [number]}
        made["channel_versions"] = {"words": f"{number}"}
        place = await saver.aput(place, made, {"run_id": f"{number}"}, {"words": f"{number}"})
        places.append(place)

    async def count(thread: str) -> int:
        return len([found async for found in saver.alist({"configurable": {"thread_id": thread}})])

    await saver.acopy_thread("t", "whole")
    await saver.acopy_thread("t", "part", checkpoint_id=places[3]["configurable"]["checkpoint_id"])
    assert [await count(thread) for thread in ("t", "whole", "part")] == [6, 6, 4]
    await saver.adelete_for_runs(["1", "5"])
    assert [await count(thread) for thread in ("t", "whole", "part")] == [4, 4, 3]
    assert (await saver.aretention(thread_ids=["whole"], keep=2)).checkpoints == 2
    await saver.aprune(["t"])
    await saver.aprune(["part"], strategy="delete")
    await saver.areclaim_space()
    assert [await count(thread) for thread in ("t", "whole", "part")] == [1, 2, 0]
