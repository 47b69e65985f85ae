"""The application's pool: never more than it lends, nothing held, nothing lost, and all of it used."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import QueuePool, event, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import NotMigratedError, SQLAlchemySaver, ThreadExistsError, UnstorableValueError
from cpstore.doors.threads import Threads
from cpstore.doors.turns import _lock, turn
from tests.applications import NEW_OPTIONS, ONE, THREAD, checkpoint, of, rows, sync_of, use
from tests.conftest import connections_in_use, dispose
from tests.postgres import ask
from tests.test_saver import refuse
from tests.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from sqlalchemy import Engine

    from tests.applications import Make
    from tests.ways import Way

SECONDS = 60
"""So long a test waits for what must come; it comes at once."""


AUTOCOMMIT: dict[str, Any] = {"isolation_level": "AUTOCOMMIT"}
for option in NEW_OPTIONS.values():
    AUTOCOMMIT |= option


class Peak:
    """How many connections are out of a pool, and how many were at most."""

    def __init__(self, engine: Engine | AsyncEngine) -> None:
        pool = sync_of(engine).pool
        assert isinstance(pool, QueuePool)
        self._pool = pool
        self.most = 0
        event.listen(pool, "checkout", self._look)

    @property
    def now(self) -> int:
        return self._pool.checkedout()

    def _look(self, *_: Any) -> None:
        self.most = max(self.most, self.now)


# What is taken


async def test_each_operation_takes_one_connection(way: Way, make_engine: Make, database_url: str) -> None:
    engine = make_engine(pool_size=5)
    peak = Peak(engine)
    await use(way.saver(engine), database_url)
    assert (peak.most, peak.now) == (1, 0)


async def test_setup_and_a_missing_table_take_one_connection(
    way: Way, make_engine: Make, empty_database_url: str
) -> None:
    engine = make_engine(url=empty_database_url, pool_size=5)
    peak = Peak(engine)
    saver = way.saver(engine)
    with pytest.raises(NotMigratedError):
        await saver.aget_tuple(THREAD)
    with pytest.raises(NotMigratedError):
        await saver.adelete_thread("thread")
    await saver.asetup()
    await saver.asetup()
    assert (peak.most, peak.now) == (1, 0)


async def test_a_crowd_takes_no_more_than_the_pool_lends(
    way: Way, make_engine: Make, database_url: str
) -> None:
    engine = make_engine(pool_size=2, max_overflow=1, pool_timeout=SECONDS)
    peak = Peak(engine)
    saver = SQLAlchemySaver(engine)

    async def work(number: int) -> None:
        stored = await saver.aput(of(number), checkpoint(words=["a"]), {}, {"words": "1"})
        await saver.aput_writes(stored, [("words", "b")], "task")
        assert [found.config async for found in saver.alist(of(number))] == [stored]
        await asyncio.to_thread(saver.put_writes, stored, [("words", "c")], "thread")

    await asyncio.gather(*(work(number) for number in range(40)))
    assert peak.most <= 3
    assert await connections_in_use(engine) == 0
    assert rows(database_url) == [40, 40, 80]


# What is held


async def test_nothing_is_held_while_a_history_yields(way: Way, make_engine: Make) -> None:
    engine = make_engine(**ONE)
    peak = Peak(engine)
    saver = way.saver(engine)
    for _ in range(60):
        await saver.aput(THREAD, checkpoint(), {}, {})
    held = []
    async for one in saver.ahistory("thread"):
        held.append(peak.now)
        place = {**THREAD["configurable"], "checkpoint_id": one.checkpoint_id}
        assert await saver.aget_tuple({"configurable": place}) is not None
    assert held == [0] * 60


# What is lost: nothing


async def _fail(saver: SQLAlchemySaver, number: int) -> None:
    """Fail in one of several ways: before, in and after the statements of an operation."""
    place = {"configurable": {**of(number)["configurable"], "checkpoint_id": "1"}}
    made = checkpoint(one=["a"], two=["b"])
    calls: list[tuple[type[Exception], Callable[[], Awaitable[Any]]]] = [
        (DBAPIError, lambda: saver.aput(THREAD, made, {"source": "refuse"}, {"one": "1", "two": "1"})),  # type: ignore[typeddict-item]
        (DBAPIError, lambda: saver.aput_writes(place, [("a", 1), ("refuse", 2)], "task")),  # type: ignore[arg-type]
        (ThreadExistsError, lambda: saver.acopy_thread("thread", "thread")),
        (UnstorableValueError, lambda: saver.aput_writes(place, [("a", object())], "task")),  # type: ignore[arg-type]
    ]
    error, call = calls[number % len(calls)]
    with pytest.raises(error):
        await call()


@pytest.mark.parametrize("options", [{}, AUTOCOMMIT], ids=["", "AUTOCOMMIT"])
async def test_nothing_is_lost_after_failures(
    way: Way, make_engine: Make, database_url: str, options: dict[str, Any]
) -> None:
    engine = make_engine(**options, **ONE)
    await refuse(way, engine, "checkpoints", "metadata")
    await refuse(way, engine, "checkpoint_writes", "channel")
    saver = way.saver(engine)
    peak = Peak(engine)
    for number in range(50):
        if number % 2:
            await _fail(saver, number // 2)
        else:
            await saver.aput(THREAD, checkpoint(words=[number]), {}, {"words": "1"})
        assert peak.now == 0
    assert rows(database_url) == [25, 1, 0]
    other = way.engine(database_url)
    await way.saver(other).adelete_thread("thread")
    await dispose(other)
    assert peak.most == 1


async def _anything(saver: SQLAlchemySaver, number: int, chance: random.Random) -> None:
    """One of the operations, as chance has it."""
    made = checkpoint(words=["a"], more=["b"])
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: saver.aput(of(number % 5), made, {}, {"words": "1", "more": "1"}),
        lambda: saver.aput_writes(_first(number), [("words", 1), ("more", 2)], "task"),
        lambda: saver.aget_tuple(of(number % 5)),
        lambda: _listed(saver),
        lambda: saver.acopy_thread(str(number % 5), f"copy {number}"),
        lambda: saver.aprune([str(number % 5)]),
        lambda: saver.adelete_for_runs(["1"]),
        lambda: saver.adelete_thread(str(number % 5)),
    ]
    await chance.choice(calls)()


def _first(number: int) -> Any:
    return {"configurable": {**of(number % 5)["configurable"], "checkpoint_id": "1"}}


async def _listed(saver: SQLAlchemySaver) -> None:
    async for _ in saver.alist(None):
        pass


@pytest.fixture
def uncollected(way: Way) -> Iterator[None]:
    """No garbage is collected: a lock of SQLite that waits for that might be kept for any time."""
    gc.collect()
    if way.dialect == "sqlite":  # drivers of PostgreSQL that are cancelled while they connect need it
        gc.disable()
    yield
    gc.enable()


# aiosqlite that is cancelled while it connects leaves the new connection to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <sqlite3.Connection")
@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_when_tasks_are_cancelled(
    way: Way, make_engine: Make, database_url: str, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - a seed, no secret
    threads_before = threading.active_count()
    engine = make_engine(pool_size=2, max_overflow=0, pool_timeout=60)
    peak = Peak(engine)
    saver = SQLAlchemySaver(engine)
    for number in range(5):
        await saver.aput(of(number), checkpoint(words=["a"]), {}, {"words": "1"})
    await saver.acopy_thread("0", "kept")

    async def cancelled(number: int) -> str:
        await asyncio.sleep(chance.random() / 5)
        task = asyncio.create_task(_anything(saver, number, chance))
        if number % 10:  # the others are never cancelled
            await asyncio.sleep(chance.random() ** 3 / 20)
            task.cancel()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(result, Exception):
            raise result
        return "ended" if result is None else "cancelled"

    ends = await asyncio.gather(*(cancelled(number) for number in range(200)))
    assert set(ends) == {"ended", "cancelled"}
    assert await connections_in_use(engine) == 0
    assert (peak.most, peak.now) == (2, 0)
    if way.dialect == "postgresql":
        await _no_more_than_two_are_open(database_url)
    async for found in saver.alist(None):  # each has all of its values
        assert found.checkpoint["channel_values"].keys() == found.checkpoint["channel_versions"].keys()
    assert await saver.aget_tuple({"configurable": {"thread_id": "kept"}}) is not None
    await _use_both(engine, saver)
    gc.collect()
    if way.name == "aiosqlite":  # it answers to this event loop
        await _no_more_threads_than(threads_before + 2)


async def _no_more_threads_than(number: int) -> None:
    """Each connection that was given up has ended its thread."""
    deadline = time.monotonic() + SECONDS
    while threading.active_count() > number:
        assert time.monotonic() < deadline, "a thread was forgotten"
        await asyncio.sleep(0.01)


async def _no_more_than_two_are_open(url: str) -> None:
    """The server knows of no connection that the pool has forgotten."""
    question = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    deadline = time.monotonic() + SECONDS
    while int(ask(make_url(url).set(drivername="postgresql+psycopg"), question)) > 2:
        assert time.monotonic() < deadline, "a connection was forgotten"
        await asyncio.sleep(0.05)


async def _use_both(engine: Engine | AsyncEngine, saver: SQLAlchemySaver) -> None:
    """Use two connections of the pool at the same time."""
    inside = Inside(engine, 2)
    await asyncio.gather(*(saver.aget_tuple(THREAD) for _ in range(2)))
    assert len(inside.connections) == 2


# What is used: all of it


class Inside:
    """Keeps each statement waiting until as many connections as are expected are inside of one."""

    def __init__(self, engine: Engine | AsyncEngine, expected: int) -> None:
        self.connections: set[int] = set()
        self._expected = expected
        self._changed = threading.Condition()
        wait = self._await if isinstance(engine, AsyncEngine) else self._wait
        event.listen(sync_of(engine), "before_cursor_execute", lambda connection, *_: wait(connection))

    def _wait(self, connection: Any) -> None:
        with self._changed:
            self.connections.add(id(connection.connection.dbapi_connection))
            self._changed.notify_all()
            assert self._changed.wait_for(self._all, SECONDS), "not all of them came inside"

    def _await(self, connection: Any) -> None:
        self.connections.add(id(connection.connection.dbapi_connection))
        connection.connection.dbapi_connection.run_async(lambda _: asyncio.wait_for(self._met(), SECONDS))

    async def _met(self) -> None:
        while not self._all():  # noqa: ASYNC110 - as the other one, for any number of event loops
            await asyncio.sleep(0.001)

    def _all(self) -> bool:
        return len(self.connections) >= self._expected


async def test_eight_reads_are_inside_the_database_at_once(way: Way, make_engine: Make) -> None:
    engine = make_engine(pool_size=8, max_overflow=0)
    saver = SQLAlchemySaver(engine)
    stored = await saver.aput(THREAD, checkpoint(words=["a"]), {}, {"words": "1"})
    inside = Inside(engine, 8)
    if way.sync:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(saver.get_tuple, [stored] * 8))
    else:
        found = await asyncio.gather(*(saver.aget_tuple(stored) for _ in range(8)))
    assert len(inside.connections) == 8
    assert [one.config for one in found if one is not None] == [stored] * 8


async def test_one_saver_from_many_threads_and_tasks(way: Way, make_engine: Make) -> None:
    saver = SQLAlchemySaver(make_engine(pool_size=5))
    stored = await saver.aput(THREAD, checkpoint(), {}, {})

    def in_thread(number: int) -> None:
        saver.put_writes(stored, [("a", number)], f"thread {number}")

    async def in_task(number: int) -> None:
        await saver.aput_writes(stored, [("a", number)], f"task {number}")

    threads = [asyncio.to_thread(in_thread, number) for number in range(10)]
    await asyncio.gather(*threads, *(in_task(number) for number in range(10)))
    found = await saver.aget_tuple(stored)
    assert found is not None
    assert len(found.pending_writes or []) == 20


THREADED = [way for way in WAYS if way.name in ("sqlite-threads", "psycopg")]


@pytest.mark.parametrize("way", THREADED, ids=lambda way: way.name)
async def test_threads_of_the_application_may_all_be_busy(way: Way, make_engine: Make) -> None:
    saver = SQLAlchemySaver(make_engine())
    free = threading.Event()
    busy = [asyncio.create_task(asyncio.to_thread(free.wait, SECONDS)) for _ in range(64)]
    try:
        stored = await asyncio.wait_for(saver.aput(THREAD, checkpoint(), {}, {}), SECONDS)
        assert await asyncio.wait_for(saver.aget_tuple(stored), SECONDS) is not None
    finally:
        free.set()
        assert all(await asyncio.gather(*busy))


@pytest.mark.parametrize("way", THREADED, ids=lambda way: way.name)
async def test_a_call_that_is_cancelled_before_it_began_never_begins(
    way: Way, make_engine: Make, database_url: str
) -> None:
    engine = make_engine(**ONE)
    saver = SQLAlchemySaver(engine)
    inside, free = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        inside.set()
        assert free.wait(SECONDS)

    event.listen(sync_of(engine), "before_cursor_execute", wait)
    first = asyncio.create_task(saver.aput(of(1), checkpoint(), {}, {}))
    while not inside.is_set():  # noqa: ASYNC110 - a thread sets it
        await asyncio.sleep(0.001)
    second = asyncio.create_task(saver.aput(of(2), checkpoint(), {}, {}))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    assert second.cancelled()
    free.set()
    await first
    assert await saver.aget_tuple(of(2)) is None
    assert rows(database_url)[0] == 1


# Who writes when


SQLITE = [way for way in WAYS if way.dialect == "sqlite"]


@pytest.mark.parametrize("way", SQLITE, ids=lambda way: way.name)
async def test_writers_of_one_process_follow_each_other(way: Way, make_engine: Make) -> None:
    """None of them finds the file locked, so none of them sleeps on SQLite's busy timeout."""
    engine = make_engine(pool_size=10, connect_args={"timeout": 0})
    saver = way.saver(engine)
    writing = Peak(engine)
    made = checkpoint(words=["a"], more=["b"])
    await asyncio.gather(*(saver.aput(of(n), made, {}, {"words": "1", "more": "1"}) for n in range(20)))
    assert [await saver.aget_tuple(of(number)) is not None for number in range(20)] == [True] * 20
    assert (writing.most, writing.now) == (1, 0)


