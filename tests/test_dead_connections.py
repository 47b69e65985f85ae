"""Connections die, transactions collide; calls go on. On every driver of PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError

from tests import postgres
from tests.cluster import DRIVER
from tests.connections import (
    BLOCKED,
    COMMIT,
    POSTGRES_WAYS,
    THREAD,
    beside,
    blocked,
    checkpoint,
    dying,
    kill_connections,
    noted,
    put,
    stored_number,
    sync_engine,
)
from tests.statements import sent_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy.ext.asyncio import AsyncEngine

    from cpstore import SQLAlchemySaver
    from tests.ways import Way

DEADLOCK, SERIALIZATION_FAILURE = "40P01", "40001"


@pytest.fixture(params=POSTGRES_WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    """Each way whose connections can die."""
    chosen: Way = request.param
    return chosen


@pytest.fixture
def admin(database_url: str) -> Iterator[Engine]:
    """Somebody else in the same database."""
    engine = create_engine(make_url(database_url).set(drivername=DRIVER))
    yield engine
    engine.dispose()


# Between calls


async def test_every_operation_outlives_its_connections(saver: SQLAlchemySaver, database_url: str) -> None:
    """All connections of the pool are dead before each call, and there are several in it."""
    made = checkpoint(saver, 7)
    calls: list[Callable[[], Any]] = [
        lambda: put(saver, made),
        lambda: saver.aput_writes(
            {"configurable": {**THREAD["configurable"], "checkpoint_id": made["id"]}}, [("a", 1)], "task"
        ),
        lambda: saver.aget_tuple(THREAD),
        lambda: anext(saver.alist(THREAD)),
        lambda: saver.aget_delta_channel_history(config=THREAD, channels=["a"]),
        lambda: saver.acopy_thread("thread", "copied"),
        lambda: saver.aprune(["thread"]),
        lambda: saver.adelete_for_runs(["unknown"]),
        lambda: saver.adelete_thread("copied"),
    ]
    for call in calls:
        await asyncio.gather(*(saver.aget_tuple(THREAD) for _ in range(4)))
        kill_connections(database_url)
        await call()
    found = await saver.aget_tuple(THREAD)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"number": 7}
    assert found.pending_writes == [("task", "a", 1)]
    assert await saver.aget_tuple({"configurable": {"thread_id": "copied"}}) is None


async def test_many_calls_at_once_outlive_their_connections(
    saver: SQLAlchemySaver, database_url: str
) -> None:
    await put(saver, checkpoint(saver, 3))
    await asyncio.gather(*(stored_number(saver) for _ in range(8)))
    kill_connections(database_url)
    assert await asyncio.gather(*(stored_number(saver) for _ in range(8))) == [3] * 8


async def test_nothing_more_is_sent_while_all_is_well(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine, database_url: str
) -> None:
    await put(saver, checkpoint(saver))
    with sent_by(engine) as sent:
        await put(saver, checkpoint(saver))
    assert len(sent) == 1
    kill_connections(database_url)
    with sent_by(engine) as again:
        await put(saver, checkpoint(saver))
    assert again == sent * 2


# In the midst of an operation


async def test_an_operation_that_waits_outlives_its_connection(
    way: Way, saver: SQLAlchemySaver, admin: Engine, database_url: str
) -> None:
    made = checkpoint(saver, 1)
    await put(saver, made)
    with admin.begin() as lock:
        lock.execute(text("UPDATE checkpoints SET parent_checkpoint_id = 'other'"))
        again = beside(way, put(saver, made))
        for _ in range(3):
            await blocked(database_url)
            kill_connections(database_url, BLOCKED)
        await blocked(database_url)
    assert (await again)["configurable"]["checkpoint_id"] == made["id"]
    found = await saver.aget_tuple(THREAD)
    assert found is not None
    assert found.parent_config is None


async def test_a_deadlock_is_no_error(
    way: Way, saver: SQLAlchemySaver, engine: Engine | AsyncEngine, admin: Engine, database_url: str
) -> None:
    stored = await put(saver, checkpoint(saver))
    await saver.aput_writes(stored, [("a", 1)], "task")
    with noted(engine) as errors:
        with admin.begin() as other:
            other.execute(text("SET LOCAL deadlock_timeout = '1h'"))  # so it is not the victim
            other.execute(text("UPDATE checkpoint_writes SET task_path = 'other'"))
            pruned = beside(way, saver.aprune(["thread"], strategy="delete"))
            await blocked(database_url)
            await asyncio.to_thread(other.execute, text("UPDATE checkpoints SET parent_checkpoint_id = 'x'"))
        await pruned
    assert errors == [DEADLOCK]
    assert await saver.aget_tuple(THREAD) is None


async def test_a_serialization_failure_is_no_error(
    way: Way, saver: SQLAlchemySaver, engine: Engine | AsyncEngine, admin: Engine, database_url: str
) -> None:
    name = postgres.quoted(admin.dialect, str(admin.url.database))
    with admin.begin() as connection:
        connection.exec_driver_sql(
            f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'"
        )
    made = checkpoint(saver, 1)
    await put(saver, made)
    with noted(engine) as errors:
        with admin.begin() as other:
            other.execute(text("UPDATE checkpoints SET parent_checkpoint_id = 'other'"))
            again = beside(way, put(saver, made))
            await blocked(database_url)
        await again
    assert errors == [SERIALIZATION_FAILURE]
    found = await saver.aget_tuple(THREAD)
    assert found is not None
    assert found.parent_config is None


# At a given moment


@pytest.mark.parametrize("number", range(4))
async def test_a_transaction_that_was_not_committed_is_repeated(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine, number: int
) -> None:
    await put(saver, checkpoint(saver, 5))
    seen: list[str] = []

    def when(what: str) -> bool:
        seen.append(what)
        return len(seen) == number + 1

    with dying(engine, when) as killed:
        await saver.acopy_thread("thread", "copied")
    assert killed != [COMMIT]
    copied = await saver.aget_tuple({"configurable": {"thread_id": "copied"}})
    assert copied is not None
    assert copied.checkpoint["channel_values"] == {"number": 5}


def at_commit(what: str) -> bool:
    return what == COMMIT


async def test_a_copy_whose_commit_got_no_answer_is_not_repeated(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine
) -> None:
    """It may be there, so a second one would fail for a reason that is none."""
    await put(saver, checkpoint(saver, 5))
    with dying(engine, at_commit) as killed, pytest.raises(DBAPIError) as caught:
        await saver.acopy_thread("thread", "copied")
    assert caught.value.connection_invalidated
    assert killed == [COMMIT]
    assert await saver.aget_tuple({"configurable": {"thread_id": "copied"}}) is not None


async def test_retention_whose_commit_got_no_answer_is_not_repeated(
    way: Way, saver: SQLAlchemySaver, engine: Engine | AsyncEngine
) -> None:
    """It would count what is gone already as never there."""
    for number in range(3):
        await put(saver, checkpoint(saver, number))

    def lost_while_removing(what: str) -> bool:
        return what == COMMIT and bool(removing)

    removing: list[str] = []
    event.listen(
        sync_engine(engine),
        "before_cursor_execute",
        lambda *given: removing.append(given[2]) if given[2].startswith("DELETE") else None,
    )
    with dying(engine, lost_while_removing), pytest.raises(DBAPIError) as caught:
        await (asyncio.to_thread(saver.retention, keep=1) if way.sync else saver.aretention(keep=1))
    assert caught.value.connection_invalidated
    assert len([found async for found in saver.alist(THREAD)]) == 1


async def test_a_prune_whose_commit_got_no_answer_is_repeated(
    saver: SQLAlchemySaver, engine: Engine | AsyncEngine
) -> None:
    for number in range(3):
        await put(saver, checkpoint(saver, number))
    with dying(engine, at_commit) as killed:
        await saver.aprune(["thread"])
    assert killed == [COMMIT]
    assert len([found async for found in saver.alist(THREAD)]) == 1
