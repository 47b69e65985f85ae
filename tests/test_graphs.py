"""Real LangGraph graphs, over all ways in; what InMemorySaver gives is what is expected."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from cpstore import SQLAlchemySaver
from tests.graphs import FanOut, Work, chat_graph, diary, nested_graph, new_thread, walk_graph
from tests.histories import facts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.types import Durability, StateSnapshot

    from tests.ways import Door

DURABILITIES = ("sync", "async", "exit")


# Where checkpoints are, and how they come back after a restart.


def checkpoint_id(config: RunnableConfig | None) -> str | None:
    return config["configurable"]["checkpoint_id"] if config else None


@asynccontextmanager
async def restarted(database_url: str) -> AsyncIterator[SQLAlchemySaver]:
    """A saver as a new process would make it: a new object, on new engines."""
    async with SQLAlchemySaver.from_url(database_url) as saver:
        yield saver


# Chat: messages, an interrupt, and its answer.


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


# Send: the order of writes is the order of the tasks.


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
