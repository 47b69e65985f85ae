"""How many statements each call takes: a count holds where a timing on a shared machine would not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from sqlalchemy import create_engine, event, make_url

from cpstore import Serializer, SQLAlchemySaver, engines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.runnables import RunnableConfig

    from tests.ways import Dialect

CHECKPOINTS = 1000

COUNTS = {
    # call: statements on SQLite (with BEGIN, where the driver does not begin by itself), on PostgreSQL
    "put": (2, 1),
    "put_writes": (1, 1),
    "get_tuple": (1, 1),
    "list, a page": (1, 1),
    "delete_thread": (3, 1),
    "copy_thread": (5, 4),
    "prune": (9, 8),
}


@pytest.fixture
def counted(dialect_url: str) -> Iterator[tuple[SQLAlchemySaver, list[str]]]:
    engine = create_engine(dialect_url)
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    yield SQLAlchemySaver(engine), statements
    engine.dispose()


def checkpoint(step: int) -> Checkpoint:
    made = empty_checkpoint()
    made["v"] = 4
    made["channel_values"] = {f"channel {number}": [step] for number in range(5)}
    made["channel_versions"] = dict.fromkeys(made["channel_values"], f"{step:05}.1")
    return made


def grown(saver: SQLAlchemySaver, checkpoints: int) -> RunnableConfig:
    config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for step in range(checkpoints):
        made = checkpoint(step)
        config = saver.put(config, made, {"step": step}, made["channel_versions"])
        saver.put_writes(config, [("channel 0", step), ("channel 1", step)], "task")
    return config


def test_statements_of_each_call(counted: tuple[SQLAlchemySaver, list[str]], dialect: Dialect) -> None:
    """Ten checkpoints or a thousand, the counts are these; what prune reads comes 5,000 rows at a time."""
    saver, statements = counted
    newest = grown(saver, CHECKPOINTS)
    made = checkpoint(CHECKPOINTS)
    calls: dict[str, Callable[[], Any]] = {
        "put": lambda: saver.put(newest, made, {}, made["channel_versions"]),
        "put_writes": lambda: saver.put_writes(newest, [("a", 1), ("b", 2), ("c", 3)], "other"),
        "get_tuple": lambda: saver.get_tuple(newest),
        "list, a page": lambda: list(saver.list(newest | {"configurable": {"thread_id": "t"}}, limit=25)),
        "copy_thread": lambda: saver.copy_thread("t", "copy"),
        "prune": lambda: saver.prune(["t"]),
        "delete_thread": lambda: saver.delete_thread("copy"),
    }
    found = {}
    for name, call in calls.items():
        statements.clear()
        call()
        found[name] = len(statements)
    column = {"sqlite": 0, "postgresql": 1}[dialect]
    assert found == {name: counts[column] for name, counts in COUNTS.items()}


def test_a_longer_list_takes_more_pages_and_no_more_statements_a_page(
    counted: tuple[SQLAlchemySaver, list[str]],
) -> None:
    saver, statements = counted
    grown(saver, 100)
    lengths = []
    for limit in (25, 100):
        statements.clear()
        assert len(list(saver.list(None, limit=limit))) == limit
        lengths.append(len(statements))
    assert lengths[1] <= 4 * lengths[0] + 1  # the first page is searched and loaded at once


def test_many_writes_and_channels_are_one_statement_on_postgresql(
    counted: tuple[SQLAlchemySaver, list[str]], dialect: Dialect
) -> None:
    saver, statements = counted
    place = grown(saver, 1)
    statements.clear()
    saver.put_writes(place, [("channel", number) for number in range(100)], "many")
    assert len(statements) == 1


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_a_read_looks_each_row_up_by_its_key(dialect_url: str) -> None:
    """However long a thread is: the plan of the read has no scan of a table, and no sort of a thread."""
    engine = create_engine(dialect_url)
    grown(SQLAlchemySaver(engine), 30)
    plans: list[str] = []

    def explained(connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("WITH t AS"):
            cursor = connection.connection.cursor()
            cursor.execute("SET enable_seqscan = off")
            cursor.execute(f"EXPLAIN {statement}", parameters)
            plans.append("\n".join(row[0] for row in cursor.fetchall()))

    event.listen(engine, "before_cursor_execute", explained)
    for place in ({}, {"checkpoint_id": "1"}):
        SQLAlchemySaver(engine).get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": "", **place}})
    assert len(plans) == 2
    for plan in plans:
        assert "Seq Scan on checkpoint" not in plan
        assert "Sort" not in plan
        assert plan.count("Index Scan") >= 4
    engine.dispose()


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_our_own_engines_let_postgresql_plan_a_statement_once(dialect_url: str) -> None:
    """Of what it knows of the tables, it would choose to plan a page anew each time."""
    made = engines.from_url(dialect_url)
    assert made.sync is not None
    saver = SQLAlchemySaver(made)
    place = grown(saver, 30)
    with made.sync.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
    for _ in range(10):
        saver.get_tuple(place)
        list(saver.list({"configurable": {"thread_id": "t"}}, limit=20))
    with made.sync.connect() as connection:  # the one that came back last
        plans = connection.exec_driver_sql(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
            " WHERE statement LIKE 'WITH t AS%%'"
        ).all()
    assert [tuple(row) for row in plans] == [(10, 0), (10, 0)]
    saver.close()
    made.sync.dispose()


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
@pytest.mark.parametrize(("pooler", "mode"), [(False, "force_generic_plan"), (True, "auto")])
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_a_session_behind_a_pooler_is_left_as_it_was(
    dialect_url: str, driver: str, pooler: bool, mode: str
) -> None:
    url = make_url(dialect_url).set(drivername=f"postgresql+{driver}")
    made = engines.from_url(url, pooler=pooler).asynchronous
    assert made is not None
    for _ in range(2):  # what is said when a connection is made outlives what is done on it
        async with made.connect() as connection:
            found = await connection.exec_driver_sql("SHOW plan_cache_mode")
            assert found.scalar_one() == mode
            await connection.rollback()
    await made.dispose()


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("read", ["get_tuple", "list"])
def test_a_read_looks_each_row_up_by_its_key_on_sqlite(dialect_url: str, read: str) -> None:
    """As above: keys are found first, and what they are of is searched by all that the keys say."""
    engine = create_engine(dialect_url)
    saver = SQLAlchemySaver(engine)
    grown(saver, 30)
    plans: list[str] = []

    def explained(connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        cursor = connection.connection.cursor()
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        plans.append("\n".join(row[3] for row in cursor.fetchall()))

    event.listen(engine, "before_cursor_execute", explained)
    place: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    saver.get_tuple(place) if read == "get_tuple" else list(saver.list(place, limit=20))
    (plan,) = plans
    searches = [line for line in plan.splitlines() if line.startswith("SEARCH")]
    assert sum("SEARCH b" in line and "AND version=?" in line for line in searches) == 2
    assert sum("SEARCH w" in line and "AND checkpoint_id=?" in line for line in searches) == 2
    assert len(searches) == 5
    assert not any(f"SCAN {table}" in plan for table in ("b\n", "w\n", "c\n", "checkpoint"))
    engine.dispose()


class Counting(Serializer):
    loads = 0

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self.loads += 1
        return super().loads_typed(data)


def test_what_nobody_can_change_is_decoded_once_a_page(dialect_url: str) -> None:
    """A text that 20 checkpoints have in common is one object; a list is made anew for each of them."""
    engine = create_engine(dialect_url)
    serializer = Counting()
    saver = SQLAlchemySaver(engine, serde=serializer)
    place: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for step in range(20):
        made = checkpoint(step)
        made["channel_values"] = {"text": "a long text " * 50, "list": ["item"]}
        made["channel_versions"] = {"text": "1", "list": "1"}
        place = saver.put(place, made, {}, {} if step else {"text": "1", "list": "1"})
    serializer.loads = 0
    found = list(saver.list(None))
    assert serializer.loads == 1 + 20
    lists = [each.checkpoint["channel_values"]["list"] for each in found]
    assert lists == [["item"]] * 20
    assert len({id(each) for each in lists}) == 20
    engine.dispose()
