"""Laws of deletion, copying and delta history, on random histories and both dialects.

What has to survive is computed by `tests.survivors` from what the saver read before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from sqlalchemy import Engine, select

from cpstore import SQLAlchemySaver, ThreadExistsError, UnknownCheckpointError
from cpstore.models import MODELS
from cpstore.ops import delta
from cpstore.pieces import pieces_before
from tests.random_histories import CHANNELS, ROOT, History, Player, histories
from tests.survivors import newest, parent_of, read, replayed, up_to, without_runs

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from tests.survivors import Place, Thread

LAW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@contextmanager
def played(database: Engine, history: History) -> Iterator[Player]:
    player = Player(SQLAlchemySaver(database), lambda: SQLAlchemySaver(database))
    player.play(history)
    yield player
    for thread in player.threads:
        player.saver.delete_thread(thread)


@pytest.fixture(autouse=True)
def _all_lists_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpstore.appends._SMALLEST_BYTES", 0)


# What the saver reads


def states(saver: SQLAlchemySaver, thread: Thread) -> dict[Place, Any]:
    """What the delta channels hold, as LangGraph replays them with a reducer that appends."""
    return {
        place: {
            channel: appended(history.get("seed"), [value for _, _, value in history["writes"]])
            for channel, history in saver.get_delta_channel_history(
                config=found.config, channels=replayed(found)
            ).items()
        }
        for place, found in thread.items()
    }


def appended(seed: Any, values: Iterable[Any]) -> list[Any]:
    return [seed.value if isinstance(seed, _DeltaSnapshot) else seed, *values]


# What the tables hold


def rows(database: Engine, thread: str) -> list[list[tuple[Any, ...]]]:
    """All rows of a thread, without its id."""
    with database.begin() as connection:
        return [
            sorted((tuple(row[1:]) for row in connection.execute(select(table).where(here))), key=repr)
            for table in MODELS.tables
            for here in [table.c.thread_id == thread]
        ]


def assert_no_orphans(database: Engine, thread: str, before: Thread) -> None:
    checkpoints, blobs, writes = rows(database, thread)
    places = {row[:2] for row in checkpoints}
    pointed = {
        (row[0], channel, str(version))
        for row in checkpoints
        for channel, version in row[4].get("channel_versions", {}).items()
    }
    begun = {
        (*blob[:2], version) for blob in blobs if blob[:3] in pointed for version in pieces_before(blob[3])
    }
    assert [blob for blob in blobs if blob[:3] not in pointed | begun] == []
    assert begun <= {blob[:3] for blob in blobs}
    assert [
        write
        for write in writes
        if write[:2] not in places and any(place[0] == write[0] and place > write[:2] for place in before)
    ] == []


def assert_survived(
    saver: SQLAlchemySaver, thread: str, before: Thread, states_before: dict[Place, Any], kept: set[Place]
) -> None:
    """Exactly `kept` is there and reads as before, but that a parent may be gone."""
    after = read(saver, thread)
    assert after.keys() == kept
    for place, found in after.items():
        gone = parent_of(before[place]) not in kept
        expected = before[place]._replace(parent_config=None) if gone else before[place]
        assert found == expected
        assert saver.get_tuple(found.config) == expected
    assert states(saver, after) == {place: states_before[place] for place in kept}


# Laws of deletion


@LAW
@given(history=histories())
def test_a_deleted_thread_is_gone_and_no_other(database: Engine, history: History) -> None:
    with played(database, history) as player:
        one, other = player.threads
        untouched = rows(database, other)
        player.saver.delete_thread(one)
        assert rows(database, one) == [[], [], []]
        assert rows(database, other) == untouched


@LAW
@given(history=histories(), keep=st.integers(1, 4), prunes=st.booleans())
def test_what_stays_after_prune_and_retention(
    database: Engine, history: History, keep: int, prunes: bool
) -> None:
    with played(database, history) as player:
        one, other = player.threads
        before, untouched = read(player.saver, one), rows(database, other)
        states_before = states(player.saver, before)
        if prunes:
            keep = 1
            player.saver.prune([one])
        else:
            assert_counted(database, player.saver, one, keep)
        assert_survived(player.saver, one, before, states_before, newest(before, keep))
        assert_no_orphans(database, one, before)
        assert rows(database, other) == untouched


def assert_counted(database: Engine, saver: SQLAlchemySaver, thread: str, keep: int) -> None:
    """What a dry run announces is what is removed, and what the tables miss afterwards."""
    before = [len(found) for found in rows(database, thread)]
    announced = saver.retention(thread_ids=[thread], keep=keep, dry_run=True)
    assert [len(found) for found in rows(database, thread)] == before
    assert saver.retention(thread_ids=[thread], keep=keep) == announced
    left = [len(found) for found in rows(database, thread)]
    assert [announced.checkpoints, announced.blobs, announced.writes] == [
        was - now for was, now in zip(before, left, strict=True)
    ]
    assert announced.threads == 0
    assert announced.after is None


@LAW
@given(history=histories())
def test_prune_with_delete_takes_threads_whole(database: Engine, history: History) -> None:
    with played(database, history) as player:
        one, other = player.threads
        untouched = rows(database, other)
        player.saver.prune([one, "unknown"], strategy="delete")
        assert rows(database, one) == [[], [], []]
        assert rows(database, other) == untouched


@LAW
@given(history=histories(), chosen=st.sets(st.integers(0, 2)), again=st.booleans())
def test_what_stays_after_delete_for_runs(
    database: Engine, history: History, chosen: set[int], again: bool
) -> None:
    with played(database, history) as player:
        runs = [player.runs[number] for number in chosen]
        before = {thread: read(player.saver, thread) for thread in player.threads}
        states_before = {thread: states(player.saver, before[thread]) for thread in player.threads}
        untouched = {thread: rows(database, thread) for thread in player.threads}
        for _ in range(1 + again):
            player.saver.delete_for_runs(runs)
        for thread in player.threads:
            kept = without_runs(before[thread], runs)
            assert_survived(player.saver, thread, before[thread], states_before[thread], kept)
            if any(found.metadata.get("run_id") in runs for found in before[thread].values()):
                assert_no_orphans(database, thread, before[thread])  # even if all checkpoints are needed
            else:
                assert rows(database, thread) == untouched[thread]


# Laws of copying


@LAW
@given(history=histories())
def test_a_copy_is_whole_and_independent(database: Engine, history: History) -> None:
    with played(database, history) as player:
        saver, (source, target) = player.saver, (player.threads[0], f"{player.threads[0]}-copy")
        original, before = rows(database, source), read(saver, source)
        states_before = states(saver, before)
        saver.copy_thread(source, target)
        assert rows(database, source) == original
        assert rows(database, target) == original
        if before:
            with pytest.raises(ThreadExistsError):
                saver.copy_thread(source, target)
        saver.delete_thread(source)
        assert rows(database, target) == original
        assert states(saver, read(saver, target)) == states_before
        saver.delete_thread(target)


@LAW
@given(history=histories(), data=st.data())
def test_a_copy_up_to_a_checkpoint(database: Engine, history: History, data: st.DataObject) -> None:
    with played(database, history) as player:
        saver, (source, target) = player.saver, (player.threads[0], f"{player.threads[0]}-copy")
        original, before = rows(database, source), read(saver, source)
        with pytest.raises(UnknownCheckpointError):
            saver.copy_thread(source, target, checkpoint_id="unknown")
        roots = sorted(place for place in before if place[0] == ROOT)
        if not roots:
            return
        chosen = data.draw(st.sampled_from(roots))
        states_before = states(saver, before)
        saver.copy_thread(source, target, checkpoint_id=chosen[1])
        assert rows(database, source) == original
        saver.delete_thread(source)
        expected, kept = up_to(before, chosen)
        assert_survived(saver, target, in_thread(expected, target), states_before, kept)
        assert_no_orphans(database, target, before)
        saver.delete_thread(target)


def in_thread(thread: Thread, thread_id: str) -> Thread:
    """The same checkpoints under another thread's id."""

    def moved(config: RunnableConfig | None) -> Any:
        return config and {"configurable": {**config["configurable"], "thread_id": thread_id}}

    return {
        place: found._replace(config=moved(found.config), parent_config=moved(found.parent_config))
        for place, found in thread.items()
    }


