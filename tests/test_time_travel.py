"""The recipes of docs/time-travel.md, over all ways in."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from cpstore import SQLAlchemySaver, ThreadExistsError, UnknownCheckpointError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from tests.ways import Door

THREAD: RunnableConfig = {"configurable": {"thread_id": "old"}}


class State(TypedDict):
    words: Annotated[list[str], operator.add]


def answer(state: State) -> dict[str, Any]:
    return {"words": [f"answer {len(state['words'])}"]}


def compiled(saver: SQLAlchemySaver) -> Any:
    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


async def talked(door: Door, graph: Any, *words: str) -> list[Any]:
    """Run once for each word; give the states after the runs, oldest first."""
    for word in words:
        await door.invoke(graph, {"words": [word]}, THREAD)
    return [state for state in await door.get_state_history(graph, THREAD) if not state.next][::-1]


async def test_roll_back_deletes_nothing_and_goes_on(saver: SQLAlchemySaver, door: Door) -> None:
    graph = compiled(saver)
    first, *_, last = await talked(door, graph, "one", "two", "three")
    before = await door.get_state_history(graph, THREAD)
    await door.update_state(graph, first.config, None, as_node="__copy__")
    now = await door.get_state(graph, THREAD)
    assert (now.values, now.next) == (first.values, ())
    assert (now.metadata or {}).get("source") == "fork"
    assert (await door.get_state_history(graph, THREAD))[1:] == before
    assert (await door.invoke(graph, {"words": ["on"]}, THREAD))["words"][2:] == ["on", "answer 3"]
    assert (await door.get_state(graph, last.config)).values == last.values


async def test_a_copy_up_to_a_checkpoint_goes_on_independently(saver: SQLAlchemySaver, door: Door) -> None:
    graph = compiled(saver)
    first, _, last = await talked(door, graph, "one", "two", "three")
    chosen = first.config["configurable"]["checkpoint_id"]
    await saver.acopy_thread("old", "new", checkpoint_id=chosen)
    new: RunnableConfig = {"configurable": {"thread_id": "new"}}
    copied = await door.get_state(graph, new)
    assert (copied.values, copied.config["configurable"]["checkpoint_id"]) == (first.values, chosen)
    old_history = await door.get_state_history(graph, THREAD)
    new_history = await door.get_state_history(graph, new)
    assert [state.values for state in new_history] == [state.values for state in old_history][
        -len(new_history) :
    ]
    assert (await door.invoke(graph, {"words": ["on"]}, new))["words"][2:] == ["on", "answer 3"]
    assert (await door.get_state(graph, THREAD)).values == last.values
    await saver.adelete_thread("old")
    assert len(await door.get_state_history(graph, new)) == len(new_history) + 3


async def test_a_copy_to_nowhere_or_onto_something_is_refused(saver: SQLAlchemySaver, door: Door) -> None:
    graph = compiled(saver)
    await talked(door, graph, "one")
    await saver.acopy_thread("old", "new")
    for target in ("new", "old"):
        with pytest.raises(ThreadExistsError, match="Choose a new thread id"):
            await saver.acopy_thread("old", target)
    with pytest.raises(UnknownCheckpointError):
        await saver.acopy_thread("old", "other", checkpoint_id="unknown")
    await saver.acopy_thread("unknown", "other")
    assert [thread.thread_id for thread in await saver.alist_threads(order="thread_id")] == ["new", "old"]
