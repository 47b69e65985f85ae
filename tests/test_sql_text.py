"""No key and no value of a caller is ever part of SQL text: whatever a name holds, it is bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import create_engine

from cpstore import SQLAlchemySaver
from tests.statements import sent_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.runnables import RunnableConfig
    from sqlalchemy import Engine

MARK = "marker"

HOSTILE = f"""{MARK}'"\\$.%s:p_x?[0]{{}}--/*;é"""
"""What would end a string, a name or a path, or be taken for a parameter, if it stood in SQL text."""


def name(kind: str) -> str:
    """A hostile name of one kind of thing."""
    return f"{HOSTILE} {kind}"


def config(**more: str) -> RunnableConfig:
    configurable = {"thread_id": name("thread"), "checkpoint_ns": name("namespace"), **more}
    return {"configurable": configurable, "metadata": {name("run key"): name("run value")}}


ROOT = f"!{name('root')}"
"""The id of a checkpoint of the root graph, which is older than the other."""

SAVED = config(checkpoint_id=name("checkpoint"))
METADATA: dict[str, Any] = {
    name("key"): name("value"),
    "run_id": name("run"),
    name("outer"): {name("inner"): [name("item"), {name("deep"): None}]},
}


def put(saver: SQLAlchemySaver) -> None:
    channels = {name(f"channel {number}"): f"{number}.{HOSTILE}" for number in range(20)}
    checkpoint: dict[str, Any] = {
        **empty_checkpoint(),
        "id": name("checkpoint"),
        "channel_values": {channel: [HOSTILE] for channel in channels},
        "channel_versions": channels,
        name("unknown"): HOSTILE,
    }
    for versions in (dict([*channels.items()][:2]), channels):
        parent = config(checkpoint_id=name("parent"))
        saver.put(parent, cast("Any", checkpoint), cast("Any", METADATA), cast("Any", versions))
    place = config(checkpoint_ns="")
    saver.put(place, cast("Any", {**checkpoint, "id": ROOT}), {}, cast("Any", channels))


def put_writes(saver: SQLAlchemySaver) -> None:
    writes = [(name(f"channel {number}"), HOSTILE) for number in range(20)]
    for some in (writes[:2], writes):
        saver.put_writes(SAVED, some, name("task"), name("path"))


def search(saver: SQLAlchemySaver) -> None:
    filters: list[dict[str, Any]] = [{key: value} for key, value in METADATA.items()]
    for wanted in [*filters, METADATA]:
        assert len(list(saver.list(None, filter=wanted))) == 1
    assert list(saver.list(config(), filter={name("absent"): HOSTILE}, before=SAVED, limit=3)) == []
    assert len(list(saver.list(SAVED, filter=METADATA))) == 1


def delta_history(saver: SQLAlchemySaver) -> None:
    saver.get_delta_channel_history(config=SAVED, channels=[name("channel 1"), name("absent")])


def list_threads(saver: SQLAlchemySaver) -> None:
    for order in ("newest", "thread_id"):
        for wanted in (None, METADATA):
            (found,) = saver.list_threads(order=order, filter=wanted)
            assert found.thread_id == name("thread")
            assert saver.list_threads(after=found.cursor, order=order, filter=wanted) == []


CALLS: dict[str, Callable[[SQLAlchemySaver], Any]] = {
    "put": put,
    "put_writes": put_writes,
    "get_tuple": lambda saver: saver.get_tuple(SAVED),
    "get_tuple, newest": lambda saver: saver.get_tuple(config()),
    "list": search,
    "get_delta_channel_history": delta_history,
    "history": lambda saver: list(saver.history(name("thread"), checkpoint_ns=name("namespace"))),
    "list_threads": list_threads,
    "storage": lambda saver: list(saver.storage(thread_ids=[name("thread")])),
    "storage, all threads": lambda saver: list(saver.storage()),
    "copy_thread": lambda saver: saver.copy_thread(name("thread"), name("copy")),
    "copy_thread, a chain": lambda saver: saver.copy_thread(
        name("thread"), name("chain"), checkpoint_id=ROOT
    ),
    "prune": lambda saver: saver.prune([name("copy"), name("chain")]),
    "prune, all": lambda saver: saver.prune([name("copy"), name("chain")], strategy="delete"),
    "retention": lambda saver: saver.retention(thread_ids=[name("thread")], keep=1),
    "retention, all threads": lambda saver: saver.retention(keep=1, after=name("a thread")),
    "sweep": lambda saver: saver.sweep(thread_ids=[name("thread")]),
    "sweep, all threads": lambda saver: saver.sweep(),
    "delete_for_runs": lambda saver: saver.delete_for_runs([name("run")]),
    "delete_thread": lambda saver: saver.delete_thread(name("thread")),
}
"""In an order in which each finds something."""


@pytest.fixture
def engine(dialect_url: str) -> Iterator[Engine]:
    """An engine of either dialect."""
    engine = create_engine(dialect_url)
    yield engine
    engine.dispose()


def test_no_name_and_no_value_is_part_of_sql_text(engine: Engine) -> None:
    saver = SQLAlchemySaver(engine)
    for called, call in CALLS.items():
        with sent_by(engine) as texts:
            call(saver)
        assert texts, f"{called} sent nothing"
        assert [text for text in texts if MARK in text] == [], called
    assert list(saver.list(None)) == []


def test_the_calls_are_all_that_take_a_name() -> None:
    """A method that is new has to come into the list above."""
    public = {method for method in dir(SQLAlchemySaver) if not method.startswith("_")}
    with_a_twin = {method for method in public if f"a{method}" in public}
    without_names = {"setup", "close", "reclaim_space"}
    through_others = {"get"}
    assert with_a_twin - without_names - through_others == {called.partition(",")[0] for called in CALLS}
