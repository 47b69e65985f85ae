"""Orders are those of code points, in a database that sorts as a locale does too.

The columns of our tables say so themselves, which is seen on the session's server. In a database with a
locale, the saver's own orders are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import create_engine, make_url, text

from cpstore import SQLAlchemySaver
from tests.conftest import SERVER, migrate
from tests.locales import LocaleDatabase, NoLocaleError, locale_database
from tests.postgres import connected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.runnables import RunnableConfig
    from sqlalchemy import URL, Engine

    from tests.postgres import Server

MIXED = [
    "~a",
    "Z",
    "a",
    "é",
    "-",
    "-b",
    "B",
    "b",
    "0",
    "a-b",
    "aB",
    "ab",
    "A",
    "z",
    "~",
    "1|b:2",
    "1|B:2",
    "é1",
]
"""Ids and paths that a locale sorts otherwise."""

NEWEST_FIRST = sorted(MIXED, reverse=True)

COLLATIONS = text("""
    SELECT r.relname || '.' || a.attname, c.collname
    FROM pg_attribute a
    JOIN pg_class r ON r.oid = a.attrelid
    JOIN pg_collation c ON c.oid = a.attcollation
    WHERE r.relname LIKE 'checkpoint%' AND r.relkind IN ('r', 'i') AND a.attnum > 0 AND a.attname <> 'expr'
""")
"""All but the expressions of indexes: `run_id` is looked up and never sorted by."""


def collations(url: str | URL) -> dict[str, str]:
    """The collation of each text column of our tables, and of each text column of their indexes."""
    with connected(make_url(url)) as connection:
        return {str(column): str(name) for column, name in connection.execute(COLLATIONS)}


# The columns, on every server.


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_every_text_column_sorts_by_code_point(dialect_url: str) -> None:
    found = collations(dialect_url)
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    keys = {f"{table}.thread_id" for table in tables} | {f"{table}_pkey.thread_id" for table in tables}
    assert keys | {"checkpoint_writes.task_path", "checkpoints.checkpoint_id"} <= found.keys()
    assert {column: name for column, name in found.items() if name != "C"} == {}


# The orders, in a database with a locale.


@pytest.fixture(scope="module")
def locale(postgres_server: Server, pytestconfig: pytest.Config) -> Iterator[LocaleDatabase]:
    """A migrated database that sorts as a locale does; the end of the session tells who made it."""
    try:
        with locale_database(postgres_server) as made:
            pytestconfig.stash[SERVER] += f"; database with a locale: {made.maker}"
            migrate(made.url)
            yield made
    except NoLocaleError as error:
        pytest.skip(f"no database with a locale, so only the columns were looked at:\n{error}")


@pytest.fixture
def engine(locale: LocaleDatabase) -> Iterator[Engine]:
    """An engine on that database, emptied."""
    engine = create_engine(locale.url)
    with engine.begin() as connection:
        connection.execute(text("TRUNCATE checkpoints, checkpoint_blobs, checkpoint_writes"))
    yield engine
    engine.dispose()


@pytest.fixture
def saver(engine: Engine) -> SQLAlchemySaver:
    return SQLAlchemySaver(engine)


def place(thread_id: str = "t", checkpoint_ns: str = "", **more: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, **more}}


def put(saver: SQLAlchemySaver, config: RunnableConfig, checkpoint_id: str) -> RunnableConfig:
    checkpoint: dict[str, Any] = {**empty_checkpoint(), "v": 4, "id": checkpoint_id}
    return saver.put(config, cast("Any", checkpoint), {"source": "loop"}, {})


def ids(saver: SQLAlchemySaver, config: RunnableConfig | None, **options: Any) -> list[str]:
    return [found.config["configurable"]["checkpoint_id"] for found in saver.list(config, **options)]


@pytest.fixture
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpstore.ops.reading._PAGE", 2)
    monkeypatch.setattr("cpstore.ops.reading._SCAN", 4)


def test_the_database_itself_sorts_otherwise(locale: LocaleDatabase) -> None:
    with connected(locale.url) as connection:
        statement = text("SELECT id FROM unnest(CAST(:ids AS text[])) AS id ORDER BY id DESC")
        assert list(connection.scalars(statement, {"ids": MIXED})) != NEWEST_FIRST
    assert set(collations(locale.url).values()) == {"C"}


@pytest.mark.usefixtures("_small_pages")
def test_checkpoints_are_listed_by_code_point(saver: SQLAlchemySaver) -> None:
    for checkpoint_id in MIXED:
        put(saver, place(), checkpoint_id)
    assert ids(saver, None) == ids(saver, place(), filter={"source": "loop"}) == NEWEST_FIRST
    for number, checkpoint_id in enumerate(NEWEST_FIRST):
        before = place(checkpoint_id=checkpoint_id)
        assert ids(saver, place(), before=before) == NEWEST_FIRST[number + 1 :]
    assert [found.checkpoint_id for found in saver.history("t")] == NEWEST_FIRST


@pytest.mark.usefixtures("_small_pages")
def test_each_checkpoint_is_listed_once(saver: SQLAlchemySaver) -> None:
    """One id in many threads and namespaces: pages go on in the middle of them."""
    for name in MIXED:
        put(saver, place(thread_id=name), "1")
        put(saver, place(thread_id="a", checkpoint_ns=name), "1")
    keys = [tuple(found.config["configurable"].values()) for found in saver.list(None)]
    assert len(keys) == len(set(keys)) == 2 * len(MIXED)


def test_the_newest_checkpoint_is_the_greatest_by_code_point(saver: SQLAlchemySaver) -> None:
    for checkpoint_id in sorted(MIXED):
        put(saver, place(), checkpoint_id)
        newest = saver.get_tuple(place())
        assert newest is not None
        assert newest.checkpoint["id"] == checkpoint_id


def test_writes_are_read_by_code_point(saver: SQLAlchemySaver) -> None:
    parent = put(saver, place(), "1")
    tasks = [(path, f"{task} of {path}") for path in MIXED for task in MIXED[:4]]
    for path, task_id in tasks:
        saver.put_writes(parent, [("c", [path, task_id, idx]) for idx in range(11)], task_id, path)
    expected = [[*task, idx] for task in sorted(tasks) for idx in range(11)]
    found = saver.get_tuple(parent)
    assert found is not None
    assert [value for _, _, value in found.pending_writes or []] == expected
    (listed,) = saver.list(place())
    assert listed.pending_writes == found.pending_writes
    child = put(saver, parent, "2")
    history = saver.get_delta_channel_history(config=child, channels=["c"])["c"]
    assert [value for _, _, value in history["writes"]] == expected


def test_threads_are_listed_by_code_point(saver: SQLAlchemySaver) -> None:
    for number, thread_id in enumerate(MIXED):
        put(saver, place(thread_id), f"{number:03}")
    by_id = saver.list_threads(order="thread_id")
    assert [found.thread_id for found in by_id] == sorted(MIXED)
    middle = by_id[len(MIXED) // 2]
    rest = saver.list_threads(order="thread_id", after=middle.cursor)
    assert [found.thread_id for found in rest] == [one for one in sorted(MIXED) if one > middle.thread_id]


def test_pruning_keeps_the_greatest_by_code_point(saver: SQLAlchemySaver) -> None:
    for checkpoint_id in MIXED:
        put(saver, place(), checkpoint_id)
    saver.prune(["t"])
    assert ids(saver, place()) == NEWEST_FIRST[:1]
