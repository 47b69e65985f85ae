"""The state of a checkpoint: values, pending writes, interrupts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from cpstore.records import ERROR, INTERRUPT
from cpstore.reports.summaries import sorted_json, time_text
from cpstore.serde import PlainObject, document
from cpstore.times import time_of

__all__ = ["interrupts_document", "state_document", "values_document", "write_documents"]

_KINDS = {INTERRUPT: "interrupt", ERROR: "error", "__resume__": "resume", "__scheduled__": "scheduled"}


def state_document(found: CheckpointTuple) -> dict[str, Any]:
    """Give the document of a checkpoint with its values, pending writes and interrupts."""
    place: Any = found.config.get("configurable", {})
    parent: Any = (found.parent_config or {}).get("configurable", {})
    checkpoint: Any = found.checkpoint
    metadata: Any = found.metadata
    return {
        "thread_id": place["thread_id"],
        "checkpoint_ns": place["checkpoint_ns"],
        "checkpoint_id": place["checkpoint_id"],
        "parent_checkpoint_id": parent.get("checkpoint_id"),
        "created_at": time_text(time_of(place["checkpoint_id"])),
        "step": metadata.get("step"),
        "source": metadata.get("source"),
        "updated_channels": checkpoint.get("updated_channels"),
        "interrupts": interrupts_document(found),
        "values": values_document(found),
        "writes": write_documents(found),
        "channel_versions": sorted_json(checkpoint.get("channel_versions") or {}),
        "metadata": sorted_json(metadata),
    }


def values_document(found: CheckpointTuple) -> dict[str, Any]:
    """Give the document of each channel's value, by the names of channels in order."""
    values = found.checkpoint.get("channel_values") or {}
    return {channel: document(values[channel]) for channel in sorted(values)}


def write_documents(found: CheckpointTuple) -> list[dict[str, Any]]:
    """Give the document of each pending write, in the order in which LangGraph applies them.

    Its `kind` is `write`, or `interrupt`, `error`, `resume` or `scheduled` for LangGraph's own channels.
    """
    return [
        {
            "task_id": task_id,
            "kind": _KINDS.get(channel, "write"),
            "channel": channel,
            "value": document(value),
        }
        for task_id, channel, value in found.pending_writes or ()
    ]


def interrupts_document(found: CheckpointTuple) -> list[dict[str, Any]]:
    """Give what the tasks of a checkpoint ask: of each interrupt its task, its id and its value.

    Those are there, too, that were resumed since: LangGraph keeps them.
    """
    return [
        {"task_id": task_id, **asked}
        for task_id, channel, value in found.pending_writes or ()
        if channel == INTERRUPT
        for asked in _interrupts(value)
    ]


def _interrupts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, PlainObject) and value.type == "tuple":
        value = value.fields.get("value")
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(each, PlainObject) and "value" in each.fields:
            yield {"id": each.fields.get("id"), "value": document(each.fields["value"])}
        else:
            yield {"id": None, "value": document(each)}
