"""Threads from database to database, in all four directions: what arrives, what a second run does, what is
refused, and how much is held meanwhile."""

from __future__ import annotations

import tracemalloc
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.types import INTERRUPT
from sqlalchemy import URL, QueuePool, StaticPool, create_engine, select

from cpstore import (
    AESGCMSerializer,
    AsyncOnlyError,
    NotMigratedError,
    OtherHistoryError,
    SameDatabaseError,
    SQLAlchemySaver,
    ThreadExistsError,
    TransferIncompleteError,
    UnknownSourceError,
    UnknownThreadError,
    UnreadableValueError,
)
from cpstore.doors import door_of
from cpstore.engines import read_only
from cpstore.models import MODELS
from cpstore.ops import prune, store_rows
from cpstore.transfer import Progress, Transferred, amounts, atransfer, transfer
from tests.conftest import fresh_database, text_of
from tests.random_histories import History, Player, histories
from tests.survivors import read
from tests.test_laws import states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple
    from sqlalchemy import Engine, Pool

    from tests.ways import Dialect

LAW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
DIRECTIONS = [(a, b) for a in ("sqlite", "postgresql") for b in ("sqlite", "postgresql")]
KEY = b"k" * 32


class Pair(NamedTuple):
    source: SQLAlchemySaver
    target: SQLAlchemySaver


@contextmanager
def migrated(request: pytest.FixtureRequest, dialect: Dialect, name: str) -> Iterator[str]:
    """A migrated database; of two files, each has its own name."""
    with fresh_database(request, dialect, migrated=True) as url:
        if dialect == "sqlite":
            file = request.getfixturevalue("tmp_path") / "migrated.db"
            yield text_of(url.set(database=str(file.rename(file.with_name(f"{name}.db")))))
        else:
            yield text_of(url)


