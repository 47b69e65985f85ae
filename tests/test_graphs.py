"""Real LangGraph graphs, over all ways in; what InMemorySaver gives is what is expected."""

from __future__ import annotations

import asyncio
import operator
import random
import threading
import time
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

from cpstore import AsyncOnlyError, SQLAlchemySaver
from tests.conftest import connections_in_use
from tests.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.types import Durability, StateSnapshot
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

    from tests.ways import Door, Way

DURABILITIES = ("sync", "async", "exit")


# What the tests compare, and how they come back after a restart.


def new_thread() -> RunnableConfig:
    return {"configurable": {"thread_id": f"thread-{uuid4()}"}}


def facts(snapshot: StateSnapshot) -> dict[str, Any]:
    """All of a snapshot that is the same whoever saved it: no ids, no times."""
    metadata = dict(snapshot.metadata or {})
    return {
        "values": snapshot.values,
        "next": snapshot.next,
        "source": metadata.get("source"),
        "step": metadata.get("step"),
        "interrupts": [pending.value for pending in snapshot.interrupts],
        "tasks": [(one.name, repr(one.error), one.result) for one in snapshot.tasks],
    }


def checkpoint_id(config: RunnableConfig | None) -> str | None:
    return config["configurable"]["checkpoint_id"] if config else None


@asynccontextmanager
async def restarted(database_url: str) -> AsyncIterator[SQLAlchemySaver]:
    """A saver as a new process would make it: a new object, on new engines."""
    async with SQLAlchemySaver.from_url(database_url) as saver:
        yield saver


# Chat: messages, an interrupt, and its answer.


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def chat_graph() -> StateGraph[Any]:
    """A model that asks for a tool, a human who allows it, and an answer."""

    def model(state: Chat) -> dict[str, Any]:
        call = {"name": "book", "args": {"city": "Oslo", "nights": 2}, "id": "call-1"}
        return {"messages": [AIMessage("May I book?", id="m2", tool_calls=[call])]}

    def human(state: Chat) -> dict[str, Any]:
        answer = interrupt({"question": state["messages"][-1].content})
        return {"messages": [ToolMessage(f"human says {answer}", tool_call_id="call-1", id="m3")]}

    builder: StateGraph[Any] = StateGraph(Chat).add_node(model).add_node(human)
    return builder.add_edge(START, "model").add_edge("model", "human").add_edge("human", END)


QUESTION = {
    "messages": [HumanMessage("To Oslo, please \N{SNOWMAN}", id="m1", additional_kwargs={"lang": "en"})]
}