# The law of delta history


@LAW
@given(history=histories(size=14), page=st.sampled_from([1, 2, 3, delta.PAGE]))
def test_delta_history_is_the_base_class_walk(database: Engine, history: History, page: int) -> None:
    with patch.object(delta, "PAGE", page), played(database, history) as player:
        saver = player.saver
        for thread in player.threads:
            for found in read(saver, thread).values():
                assert_same_history(saver, found.config)
            for namespace in (ROOT, "sub", "unknown"):
                place: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": namespace}
                assert_same_history(saver, {"configurable": place})
                assert_same_history(saver, {"configurable": {**place, "checkpoint_id": "unknown"}})


def assert_same_history(saver: SQLAlchemySaver, config: RunnableConfig) -> None:
    channels = [*CHANNELS, "unknown"]
    expected = BaseCheckpointSaver.get_delta_channel_history(saver, config=config, channels=channels)
    assert saver.get_delta_channel_history(config=config, channels=channels) == expected
    assert saver.get_delta_channel_history(config=config, channels=["log"]) == {"log": expected["log"]}
    assert saver.get_delta_channel_history(config=config, channels=[]) == {}


async def test_delta_history_by_every_way(saver: SQLAlchemySaver) -> None:
    place: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
    places = []
    for number in range(8):
        seeded = number in (0, 4)
        made: Any = {
            "v": 4,
            "id": f"{number}",
            "ts": "",
            "channel_values": {"log": _DeltaSnapshot([number])} if seeded else {},
            "channel_versions": {"log": f"{number}"},
            "versions_seen": {},
        }
        place = await saver.aput(place, made, {"step": number}, {"log": f"{number}"})
        await saver.aput_writes(place, [("log", [number]), ("log", ["more"])], "task")
        places.append(place)
    places.append({"configurable": {"thread_id": "thread"}})
    for config in places:
        wanted: Any = {"config": config, "channels": ["log", "unknown"]}
        expected = await BaseCheckpointSaver.aget_delta_channel_history(saver, **wanted)
        assert await saver.aget_delta_channel_history(**wanted) == expected
        assert await saver.aget_delta_channel_history(config=config, channels=[]) == {}
