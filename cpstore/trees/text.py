"""A forest as text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from cpstore.trees.forest import Forest
from cpstore.trees.labels import label

__all__ = ["margins", "text_lines"]

_DOTS = {True: "◉", False: "●"}
_CALL = "◇"


def text_lines(forest: Forest) -> Iterator[str]:
    """Give a line for each checkpoint. A head is `◉`, the first checkpoint of a called subgraph `◇`."""
    for row, margin in zip(forest.rows, margins(forest), strict=True):
        yield f"{margin} {'  '.join(label(row))}"


def margins(forest: Forest) -> Iterator[str]:
    """Give what is drawn beside each checkpoint: lines, and a dot."""
    lanes: list[bool] = []
    for row in forest.rows:
        del lanes[row.depth :]
        if row.kind in ("fork", "call"):
            lanes[row.depth - 1 :] = [row.goes_on]
            margin = _margin(lanes[:-1]) + ("├─" if row.goes_on else "└─")
        else:
            margin = _margin(lanes)
        yield margin + (_CALL if row.kind == "call" else _DOTS[row.is_head])


def _margin(lanes: list[bool]) -> str:
    return "".join("│ " if goes_on else "  " for goes_on in lanes)
