"""The tree of a thread as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cpstore.reports import checkpoint_document
from cpstore.summaries import CheckpointSummary
from cpstore.trees import Forest, margins

__all__ = ["TreeRow", "tree_rows"]

_CHANNELS = 8
"""So many changed channels are named."""


@dataclass(frozen=True)
class TreeRow:
    """A checkpoint where it stands in the tree.

    Attributes:
        graph: What is drawn beside it: lines, and a dot.
        head: Whether it is the newest of its namespace.
        changed: The channels that its step changed.
        bytes: What it takes, values that others share included.
        shown: Its document, without values.
    """

    graph: str
    head: bool
    changed: str
    bytes: int
    shown: dict[str, Any]


def tree_rows(history: Iterable[CheckpointSummary]) -> list[TreeRow]:
    """Give the rows of a light history, each checkpoint below the one that it was made from."""
    forest = Forest.of(history)
    return [
        TreeRow(
            graph=margin,
            head=row.is_head,
            changed=_changed(row.checkpoint.updated_channels or ()),
            bytes=_bytes(row.checkpoint),
            shown=checkpoint_document(row.checkpoint),
        )
        for row, margin in zip(forest.rows, margins(forest), strict=True)
    ]


def _changed(channels: tuple[str, ...]) -> str:
    more = len(channels) - _CHANNELS
    return ", ".join(channels[:_CHANNELS]) + (f" and {more} more" if more > 0 else "")


def _bytes(one: CheckpointSummary) -> int:
    return one.value_bytes + one.document_bytes + one.write_bytes
