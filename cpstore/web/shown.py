"""Documents as templates show them: messages as a chat, everything else as nodes that fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cpstore.web.chats import Message, chat_of
from cpstore.web.nodes import Node, node_of

__all__ = ["Change", "Channel", "shown_changes", "shown_state"]


@dataclass(frozen=True)
class Channel:
    """A channel with its value; `chat` is None if it is no list of messages."""

    name: str
    node: Node
    chat: list[Message] | None

    @classmethod
    def of(cls, name: str, value: Any) -> Channel:
        """Give the channel of a document."""
        return cls(name, node_of(value), chat_of(value))


@dataclass(frozen=True)
class Change:
    """A channel that differs between two checkpoints.

    Attributes:
        name: The channel.
        change: `added`, `removed` or `changed`.
        told: What changed, if it is a list.
        appended: What a list has more, if that is all that changed.
        diff: The lines of the difference otherwise, each with the class that shows it.
    """

    name: str
    change: str
    told: str
    appended: Channel | None
    diff: list[tuple[str, str]]


def shown_state(document: dict[str, Any]) -> dict[str, Any]:
    """Give the document of a state with its values as channels."""
    return document | {
        "channels": [Channel.of(name, value) for name, value in document["values"].items()],
        "interrupts": [each | {"node": node_of(each["value"])} for each in document["interrupts"]],
        "writes": [each | {"node": node_of(each["value"])} for each in document["writes"]],
        "metadata": node_of(document["metadata"]),
    }


def shown_changes(document: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """Give the channels that differ, of a document of a difference and those of both sides' values."""
    return [
        Change(
            name=each["channel"],
            change=each["change"],
            told=_told(each["items"]),
            appended=_appended(each, before, after),
            diff=[(_CLASSES.get(line[:1], "context"), line) for line in each["diff"]],
        )
        for each in document["channels"]
    ]


_CLASSES = {"+": "added", "-": "removed", "@": "soft"}


def _told(items: dict[str, int] | None) -> str:
    if items is None:
        return ""
    return ", ".join(f"{items[name]} {name}" for name in ("appended", "changed", "removed") if items[name])


def _appended(change: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> Channel | None:
    items, name = change["items"], change["channel"]
    if change["change"] == "added":
        return Channel.of(name, after[name])
    if items is None or items["changed"] or items["removed"]:
        return None
    return Channel.of(name, after[name][len(before[name]) :])
