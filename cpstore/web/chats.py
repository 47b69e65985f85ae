"""Lists of messages as a chat: who said what, and which tools were called."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Call", "Message", "chat_of"]

_ROLES = {"HumanMessage": "human", "AIMessage": "ai", "SystemMessage": "system", "ToolMessage": "tool"}


@dataclass(frozen=True)
class Call:
    """A call of a tool that a model asks for.

    Attributes:
        name: The tool.
        arguments: What it is called with, as JSON.
    """

    name: str
    arguments: str


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        role: `human`, `ai`, `system`, `tool` or `other`.
        name: The name of its class, and the name that it bears.
        text: What it says; of parts that are no text, as an image, what they are.
        calls: The tools that it calls.
        id: Its id; empty if it has none.
    """

    role: str
    name: str
    text: str
    calls: tuple[Call, ...]
    id: str


def chat_of(value: Any) -> list[Message] | None:
    """Give the messages of a document; None if it is no list of LangChain's messages."""
    if not isinstance(value, list) or not value:
        return None
    messages = [_message(each) for each in value]
    found = [message for message in messages if message is not None]
    return found if len(found) == len(value) else None


def _message(value: Any) -> Message | None:
    if not isinstance(value, Mapping) or "content" not in value:
        return None
    kind = str(value.get("$type", "")).rpartition(".")[2]
    if not kind.removesuffix("Chunk").endswith("Message"):
        return None
    name = value.get("name")
    return Message(
        role=_ROLES.get(kind.removesuffix("Chunk"), "other"),
        name=f"{kind} {name}" if isinstance(name, str) and name else kind,
        text=_text(value["content"]),
        calls=tuple(_call(each) for each in _list(value.get("tool_calls"))),
        id=value["id"] if isinstance(value.get("id"), str) else "",
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_part(each) for each in _list(content))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type") if isinstance(part, Mapping) else None
    return f"[{kind if isinstance(kind, str) else 'a part that is no text'}]"


def _call(call: Any) -> Call:
    if not isinstance(call, Mapping):
        return Call("?", json.dumps(call))
    return Call(str(call.get("name", "?")), json.dumps(call.get("args"), ensure_ascii=False))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