@pytest.fixture(params=DIRECTIONS, ids="-to-".join)
def urls(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    source, target = request.param
    with migrated(request, source, "source") as one, migrated(request, target, "target") as other:
        yield one, other


@pytest.fixture
def pair(urls: tuple[str, str]) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(*(stack.enter_context(SQLAlchemySaver.from_url(url)) for url in urls))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches so small that every test has several; lists in pieces."""
    set_batches(monkeypatch, 3, 2, 2000)
    monkeypatch.setattr("cpstore.appends._SMALLEST_BYTES", 0)


def set_batches(monkeypatch: pytest.MonkeyPatch, keys: int, rows: int, size: int) -> None:
    for module in ("thread", "amounts"):
        monkeypatch.setattr(f"cpstore.transfer.{module}.KEYS", keys)
    monkeypatch.setattr("cpstore.transfer.run._THREADS", keys)
    monkeypatch.setattr("cpstore.transfer.amounts._ROWS", rows)
    monkeypatch.setattr("cpstore.transfer.amounts._BYTES", size)


def place(thread: str, namespace: str = "", checkpoint_id: str | None = None) -> RunnableConfig:
    named: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
    if checkpoint_id is not None:
        named["configurable"]["checkpoint_id"] = checkpoint_id
    return named


def put(
    saver: SQLAlchemySaver, config: RunnableConfig, values: dict[str, Any], checkpoint_id: str | None = None
) -> RunnableConfig:
    versions: Any = {channel: saver.get_next_version(None, None) for channel in values}
    made: Any = {
        **empty_checkpoint(),
        "v": 4,
        "id": checkpoint_id or str(uuid6()),
        "channel_values": values,
        "channel_versions": versions,
    }
    return saver.put(config, made, {"source": "loop", "step": 1, "parents": {}}, versions)


def fill(saver: SQLAlchemySaver, threads: int, checkpoints: int = 3) -> None:
    for number in range(threads):
        config = place(f"thread {number}", "sub" if number % 2 else "")
        for step in range(checkpoints):
            config = put(saver, config, {"words": ["word"] * step, "short": step})
            saver.put_writes(config, [("words", [step]), (INTERRUPT, [step])], f"task {step}")


def listed(saver: SQLAlchemySaver, thread: str | None = None) -> list[CheckpointTuple]:
    return list(saver.list(None if thread is None else {"configurable": {"thread_id": thread}}))


def engine_of(saver: SQLAlchemySaver) -> Engine:
    door: Any = saver._door
    engine: Engine = getattr(door, "_sync", door)._engine
    return engine


def rows_of(saver: SQLAlchemySaver) -> list[list[Any]]:
    """All that the tables hold; JSON as what it says."""
    with engine_of(saver).begin() as connection:
        return [sorted(map(tuple, connection.execute(select(table))), key=repr) for table in MODELS.tables]


# Laws


@LAW
@given(history=histories())
def test_a_thread_reads_as_before(pair: Pair, history: History) -> None:
    player = Player(pair.source, lambda: pair.source)
    player.play(history)
    for table in ("before", "again"):
        done = transfer(*pair, threads=list(set(player.threads) & threads_with_rows(pair.source)))
        assert bool(done.changed) == (table == "before")
    for thread in player.threads:
        there = read(pair.source, thread)
        assert listed(pair.target, thread) == listed(pair.source, thread)
        assert states(pair.target, read(pair.target, thread)) == states(pair.source, there)
    for thread in player.threads:
        for saver in pair:
            saver.delete_thread(thread)


def threads_with_rows(saver: SQLAlchemySaver) -> set[str]:
    return {row[0] for table in rows_of(saver) for row in table}


def test_all_rows_arrive_and_a_second_run_writes_nothing(pair: Pair) -> None:
    fill(pair.source, 7)
    done = transfer(*pair)
    assert rows_of(pair.target) == rows_of(pair.source)
    assert (done.threads, done.changed) == (7, 7)
    assert (done.checkpoints, done.writes) == (21, 42)
    assert done.blobs == len(rows_of(pair.source)[1])
    assert done.bytes > 0
    before = rows_of(pair.target)
    assert transfer(*pair) == Transferred(threads=7)
    assert rows_of(pair.target) == before


def test_chosen_threads_and_others_untouched(pair: Pair) -> None:
    fill(pair.source, 4)
    put(pair.target, place("mine"), {"words": ["mine"]})
    mine = listed(pair.target, "mine")
    assert transfer(*pair, threads=["thread 1", "thread 3", "thread 1"]).threads == 2
    assert {found.config["configurable"]["thread_id"] for found in listed(pair.target)} == {
        "mine",
        "thread 1",
        "thread 3",
    }
    assert listed(pair.target, "mine") == mine
    transfer(*pair)
    assert listed(pair.target, "mine") == mine
    assert [one for one in listed(pair.target) if one not in mine] == listed(pair.source)


def test_ids_that_sort_in_another_way_elsewhere(pair: Pair) -> None:
    names = [
        "a",
        "B",
        "_",
        "~",
        "é",
        "Z",
        "z",
        "ä",
        "-a",
        "a b",
        "0",
        "10",
        "9",
        " ",
        "😀",
        "日本",
        "%",
        "'",
        "a'b",
    ]
    for name in names:
        config = place(name, name)
        for checkpoint_id in names:
            put(pair.source, config, {name: [name]}, checkpoint_id)
            pair.source.put_writes(place(name, name, checkpoint_id), [(name, name)] * 3, name, name)
    assert transfer(*pair).threads == len(names)
    assert rows_of(pair.target) == rows_of(pair.source)
    assert transfer(*pair).changed == 0


def test_rows_without_a_checkpoint_go_too(pair: Pair) -> None:
    pair.source.put_writes(place("early", "", str(uuid6())), [("words", 1)], "task")
    assert transfer(*pair) == Transferred(threads=1, changed=1, writes=1, bytes=1)
    assert rows_of(pair.target) == rows_of(pair.source)


def test_many_rows(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    set_batches(monkeypatch, 100, 40, 10_000)
    config = place("long")
    for step in range(60):
        config = put(pair.source, config, {f"channel {n}": [step] for n in range(10)})
        pair.source.put_writes(config, [("words", n) for n in range(40)], "task")
    done = transfer(*pair)
    assert (done.checkpoints, done.blobs, done.writes) == (60, 600, 2400)
    assert rows_of(pair.target) == rows_of(pair.source)


# Again


def test_what_came_meanwhile_comes_with_the_next_run(pair: Pair) -> None:
    config = put(pair.source, place("1"), {"words": ["old"]})
    pair.source.put_writes(config, [("words", "old"), (INTERRUPT, "old")], "task")
    transfer(*pair)
    pair.source.put_writes(config, [("words", "new"), (INTERRUPT, "new question")], "task")
    pair.source.put_writes(config, [("words", "other")], "task 2")
    put(pair.source, place("1"), {"short": 1}, config["configurable"]["checkpoint_id"])
    put(pair.source, config, {"words": ["next"]})
    done = transfer(*pair)
    assert (done.checkpoints, done.blobs, done.writes) == (2, 1, 2)
    assert listed(pair.target) == listed(pair.source)
    assert transfer(*pair) == Transferred(threads=1)


def test_numbers_that_the_database_writes_anew_are_no_change(pair: Pair) -> None:
    checkpoint: Any = {**empty_checkpoint(), "odd": [1e300, 1e16, 1e-7, 0.1, -0.0, 10**30, 123456.0]}
    pair.source.put(place("1"), checkpoint, {"step": 1}, {})
    transfer(*pair)
    assert transfer(*pair) == Transferred(threads=1)


class CrashError(Exception):
    pass


def crash_after(calls: int) -> Callable[[Progress], None]:
    left = iter(range(calls))

    def tell(_: Progress) -> None:
        if next(left, None) is None:
            raise CrashError

    return tell


def test_a_run_that_broke_off_anywhere_is_completed(pair: Pair) -> None:
    fill(pair.source, 3)
    with patch("cpstore.transfer.thread.ops.store_rows", counted := Counted()):
        transfer(*pair)
    stores = counted.calls
    assert stores > 10
    for until in range(stores):
        for number in range(3):
            pair.target.delete_thread(f"thread {number}")
        with patch("cpstore.transfer.thread.ops.store_rows", broken := Counted(until)):
            with pytest.raises(CrashError):
                transfer(*pair)
            assert_readable(pair)
            sent = broken.rows
        with patch("cpstore.transfer.thread.ops.store_rows", rest := Counted()):
            transfer(*pair)
        assert sent + rest.rows == counted.rows, "rows that were there were sent again"
        assert listed(pair.target) == listed(pair.source)


def assert_readable(pair: Pair) -> None:
    """Whatever stands there has its blobs and its writes."""
    complete = {found.checkpoint["id"]: found for found in listed(pair.source)}
    for found in listed(pair.target):
        assert found == complete[found.checkpoint["id"]]


class Counted:
    """`store_rows`, that counts and breaks off."""

    def __init__(self, until: int | None = None) -> None:
        self.unit = store_rows
        self.mode, self.repeatable = store_rows.mode, store_rows.repeatable
        self.until = until
        self.calls = self.rows = 0

    def __call__(self, connection: Any, sql: Any, part: str, rows: Any) -> None:
        if self.calls == self.until:
            raise CrashError
        self.unit(connection, sql, part, rows)
        self.calls += 1
        self.rows += len(rows)


def test_a_source_that_goes_on_meanwhile(pair: Pair) -> None:
    """At each batch a run saves writes and a child: none arrives before its blobs and its parent's writes."""
    config = place("busy")
    for _ in range(3):
        config = put(pair.source, config, {"words": ["first"]})
    steps = iter(range(10))

    def go_on(_: Progress) -> None:
        nonlocal config
        if (step := next(steps, None)) is not None:
            pair.source.put_writes(config, [("log", [step])], f"task {step}")
            config = put(pair.source, config, {"words": [step], "more": ["x"] * step})
            assert_has_needed(pair)

    transfer(*pair, on_progress=go_on)
    assert_has_needed(pair)
    transfer(*pair)
    assert listed(pair.target) == listed(pair.source)


def test_a_source_that_replaces_checkpoints_meanwhile(pair: Pair) -> None:
    """Under its old id a checkpoint points at new blobs: it arrives with them, or as it was."""
    ids = [str(uuid6()) for _ in range(4)]
    for one in ids:
        put(pair.source, place("busy"), {"words": ["first"]}, one)
    steps = iter(range(10))

    def replace(_: Progress) -> None:
        if (step := next(steps, None)) is not None:
            for one in ids:
                put(pair.source, place("busy"), {"words": [step]}, one)
            assert_has_values(pair.target)

    transfer(*pair, on_progress=replace)
    assert_has_values(pair.target)
    transfer(*pair)
    assert listed(pair.target) == listed(pair.source)


def assert_has_values(saver: SQLAlchemySaver) -> None:
    for found in listed(saver):
        assert found.checkpoint["channel_values"].keys() == {"words"}


def assert_has_needed(pair: Pair) -> None:
    """Values of what arrived are those of the source, and so are its ancestors' writes."""
    there = {found.checkpoint["id"]: found for found in listed(pair.source)}
    arrived = {found.checkpoint["id"]: found for found in listed(pair.target)}
    for found in arrived.values():
        expected = there[found.checkpoint["id"]]
        assert found.checkpoint == expected.checkpoint
        parent = found.parent_config and found.parent_config["configurable"]["checkpoint_id"]
        if parent in arrived:
            assert arrived[parent].pending_writes == there[parent].pending_writes


# Refusals


def test_a_target_that_went_on_is_refused_and_others_are_transferred(pair: Pair) -> None:
    fill(pair.source, 4)
    transfer(*pair)
    went_on = put(pair.target, listed(pair.target, "thread 1")[0].config, {"words": ["other"]})
    pair.target.put_writes(listed(pair.target, "thread 2")[0].config, [("words", 1)], "other task")
    fill(pair.source, 5)
    before = [listed(pair.target, f"thread {number}") for number in (1, 2)]
    with pytest.raises(OtherHistoryError, match=r"'thread 1', 'thread 2'$") as refused:
        transfer(*pair)
    assert isinstance(refused.value, ThreadExistsError)
    assert refused.value.threads == ("thread 1", "thread 2")
    assert [listed(pair.target, f"thread {number}") for number in (1, 2)] == before
    for number in (0, 3, 4):
        assert listed(pair.target, f"thread {number}") == listed(pair.source, f"thread {number}")
    for number in (1, 2):
        pair.target.delete_thread(f"thread {number}")
    transfer(*pair)
    assert listed(pair.target) == listed(pair.source)
    assert pair.target.get_tuple(went_on) is None


def test_a_target_that_lost_rows_meanwhile_is_told_of(pair: Pair) -> None:
    fill(pair.source, 2)

    def lose(progress: Progress) -> None:
        if progress.thread_id == "thread 1":
            pair.target.delete_thread("thread 1")

    with pytest.raises(TransferIncompleteError, match=r"'thread 1'$") as told:
        transfer(*pair, on_progress=lose)
    assert told.value.threads == ("thread 1",)
    transfer(*pair)
    assert listed(pair.target) == listed(pair.source)


def test_an_unknown_thread_is_an_error_before_anything_is_written(pair: Pair) -> None:
    fill(pair.source, 2)
    with pytest.raises(UnknownThreadError, match="'thread 9'"):
        transfer(*pair, threads=["thread 1", "thread 9"])
    assert listed(pair.target) == []
    with pytest.raises(TypeError):
        transfer(*pair, threads="thread 1")


def test_the_same_database_is_refused(urls: tuple[str, str], pair: Pair) -> None:
    fill(pair.source, 1)
    for same in (pair.source, urls[0]):
        with pytest.raises(SameDatabaseError):
            transfer(pair.source, same)


def test_a_target_that_is_not_migrated(dialect_url: str, empty_dialect_url: str) -> None:
    with pytest.raises(NotMigratedError):
        transfer(dialect_url, empty_dialect_url)
    with pytest.raises(UnknownSourceError):
        transfer(empty_dialect_url if "sqlite" not in empty_dialect_url else "sqlite://", dialect_url)


def test_a_source_is_never_made_nor_written(tmp_path: Path, dialect_url: str) -> None:
    for name in ("missing.db", "missing%20?.db"):
        with pytest.raises(UnknownSourceError, match="no file"):
            transfer(f"sqlite:///{tmp_path / name}".replace("?", "%3F"), dialect_url)
    assert list(tmp_path.glob("missing*")) == []


def test_a_source_url_can_only_read(urls: tuple[str, str], pair: Pair) -> None:
    fill(pair.source, 1)
    door = door_of(read_only(urls[0]), MODELS)
    with pytest.raises(Exception, match=r"(?i)read-?only"):
        door.run(prune, "thread 0", 0)
    door.close()
    assert transfer(urls[0], pair.target).threads == 1


def test_an_odd_file_name(tmp_path: Path, dialect_url: str, sqlite_template: Path) -> None:
    file = tmp_path / "a b%20#?.db"
    file.write_bytes(sqlite_template.read_bytes())
    url = URL.create("sqlite", database=str(file))
    with SQLAlchemySaver.from_url(url) as saver:
        fill(saver, 1)
    assert transfer(url, dialect_url).checkpoints == 3


# Savers and doors


async def test_async_engines(database_url: str, saver: SQLAlchemySaver, tmp_path: Path) -> None:
    """Through every driver, in both directions."""
    with SQLAlchemySaver.from_url(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.setup()
        fill(other, 3)
        assert (await atransfer(other, saver)).threads == 3
        assert [found async for found in saver.alist(None)] == listed(other)
    async with SQLAlchemySaver.from_url(f"sqlite+aiosqlite:///{tmp_path / 'third.db'}") as third:
        await third.asetup()
        assert (await atransfer(database_url, third)).threads == 3
        assert [found async for found in third.alist(None)] == listed(other)
        assert (await atransfer(saver, third)) == Transferred(threads=3)


def test_a_sync_transfer_through_an_async_engine_is_a_named_error(tmp_path: Path, dialect_url: str) -> None:
    (tmp_path / "x.db").touch()
    with pytest.raises(AsyncOnlyError):
        transfer(f"sqlite+aiosqlite:///{tmp_path / 'x.db'}", dialect_url)


def test_the_engines_of_savers_are_left_open_and_their_connections_given_back(pair: Pair) -> None:
    fill(pair.source, 2)
    transfer(*pair)
    fill(pair.target, 0)
    assert len(listed(pair.target)) == 6


@pytest.mark.parametrize("pool", [QueuePool, StaticPool])
def test_two_savers_on_one_engine(dialect_url: str, pool: type[Pool]) -> None:
    """They differ in the names of their tables, and share one connection."""
    only: dict[str, Any] = {"pool_size": 1, "max_overflow": 0} if pool is QueuePool else {}
    engine = create_engine(dialect_url, poolclass=pool, **only)
    old, new = SQLAlchemySaver(engine), SQLAlchemySaver(engine, prefix="new_")
    new.setup()
    fill(old, 3)
    assert transfer(old, new).changed == 3
    assert listed(new) == listed(old)
    with pytest.raises(SameDatabaseError):
        transfer(new, SQLAlchemySaver(engine, prefix="new_"))
    engine.dispose()


def test_tenants_in_schemas(request: pytest.FixtureRequest) -> None:
    with migrated(request, "postgresql", "tenants") as url:
        engine = create_engine(url)
        tenants = []
        for name in ("one", "two"):
            tenant = SQLAlchemySaver(
                engine.execution_options(schema_translate_map={"tenant": name}), schema="tenant"
            )
            tenant.setup()
            tenants.append(tenant)
        fill(tenants[0], 3)
        assert transfer(*tenants).changed == 3
        assert listed(tenants[1]) == listed(tenants[0])
        assert listed(SQLAlchemySaver(engine)) == []
        engine.dispose()


def test_progress(pair: Pair) -> None:
    fill(pair.source, 4)
    told: list[Progress] = []
    transfer(*pair, on_progress=told.append)
    total = sum(map(len, rows_of(pair.source)))
    assert {each.total for each in told} == {total}
    assert [each.done for each in told] == sorted(each.done for each in told)
    assert told[-1].done == total
    assert {each.thread_id for each in told} == {f"thread {number}" for number in range(4)}


# Values


def test_values_that_cannot_be_read_go_as_they_are(pair: Pair) -> None:
    config = put(pair.source, place("1"), {"words": ["word"]})
    pair.source.put_writes(config, [("words", 1)], "task")
    spoil(pair.source)
    transfer(*pair)
    assert rows_of(pair.target) == rows_of(pair.source)
    with pytest.raises(UnreadableValueError):
        pair.target.get_tuple(place("1"))


def spoil(saver: SQLAlchemySaver) -> None:
    with engine_of(saver).begin() as connection:
        connection.execute(MODELS.tables.blobs.update().values(blob=b"\xc1\x00\xff", type="pickle"))
        connection.execute(MODELS.tables.writes.update().values(blob=b"\xc1", type="nobody's"))


def test_encrypted_rows_need_no_key(pair: Pair) -> None:
    cipher = AESGCMSerializer({"1": KEY})
    pair.source.serde = pair.target.serde = cipher
    fill(pair.source, 2)
    transfer(*pair)
    assert rows_of(pair.target) == rows_of(pair.source)
    assert listed(pair.target) == listed(pair.source)


def test_to_encryption_and_to_another_key(pair: Pair) -> None:
    fill(pair.source, 3)
    pair.source.put(place("bare"), {**empty_checkpoint(), "channel_values": {"bare": [1]}}, {"step": 1}, {})
    before = listed(pair.source)
    moving = AESGCMSerializer({"1": KEY}, plain_rows=True)
    transfer(*pair, serde=moving)
    assert transfer(*pair, serde=moving) == Transferred(threads=4)
    pair.target.serde = AESGCMSerializer({"1": KEY})
    assert listed(pair.target) == before
    assert b"word" not in b"".join(row[-1] or b"" for row in rows_of(pair.target)[1])

    fresh = SQLAlchemySaver.from_url("sqlite://")
    fresh.setup()
    rotated = AESGCMSerializer({"1": KEY, "2": KEY[::-1]})
    transfer(pair.target, fresh, serde=rotated)
    assert transfer(pair.target, fresh, serde=rotated) == Transferred(threads=4)
    fresh.serde = AESGCMSerializer({"2": KEY[::-1]})
    assert listed(fresh) == before
    fresh.close()


def test_a_changed_row_is_sealed_again(pair: Pair) -> None:
    config = put(pair.source, place("1"), {"words": ["word"]})
    pair.source.put_writes(config, [(INTERRUPT, "old")], "task")
    moving = AESGCMSerializer({"1": KEY}, plain_rows=True)
    transfer(*pair, serde=moving)
    pair.source.put_writes(config, [(INTERRUPT, "new")], "task")
    assert transfer(*pair, serde=moving).writes == 1
    pair.target.serde = AESGCMSerializer({"1": KEY})
    assert listed(pair.target) == listed(pair.source)


def test_a_value_that_cannot_be_sealed_names_its_place(pair: Pair) -> None:
    fill(pair.source, 1)
    with pytest.raises(UnreadableValueError, match="'words' of thread 'thread 0'"):
        transfer(*pair, serde=AESGCMSerializer({"1": KEY}))
    assert listed(pair.target) == []


# Memory


def test_no_more_is_held_than_a_batch(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 MB in values of 1 MB, and one of 8 MB, with batches of 2 MB: what is held is a few values."""
    set_batches(monkeypatch, 100, 50, 2 << 20)
    config = place("large")
    for step in range(40):
        config = put(pair.source, config, {"words": bytes([step]) * (8 << 20 if step == 20 else 1 << 20)})
    with patch("cpstore.transfer.thread.ops.store_rows", held := Held()):
        tracemalloc.start()
        transfer(*pair)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert held.rows < 50
    assert held.bytes < (8 << 20) + 100
    assert peak < 60 << 20, peak  # of 48 MB, of which a driver may hold the largest value several times
    assert rows_of(pair.target) == rows_of(pair.source)


class Held(Counted):
    """`store_rows`, that keeps the largest batch."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __call__(self, connection: Any, sql: Any, part: str, rows: Any) -> None:
        self.unit(connection, sql, part, rows)
        self.rows = max(self.rows, len(rows))
        self.bytes = max(self.bytes, sum(map(amounts.size_of_row, rows)))
