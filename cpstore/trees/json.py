"""A forest as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from cpstore.reports.texts import json_text
from cpstore.trees.documents import tree_document
from cpstore.trees.forest import Forest

__all__ = ["json_lines"]


def json_lines(forest: Forest) -> Iterator[str]:
    """Give the document of a forest as JSON."""
    yield from json_text(tree_document(forest), indent=2).split("\n")
