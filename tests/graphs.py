"""The graphs that the tests run, one for each thing that a graph can ask of its checkpointer."""

from __future__ import annotations

import operator
import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver


def new_thread() -> RunnableConfig:
    return {"configurable": {"thread_id": f"thread-{uuid4()}"}}


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


def uneven_graph() -> StateGraph[Any]:
    """Two parallel nodes, one of which is still at work when the other has finished."""

    def quick(state: Tally) -> dict[str, Any]:
        return {"done": ["quick"]}

    def slow(state: Tally) -> dict[str, Any]:
        time.sleep(0.2)
        return {"done": ["slow"]}

    builder: StateGraph[Any] = StateGraph(Tally).add_node(quick).add_node(slow)
    return builder.add_edge(START, "quick").add_edge(START, "slow")


def fragile_graph() -> StateGraph[Any]:
    """A node whose first run fails, after another one has finished."""
    runs: list[str] = []

    def sound(state: Tally) -> dict[str, Any]:
        return {"done": ["sound"]}

    def fragile(state: Tally) -> dict[str, Any]:
        runs.append("fragile")
        if len(runs) == 1:
            raise ValueError("broken")
        return {"done": ["fragile"]}

    builder: StateGraph[Any] = StateGraph(Tally).add_node(sound).add_node(fragile)
    return builder.add_edge(START, "sound").add_edge("sound", "fragile")


def guarded_graph() -> StateGraph[Any]:
    """Two parallel nodes that ask, one of them twice, and a node that waits for both."""

    def west(state: Tally) -> dict[str, Any]:
        return {"done": [f"west {interrupt('west?')} {interrupt('really west?')}"]}

    def east(state: Tally) -> dict[str, Any]:
        return {"done": [f"east {interrupt('east?')}"]}

    def both(state: Tally) -> dict[str, Any]:
        return {"done": ["both"]}

    builder: StateGraph[Any] = StateGraph(Tally).add_node(west).add_node(east).add_node(both)
    builder.add_edge(START, "west").add_edge(START, "east")
    return builder.add_edge(["west", "east"], "both")


def joined(old: str, new: str) -> str:
    """A reducer that tells every order of its writes from every other."""
    return f"({old}{new})"


class Field(TypedDict, total=False):
    basket: Annotated[str, joined]
    seeds: list[int]


def harvest_graph() -> StateGraph[Any]:
    """One task for each seed, sent by a node; then a node that has the basket."""

    def sow(state: Field) -> Command[Literal["pick"]]:
        return Command(update={"basket": "sown"}, goto=[Send("pick", seed) for seed in state["seeds"]])

    def pick(state: Any) -> Field:
        return {"basket": f"-{state}"}

    def bake(state: Field) -> Field:
        return {"basket": " baked"}

    builder: StateGraph[Any] = StateGraph(Field).add_node(sow).add_node(pick).add_node(bake)
    return builder.add_edge(START, "sow").add_edge("pick", "bake")


class Visits(TypedDict, total=False):
    guest: str
    visits: Annotated[list[str], operator.add]


def inn_graph() -> StateGraph[Any]:
    """A house with a porter that is a graph and remembers: it has a checkpointer of its own."""

    def ring(state: Visits) -> Visits:
        return {"visits": [f"{state['guest']} rings"]}

    def admit(state: Visits) -> Visits:
        return {"visits": [f"{state['guest']} {interrupt(len(state['visits']))}"]}

    porter: StateGraph[Any] = StateGraph(Visits).add_node(ring).add_node(admit)
    porter.add_edge(START, "ring").add_edge("ring", "admit")
    house: StateGraph[Any] = StateGraph(Visits).add_node("porter", porter.compile(checkpointer=True))
    return house.add_edge(START, "porter")


def appended(state: list[str], writes: Sequence[Sequence[str]]) -> list[str]:
    """The reducer of a delta channel: all writes of a step at once."""
    return [*state, *(line for lines in writes for line in lines)]


class Ledger(TypedDict, total=False):
    lines: Annotated[list[str], DeltaChannel(appended, snapshot_frequency=3)]
    notes: Annotated[list[str], DeltaChannel(appended, snapshot_frequency=100)]
    pages: int


def ledger_graph() -> StateGraph[Any]:
    """A loop of two parallel nodes that write to delta channels, `pages` times."""

    def line(state: Ledger) -> Ledger:
        return {"lines": [f"line {len(state['lines'])}"], "notes": ["written"]}

    def stamp(state: Ledger) -> Ledger:
        return {"lines": ["stamp"]}

    def turn(state: Ledger) -> Ledger:
        return {"pages": state["pages"] - 1}

    builder: StateGraph[Any] = StateGraph(Ledger).add_node(line).add_node(stamp).add_node(turn)
    for name in ("line", "stamp"):
        builder.add_edge(START, name).add_edge(name, "turn")
    return builder.add_conditional_edges(
        "turn", lambda state: ["line", "stamp"] if state["pages"] > 0 else [END], ["line", "stamp", END]
    )


def archive_graph() -> StateGraph[Any]:
    """A ledger that is a subgraph and keeps its delta channels between the calls of its parent."""
    archive: StateGraph[Any] = StateGraph(Ledger)
    archive.add_node("ledger", ledger_graph().compile(checkpointer=True))
    return archive.add_edge(START, "ledger")
