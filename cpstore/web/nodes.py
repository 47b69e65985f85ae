"""Plain data as a template shows it: what folds, what is text, what is too long to be shown at once.

State is untrusted text. Nothing here is markup; the templates escape all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

__all__ = ["Node", "node_of"]

_ITEMS = 200
"""So many items of a list or an object are shown."""

_CHARACTERS = 20_000
"""So many characters of a text are shown."""

_DEPTH = 40
"""So deep it is shown: a browser gives up on more."""


@dataclass(frozen=True)
class Node:
    """One value.

    Attributes:
        kind: `object`, `list`, `text`, or `plain` for numbers, booleans and null.
        type: The class that it was stored with; empty if it is JSON's own.
        text: It, if it does not fold; the beginning of a long one.
        size: The number of its items, or of the characters of a text.
        items: Labels and what is below them.
        more: How many items or characters are not shown.
    """

    kind: str
    type: str = ""
    text: str = ""
    size: int = 0
    items: list[tuple[str, Node]] = field(default_factory=list)
    more: int = 0


def node_of(value: Any, depth: int = 0) -> Node:
    """Give the node of plain data, in which a class is a mapping with `$type` first."""
    if isinstance(value, str):
        return Node("text", text=value[:_CHARACTERS], size=len(value), more=max(len(value) - _CHARACTERS, 0))
    if depth == _DEPTH and isinstance(value, (Mapping, list)):
        return Node("plain", text="… deeper than is shown")
    if isinstance(value, Mapping):
        return _object(value, depth)
    if isinstance(value, list):
        shown = enumerate(value[:_ITEMS])
        items = [(str(number), node_of(each, depth + 1)) for number, each in shown]
        return Node("list", size=len(value), items=items, more=max(len(value) - _ITEMS, 0))
    return Node("plain", text=_plain(value))


def _object(value: Mapping[str, Any], depth: int) -> Node:
    if "$unreadable" in value:
        return Node("plain", text=_unreadable(value))
    kind = value.get("$type")
    members = {name: each for name, each in value.items() if name != "$type"}
    shown = islice(members.items(), _ITEMS)
    items = [(str(name), node_of(each, depth + 1)) for name, each in shown]
    name = kind if isinstance(kind, str) else ""
    return Node("object", type=name, size=len(members), items=items, more=max(len(members) - _ITEMS, 0))


def _unreadable(value: Mapping[str, Any]) -> str:
    size = f", {value['bytes']} bytes" if "bytes" in value else ""
    return f"not shown: {value['$unreadable']}{size}"


def _plain(value: Any) -> str:
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)
