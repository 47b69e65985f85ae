"""A forest in the languages of other programs: Mermaid and Graphviz."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cpstore.trees.forest import Forest, Row
from cpstore.trees.labels import label

__all__ = ["dot_lines", "mermaid_lines"]

_SPECIAL = re.compile(r"[^\w .,:/()+-]|_")


def mermaid_lines(forest: Forest) -> Iterator[str]:
    """Give a flowchart of Mermaid. Calls of subgraphs are dotted, heads have a thick border."""
    edges = max(len(forest.checkpoints), 500)
    limits = f'"maxTextSize": 10000000, "maxEdges": {edges}'
    yield f"%%{{init: {{{limits}}}}}%%"
    yield "flowchart TD"
    for row in forest.rows:
        text = "<br>".join(map(_mermaid, label(row)))
        yield f'  n{row.number}["{text}"]{":::head" if row.is_head else ""}'
        if row.above is not None:
            yield f"  n{row.above} {'-.->' if row.kind == 'call' else '-->'} n{row.number}"
    yield "  classDef head stroke-width:3px"


def _mermaid(text: str) -> str:
    """Give a text in which Mermaid finds nothing of its language, and a page nothing of HTML."""
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", text)


def dot_lines(forest: Forest) -> Iterator[str]:
    """Give a graph of Graphviz. Calls of subgraphs are dashed, heads have a thick border."""
    yield "digraph thread {"
    yield "  node [shape=box, style=rounded];"
    for row in forest.rows:
        width = ", penwidth=3" if row.is_head else ""
        yield f"  n{row.number} [label={_quoted(row)}{width}];"
        if row.above is not None:
            yield f"  n{row.above} -> n{row.number}{' [style=dashed]' if row.kind == 'call' else ''};"
    yield "}"


def _quoted(row: Row) -> str:
    lines = (part.replace("\\", "\\\\").replace('"', '\\"') for part in label(row))
    return '"' + "\\n".join(lines) + '"'
