"""How commands print: JSON, lines of JSON, tables and texts. Data goes to stdout, all else to stderr."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import click

from cpstore.reports import one_line, printable
from cpstore.reports.texts import json_text

__all__ = ["Form", "counting", "formed", "note", "show_document", "show_documents", "show_table", "show_text"]

_PAUSE_SECONDS = 0.1

Form = str
"""`text`, `json` or `jsonl`."""


def formed(command: Callable[..., Any]) -> Any:
    """Give a command the options `--json` and `--jsonl`, as one argument `form`."""

    @functools.wraps(command)
    def called(*args: Any, as_json: bool, as_lines: bool, **kwargs: Any) -> Any:
        if as_json and as_lines:
            raise click.UsageError("--json and --jsonl exclude each other.")
        return command(*args, form="json" if as_json else "jsonl" if as_lines else "text", **kwargs)

    lines = click.option("--jsonl", "as_lines", is_flag=True, help="Print JSON, one object a line.")
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(lines(called))


def show_document(document: Any, form: Form = "json") -> None:
    """Print a document as JSON, on several lines or on one."""
    click.echo(json_text(document, indent=None if form == "jsonl" else 2))


def show_documents(documents: Iterable[Any], form: Form) -> None:
    """Print documents, as a list or one a line."""
    if form == "jsonl":
        for document in documents:
            show_document(document, form)
    else:
        show_document(list(documents))


def show_text(text: str = "") -> None:
    """Print a text that may come from anybody."""
    click.echo(printable(text))


def note(text: str) -> None:
    """Say something that is no data."""
    click.echo(printable(text), err=True)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = ()) -> None:
    """Print a table; columns of `numbers` stand to the right. On a terminal rich draws it, if it is there."""
    clean = [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty() and find_spec("rich") is not None:
        _show_rich(heads, clean, numbers)
        return
    for line in _lines(heads, clean, numbers):
        click.echo(line)


def _lines(heads: Sequence[str], rows: list[list[str]], numbers: Sequence[str]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    right = [head in numbers for head in heads]
    for row in (heads, *rows):
        cells = zip(row, widths, right, strict=True)
        yield "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width) for cell, width, is_right in cells
        ).rstrip()


def _show_rich(heads: Sequence[str], rows: list[list[str]], numbers: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="" if os.environ.get("NO_COLOR") else "bold", pad_edge=False)
    for head in heads:
        table.add_column(head, justify="right" if head in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Give what tells on a terminal how many things are done; elsewhere nothing is told."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    told = -_PAUSE_SECONDS

    def tell(count: int) -> None:
        nonlocal told
        if (now := time.monotonic()) - told >= _PAUSE_SECONDS:
            told = now
            click.echo(f"\r{count:,} {what}", nl=False, err=True)

    try:
        yield tell
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)  # the line is empty again
