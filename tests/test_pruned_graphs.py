"""Graphs whose threads are pruned: they resume, delta channels keep their state, runs may be under way."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from sqlalchemy import Engine, event, select

from cpstore import CheckpointWrite, SQLAlchemySaver

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions

    from tests.ways import AnyGraph


def ids_of(saver: SQLAlchemySaver, thread: str) -> list[str]:
    return [found.checkpoint["id"] for found in saver.list({"configurable": {"thread_id": thread}})]


class Approval(TypedDict, total=False):
    question: str
    answer: str


def approval_graph() -> StateGraph[Any]:
    """Three steps; the second is a subgraph that asks."""

    def ask(state: Approval) -> Approval:
        return {"answer": interrupt(state["question"])}

    inner = StateGraph(Approval)
    inner.add_node("ask", ask)
    inner.add_edge(START, "ask")
    outer = StateGraph(Approval)
    outer.add_node("prepare", lambda state: {"question": f"{state['question']}?"})
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "prepare")
    outer.add_edge("prepare", "inner")
    outer.add_edge("inner", END)
    return outer


REMOVALS: dict[str, Callable[[SQLAlchemySaver], Any]] = {
    "prune": lambda saver: saver.prune(["t"]),
    "retention": lambda saver: saver.retention(keep=1),
}


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS.keys())
def test_an_interrupted_thread_resumes(keeper: SQLAlchemySaver, remove: Callable[..., Any]) -> None:
    graph = approval_graph().compile(checkpointer=keeper)
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}
    graph.invoke({"question": "before"}, thread)
    graph.invoke(Command(resume="no"), thread)
    graph.invoke({"question": "really"}, thread)
    asked = graph.get_state(thread, subgraphs=True)
    count = len(ids_of(keeper, "t"))
    remove(keeper)
    assert len(ids_of(keeper, "t")) < count
    kept = graph.get_state(thread, subgraphs=True)
    assert (kept.values, kept.next, kept.interrupts) == (asked.values, asked.next, asked.interrupts)
    assert graph.invoke(Command(resume="yes"), thread) == {"question": "really?", "answer": "yes"}
    remove(keeper)
    assert graph.get_state(thread).next == ()


def extended(state: list[Any] | None, writes: list[Any]) -> list[Any]:
    return [*(state or []), *(item for write in writes for item in write)]


class Journal(TypedDict, total=False):
    log: Annotated[list[Any], DeltaChannel(extended, snapshot_frequency=3)]
    unused: Annotated[list[Any], DeltaChannel(extended, snapshot_frequency=3)]
    turn: int


class PlainJournal(TypedDict, total=False):
    log: Annotated[list[Any], lambda state, write: [*state, *write]]
    turn: int


def journal(saver: SQLAlchemySaver, state: type[Any] = Journal) -> AnyGraph:
    """A graph that logs two entries for each turn, in two steps; turn 0 logs none."""

    def write(part: str) -> Any:
        return lambda state: {"log": [f"{state['turn']}{part}"]} if state["turn"] else {}

    graph = StateGraph(state)
    graph.add_node("first", write("a"))
    graph.add_node("second", write("b"))
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    return graph.compile(checkpointer=saver)


def entries(turns: int) -> list[str]:
    return [f"{turn}{part}" for turn in range(1, turns + 1) for part in "ab"]


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS.keys())
def test_a_delta_channel_survives_at_every_length(
    keeper: SQLAlchemySaver, remove: Callable[..., Any]
) -> None:
    graph = journal(keeper)
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}
    for turn in range(1, 11):
        graph.invoke({"turn": turn}, thread)
        before = graph.get_state(thread)
        assert before.values["log"] == entries(turn)
        remove(keeper)
        after = graph.get_state(thread)
        assert (after.values, after.next, after.metadata) == (before.values, before.next, before.metadata)
    for turn in range(11, 15):
        graph.invoke({"turn": turn}, thread)
    assert graph.get_state(thread).values["log"] == entries(14)


def test_a_channel_that_was_never_written_keeps_nothing(keeper: SQLAlchemySaver) -> None:
    """The metadata counts its supersteps too, but there is no history to replay."""
    graph = journal(keeper)
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}
    for turn in range(1, 21):
        graph.invoke({"turn": turn}, thread)
    keeper.prune(["t"])
    assert len(ids_of(keeper, "t")) <= 10
    assert graph.get_state(thread).values["log"] == entries(20)


def test_a_channel_that_is_no_longer_a_delta_channel_survives(keeper: SQLAlchemySaver) -> None:
    """LangGraph replays it as long as no value is stored, but its metadata counts no supersteps any more."""
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}
    for turn in (1, 2):
        journal(keeper).invoke({"turn": turn}, thread)
    plain = journal(keeper, PlainJournal)
    plain.invoke({"turn": 0}, thread)
    assert plain.get_state(thread).values["log"] == entries(2)
    keeper.prune(["t"])
    assert plain.get_state(thread).values["log"] == entries(2)


# Meanwhile


def save(saver: SQLAlchemySaver, parent: RunnableConfig, step: int) -> RunnableConfig:
    """Save a checkpoint with one channel that changes and one that does not."""
    made = empty_checkpoint()
    made["v"] = 4
    made["channel_values"] = {"words": [step], "still": ["here"]}
    made["channel_versions"] = {"words": f"{step}", "still": "1"}
    new: ChannelVersions = {"words": f"{step}", "still": "1"} if step == 1 else {"words": f"{step}"}
    return saver.put(parent, made, {"step": step}, new)


def test_prune_while_a_run_saves(keeper: SQLAlchemySaver) -> None:
    ended = threading.Event()
    raised: list[BaseException] = []
    chain: list[RunnableConfig] = [{"configurable": {"thread_id": "chain", "checkpoint_ns": ""}}]

    def run() -> None:
        graph = journal(keeper)
        try:
            for turn in range(1, 16):
                graph.invoke({"turn": turn}, {"configurable": {"thread_id": "t"}})
                chain.append(save(keeper, chain[-1], turn))
        except Exception as error:
            raised.append(error)
        ended.set()

    runner = threading.Thread(target=run)
    runner.start()
    while not ended.wait(0.005):
        keeper.prune(["t", "chain"])
    runner.join()
    assert raised == []
    state = journal(keeper).get_state({"configurable": {"thread_id": "t"}})
    assert state.values["log"] == entries(15)
    assert_readable(keeper)


def assert_readable(saver: SQLAlchemySaver) -> None:
    for found in saver.list({"configurable": {"thread_id": "chain"}}):
        assert found.checkpoint["channel_values"] == {"words": [found.metadata["step"]], "still": ["here"]}


def left_writes(engine: Engine) -> set[str]:
    """The ids of checkpoints that writes are under."""
    with engine.begin() as connection:
        return set(connection.scalars(select(CheckpointWrite.checkpoint_id)))


@pytest.mark.parametrize("dialect", ["postgresql"])
@pytest.mark.parametrize("statement", range(8))
def test_a_run_saves_between_any_two_statements_of_a_prune(
    keeper: SQLAlchemySaver, stranger: SQLAlchemySaver, database: Engine, statement: int
) -> None:
    """On SQLite nobody writes while a prune does."""
    chain: list[RunnableConfig] = [{"configurable": {"thread_id": "chain", "checkpoint_ns": ""}}]
    counted = itertools.count()

    def run(*of_the_event: object) -> None:
        if next(counted) in (0, statement + 1):
            for _ in range(3):
                chain.append(save(stranger, chain[-1], len(chain)))
                stranger.put_writes(chain[-1], [("words", "first")], "task")
                stranger.put_writes(chain[-2 if len(chain) > 2 else -1], [("words", "late")], "late")

    run()
    event.listen(database, "before_cursor_execute", run)
    keeper.prune(["chain"])
    event.remove(database, "before_cursor_execute", run)
    assert_readable(stranger)
    newest = stranger.get_tuple(chain[0])
    assert newest is not None
    assert newest.config == chain[-1]
    keeper.prune(["chain"])
    assert left_writes(database) == {chain[-1]["configurable"]["checkpoint_id"]}
