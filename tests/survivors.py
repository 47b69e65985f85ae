"""What has to survive a removal or go with a copy: a second, plain opinion, beside the package's own.

It is computed from what the saver read before, and knows nothing of tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import TASKS

from tests.random_histories import ROOT

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from cpstore import SQLAlchemySaver

Place = tuple[str, str]
"""The namespace and id of a checkpoint of one thread."""

Thread = Mapping[Place, CheckpointTuple]


# What the saver reads


def read(saver: SQLAlchemySaver, thread: str) -> Thread:
    return {place_of(found.config): found for found in saver.list({"configurable": {"thread_id": thread}})}


def place_of(config: RunnableConfig) -> Place:
    return config["configurable"]["checkpoint_ns"], config["configurable"]["checkpoint_id"]


def parent_of(found: CheckpointTuple) -> Place | None:
    return None if found.parent_config is None else place_of(found.parent_config)


def replayed(found: CheckpointTuple) -> list[str]:
    """The delta channels whose value LangGraph takes from ancestors."""
    named = found.metadata.get("counters_since_delta_snapshot", {})
    checkpoint = found.checkpoint
    return [
        name
        for name in named
        if name in checkpoint["channel_versions"] and name not in checkpoint["channel_values"]
    ]


def needed_by(thread: Thread, place: Place) -> Iterator[Place]:
    """The ancestors without which a checkpoint does not read as it does."""
    found = thread[place]
    parent = parent_of(found)
    if found.checkpoint["v"] < 4 and parent is not None and parent in thread and has_sends(thread[parent]):
        yield parent
    for channel in replayed(found):
        for ancestor in ancestors(thread, place):
            yield ancestor
            if channel in thread[ancestor].checkpoint["channel_values"]:
                break


def has_sends(found: CheckpointTuple) -> bool:
    return any(channel == TASKS for _, channel, _ in found.pending_writes or [])


def ancestors(thread: Thread, place: Place) -> Iterator[Place]:
    parent = parent_of(thread[place])
    while parent is not None and parent in thread:
        yield parent
        parent = parent_of(thread[parent])


def with_needed(thread: Thread, kept: Iterable[Place]) -> set[Place]:
    reached: set[Place] = set()
    waiting = list(kept)
    while waiting:
        place = waiting.pop()
        if place not in reached:
            reached.add(place)
            waiting.extend(needed_by(thread, place))
    return reached


def root_of(thread: Thread, place: Place) -> Place:
    """The root graph's checkpoint that a subgraph's belongs to."""
    return ROOT, thread[place].metadata.get("parents", {}).get(ROOT, "")


def newest(thread: Thread, keep: int) -> set[Place]:
    """What stays if the newest `keep` checkpoints of each namespace do."""
    heads = {ns: sorted((place for place in thread if place[0] == ns), reverse=True) for ns, _ in thread}
    kept = with_needed(thread, (place for places in heads.values() for place in places[:keep]))
    ended = {
        ns
        for ns, places in heads.items()
        for root in [root_of(thread, places[0])]
        if ":" in ns and root in thread and root not in kept
    }
    return {place for place in kept if place[0] not in ended}


def without_runs(thread: Thread, runs: Collection[str | None]) -> set[Place]:
    """What stays if the checkpoints of some runs, and the subgraph calls inside them, go."""
    of_runs = {place for place, found in thread.items() if found.metadata.get("run_id") in runs}
    kept = with_needed(thread, thread.keys() - of_runs)
    calls = {
        place
        for place in thread
        if ":" in place[0] and root_of(thread, place) in thread and root_of(thread, place) not in kept
    }
    return with_needed(thread, thread.keys() - of_runs - calls)


def up_to(thread: Thread, chosen: Place) -> tuple[Thread, set[Place]]:
    """What a copy up to a checkpoint has, and how the source reads there: what came after is left out."""
    chain = {chosen, *ancestors(thread, chosen)}
    calls = chain
    if any(parent_of(found) == chosen for found in thread.values()):
        calls = chain - {chosen}
        thread = {**thread, chosen: thread[chosen]._replace(pending_writes=[])}
    subgraphs = {place for place in thread if place[0] != ROOT and root_of(thread, place) in calls}
    return thread, with_needed(thread, chain | subgraphs)
