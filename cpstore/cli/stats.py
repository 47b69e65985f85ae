"""`cpstore stats`: what threads and channels take."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from cpstore.cli import ids
from cpstore.cli.output import (
    Form,
    counting,
    formed,
    note,
    show_document,
    show_documents,
    show_table,
    show_text,
)
from cpstore.cli.places import Place, looking, placed
from cpstore.reports import StorageSum, channel_document, size_text, storage_document

__all__ = ["stats"]

_THREAD_HEADS = ("THREAD", "CHECKPOINTS", "VALUES", "WRITES", "DOCUMENTS", "BYTES", "RATIO")
_CHANNEL_HEADS = ("CHANNEL", "VALUES", "POINTED AT", "BYTES", "UNSHARED", "RATIO")


@click.command()
@placed
@formed
@click.option(
    "--by", type=click.Choice(["thread", "channel"]), default="thread", help="What --jsonl has a line for."
)
@click.option("--limit", default=20, show_default=True, help="So many threads in the text, the largest.")
@click.argument("threads", nargs=-1)
def stats(place: Place, form: Form, by: str, limit: int, threads: tuple[str, ...]) -> None:
    """Tell what is stored, by thread and by channel: of all threads, or of THREADS.

    RATIO is what values would take if each checkpoint stored all of its own, by what they take.
    """
    found, total = asyncio.run(_measured(place, threads))
    channels = [channel_document(channel) for channel in total.channels]
    if form == "jsonl":
        show_documents(found if by == "thread" else channels, form)
    elif form == "json":
        show_document({"total": total.document(), "threads": found, "channels": channels})
    else:
        _show(found, channels, total.document(), limit)


async def _measured(place: Place, threads: tuple[str, ...]) -> tuple[list[dict[str, Any]], StorageSum]:
    found, total = [], StorageSum()
    async with looking(place) as saver:
        for thread_id in threads:
            await ids.require(saver, thread_id)
        with counting("threads") as tell:
            async for one in saver.astorage(thread_ids=threads or None):
                total.add(one)
                found.append(storage_document(one))
                tell(total.threads)
    return found, total


def _show(
    threads: list[dict[str, Any]], channels: list[dict[str, Any]], total: dict[str, Any], limit: int
) -> None:
    largest = sorted(threads, key=lambda one: (-one["bytes"], one["thread_id"]))[:limit]
    show_table(_THREAD_HEADS, [_thread_row(one) for one in largest], numbers=_THREAD_HEADS[1:])
    show_text()
    show_table(_CHANNEL_HEADS, [_channel_row(one) for one in channels], numbers=_CHANNEL_HEADS[1:])
    show_text()
    show_text(
        f"{total['threads']:,} threads, {total['checkpoints']:,} checkpoints: {size_text(total['bytes'])},"
        f" ratio {_ratio(total)}"
    )
    if len(largest) < len(threads):
        note(f"{len(threads) - len(largest):,} threads more: --limit")


def _thread_row(one: dict[str, Any]) -> list[str]:
    counts = [f"{one[name]:,}" for name in ("checkpoints", "blobs", "writes")]
    sizes = [size_text(one[name]) for name in ("document_bytes", "bytes")]
    return [one["thread_id"], *counts, *sizes, _ratio(one)]


def _channel_row(one: dict[str, Any]) -> list[str]:
    counts = [f"{one[name]:,}" for name in ("blobs", "references")]
    sizes = [size_text(one[name]) for name in ("bytes", "unshared_bytes")]
    return [one["channel"], *counts, *sizes, _ratio(one)]


def _ratio(one: dict[str, Any]) -> str:
    return "" if one["ratio"] is None else f"{one['ratio']:.2f}"
