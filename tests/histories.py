"""What tests compare of a thread's history: all of it, with ordinals in place of ids and times."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.types import StateSnapshot

    from tests.ways import AnyGraph, Door

ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")
"""A UUID, of a checkpoint or a task, or the 32 digits of an interrupt."""

VERSION = re.compile(r"(\d{32})\..+")
"""A channel version; what follows the point is random."""

ADDRESS = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
"""What a config says of a checkpoint. The memory saver hands on whatever else it was asked with."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")


def facts(snapshot: StateSnapshot) -> dict[str, Any]:
    """What a reader cares for in a snapshot, without ids and times."""
    metadata = dict(snapshot.metadata or {})
    return {
        "values": snapshot.values,
        "next": snapshot.next,
        "source": metadata.get("source"),
        "step": metadata.get("step"),
        "interrupts": [pending.value for pending in snapshot.interrupts],
        "tasks": [(one.name, repr(one.error), one.result) for one in snapshot.tasks],
    }


class Ordinals:
    """Gives each id the number of its first appearance, wherever in a text it stands."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def plain(self, value: Any) -> Any:
        """A value as dicts, lists and leaves: equal to another run's if nothing but ids differ."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            value = address_of(value)
            return {self._text(str(key)): self.plain(value[key]) for key in sorted(value, key=masked)}
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return [self.plain(item) for item in value]
        parts = parts_of(value)
        return value if parts is None else {"": type(value).__name__, **self.plain(parts)}

    def _text(self, text: str) -> str:
        if version := VERSION.fullmatch(text):
            return f"version {int(version[1])}"
        return ID.sub(lambda found: self._ordinal(found[0]), TIME.sub("time", text))

    def _ordinal(self, name: str) -> str:
        return self._known.setdefault(name, f"#{len(self._known)}")


def masked(text: Any) -> str:
    """A text without its ids, to sort by."""
    return ID.sub("#", str(text))


def address_of(value: dict[Any, Any]) -> dict[Any, Any]:
    """A config with nothing but what names a checkpoint; any other dict as it is."""
    if "configurable" not in value:
        return value
    return {key: value["configurable"][key] for key in ADDRESS if key in value["configurable"]}


def parts_of(value: Any) -> Mapping[str, Any] | None:
    """The parts of an object that has some: a named tuple, an error, a message, a data class."""
    if isinstance(value, tuple):
        return dict(zip(value._fields, value, strict=True)) if hasattr(value, "_fields") else None
    if isinstance(value, BaseException):
        return {"args": value.args}
    if isinstance(value, BaseModel):
        return value.model_dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


async def whole_history(
    door: Door, graph: AnyGraph, saver: BaseCheckpointSaver[Any], thread: RunnableConfig
) -> list[Any]:
    """All that a saver and a graph tell of a thread: each namespace, newest first."""
    saved = [found async for found in saver.alist(thread)]
    told: list[Any] = []
    for namespace, tuples in by_namespace(saved):
        place: RunnableConfig = {"configurable": {**thread["configurable"], "checkpoint_ns": namespace}}
        alone = [found async for found in saver.alist(place)]
        told.append([namespace, tuples, await door.get_state_history(graph, place)])
        assert [found.config for found in alone] == [found.config for found in tuples]
    return told


def by_namespace(saved: Iterable[CheckpointTuple]) -> list[tuple[str, list[CheckpointTuple]]]:
    """Checkpoints by their namespace; namespaces of the same nodes in the order in which they began."""
    groups: dict[str, list[CheckpointTuple]] = defaultdict(list)
    for found in saved:
        groups[found.config["configurable"]["checkpoint_ns"]].append(found)
    return sorted(groups.items(), key=lambda group: (masked(group[0]), group[1][-1].checkpoint["id"]))


def differences(found: Any, expected: Any, path: str = "") -> list[str]:
    """Where two plain values differ, one line each: a history is too long for a failure to print it."""
    if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        parts = [(key, found[key], expected[key]) for key in found]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        parts = [(str(number), *pair) for number, pair in enumerate(zip(found, expected, strict=True))]
    else:
        return [] if found == expected else [f"{path}: {found} is not {expected}"]
    return [line for part in parts for line in differences(part[1], part[2], f"{path}/{part[0]}")]
