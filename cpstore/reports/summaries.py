"""Threads and checkpoints at a glance."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from cpstore.summaries import CheckpointSummary, ThreadSummary

__all__ = ["checkpoint_document", "sorted_json", "thread_document", "time_text"]


def thread_document(thread: ThreadSummary) -> dict[str, Any]:
    """Give the document of a thread."""
    return {
        "thread_id": thread.thread_id,
        "checkpoints": thread.checkpoints,
        "namespaces": list(thread.namespaces),
        "created_at": time_text(thread.created_at),
        "updated_at": time_text(thread.updated_at),
        "first_checkpoint_id": thread.first_checkpoint_id,
        "last_checkpoint_id": thread.last_checkpoint_id,
    }


def checkpoint_document(checkpoint: CheckpointSummary) -> dict[str, Any]:
    """Give the document of a checkpoint without its values."""
    updated = checkpoint.updated_channels
    return {
        "thread_id": checkpoint.thread_id,
        "checkpoint_ns": checkpoint.checkpoint_ns,
        "checkpoint_id": checkpoint.checkpoint_id,
        "parent_checkpoint_id": checkpoint.parent_checkpoint_id,
        "created_at": time_text(checkpoint.created_at),
        "step": checkpoint.metadata.get("step"),
        "source": checkpoint.metadata.get("source"),
        "updated_channels": None if updated is None else list(updated),
        "interrupts": checkpoint.interrupts,
        "errors": checkpoint.errors,
        "writes": checkpoint.writes,
        "write_bytes": checkpoint.write_bytes,
        "value_bytes": checkpoint.value_bytes,
        "document_bytes": checkpoint.document_bytes,
        "metadata": sorted_json(checkpoint.metadata),
    }


def time_text(time: dt.datetime | None) -> str | None:
    """Give a time in ISO 8601, in UTC, to the microsecond."""
    return None if time is None else time.isoformat(timespec="microseconds")


def sorted_json(value: Any) -> Any:
    """Give JSON with all keys in their order: PostgreSQL keeps them in one of its own."""
    if isinstance(value, Mapping):
        return {key: sorted_json(value[key]) for key in sorted(value)}
    return [sorted_json(item) for item in value] if isinstance(value, list) else value
