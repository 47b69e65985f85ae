"""Commands that look at threads: `threads`, `history`, `tree`, `writes`."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import Any

import click

from cpstore.cli import ids
from cpstore.cli.output import Form, formed, note, show_document, show_documents, show_table
from cpstore.cli.places import Place, looking, placed
from cpstore.errors import ConfigurationError
from cpstore.reports import checkpoint_document, size_text, thread_document, write_documents
from cpstore.reports.texts import json_text
from cpstore.saver import SQLAlchemySaver
from cpstore.trees import FORMATS, Forest
from cpstore.trees.documents import row_document

__all__ = ["history", "namespace_option", "threads", "tree", "writes"]

_WIDTH = 72
"""So much of a value is shown in a table."""

namespace_option = click.option(
    "--ns", "namespace", default="", metavar="NAMESPACE", help="The namespace of a subgraph, as `node:task`."
)


@click.command()
@placed
@formed
@click.option("--limit", default=100, show_default=True, help="At most so many.")
@click.option("--after", metavar="CURSOR", help="Go on below: what the page before said last.")
@click.option("--filter", "wanted", metavar="JSON", help="What the newest checkpoint's metadata contain.")
@click.option(
    "--order",
    type=click.Choice(["newest", "thread_id"]),
    default="newest",
    help="The newest first, or by id.",
)
def threads(place: Place, form: Form, limit: int, after: str | None, wanted: str | None, order: str) -> None:
    """List threads, newest first."""
    options = {"limit": limit, "after": after, "filter": _parsed(wanted), "order": order}
    found = asyncio.run(_threads(place, options))
    documents = [thread_document(one) for one in found]
    if form == "text":
        heads = ("THREAD", "CHECKPOINTS", "NAMESPACES", "UPDATED", "LAST CHECKPOINT")
        show_table(heads, [_thread_row(one) for one in documents], numbers=heads[1:3])
    else:
        show_documents(documents, form)
    if limit and len(found) == limit:
        note(f"There may be more: --after {shlex.quote(found[-1].cursor)}")


async def _threads(place: Place, options: dict[str, Any]) -> list[Any]:
    async with looking(place) as saver:
        return await saver.alist_threads(**options)


def _parsed(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        wanted = json.loads(text)
    except ValueError:
        wanted = None
    if not isinstance(wanted, dict):
        raise ConfigurationError('--filter takes a JSON object, such as \'{"source": "loop"}\'')
    return wanted


def _thread_row(one: dict[str, Any]) -> list[str]:
    counts = [str(one["checkpoints"]), str(len(one["namespaces"]))]
    return [one["thread_id"], *counts, _time(one["updated_at"]), one["last_checkpoint_id"]]


def _time(text: str | None) -> str:
    return "" if text is None else text[:19].replace("T", " ")


@click.command()
@placed
@formed
@click.option("--ns", "namespace", metavar="NAMESPACE", help="Only this namespace; '': the root graph's.")
@click.option("--limit", type=int, help="At most so many.")
@click.argument("thread")
def history(place: Place, form: Form, namespace: str | None, limit: int | None, thread: str) -> None:
    """List the checkpoints of THREAD without their values, newest first."""
    asyncio.run(_history(place, form, namespace, limit, thread))


async def _history(
    place: Place, form: Form, namespace: str | None, limit: int | None, thread_id: str
) -> None:
    async with looking(place) as saver:
        await ids.require(saver, thread_id)
        found = saver.ahistory(thread_id, checkpoint_ns=namespace, limit=limit)
        if form == "jsonl":
            async for one in found:
                show_document(checkpoint_document(one), form)
            return
        documents = [checkpoint_document(one) async for one in found]
    if form == "json":
        show_document(documents)
        return
    heads = ("CHECKPOINT", "NAMESPACE", "TIME", "STEP", "SOURCE", "CHANGED", "SIZE", "MARKS")
    show_table(heads, [_checkpoint_row(one) for one in documents], numbers=("STEP", "SIZE"))


def _checkpoint_row(one: dict[str, Any]) -> list[str]:
    marks = [name for name in ("interrupts", "errors") if one[name]]
    return [
        one["checkpoint_id"],
        one["checkpoint_ns"],
        _time(one["created_at"]),
        "" if one["step"] is None else str(one["step"]),
        str(one["source"] or ""),
        ", ".join(map(str, one["updated_channels"] or ())),
        size_text(one["value_bytes"] + one["document_bytes"] + one["write_bytes"]),
        ", ".join(mark.removesuffix("s") for mark in marks),
    ]


@click.command()
@placed
@click.option("--format", "drawing", type=click.Choice(list(FORMATS)), default="text", show_default=True)
@formed
@click.option("--ns", "namespace", metavar="NAMESPACE", help="Only this namespace; '': the root graph's.")
@click.argument("thread")
def tree(place: Place, form: Form, drawing: str, namespace: str | None, thread: str) -> None:
    """Draw the forks of THREAD; no state is loaded for it."""
    forest = asyncio.run(_forest(place, thread, namespace))
    if form == "jsonl":
        show_documents(map(row_document, forest.rows), form)
        return
    for line in FORMATS["json" if form == "json" else drawing](forest):
        click.echo(line)


async def _forest(place: Place, thread_id: str, namespace: str | None) -> Forest:
    async with looking(place) as saver:
        await ids.require(saver, thread_id)
        return Forest.of([one async for one in saver.ahistory(thread_id, checkpoint_ns=namespace)])


@click.command()
@placed
@formed
@namespace_option
@click.argument("thread")
@click.argument("id", required=False)
def writes(place: Place, form: Form, namespace: str, thread: str, id: str | None) -> None:
    """List the pending writes of the checkpoint ID of THREAD; without ID, of the newest."""
    documents = asyncio.run(_writes(place, thread, namespace, id))
    if form != "text":
        show_documents(documents, form)
        return
    heads = ("TASK", "KIND", "CHANNEL", "VALUE")
    rows = [[one["task_id"], one["kind"], one["channel"], _cut(one["value"])] for one in documents]
    show_table(heads, rows)


async def _writes(place: Place, thread_id: str, namespace: str, asked: str | None) -> list[dict[str, Any]]:
    async with looking(place) as saver:
        return write_documents(await _state(saver, thread_id, namespace, asked))


async def _state(saver: SQLAlchemySaver, thread_id: str, namespace: str, asked: str | None) -> Any:
    await ids.require(saver, thread_id)
    return await ids.state(saver, thread_id, namespace, asked)


def _cut(document: Any) -> str:
    text = json_text(document)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
