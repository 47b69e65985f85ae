"""A thread's checkpoints as a tree, drawn from the light history: forks, heads, calls of subgraphs.

No value is read, and nothing calls itself, so that a thread may be as long as it likes::

    forest = Forest.of(saver.history("thread"))
    print(draw(forest, "svg"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cpstore.trees.documents import tree_document
from cpstore.trees.forest import Forest, Row
from cpstore.trees.graphs import dot_lines, mermaid_lines
from cpstore.trees.json import json_lines
from cpstore.trees.svg import svg_lines
from cpstore.trees.text import margins, text_lines

__all__ = [
    "FORMATS",
    "Forest",
    "Row",
    "dot_lines",
    "draw",
    "json_lines",
    "margins",
    "mermaid_lines",
    "svg_lines",
    "text_lines",
    "tree_document",
]

FORMATS: dict[str, Callable[[Forest], Iterator[str]]] = {
    "text": text_lines,
    "mermaid": mermaid_lines,
    "dot": dot_lines,
    "svg": svg_lines,
    "json": json_lines,
}
"""How a forest can be drawn: each gives lines."""


def draw(forest: Forest, form: str = "text") -> str:
    """Give the drawing of a forest in one of the :data:`FORMATS`.

    Raises:
        ValueError: There is no such format.
    """
    if form not in FORMATS:
        raise ValueError(f"The format of a tree is one of {', '.join(FORMATS)}, not {form!r}")
    return "".join(f"{line}\n" for line in FORMATS[form](forest))
