"""A thread as one HTML file, which needs no server and asks for nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from markupsafe import Markup

from cpstore.errors import UnknownThreadError
from cpstore.reports import difference_document, state_document, values_document
from cpstore.saver import SQLAlchemySaver
from cpstore.web.app import environment
from cpstore.web.redaction import Redaction
from cpstore.web.rows import TreeRow, tree_rows
from cpstore.web.shown import shown_changes, shown_state

__all__ = ["pages_of"]

Change = Callable[[CheckpointTuple], CheckpointTuple]


async def pages_of(
    saver: SQLAlchemySaver, thread_id: str, *, redact: bool = False, limit: int | None = None
) -> AsyncIterator[str]:
    """Give the parts of the file, one after the other: a long thread is never in memory as a whole.

    It has the tree, what changed at each checkpoint, and the state of the newest one of each namespace.

    Args:
        saver: Its serializer is a :class:`~cpstore.PlainSerializer`.
        thread_id: The thread.
        redact: Replace all values by their kind and length, and the thread's id as well.
        limit: Show what changed at so many of the newest checkpoints; None: at all of them.

    Raises:
        UnknownThreadError: There is no such thread.
        NotMigratedError: The tables are not there.
    """
    redaction = Redaction()
    rows = tree_rows([each async for each in saver.ahistory(thread_id)])
    if not rows:
        raise UnknownThreadError(f"There is no thread {thread_id!r}")
    shown = redaction.text(thread_id) if redact else thread_id
    change: Change = redaction.checkpoint if redact else lambda found: found
    templates = environment(_nowhere, "", enable_async=True)
    templates.globals["css"] = Markup(files("cpstore.web").joinpath("style.css").read_text("utf-8"))  # noqa: S704
    explained = rows if limit is None else rows[len(rows) - min(limit, len(rows)) :]
    parts = templates.get_template("export.html").generate_async(
        thread=shown,
        redacted=redact,
        rows=rows,
        steps=_steps(saver, explained, change),
        left_out=len(rows) - len(explained),
    )
    async for part in parts:
        yield part


def _nowhere(_page: str, **_asked: Any) -> str:
    return "#"


async def _steps(
    saver: SQLAlchemySaver, rows: list[TreeRow], change: Change
) -> AsyncIterator[dict[str, Any]]:
    for row in rows:
        found = await _read(saver, row, row.checkpoint.checkpoint_id)
        if found is None:
            continue  # deleted meanwhile
        parent = row.checkpoint.parent_checkpoint_id
        before = None if parent is None else await _read(saver, row, parent)
        yield {"row": row, **_step(change(found), before and change(before))}


def _step(found: CheckpointTuple, before: CheckpointTuple | None) -> dict[str, Any]:
    state = state_document(found)
    earlier = before or found._replace(checkpoint={**found.checkpoint, "channel_values": {}})
    changes = shown_changes(difference_document(earlier, found), values_document(earlier), state["values"])
    return {"changes": changes, "state": shown_state(state)}


async def _read(saver: SQLAlchemySaver, row: TreeRow, checkpoint_id: str) -> CheckpointTuple | None:
    one = row.checkpoint
    place = {"thread_id": one.thread_id, "checkpoint_ns": one.checkpoint_ns, "checkpoint_id": checkpoint_id}
    return await saver.aget_tuple({"configurable": place})
