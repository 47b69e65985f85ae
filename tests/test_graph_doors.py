"""Graphs at the saver's doors: both of them in turn, other threads, and streams that are left in mid-step."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from cpstore import AsyncOnlyError, SQLAlchemySaver
from tests.conftest import connections_in_use
from tests.graphs import new_thread, uneven_graph, walk_graph
from tests.histories import facts
from tests.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.runnables import RunnableConfig
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

    from tests.ways import Door, Way


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
    async with SQLAlchemySaver.from_url(database_url) as saver:
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


# An abandoned stream.


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
