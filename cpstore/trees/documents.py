"""A forest as a document: flat, so that its depth is no matter."""

from __future__ import annotations

from typing import Any

from cpstore.reports import checkpoint_document
from cpstore.trees.forest import Forest, Row

__all__ = ["row_document", "tree_document"]


def tree_document(forest: Forest) -> dict[str, Any]:
    """Give the document of a forest: the heads by namespace, and the checkpoints as they are drawn."""
    first = next(iter(forest.checkpoints.values()), None)
    return {
        "thread_id": None if first is None else first.thread_id,
        "heads": {head.checkpoint_ns: head.checkpoint_id for head in sorted(forest.heads)},
        "checkpoints": [row_document(row) for row in forest.rows],
    }


def row_document(row: Row) -> dict[str, Any]:
    """Give the document of a checkpoint in a forest.

    `above` is the number of the one that it hangs on, `kind` is `root`, `step`, `fork` or `call`.
    """
    return {
        "number": row.number,
        "above": row.above,
        "kind": row.kind,
        "depth": row.depth,
        "head": row.is_head,
        **checkpoint_document(row.checkpoint),
    }
