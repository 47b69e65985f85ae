"""A graph that survives its own death: killed in mid-step, resumed, forked, and drawn as a tree.

    python examples/survive.py
    python examples/survive.py --url postgresql+psycopg://user:password@host/database

A small travel agent plans a trip: one node plans, three work in parallel, one sums up. The "model" is a
dictionary, so no key and no network is needed. The run happens in a second process, and this one kills it
(SIGKILL: no handler, no cleanup) while the slowest of the three parallel nodes is still at work. What the
other two found is in the database already, because LangGraph saves the writes of each node as it finishes
(`durability="async"`, its default; `"exit"` would have saved nothing). So they are not run again.
"""

from __future__ import annotations

import argparse
import operator
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict
from uuid import uuid4

from langgraph.graph import END, START, StateGraph
from sqlalchemy import make_url

from cpstore import SQLAlchemySaver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot

WORKERS = ("flights", "hotels", "weather")
MODEL = {
    ("flights", "Oslo"): "flights: two a day, 120 euro",
    ("hotels", "Oslo"): "hotels: Harbour Inn, 140 euro",
    ("weather", "Oslo"): "weather: snow, -4 degrees",
    ("flights", "Lisbon"): "flights: five a day, 90 euro",
    ("hotels", "Lisbon"): "hotels: Casa Azul, 95 euro",
    ("weather", "Lisbon"): "weather: sun, 17 degrees",
}
PATIENCE = 60.0  # seconds to wait for the other process, and what "slow" means there


class Trip(TypedDict, total=False):
    """The state of the graph: what each checkpoint holds."""

    request: str
    city: str
    findings: Annotated[list[str], operator.add]
    summary: str
    approved: bool


class WorkLog:
    """A file with one line for each node that began, from any process: what was really run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, node: str) -> None:
        """Append the name of a node."""
        with self.path.open("a", encoding="utf-8") as log:
            log.write(f"{node}\n")

    def nodes(self) -> list[str]:
        """The names so far, in the order in which the nodes began."""
        return self.path.read_text(encoding="utf-8").split() if self.path.exists() else []


def build(saver: SQLAlchemySaver, log: WorkLog, slow_seconds: float = 0.0) -> CompiledStateGraph[Any]:
    """The travel agent; its weather service takes `slow_seconds` to answer."""

    def planner(state: Trip) -> Trip:
        log.add("planner")
        return {"city": state["request"].rsplit(maxsplit=1)[-1]}

    def worker(name: str) -> Any:
        def ask_model(state: Trip) -> Trip:
            log.add(name)
            time.sleep(slow_seconds if name == "weather" else 0.0)
            return {"findings": [MODEL[name, state["city"]]]}

        return ask_model

    def summary(state: Trip) -> Trip:
        log.add("summary")
        return {"summary": f"{state['city']} - {'; '.join(state['findings'])}"}

    builder: StateGraph[Any] = StateGraph(Trip).add_node(planner).add_node(summary)
    builder.add_edge(START, "planner").add_edge("summary", END)
    for name in WORKERS:
        builder.add_node(name, worker(name)).add_edge("planner", name)
    builder.add_edge(list(WORKERS), "summary")
    return builder.compile(checkpointer=saver)


def ensure(condition: bool, message: str) -> None:
    """End the program with an error unless the condition holds."""
    if not condition:
        raise SystemExit(f"FAILED: {message}")


# (a) Another process runs the graph, and is killed.


def run_as_child(url: str, thread_id: str, log: WorkLog) -> None:
    """The whole life of the other process: start the graph, and get stuck in the slow node."""
    with SQLAlchemySaver.from_url(url) as saver:
        graph = build(saver, log, slow_seconds=PATIENCE)
        graph.invoke({"request": "A weekend in Oslo"}, {"configurable": {"thread_id": thread_id}})


def start_child(url: str, thread_id: str, log: WorkLog) -> subprocess.Popen[bytes]:
    """Run this very program as the other process."""
    hidden = ["--child-thread", thread_id, "--child-log", str(log.path)]
    return subprocess.Popen([sys.executable, __file__, "--url", url, *hidden])


def finished_nodes(snapshot: StateSnapshot) -> list[str]:
    """The nodes of the current step whose pending writes are in the database."""
    return [task.name for task in snapshot.tasks if task.result is not None]


def wait_until_two_are_done(
    graph: CompiledStateGraph[Any], config: RunnableConfig, child: subprocess.Popen[bytes], log: WorkLog
) -> StateSnapshot:
    """Watch the other process's thread through our own saver until two of the parallel nodes are done."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        snapshot = graph.get_state(config)
        if len(finished_nodes(snapshot)) == len(WORKERS) - 1 and "weather" in log.nodes():
            return snapshot
        ensure(child.poll() is None, "the other process ended early")
        time.sleep(0.02)
    raise SystemExit("FAILED: the other process did not get there in time")


def kill_in_mid_step(graph: CompiledStateGraph[Any], config: RunnableConfig, url: str, log: WorkLog) -> None:
    """Let the other process run until two of three parallel nodes are done, then kill it."""
    child = start_child(url, config["configurable"]["thread_id"], log)
    try:
        print(f"  process {child.pid} runs the graph; we watch its thread in the database")
        snapshot = wait_until_two_are_done(graph, config, child, log)
    finally:
        child.kill()  # SIGKILL on POSIX
        child.wait()
    finished = finished_nodes(snapshot)
    running = [name for name in snapshot.next if name not in finished]
    print(f"  finished and saved: {', '.join(finished)}; still running: {', '.join(running)}")
    print(f"  killed process {child.pid} with SIGKILL (exit status {child.returncode})")
    ensure("weather" in running, "the slow node had finished before the kill")


