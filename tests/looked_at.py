"""A thread to look at: a fork, an interrupt, a call of a subgraph, a message. All ids in it are fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.types import Interrupt, Send

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from cpstore import SQLAlchemySaver

THREAD = "trip"
SUBGRAPH = "search:7f"


def id_of(number: int) -> str:
    """An id of version 6, whose time is that of its number."""
    return f"1f0a0000-{number:04x}-6000-8000-{number:012x}"


def put(
    saver: SQLAlchemySaver,
    number: int,
    parent: int | None,
    values: dict[str, Any],
    *,
    namespace: str = "",
    thread_id: str = THREAD,
    versions: dict[str, int] | None = None,
    new: list[str] | None = None,
    **metadata: Any,
) -> RunnableConfig:
    """Store a checkpoint; of the channels' versions each is its number, unless `versions` says another."""
    made = empty_checkpoint()
    made["id"] = id_of(number)
    made["ts"] = "2026-01-02T03:04:05+00:00"
    made["v"] = 4
    made["channel_values"] = values
    numbers = dict.fromkeys(values, number) | (versions or {})
    made["channel_versions"] = {name: f"{each:032}.5" for name, each in numbers.items()}
    updated = sorted(values) if new is None else new
    made["updated_channels"] = updated
    changed = {name: made["channel_versions"][name] for name in updated}
    at: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
    if parent is not None:
        at["configurable"]["checkpoint_id"] = id_of(parent)
    return saver.put(at, made, metadata, changed)  # type: ignore[arg-type]


def messages(count: int) -> list[Any]:
    """A conversation."""
    kinds = (HumanMessage, AIMessage)
    return [kinds[number % 2](f"word {number}", id=str(number)) for number in range(count)]


def tell(saver: SQLAlchemySaver) -> None:
    """Store the thread, and two small ones."""
    put(saver, 1, None, {"messages": messages(1)}, source="input", step=-1)
    at = put(saver, 2, 1, {"messages": messages(2), "city": "Bern"}, source="loop", step=0)
    saver.put_writes(at, [("__pregel_tasks", Send("search", {"city": "Bern"}))], "task-1")
    inner: Any = {"namespace": SUBGRAPH, "parents": {"": id_of(2)}}
    put(saver, 3, None, {"query": "Bern"}, source="input", step=-1, **inner)
    put(saver, 4, 3, {"query": "Bern", "hits": ["a" * 300]}, source="loop", step=0, new=["hits"],
        versions={"query": 3}, **inner)  # fmt: skip
    at = put(saver, 5, 2, {"messages": messages(3), "city": "Bern"}, source="loop", step=1, new=["messages"],
             versions={"city": 2})  # fmt: skip
    saver.put_writes(at, [("__interrupt__", (Interrupt("Book it?", id="i1"),))], "task-2")
    put(saver, 6, 1, {"messages": messages(1), "city": "Thun"}, source="fork", step=0, new=["city"],
        versions={"messages": 1})  # fmt: skip
    at = put(saver, 7, 5, {"messages": messages(4), "hotel": "Aare"}, source="loop", step=2)
    saver.put_writes(at, [("messages", "more"), ("__error__", "ValueError('no')")], "task-3")
    put(saver, 8, None, {"a": 1}, thread_id="other", source="input", step=-1)
    put(saver, 9, None, {"a": "\x1b[31m<script>"}, thread_id="\x1b[2Jodd\n", source="input", step=-1)
