"""Random histories of threads: what graphs save, and the odd things beside it that a saver allows.

A history is a list of actions. They name checkpoints by counting back, so that every list has a meaning,
however far hypothesis shortens it. `Player` performs them through the saver's public methods alone.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from hypothesis import strategies as st
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, TASKS, _DeltaSnapshot
from langgraph.types import Interrupt, Send

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata

    from cpstore import SQLAlchemySaver

__all__ = ["CHANNELS", "DELTAS", "ROOT", "RUNS", "History", "Player", "histories"]

ROOT = ""
SUB = "sub"
CALLS = ("node:1", "node:1|inner:2", "sub|node:3")

DELTAS = ("log", "tags")
CHANNELS = ("words", "flag", "bare", "chat", *DELTAS)
RUNS = ("run0", "run1", "run2")

EMPTIED = "<emptied>"
EDITS: dict[str, Callable[[list[str], str], list[str]]] = {
    "<append>": lambda old, new: [*old, new],
    "<append two>": lambda old, new: [*old, new, f"{new} too"],
    "<same>": lambda old, _: old,
    "<replace last>": lambda old, new: [*old[:-1], new],
    "<remove first>": lambda old, _: old[1:],
    "<clear>": lambda *_: [],
}
"""What happens to a list. What is only appended to is stored in pieces."""

DeltaStep = Literal["write", "snapshot", "plain", "inline"]
VersionStyle = Literal["text", "int", "float"]

EXAMPLES = itertools.count()


@dataclass(frozen=True)
class Put:
    """A checkpoint is saved.

    Attributes:
        thread: the number of its thread.
        namespace: its namespace.
        parent: the checkpoint of that namespace it is made from, counted back from the last one; None: none.
        root: the root graph's checkpoint that a subgraph's belongs to, counted back; None: one never saved.
        run: the number of its run.
        v: the format of the checkpoint.
        backwards: its id sorts before the ids of all that was saved until now.
        changes: channels with a new value, or `EMPTIED`.
        edit: one of `EDITS`, for the list in the channel `chat`; None: it stays as it is.
        restarts: the saver before has forgotten everything.
        deltas: what happens to the delta channels; the others stay as they are.
        sends: so many sends are written under its parent before.
    """

    thread: int
    namespace: str
    parent: int | None
    root: int | None
    run: int
    v: int
    backwards: bool
    changes: dict[str, Any]
    edit: str | None
    restarts: bool
    deltas: dict[str, DeltaStep]
    sends: int


@dataclass(frozen=True)
class Writes:
    """A task leaves pending writes under the checkpoint that is `target`, counted back."""

    thread: int
    namespace: str
    target: int
    task: int
    path: str
    channels: tuple[str, ...]


@dataclass(frozen=True)
class Stray:
    """A write under an id that no checkpoint ever has, before or after all of them."""

    thread: int
    namespace: str
    newest: bool


@dataclass(frozen=True)
class History:
    """What happens in two threads, and what the versions of channels look like."""

    actions: tuple[Put | Writes | Stray, ...]
    versions: VersionStyle


def histories(*, size: int = 24) -> st.SearchStrategy[History]:
    """Histories of at most `size` actions, most of them in thread 0 and in the root graph."""
    actions = st.lists(st.one_of(puts(), puts(), puts(), writes(), strays()), min_size=6, max_size=size)
    return st.builds(History, actions.map(tuple), st.sampled_from(["text", "text", "int", "float"]))


def threads() -> st.SearchStrategy[int]:
    return st.sampled_from([0, 0, 0, 1])


def namespaces() -> st.SearchStrategy[str]:
    return st.sampled_from([ROOT, ROOT, ROOT, ROOT, SUB, *CALLS])


def puts() -> st.SearchStrategy[Put]:
    values = st.sampled_from([["list"], {"a": 1}, "short", "long " * 80, 7, None, True, EMPTIED])
    steps = st.sampled_from(["write", "write", "write", "snapshot", "snapshot", "plain", "inline"])
    return st.builds(
        Put,
        thread=threads(),
        namespace=namespaces(),
        parent=st.sampled_from([0, 0, 0, 0, 0, 1, 2, 4, None]),
        root=st.sampled_from([0, 0, 1, 3, None]),
        run=st.integers(0, len(RUNS) - 1),
        v=st.sampled_from([4, 4, 3, 2]),
        backwards=st.sampled_from([False, False, False, True]),
        changes=st.dictionaries(st.sampled_from(["words", "flag", "bare"]), values, max_size=3),
        edit=st.sampled_from([*["<append>"] * 6, None, *EDITS]),
        restarts=st.sampled_from([False, False, False, False, True]),
        deltas=st.dictionaries(st.sampled_from(DELTAS), steps, max_size=2),
        sends=st.sampled_from([0, 0, 1, 2]),
    )


def writes() -> st.SearchStrategy[Writes]:
    channels = st.sampled_from(["words", *DELTAS, ERROR, INTERRUPT, RESUME, TASKS])
    return st.builds(
        Writes,
        thread=threads(),
        namespace=namespaces(),
        target=st.integers(0, 4),
        task=st.integers(0, 2),
        path=st.sampled_from(["", "~a", "Z"]),
        channels=st.lists(channels, min_size=1, max_size=3).map(tuple),
    )


def strays() -> st.SearchStrategy[Stray]:
    return st.builds(Stray, threads(), namespaces(), st.booleans())


@dataclass
class Saved:
    """A checkpoint that was put, as far as its children need to know."""

    config: RunnableConfig
    values: dict[str, Any]
    versions: dict[str, Any]
    counters: dict[str, tuple[int, int]]


@dataclass
class Player:
    """Performs histories on a saver, in threads and runs that no other player has.

    Attributes:
        saver: where they are saved, by its sync methods.
        restarted: makes a saver that knows nothing of what was saved.
        threads: the ids of threads 0 and 1.
        runs: the ids of the runs.
    """

    saver: SQLAlchemySaver
    restarted: Callable[[], SQLAlchemySaver]
    example: int = field(default_factory=lambda: next(EXAMPLES))
    serial: int = 0
    saved: dict[tuple[str, str], list[Saved]] = field(default_factory=lambda: defaultdict(list))

    @property
    def threads(self) -> tuple[str, str]:
        return f"{self.example}-0", f"{self.example}-1"

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(f"{self.example}-{run}" for run in RUNS)

    def play(self, history: History) -> None:
        for action in history.actions:
            self.serial += 1
            if isinstance(action, Put):
                if action.restarts:
                    self.saver = self.restarted()
                self._put(action, history.versions)
            elif isinstance(action, Writes):
                self._put_writes(action)
            else:
                self._stray(action)

    def _put(self, action: Put, style: VersionStyle) -> None:
        thread = self.threads[action.thread]
        parent = self._back(thread, action.namespace, action.parent)
        child = self._child(thread, action.namespace, parent)
        before = dict(child.versions)
        self._change(child, action, parent, style)
        new = {name: version for name, version in child.versions.items() if version != before.get(name)}
        made = cast(
            "Checkpoint",
            {
                **empty_checkpoint(),
                "v": action.v,
                "id": self._id(backwards=action.backwards),
                "channel_values": dict(child.values),
                "channel_versions": dict(child.versions),
                "updated_channels": sorted(new),
            },
        )
        child.config = self.saver.put(child.config, made, self._metadata(action, child.counters), new)
        self.saved[thread, action.namespace].append(child)

    def _child(self, thread: str, namespace: str, parent: Saved | None) -> Saved:
        if parent is None:
            place: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
            return Saved(place, {}, {}, {})
        return Saved(parent.config, dict(parent.values), dict(parent.versions), dict(parent.counters))

    def _change(self, child: Saved, action: Put, parent: Saved | None, style: VersionStyle) -> None:
        if "start" not in child.versions:
            self._set(child, "start", "short", style)
        for channel, value in action.changes.items():
            self._set(child, channel, value, style)
        if action.edit is not None:
            child.values["chat"] = EDITS[action.edit](child.values.get("chat", []), f"m{self.serial}")
            child.versions["chat"] = self._version(style)
        for channel in DELTAS:
            self._step(child, channel, action.deltas.get(channel), parent, style)
        if parent is not None and action.sends:
            sends = [(TASKS, Send("node", {"number": self.serial + n})) for n in range(action.sends)]
            self.saver.put_writes(parent.config, sends, f"send{self.serial}", "~send")

    def _set(self, child: Saved, channel: str, value: Any, style: VersionStyle) -> None:
        child.values.pop(channel, None)
        if value != EMPTIED:
            child.values[channel] = [*value, self.serial] if isinstance(value, list) else value
        if channel != "bare":  # it has values, but never a version
            child.versions[channel] = self._version(style)

    def _step(
        self, child: Saved, channel: str, step: DeltaStep | None, parent: Saved | None, style: VersionStyle
    ) -> None:
        """Do as LangGraph does: a write is the parent's, a snapshot the child's, a counter the metadata's."""
        updates, supersteps = child.counters.get(channel, (0, 0))
        child.counters[channel] = (updates + (step is not None), supersteps + 1)
        if step is None:
            return
        child.values.pop(channel, None)
        child.versions[channel] = self._version(style)
        if step == "write" and parent is not None:
            self.saver.put_writes(parent.config, [(channel, [f"w{self.serial}"])], f"task{self.serial}")
        elif step != "write":
            seeds = {"snapshot": _DeltaSnapshot([self.serial]), "plain": [self.serial], "inline": None}
            child.values[channel] = seeds[step]
            child.counters.pop(channel)

    def _metadata(self, action: Put, counters: dict[str, tuple[int, int]]) -> CheckpointMetadata:
        metadata: CheckpointMetadata = {
            "source": "loop",
            "step": self.serial,
            "run_id": self.runs[action.run],
            "parents": {},
        }
        if action.namespace != ROOT:
            root = self._back(self.threads[action.thread], ROOT, action.root)
            metadata["parents"] = {ROOT: "never saved" if root is None else _id_of(root)}
        if counters:
            metadata["counters_since_delta_snapshot"] = dict(counters)
        return metadata

    def _put_writes(self, action: Writes) -> None:
        target = self._back(self.threads[action.thread], action.namespace, action.target)
        if target is not None:
            values = [(channel, self._written(channel)) for channel in action.channels]
            self.saver.put_writes(target.config, values, f"task-{action.task}", action.path)

    def _written(self, channel: str) -> Any:
        if channel == TASKS:
            return Send("node", {"number": self.serial})
        if channel == INTERRUPT:
            return [Interrupt(value=self.serial, id="question")]
        return [f"p{self.serial}"] if channel in DELTAS else f"value {self.serial}"

    def _stray(self, action: Stray) -> None:
        place: RunnableConfig = {
            "configurable": {
                "thread_id": self.threads[action.thread],
                "checkpoint_ns": action.namespace,
                "checkpoint_id": _uuid(0xFFFFFFFF if action.newest else 0, self.serial),
            }
        }
        self.saver.put_writes(place, [("words", "stray"), ("log", ["stray"])], "stray")

    def _back(self, thread: str, namespace: str, count: int | None) -> Saved | None:
        all_of_them = self.saved[thread, namespace]
        if count is None or not all_of_them:
            return None
        return all_of_them[-1 - count % len(all_of_them)]

    def _id(self, *, backwards: bool) -> str:
        return _uuid(0x1F000000 + (-self.serial if backwards else self.serial), self.serial)

    def _version(self, style: VersionStyle) -> Any:
        if style == "int":
            return self.serial
        return self.serial + 0.5 if style == "float" else f"{self.serial:032}.{self.serial}"


def _uuid(high: int, low: int) -> str:
    """Text in the form of a UUIDv6; the higher number sorts later."""
    return f"{high:08x}-0000-6000-8000-{low:012x}"


def _id_of(saved: Saved) -> str:
    return str(saved.config["configurable"]["checkpoint_id"])