# (b) This process carries on.


def resume(graph: CompiledStateGraph[Any], config: RunnableConfig, log: WorkLog) -> StateSnapshot:
    """Resume the dead run, and show which nodes had to be run a second time."""
    before = log.nodes()
    graph.invoke(None, config)
    resumed = log.nodes()[len(before) :]
    again = [name for name in resumed if name in before]
    print(f"  begun before the kill: {', '.join(before)}")
    print(f"  begun after it:        {', '.join(resumed)}")
    print(f"  ran again: only {', '.join(again)}")
    ensure(again == ["weather"], f"expected only weather to be run again, not {again}")
    return graph.get_state(config)


# (c) A second branch from an old checkpoint.


def fork(graph: CompiledStateGraph[Any], config: RunnableConfig, city: str) -> StateSnapshot:
    """Go back to where the planner was done, choose another city, and run from there."""
    planned = next(old for old in graph.get_state_history(config) if set(old.next) == set(WORKERS))
    was = planned.values["city"]
    print(f"  back to step {step_of(planned)} ({short_id(planned.config)}), where {was} becomes {city}")
    forked = graph.update_state(planned.config, {"city": city}, as_node="planner")
    graph.invoke(None, forked)
    return graph.get_state(config)  # without a checkpoint id: the newest of the thread


def approve(graph: CompiledStateGraph[Any], head: StateSnapshot) -> StateSnapshot:
    """Write on at the head of a branch: it lives on, whatever the other branch does."""
    moved = graph.update_state(head.config, {"approved": True})
    return graph.get_state(moved)


# (d) The history, drawn.


def short_id(config: RunnableConfig) -> str:
    """The random end of a checkpoint's id; its beginning is the time."""
    return str(config["configurable"]["checkpoint_id"])[-6:]


def step_of(snapshot: StateSnapshot) -> int:
    """The number of the super-step after which the checkpoint was made."""
    return int((snapshot.metadata or {})["step"])


def draw(history: list[StateSnapshot], heads: dict[str, str]) -> Iterator[str]:
    """Lines of a tree with the oldest checkpoint on top; `heads` names some checkpoints by short id."""
    children: dict[str, list[StateSnapshot]] = defaultdict(list)
    for snapshot in reversed(history):
        parent = short_id(snapshot.parent_config) if snapshot.parent_config else ""
        children[parent].append(snapshot)

    def lines(snapshot: StateSnapshot, margin: str) -> Iterator[str]:
        name = short_id(snapshot.config)
        source = (snapshot.metadata or {})["source"]
        mark = f"  <== head: {heads[name]}" if name in heads else ""
        yield f"{margin}* step {step_of(snapshot):>2}  {source:<6}  {name}{mark}"
        for later in children[name][1:]:
            yield f"{margin}|\\"
            yield from lines(later, f"{margin}| ")
        for first in children[name][:1]:
            yield from lines(first, margin)

    for root in children[""]:
        yield from lines(root, "  ")


def tell(url: str, log: WorkLog) -> None:
    """The whole story, on a new thread."""
    config: RunnableConfig = {"configurable": {"thread_id": f"trip-{uuid4().hex[:8]}"}}
    with SQLAlchemySaver.from_url(url) as saver:
        saver.setup()
        graph = build(saver, log)
        print("(a) A process dies in the middle of a step")
        kill_in_mid_step(graph, config, url, log)
        print("\n(b) Another process resumes the thread")
        oslo = resume(graph, config, log)
        print(f"  {oslo.values['summary']}")
        print("\n(c) A fork: the same plan, another city")
        lisbon = fork(graph, config, "Lisbon")
        print(f"  {lisbon.values['summary']}")
        heads = [approve(graph, head) for head in (oslo, lisbon)]
        print("  both branches live on: each was approved, neither saw the other")
        print("\n(d) The history of the thread")
        show_tree(graph, config, heads)
    shown = make_url(url).render_as_string()  # without the password
    print("\nLook at it")
    print(f"  cpstore tree {config['configurable']['thread_id']} --url {shown}")
    print(f"  cpstore web --url {shown}")


def show_tree(graph: CompiledStateGraph[Any], config: RunnableConfig, heads: list[StateSnapshot]) -> None:
    """Draw the thread, and make sure that it holds both branches."""
    history = list(graph.get_state_history(config))
    names = {short_id(head.config): str(head.values["city"]) for head in heads}
    print(*draw(history, names), sep="\n")
    parents = {short_id(old.parent_config) for old in history if old.parent_config}
    leaves = {short_id(old.config) for old in history} - parents
    ensure(leaves == set(names), f"expected two branch heads, not {len(leaves)}")
    ensure(all(len(head.values["findings"]) == len(WORKERS) for head in heads), "the branches mixed")


def main() -> None:
    """Read the command line; with the hidden flags, be the process that gets killed."""
    parser = argparse.ArgumentParser(description="A graph that is killed, resumed and forked.")
    parser.add_argument("--url", default="sqlite:///survive.db", help="SQLAlchemy URL of the database")
    parser.add_argument("--child-thread", help=argparse.SUPPRESS)
    parser.add_argument("--child-log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child_thread:
        run_as_child(options.url, options.child_thread, WorkLog(options.child_log))
        return
    with tempfile.TemporaryDirectory() as folder:
        tell(options.url, WorkLog(Path(folder) / "work.log"))


if __name__ == "__main__":
    main()
