"""What each page shows: a few questions to the saver, and documents made of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from starlette.exceptions import HTTPException

from cpstore.reports import (
    difference_document,
    state_document,
    storage_document,
    thread_document,
    values_document,
)
from cpstore.saver import SQLAlchemySaver
from cpstore.summaries import ThreadSummary
from cpstore.web.links import place_of
from cpstore.web.rows import tree_rows
from cpstore.web.shown import shown_changes, shown_state

__all__ = ["checkpoint", "difference", "storage", "thread", "threads"]

Asked = Mapping[str, str]

_THREADS = 25
"""So many threads stand on a page: the size of each is counted for it."""

_LOOKED_AT = 500
"""So many threads are read at a time by a search."""

_ROWS = 500
"""So many checkpoints stand on a page."""


async def threads(saver: SQLAlchemySaver, asked: Asked) -> dict[str, Any]:
    """Threads, those that were used last first; those whose id contains `q`."""
    search = asked.get("q", "")
    found = await _searched(saver, search, asked.get("after") or None)
    page, rest = found[:_THREADS], found[_THREADS:]
    taken = {each.thread_id: each async for each in saver.astorage(thread_ids=[t.thread_id for t in page])}
    return {
        "search": search,
        "threads": [thread_document(each) | storage_document(taken[each.thread_id]) for each in page],
        "more": page[-1].cursor if rest else None,
    }


async def _searched(saver: SQLAlchemySaver, text: str, after: str | None) -> list[ThreadSummary]:
    """Find the threads of a page, and the first of the next one."""
    found: list[ThreadSummary] = []
    size = _LOOKED_AT if text else _THREADS + 1
    while len(found) <= _THREADS:
        try:
            some = await saver.alist_threads(limit=size, after=after)
        except ValueError as error:
            raise HTTPException(400, "This is no place in the list of threads") from error
        found += [each for each in some if text in each.thread_id]
        if len(some) < size:
            break
        after = some[-1].cursor
    return found


async def thread(saver: SQLAlchemySaver, asked: Asked) -> dict[str, Any]:
    """The tree of a thread, as many rows as a page has: the last ones, or those up to `end`."""
    thread_id = _given(asked, "thread")
    rows = tree_rows([each async for each in saver.ahistory(thread_id)])
    if not rows:
        raise HTTPException(404, f"There is no thread {thread_id}")
    end = min(_number(asked, "end", len(rows)), len(rows))
    begin = max(end - _ROWS, 0)
    return {
        "thread": thread_id,
        "total": len(rows),
        "heads": sorted((row for row in rows if row.head), key=lambda row: row.checkpoint.checkpoint_ns),
        "rows": rows[begin:end],
        "older": begin or None,
        "newer": min(end + _ROWS, len(rows)) if end < len(rows) else None,
    }


async def checkpoint(saver: SQLAlchemySaver, asked: Asked) -> dict[str, Any]:
    """One checkpoint with all its values."""
    found = await _found(saver, _given(asked, "thread"), _given(asked, "id"), asked.get("ns", ""))
    return {"shown": shown_state(state_document(found))}


async def difference(saver: SQLAlchemySaver, asked: Asked) -> dict[str, Any]:
    """Two checkpoints, channel by channel."""
    thread_id = _given(asked, "thread")
    places = [place_of(_given(asked, name)) for name in ("a", "b")]
    before, after = [await _found(saver, thread_id, *place) for place in places]
    document = difference_document(before, after)
    changes = shown_changes(document, values_document(before), values_document(after))
    return {"before": document["before"], "after": document["after"], "channels": changes}


async def storage(saver: SQLAlchemySaver, asked: Asked) -> dict[str, Any]:
    """What the channels of a thread take."""
    thread_id = _given(asked, "thread")
    (taken,) = [each async for each in saver.astorage(thread_ids=[thread_id])]
    if not taken.checkpoints and not taken.writes:
        raise HTTPException(404, f"There is no thread {thread_id}")
    channels = sorted(taken.channels, key=lambda each: -each.bytes)
    return {"thread": thread_id, "total": storage_document(taken), "channels": channels}


async def _found(
    saver: SQLAlchemySaver, thread_id: str, checkpoint_id: str, namespace: str
) -> CheckpointTuple:
    place = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    found = await saver.aget_tuple({"configurable": place})
    if found is None or not checkpoint_id:
        raise HTTPException(404, f"There is no checkpoint {checkpoint_id} in the thread {thread_id}")
    return found


def _given(asked: Asked, name: str) -> str:
    if name not in asked:
        raise HTTPException(400, f"The address lacks {name}=")
    return asked[name]


def _number(asked: Asked, name: str, default: int) -> int:
    text = asked.get(name, str(default))
    if not text.isascii() or not text.isdigit() or not 0 < len(text) < 10:
        raise HTTPException(400, f"{name}= is no number")
    return int(text)
