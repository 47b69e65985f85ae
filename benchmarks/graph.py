"""A LangGraph agent of 20 super-steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Durability

from benchmarks.bench import Bench
from benchmarks.contenders import BACKENDS, Backend, Contender
from benchmarks.figures import Times
from benchmarks.rounds import in_turns, timed
from benchmarks.workloads import message

SUPER_STEPS = 20
CHARACTERS = 300
DURABILITIES: Sequence[Durability] = ("sync", "async")


class State(TypedDict):
    """What the agent knows."""

    messages: Annotated[list[AnyMessage], add_messages]
    steps: int


def speak(state: State) -> dict[str, Any]:
    """A node that only has something to say."""
    steps = state["steps"]
    return {"messages": [message(steps, CHARACTERS)], "steps": steps + 1}


async def aspeak(state: State) -> dict[str, Any]:
    """The same for `ainvoke`, which would run the other one in a thread."""
    return speak(state)


def from_agent(state: State) -> Literal["tool", "__end__"]:
    """To its tool, until there is nothing left to do."""
    return "__end__" if state["steps"] >= SUPER_STEPS else "tool"


def from_tool(state: State) -> Literal["agent", "__end__"]:
    """Back, likewise."""
    return "__end__" if state["steps"] >= SUPER_STEPS else "agent"


def compiled(contender: Contender) -> Any:
    """An agent and a tool that take turns."""
    node: Any = speak if contender.sync else aspeak
    builder: StateGraph[Any] = StateGraph(State).add_node("agent", node).add_node("tool", node)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", from_agent).add_conditional_edges("tool", from_tool)
    return builder.compile(checkpointer=contender.saver)


async def invoke(graph: Any, contender: Contender, thread_id: str, durability: Durability) -> None:
    """Run the agent on a new thread."""
    config = {"configurable": {"thread_id": thread_id}, "recursion_limit": SUPER_STEPS + 5}
    start = {"messages": [message(1000, CHARACTERS)], "steps": 0}
    if contender.sync:
        graph.invoke(start, config, durability=durability)
    else:
        await graph.ainvoke(start, config, durability=durability)


async def measure(bench: Bench) -> None:
    """Each way to a database, and each durability."""
    for backend in BACKENDS:
        for durability in DURABILITIES:
            bench.say(f"graph, {backend.name}, durability {durability}")
            times = await run(await bench.pair(backend), backend, durability, bench.choose(2, 15))
            bench.compare("graph", backend.name, f"durability {durability}", times, "invoke")


async def run(pair: list[Contender], backend: Backend, durability: Durability, rounds: int) -> Times:
    """Whole runs in turns, after one that does not count."""
    times, numbers = Times(), count()
    graphs = {contender.name: compiled(contender) for contender in pair}

    async def work(contender: Contender) -> None:
        thread_id = f"{backend.name} graph {durability} {next(numbers)}"
        running = invoke(graphs[contender.name], contender, thread_id, durability)
        await timed(times, contender.name, "invoke", running)

    await in_turns(pair, 1, work)
    times.of.clear()
    await in_turns(pair, rounds, work)
    return times
