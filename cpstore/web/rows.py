"""The tree of a thread as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
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
        checkpoint: The checkpoint, without values.
    """

    graph: str
    head: bool
    checkpoint: CheckpointSummary

    @property
    def changed(self) -> str:
        """The channels that its step changed."""
        channels = self.checkpoint.updated_channels or ()
        more = len(channels) - _CHANNELS
        return ", ".join(channels[:_CHANNELS]) + (f" and {more} more" if more > 0 else "")

    @cached_property
    def shown(self) -> dict[str, Any]:
        """Its document. Of a long thread only those of one page are asked for."""
        return checkpoint_document(self.checkpoint)


def tree_rows(history: Iterable[CheckpointSummary]) -> list[TreeRow]:
    """Give the rows of a light history, each checkpoint below the one that it was made from."""
    forest = Forest.of(history)
    pairs = zip(forest.rows, margins(forest), strict=True)
    return [TreeRow(margin, row.is_head, row.checkpoint) for row, margin in pairs]