async def ask(door: Door, saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> list[Any]:
    graph = chat_graph().compile(checkpointer=saver)
    result = await door.invoke(graph, QUESTION, config)
    return [result["messages"], [facts(old) for old in await door.get_state_history(graph, config)]]


async def answer(door: Door, saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> list[Any]:
    graph = chat_graph().compile(checkpointer=saver)
    result = await door.invoke(graph, Command(resume="yes"), config)
    return [result, [facts(old) for old in await door.get_state_history(graph, config)]]


async def test_interrupt_is_answered_by_the_same_saver(saver: SQLAlchemySaver, door: Door) -> None:
    memory, config = InMemorySaver(), new_thread()
    assert await ask(door, saver, config) == await ask(door, memory, config)
    assert await answer(door, saver, config) == await answer(door, memory, config)


async def test_interrupt_is_answered_after_a_restart(
    saver: SQLAlchemySaver, door: Door, database_url: str
) -> None:
    memory, config = InMemorySaver(), new_thread()
    await ask(door, saver, config)
    await ask(door, memory, config)
    async with restarted(database_url) as later:
        assert await answer(door, later, config) == await answer(door, memory, config)


async def test_messages_come_back_as_they_were(saver: SQLAlchemySaver, door: Door) -> None:
    config = new_thread()
    await ask(door, saver, config)
    result, _ = await answer(door, saver, config)
    graph = chat_graph().compile(checkpointer=saver)
    loaded = (await door.get_state(graph, config)).values["messages"]
    assert loaded == result["messages"]
    assert [type(message) for message in loaded] == [HumanMessage, AIMessage, ToolMessage]
    assert loaded[1].tool_calls[0]["args"] == {"city": "Oslo", "nights": 2}


# Parallel nodes: one fails, the finished ones keep their work.


class Tally(TypedDict):
    done: Annotated[list[str], operator.add]


@dataclass
class Work:
    """Parallel nodes that count their runs; `broken` waits for the others and fails until it is repaired."""

    repaired: bool = False
    runs: list[str] = field(default_factory=list)
    finished: dict[str, threading.Event] = field(
        default_factory=lambda: {"one": threading.Event(), "two": threading.Event()}
    )

    def node(self, name: str) -> Any:
        def run(state: Tally) -> dict[str, Any]:
            self.runs.append(name)
            self.finished[name].set()
            return {"done": [name]}

        return run

    def broken(self, state: Tally) -> dict[str, Any]:
        self.runs.append("broken")
        if not self.repaired:
            for event in self.finished.values():
                event.wait(timeout=10)
            time.sleep(0.2)  # LangGraph takes their results a moment after they return
            raise ValueError("no answer from the weather service")
        return {"done": ["broken"]}

    def graph(self) -> StateGraph[Any]:
        builder: StateGraph[Any] = StateGraph(Tally).add_node("broken", self.broken)
        for name in self.finished:
            builder.add_node(name, self.node(name)).add_edge(START, name).add_edge(name, END)
        return builder.add_edge(START, "broken").add_edge("broken", END)


async def fail(
    door: Door, saver: BaseCheckpointSaver[Any], config: RunnableConfig, durability: Durability
) -> StateSnapshot:
    """Run the graph until its node breaks, and look at what was saved."""
    graph = Work().graph().compile(checkpointer=saver)
    with pytest.raises(ValueError, match="weather"):
        await door.invoke(graph, {"done": ["start"]}, config, durability=durability)
    return await door.get_state(graph, config)


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_finished_nodes_are_not_run_again_after_a_failure(
    saver: SQLAlchemySaver, door: Door, database_url: str, durability: Durability
) -> None:
    config = new_thread()
    expected = await fail(door, InMemorySaver(), config, durability)
    assert facts(await fail(door, saver, config, durability)) == facts(expected)
    work = Work(repaired=True)
    async with restarted(database_url) as later:
        result = await door.invoke(work.graph().compile(checkpointer=later), None, config)
    assert work.runs == ["broken"]
    assert sorted(result["done"]) == ["broken", "one", "start", "two"]


async def test_error_is_a_pending_write(saver: SQLAlchemySaver, door: Door) -> None:
    config = new_thread()
    snapshot = await fail(door, saver, config, "sync")
    saved = await saver.aget_tuple(config)
    assert saved is not None
    assert saved.pending_writes is not None
    errors = [(task_id, value) for task_id, channel, value in saved.pending_writes if channel == "__error__"]
    broken = next(one for one in snapshot.tasks if one.name == "broken")
    assert [task_id for task_id, _ in errors] == [broken.id]
    assert "weather" in repr(errors[0][1])


# Subgraphs.


class Order(TypedDict, total=False):
    item: str
    price: int
    approved: bool


def nested_graph() -> StateGraph[Any]:
    """A shop, whose till is a graph, whose guard is a graph that interrupts."""

    def guard(state: Order) -> Order:
        return {"approved": interrupt(f"{state['item']} for {state['price']}?") == "yes"}

    def price(state: Order) -> Order:
        return {"price": len(state["item"])}

    inner = StateGraph(Order).add_node(guard).add_edge(START, "guard")
    till: StateGraph[Any] = StateGraph(Order).add_node(price).add_node("inner", inner.compile())
    till.add_edge(START, "price").add_edge("price", "inner")
    shop: StateGraph[Any] = StateGraph(Order).add_node("till", till.compile())
    return shop.add_edge(START, "till")


async def nested_story(door: Door, saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> list[Any]:
    """Namespaces and facts of all levels at the interrupt, then the end."""
    graph = nested_graph().compile(checkpointer=saver)
    await door.invoke(graph, {"item": "lamp"}, config)
    told: list[Any] = []
    level: Any = await door.get_state(graph, config, subgraphs=True)
    while level is not None:
        namespace = level.config["configurable"]["checkpoint_ns"]
        told.append([part.split(":")[0] for part in namespace.split("|")])
        told.append([level.values, level.next, [pending.value for pending in level.interrupts]])
        level = level.tasks[0].state
    told.append(await door.invoke(graph, Command(resume="yes"), config))
    told.extend(facts(old) for old in await door.get_state_history(graph, config))
    return told


async def test_nested_interrupt(saver: SQLAlchemySaver, door: Door) -> None:
    config = new_thread()
    told = await nested_story(door, saver, config)
    assert told == await nested_story(door, InMemorySaver(), config)
    assert [told[0], told[2], told[4]] == [[""], ["till"], ["till", "inner"]]
    assert told[6] == {"item": "lamp", "price": 4, "approved": True}


# History and forks.


class Walk(TypedDict, total=False):
    steps: Annotated[list[str], operator.add]
    mood: str


def walk_graph() -> StateGraph[Any]:
    """Three nodes in a row; each notes its name and the mood."""

    def walk(name: str) -> Any:
        return lambda state: {"steps": [f"{name} {state.get('mood', '')}".strip()]}

    builder: StateGraph[Any] = StateGraph(Walk)
    builder.add_sequence([(name, walk(name)) for name in ("left", "right", "home")])
    return builder.add_edge(START, "left")


async def test_history_is_newest_first_and_linked(saver: SQLAlchemySaver, door: Door) -> None:
    config, graph = new_thread(), walk_graph().compile(checkpointer=saver)
    await door.invoke(graph, {"steps": ["start"]}, config)
    history = await door.get_state_history(graph, config)
    assert [(old.metadata or {})["step"] for old in history] == [3, 2, 1, 0, -1]
    ids = [checkpoint_id(old.config) for old in history]
    assert [checkpoint_id(old.parent_config) for old in history] == [*ids[1:], None]
    bounded = await door.get_state_history(graph, config, before=history[1].config, limit=2)
    assert [checkpoint_id(old.config) for old in bounded] == ids[2:4]


async def fork_story(door: Door, saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> list[Any]:
    """Walk, go back to the first corner, walk on in another mood, then write on in both branches."""
    graph = walk_graph().compile(checkpointer=saver)
    await door.invoke(graph, {"steps": ["start"]}, config)
    old_head, _, corner, *_ = await door.get_state_history(graph, config)
    forked = await door.update_state(graph, corner.config, {"mood": "happy"}, as_node="left")
    told: list[Any] = [await door.invoke(graph, None, forked)]
    new_head = await door.get_state(graph, config)
    for head in (old_head, new_head, old_head):
        moved = await door.update_state(graph, head.config, {"steps": ["bench"]}, as_node="home")
        told.append(facts(await door.get_state(graph, moved)))
    told.append(facts(await door.get_state(graph, old_head.config)))
    return [*told, *(facts(old) for old in await door.get_state_history(graph, config))]


async def test_both_branches_of_a_fork_live_on(saver: SQLAlchemySaver, door: Door) -> None:
    config = new_thread()
    told = await fork_story(door, saver, config)
    assert told == await fork_story(door, InMemorySaver(), config)
    assert told[1]["values"] == {"steps": ["start", "left", "right", "home", "bench"]}
    assert told[2]["values"]["steps"] == ["start", "left", "right happy", "home happy", "bench"]


# Durability.


async def saved_by(
    door: Door, saver: BaseCheckpointSaver[Any], durability: Durability
) -> tuple[Any, list[dict[str, Any]]]:
    config, graph = new_thread(), walk_graph().compile(checkpointer=saver)
    result = await door.invoke(graph, {"steps": ["start"]}, config, durability=durability)
    return result, [facts(old) for old in await door.get_state_history(graph, config)]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_durability(saver: SQLAlchemySaver, door: Door, durability: Durability) -> None:
    result, saved = await saved_by(door, saver, durability)
    assert (result, saved) == await saved_by(door, InMemorySaver(), durability)
    assert len(saved) == (1 if durability == "exit" else 5)


# One saver, both doors.


def ways_where(allowed: Callable[[Way], bool]) -> pytest.MarkDecorator:
    """Only some of the ways, chosen by what they are."""
    chosen = [way for way in WAYS if allowed(way)]
    return pytest.mark.parametrize("way", chosen, ids=lambda way: way.name, indirect=True)


async def use_both_doors_in_turn(saver: SQLAlchemySaver) -> None:
    config, graph = new_thread(), walk_graph().compile(checkpointer=saver)
    memory = walk_graph().compile(checkpointer=InMemorySaver())
    for _ in range(2):
        assert graph.invoke({"steps": ["sync"]}, config) == memory.invoke({"steps": ["sync"]}, config)
        expected = await memory.ainvoke({"steps": ["async"]}, config)
        assert await graph.ainvoke({"steps": ["async"]}, config) == expected
    assert facts(await graph.aget_state(config)) == facts(memory.get_state(config))
    assert facts(graph.get_state(config)) == facts(memory.get_state(config))


@ways_where(lambda way: not way.async_engine)
async def test_saver_on_an_engine_has_both_doors(engine: Engine) -> None:
    await use_both_doors_in_turn(SQLAlchemySaver(engine))


@ways_where(lambda way: way.name != "aiosqlite")
async def test_saver_from_a_url_has_both_doors(database_url: str) -> None:
    async with restarted(database_url) as saver:
        await use_both_doors_in_turn(saver)


@ways_where(lambda way: way.async_engine)
async def test_saver_on_an_async_engine_refuses_sync_methods_on_its_loop(saver: SQLAlchemySaver) -> None:
    config, graph = new_thread(), walk_graph().compile(checkpointer=saver)
    await graph.ainvoke({"steps": ["start"]}, config)
    with pytest.raises(AsyncOnlyError):
        graph.get_state(config)
    with pytest.raises(AsyncOnlyError):
        graph.invoke({"steps": ["again"]}, config)


@ways_where(lambda way: way.async_engine)
async def test_saver_on_an_async_engine_serves_other_threads(saver: SQLAlchemySaver) -> None:
    config, graph = new_thread(), walk_graph().compile(checkpointer=saver)
    await graph.ainvoke({"steps": ["start"]}, config)
    bridged = await asyncio.to_thread(graph.get_state, config)
    assert facts(bridged) == facts(await graph.aget_state(config))
    history = await asyncio.to_thread(lambda: list(graph.get_state_history(config)))
    assert len(history) == 5


# Send: the order of writes is the order of the tasks.


@dataclass
class FanOut:
    """Twenty tasks that finish in any order; task 7 fails until it is repaired."""

    repaired: bool = True
    runs: list[str] = field(default_factory=list)
    others: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def work(self, state: Any) -> dict[str, Any]:
        self.runs.append(state)
        if state == "7" and not self.repaired:
            self.fail()
        time.sleep(random.random() / 50)  # noqa: S311 - no secret
        self.others.release()
        return {"done": [state]}

    def fail(self) -> None:
        for _ in range(19):
            self.others.acquire(timeout=10)
        time.sleep(0.2)  # LangGraph takes their results a moment after they return
        raise ValueError("seven")

    def graph(self) -> StateGraph[Any]:
        builder: StateGraph[Any] = StateGraph(Tally).add_node("work", self.work)
        sends = [Send("work", str(number)) for number in range(20)]
        return builder.add_conditional_edges(START, lambda _: sends, ["work"])


async def test_fan_out_keeps_the_order_of_its_tasks(saver: SQLAlchemySaver, door: Door) -> None:
    result = await door.invoke(FanOut().graph().compile(checkpointer=saver), {"done": []}, new_thread())
    assert result["done"] == [str(number) for number in range(20)]


async def test_fan_out_keeps_the_order_of_its_tasks_after_a_restart(
    saver: SQLAlchemySaver, door: Door, database_url: str
) -> None:
    config: RunnableConfig = {**new_thread(), "max_concurrency": 30}
    graph = FanOut(repaired=False).graph().compile(checkpointer=saver)
    with pytest.raises(ValueError, match="seven"):
        await door.invoke(graph, {"done": []}, config)
    fan_out = FanOut()
    async with restarted(database_url) as later:
        result = await door.invoke(fan_out.graph().compile(checkpointer=later), None, config)
    assert fan_out.runs == ["7"]
    assert result["done"] == [str(number) for number in range(20)]


# The functional API.


def diary(saver: BaseCheckpointSaver[Any], runs: list[str]) -> Any:
    """A workflow that adds a line to what it wrote last time, once a human agrees."""

    @task
    def write(line: str) -> str:
        runs.append(line)
        return line.upper()

    @entrypoint(checkpointer=saver)
    def workflow(line: str, *, previous: list[str] | None = None) -> entrypoint.final[list[str], list[str]]:
        written = write(line).result()
        signature = interrupt("sign?")
        lines = [*(previous or []), f"{written} {signature}"]
        return entrypoint.final(value=lines[-1:], save=lines)

    return workflow


async def test_functional_workflow_has_its_previous_value(saver: SQLAlchemySaver, door: Door) -> None:
    config = new_thread()
    runs: list[str] = []
    workflow = diary(saver, runs)
    for line, name in (("rain", "A"), ("sun", "B")):
        await door.invoke(workflow, line, config)
        result = await door.invoke(workflow, Command(resume=name), config)
        assert result == [f"{line.upper()} {name}"]
    assert runs == ["rain", "sun"]
    assert (await door.get_state(workflow, config)).values == ["SUN B"]
    saved = await saver.aget_tuple(config)
    assert saved is not None
    assert saved.checkpoint["channel_values"]["__previous__"] == ["RAIN A", "SUN B"]


# An abandoned stream.


def uneven_graph() -> StateGraph[Any]:
    """Two parallel nodes, one of which is still at work when the other has finished."""

    def quick(state: Tally) -> dict[str, Any]:
        return {"done": ["quick"]}

    def slow(state: Tally) -> dict[str, Any]:
        time.sleep(0.2)
        return {"done": ["slow"]}

    builder: StateGraph[Any] = StateGraph(Tally).add_node(quick).add_node(slow)
    return builder.add_edge(START, "quick").add_edge(START, "slow")


async def leave_in_mid_step(graph: Any, config: RunnableConfig, *, sync: bool) -> None:
    if sync:
        with closing(graph.stream({"done": ["start"]}, config, stream_mode="updates")) as stream:
            assert next(stream) == {"quick": {"done": ["quick"]}}
    else:
        async with aclosing(graph.astream({"done": ["start"]}, config, stream_mode="updates")) as astream:
            assert await anext(astream) == {"quick": {"done": ["quick"]}}


async def test_abandoned_stream_leaves_no_connection_checked_out(
    way: Way, engine: Engine | AsyncEngine, saver: SQLAlchemySaver, door: Door
) -> None:
    graph = uneven_graph().compile(checkpointer=saver)
    for _ in range(3):
        config = new_thread()
        await leave_in_mid_step(graph, config, sync=way.sync)
        assert await connections_in_use(engine) == 0
        result = await door.invoke(graph, None, config)
        assert result["done"] == ["start", "quick", "slow"]
