"""Stories: a graph and a fixed list of calls, to be told on any saver through any way in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langgraph.types import Command

from tests.histories import Ordinals, whole_history

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph import StateGraph
    from langgraph.types import Durability, StateSnapshot

    from tests.ways import AnyGraph, Door

    Build = Callable[[BaseCheckpointSaver[Any]], AnyGraph]
    Play = Callable[["Stage"], Awaitable[None]]

INTERRUPT = "__interrupt__"

THREAD: RunnableConfig = {"configurable": {"thread_id": "thread"}}


@dataclass
class Stage:
    """One thread of a graph on one saver; it notes what the calls of a story return or raise."""

    door: Door
    graph: AnyGraph
    saver: BaseCheckpointSaver[Any]
    durability: Durability
    told: list[Any] = field(default_factory=list)

    async def invoke(self, value: Any, at: RunnableConfig = THREAD, **options: Any) -> None:
        """Run the graph from the newest checkpoint, or from another one."""
        options = {"durability": self.durability, **options}
        try:
            self.told.append(in_order(await self.door.invoke(self.graph, value, at, **options)))
        except ValueError as error:
            self.told.append(error)

    async def resume(self, value: Any, at: RunnableConfig = THREAD) -> None:
        """Answer an interrupt."""
        await self.invoke(Command(resume=value), at)

    async def update(
        self, values: Any, at: RunnableConfig = THREAD, as_node: str | None = None
    ) -> RunnableConfig:
        """Write a checkpoint by hand."""
        updated = await self.door.update_state(self.graph, at, values, as_node=as_node)
        self.told.append(updated)
        return updated

    async def state(self, at: RunnableConfig = THREAD) -> StateSnapshot:
        """Look at a checkpoint, subgraphs included."""
        snapshot = await self.door.get_state(self.graph, at, subgraphs=True)
        self.told.append(snapshot)
        return snapshot

    async def subgraph(self, *nodes: str) -> StateSnapshot:
        """Look at the subgraph that waits in a node, or in a node of the subgraph there, and so on."""
        level: Any = await self.state()
        for node in nodes:
            level = next(task.state for task in level.tasks if task.name == node)
        snapshot: StateSnapshot = level
        return snapshot

    async def configs(self, at: RunnableConfig = THREAD) -> list[RunnableConfig]:
        """Where the checkpoints are, oldest first."""
        history = await self.door.get_state_history(self.graph, at)
        return [snapshot.config for snapshot in reversed(history)]


def in_order(result: Any) -> Any:
    """A result whose interrupts do not stand as they came: parallel nodes ask in any order."""
    if isinstance(result, dict) and INTERRUPT in result:
        return {**result, INTERRUPT: sorted(result[INTERRUPT], key=lambda asked: str(asked.value))}
    return result


@dataclass(frozen=True)
class Story:
    """A graph and a fixed list of calls."""

    build: Build
    play: Play
    durabilities: tuple[Durability, ...]

    async def told(
        self, door: Door, saver: BaseCheckpointSaver[Any], durability: Durability
    ) -> tuple[list[Any], list[Any]]:
        """What the story tells on a saver: from call to call, and of its thread in the end."""
        stage = Stage(door, self.build(saver), saver, durability)
        await self.play(stage)
        ordinals = Ordinals()
        history = await whole_history(door, stage.graph, saver, THREAD)
        return ordinals.plain(stage.told), ordinals.plain(history)


STORIES: list[Story] = []
"""All stories, in the order of their registration."""


def story(graph: Callable[[], StateGraph[Any]], *durabilities: Durability) -> Callable[[Play], Play]:
    """Register a story of a graph; where no durability is named, it is told with `sync` alone."""

    def build(saver: BaseCheckpointSaver[Any]) -> AnyGraph:
        return graph().compile(checkpointer=saver)

    return story_of(build, *durabilities)


def story_of(build: Build, *durabilities: Durability) -> Callable[[Play], Play]:
    """Register a story of what compiles itself."""

    def register(play: Play) -> Play:
        STORIES.append(Story(build, play, durabilities or ("sync",)))
        return play

    return register
