"""Threads and checkpoints as people name them: a part of an id is enough, if it is the only one."""

from __future__ import annotations

import re
import shlex
from typing import Any

import click
from langgraph.checkpoint.base import CheckpointTuple

from cpstore.errors import UnknownCheckpointError, UnknownThreadError
from cpstore.reports import one_line
from cpstore.saver import SQLAlchemySaver
from cpstore.summaries import CheckpointSummary

__all__ = ["checkpoint_id", "exists", "require", "split", "state"]

_UP = re.compile(r"-(\d{1,9})")
_NAMED = 2
"""So many ids are named in an error."""


async def exists(saver: SQLAlchemySaver, thread_id: str) -> bool:
    """Tell whether a thread has a checkpoint."""
    return bool([one async for one in saver.ahistory(thread_id, limit=1)])


async def require(saver: SQLAlchemySaver, thread_id: str) -> None:
    """Refuse a thread that is not there.

    Raises:
        UnknownThreadError: It is not.
    """
    if not await exists(saver, thread_id):
        raise UnknownThreadError(
            f"There is no thread '{one_line(thread_id)}'. `cpstore threads` lists those that are there."
        )


async def split(saver: SQLAlchemySaver, text: str) -> tuple[str, str | None]:
    """Give thread and checkpoint of `THREAD@ID`. A thread that has an `@` in its own id goes before.

    Raises:
        UnknownThreadError: There is no such thread.
    """
    thread_id, at, asked = text.rpartition("@")
    if at and not await exists(saver, text):
        await require(saver, thread_id)
        return thread_id, asked or None
    await require(saver, text)
    return text, None


async def state(saver: SQLAlchemySaver, thread_id: str, namespace: str, asked: str | None) -> CheckpointTuple:
    """Give a checkpoint with its values; without an id the newest of the namespace.

    Raises:
        UnknownCheckpointError: There is none.
    """
    place: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": namespace}
    if asked is not None:
        place["checkpoint_id"] = await checkpoint_id(saver, thread_id, namespace, asked)
    found = await saver.aget_tuple({"configurable": place})
    if found is None:
        raise _unknown(thread_id, namespace)
    return found


async def checkpoint_id(saver: SQLAlchemySaver, thread_id: str, namespace: str, asked: str) -> str:
    """Give the id that is meant: whole, its beginning, its end, or `-N`: N parents above the newest.

    Raises:
        UnknownCheckpointError: There is none.
        ClickException: There are several.
    """
    asked = asked.removeprefix("@")
    history = [one async for one in saver.ahistory(thread_id, checkpoint_ns=namespace)]
    if up := _UP.fullmatch(asked):
        return _above(history, int(up[1]), thread_id, namespace)
    ids = [one.checkpoint_id for one in history]
    if asked in ids:
        return asked
    found = [each for each in ids if asked and (each.startswith(asked) or each.endswith(asked))]
    if len(found) > 1:
        named = " and ".join(map(one_line, found[:_NAMED]))
        raise click.ClickException(
            f"{len(found)} checkpoints begin or end with '{one_line(asked)}', such as {named}."
            " Give more of the id."
        )
    if not found:
        raise _unknown(thread_id, namespace, asked)
    return found[0]


def _above(history: list[CheckpointSummary], up: int, thread_id: str, namespace: str) -> str:
    parents = {one.checkpoint_id: one.parent_checkpoint_id for one in history}
    at = history[0].checkpoint_id if history else None
    for _ in range(min(up, len(history))):
        at = None if at is None else parents.get(at)
    if at not in parents:
        raise _unknown(thread_id, namespace, f"-{up}")
    return str(at)


def _unknown(thread_id: str, namespace: str, asked: str | None = None) -> UnknownCheckpointError:
    which = "" if asked is None else f" '{one_line(asked)}'"
    where = f" in namespace '{one_line(namespace)}'" if namespace else ""
    command = f"cpstore history {shlex.quote(one_line(thread_id))}"
    return UnknownCheckpointError(
        f"Thread '{one_line(thread_id)}' has no checkpoint{which}{where}. `{command}` lists them."
    )
