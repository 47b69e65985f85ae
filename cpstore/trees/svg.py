"""A forest as SVG: a picture that needs no program but a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from cpstore.trees.forest import Forest, Row
from cpstore.trees.labels import label, marks

__all__ = ["svg_lines"]

_LANE, _LINE, _MARGIN, _DOT, _BEND = 18, 24, 18, 5, 8
_CHARACTER = 7.3
"""So wide is a character of the label's font, nearly."""

_STYLE = """<style>
.cpstore-tree { font: 12px ui-monospace, monospace; color-scheme: light dark; background: Canvas; }
.cpstore-tree text { fill: CanvasText; }
.cpstore-tree path { fill: none; stroke: GrayText; stroke-width: 1.5; }
.cpstore-tree .call path { stroke-dasharray: 3 3; }
.cpstore-tree circle { fill: #4078c0; }
.cpstore-tree .call circle { fill: #8250df; }
.cpstore-tree .interrupt circle { fill: #bf8700; }
.cpstore-tree .error circle { fill: #cf222e; }
.cpstore-tree .head circle { stroke: CanvasText; stroke-width: 2; }
</style>"""


def svg_lines(
    forest: Forest, *, style: bool = True, link: Callable[[Row], str] | None = None
) -> Iterator[str]:
    """Give an SVG element, in lines. Texts are escaped: whatever a name says, it is only shown.

    Args:
        forest: What is drawn. Classes of a row: its kind, and `interrupt`, `error` and `head`.
        style: Put a style sheet in; a page with a strict policy for its content has its own.
        link: Gives the address that a row leads to.
    """
    labels = ["  ".join(label(row)) for row in forest.rows]
    width = max(
        (_x(row) + len(text) * _CHARACTER for row, text in zip(forest.rows, labels, strict=True)), default=0
    )
    size = f'width="{width + 2 * _MARGIN:.0f}" height="{len(labels) * _LINE + _MARGIN}"'
    named = f'class="cpstore-tree" role="img" aria-label="{_title(forest)}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} {named}>'
    if style:
        yield _STYLE
    for row, text in zip(forest.rows, labels, strict=True):
        yield from _row(forest, row, text, link)
    yield "</svg>"


def _row(forest: Forest, row: Row, text: str, link: Callable[[Row], str] | None) -> Iterator[str]:
    x, y = _x(row), _y(row.number)
    yield f'<g class="{" ".join([row.kind, *marks(row)])}">'
    if row.above is not None:
        yield f'<path fill="none" stroke="gray" d="{_line(forest.rows[row.above], row)}"/>'
    start, end = ("", "") if link is None else (f'<a href="{escape(link(row))}">', "</a>")
    yield f'{start}<circle cx="{x}" cy="{y}" r="{_DOT}"/>'
    yield f'<text x="{x + 2 * _DOT + 2}" y="{y + 4}" xml:space="preserve">{escape(text)}</text>{end}</g>'


def _line(above: Row, row: Row) -> str:
    x, y, top = _x(row), _y(row.number), _y(above.number) + _DOT
    if row.depth == above.depth:
        return f"M{x} {top}V{y - _DOT}"
    left = _x(above)
    return f"M{left} {top}V{y - _BEND}Q{left} {y} {left + _BEND} {y}H{x - _DOT}"


def _x(row: Row) -> int:
    return _MARGIN + row.depth * _LANE


def _y(number: int) -> int:
    return _MARGIN + number * _LINE


def _title(forest: Forest) -> str:
    count = len(forest.checkpoints)
    return f"{count} {'checkpoint' if count == 1 else 'checkpoints'} of a thread"
