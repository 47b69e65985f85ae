"""Commands that look into states: `show` and `diff`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import click

from cpstore.cli import ids
from cpstore.cli.output import Form, formed, show_document, show_text
from cpstore.cli.places import Place, looking, placed
from cpstore.cli.reading import namespace_option
from cpstore.errors import UnknownCheckpointError
from cpstore.reports import difference_document, one_line, state_document
from cpstore.reports.texts import json_text
from cpstore.saver import SQLAlchemySaver

__all__ = ["diff", "show"]

_LINES, _WIDTH = 40, 200
"""So much of a channel is shown, unless all of it is asked for."""

_full = click.option("--full", is_flag=True, help="Cut nothing off in the text.")


@click.command()
@placed
@formed
@namespace_option
@click.option(
    "--channel", "channels", multiple=True, metavar="NAME", help="Only this channel; may be repeated."
)
@_full
@click.argument("thread", metavar="THREAD[@ID]")
def show(
    place: Place, form: Form, namespace: str, channels: tuple[str, ...], full: bool, thread: str
) -> None:
    """Show the state of a checkpoint: values, interrupts, pending writes.

    Without @ID, the newest. ID is a whole id, its beginning, its end, or -N: N parents above the newest.
    """
    document = asyncio.run(_state(place, thread, namespace))
    if channels:
        document["values"] = {name: value for name, value in document["values"].items() if name in channels}
    if form != "text":
        show_document(document, form)
        return
    for line in _state_lines(document, full):
        show_text(line)


async def _state(place: Place, thread: str, namespace: str) -> dict[str, Any]:
    async with looking(place) as saver:
        thread_id, asked = await ids.split(saver, thread)
        return state_document(await ids.state(saver, thread_id, namespace, asked))


def _state_lines(document: dict[str, Any], full: bool) -> Iterator[str]:
    for name, value in _facts(document):
        if value is not None:
            yield f"{name:12}{one_line(str(value))}"
    writes = [one for one in document["writes"] if one["kind"] != "interrupt"]
    for title, parts in (
        ("Interrupts", [(one["task_id"], one["value"]) for one in document["interrupts"]]),
        ("Values", list(document["values"].items())),
        ("Writes", [(f"{one['task_id']} {one['channel']}", one["value"]) for one in writes]),
    ):
        if parts:
            yield f"\n{title}"
        for name, value in parts:
            yield from _value_lines(name, value, full)


def _facts(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "Thread", document["thread_id"]
    yield "Namespace", document["checkpoint_ns"] or None
    yield "Checkpoint", document["checkpoint_id"]
    yield "Parent", document["parent_checkpoint_id"]
    yield "Time", document["created_at"]
    yield "Step", document["step"]
    yield "Source", document["source"]
    yield "Changed", ", ".join(map(str, document["updated_channels"] or ())) or None


def _value_lines(name: str, value: Any, full: bool) -> Iterator[str]:
    lines = json_text(value, indent=2).split("\n")
    left_out = 0 if full else len(lines) - _LINES
    if left_out > 0:
        lines = [*lines[:_LINES], f"… {left_out} more lines: --full"]
    first, *rest = (line if full else one_line(line, _WIDTH) for line in lines)
    yield f"  {one_line(name)}: {first}"
    yield from (f"  {line}" for line in rest)


@click.command()
@placed
@formed
@namespace_option
@_full
@click.argument("thread")
@click.argument("a", required=False)
@click.argument("b", required=False)
def diff(
    place: Place, form: Form, namespace: str, full: bool, thread: str, a: str | None, b: str | None
) -> None:
    """Show what differs between the checkpoints A and B of THREAD, channel by channel.

    Without B: what A changed of its parent. Without A, too: what the newest changed. A and B are ids as for
    show; say @-1 for -1.
    """
    document = asyncio.run(_difference(place, thread, namespace, a, b))
    if form != "text":
        show_document(document, form)
        return
    for line in _difference_lines(document, full):
        show_text(line)


async def _difference(
    place: Place, thread_id: str, namespace: str, a: str | None, b: str | None
) -> dict[str, Any]:
    async with looking(place) as saver:
        await ids.require(saver, thread_id)
        first = await ids.state(saver, thread_id, namespace, a)
        if b is not None:
            return difference_document(first, await ids.state(saver, thread_id, namespace, b))
        return difference_document(await _parent(saver, first), first)


async def _parent(saver: SQLAlchemySaver, found: Any) -> Any:
    parent = None if found.parent_config is None else await saver.aget_tuple(found.parent_config)
    if parent is None:
        which = one_line(found.checkpoint["id"])
        raise UnknownCheckpointError(
            f"Checkpoint {which!r} has no parent to be compared with. Say A and B, which are compared."
        )
    return parent


def _difference_lines(document: dict[str, Any], full: bool) -> Iterator[str]:
    for sign, side in (("---", "before"), ("+++", "after")):
        end = document[side]
        yield one_line(f"{sign} {end['checkpoint_id']}  step {end['step']} {end['source'] or ''}".rstrip())
    for change in document["channels"]:
        yield ""
        yield one_line(f"{change['channel']}: {change['change']}{_items_text(change['items'])}")
        lines = change["diff"]
        left_out = 0 if full else len(lines) - 2 * _LINES
        yield from (
            line if full else one_line(line, _WIDTH) for line in lines[: None if full else 2 * _LINES]
        )
        if left_out > 0:
            yield f"… {left_out} more lines: --full"
    if not document["channels"]:
        yield "\nAll channels are the same."


def _items_text(items: dict[str, int] | None) -> str:
    if items is None:
        return ""
    told = [f"{count} {name}" for name, count in items.items() if count]
    return f" ({', '.join(told)})" if told else ""