@pytest.mark.parametrize("way", SQLITE, ids=lambda way: way.name)
async def test_a_writer_that_waits_long_goes_on(
    way: Way, make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has the turn may wait for another process; then the busy timeout of each decides."""
    monkeypatch.setattr("cpstore.doors.turns._WRITER_SECONDS", 0.01)
    saver = way.saver(make_engine(connect_args={"timeout": 0}))
    with turn(sync_of(saver_engine(saver)), alone=True):
        stored = await saver.aput(THREAD, checkpoint(), {}, {})
        assert await saver.aget_tuple(stored) is not None
    assert not _lock(sync_of(saver_engine(saver))).locked()


@pytest.mark.parametrize("way", SQLITE, ids=lambda way: way.name)
async def test_a_reader_never_waits_for_writers(way: Way, make_engine: Make) -> None:
    saver = way.saver(make_engine())
    stored = await saver.aput(THREAD, checkpoint(), {}, {})
    with turn(sync_of(saver_engine(saver)), alone=True):
        assert await asyncio.wait_for(saver.aget_tuple(stored), 0.9) is not None
        assert len([each async for each in saver.alist(None)]) == 1


def saver_engine(saver: SQLAlchemySaver) -> Engine | AsyncEngine:
    door: Any = saver._door
    engine: Engine | AsyncEngine = door._engine
    return engine


def test_a_process_that_was_forked_waits_for_no_thread_of_its_parent() -> None:
    threads = Threads(1)
    assert asyncio.run(threads.run(lambda: 6)) == 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of threads, which is what is tested here
        process = os.fork()
    if process == 0:
        os._exit(asyncio.run(threads.run(lambda: 7)))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7
