"""Commands that change threads: `copy`, `delete`, `prune`, `gc`."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click

from cpstore.cli import ids
from cpstore.cli.consent import agreed, consenting, removed_text, show_removed
from cpstore.cli.output import Form, formed, note, show_text
from cpstore.cli.places import Place, changing, looking, placed
from cpstore.plans import Removed
from cpstore.reports import counted, one_line
from cpstore.saver import SQLAlchemySaver

__all__ = ["copy", "delete", "gc", "prune"]

Work = Callable[[SQLAlchemySaver, bool], Awaitable[Removed]]
"""Deletes, or tells what it would delete."""

_AGE = re.compile(r"(\d{1,6})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7}


@click.command()
@placed
@click.argument("source", metavar="SOURCE[@ID]")
@click.argument("target")
def copy(place: Place, source: str, target: str) -> None:
    """Copy the thread SOURCE to a new thread TARGET.

    With @ID: only this checkpoint of the root graph and what led to it, so that the copy goes on from there.
    """
    asyncio.run(_copy(place, source, target))


async def _copy(place: Place, source: str, target: str) -> None:
    async with looking(place) as saver:
        thread_id, asked = await ids.split(saver, source)
        at = None if asked is None else await ids.checkpoint_id(saver, thread_id, "", asked)
    async with changing(place) as saver:
        await saver.acopy_thread(thread_id, target, checkpoint_id=at)
        copied = len([one async for one in saver.ahistory(target)])
    show_text(f"Copied {counted(copied, 'checkpoint')} of '{one_line(thread_id)}' to '{one_line(target)}'.")


@click.command()
@placed
@formed
@consenting
@click.argument("threads", nargs=-1, required=True)
def delete(place: Place, form: Form, yes: bool, dry_run: bool, threads: tuple[str, ...]) -> None:
    """Delete THREADS with all that is stored for them."""

    async def work(saver: SQLAlchemySaver, dry: bool) -> Removed:
        found = [one async for one in saver.astorage(thread_ids=threads)]
        if not dry:
            for thread_id in threads:
                await saver.adelete_thread(thread_id)
        return sum((_all_of(one) for one in found), Removed())

    asyncio.run(_removing(place, work, form, yes=yes, dry_run=dry_run, threads=threads))


def _all_of(one: Any) -> Removed:
    return Removed(1, one.checkpoints, one.blobs, one.writes, one.bytes)


def _age(_context: Any, _parameter: Any, text: str | None) -> dt.timedelta | None:
    if text is None:
        return None
    found = _AGE.fullmatch(text)
    if found is None:
        raise click.BadParameter("An age is a number of hours, days or weeks: 36h, 30d, 8w.")
    return dt.timedelta(hours=int(found[1]) * _HOURS[found[2]])


@click.command()
@placed
@formed
@consenting
@click.option(
    "--older-than", callback=_age, metavar="AGE", help="Delete threads that are older: 36h, 30d, 8w."
)
@click.option(
    "--keep", type=click.IntRange(1), metavar="N", help="Keep the N newest checkpoints of a namespace."
)
@click.option("--all", "everywhere", is_flag=True, help="In all threads.")
@click.argument("threads", nargs=-1)
def prune(
    place: Place,
    form: Form,
    yes: bool,
    dry_run: bool,
    older_than: dt.timedelta | None,
    keep: int | None,
    everywhere: bool,
    threads: tuple[str, ...],
) -> None:
    """Delete old checkpoints of THREADS, and threads that are old as a whole.

    Threads that stay can be resumed: what their newest checkpoints need stays, too.
    """
    if bool(threads) == everywhere:
        raise click.UsageError("Name threads, or say --all.")
    if older_than is None and keep is None:
        raise click.UsageError("Say what goes: --older-than, --keep, or both.")
    chosen = None if everywhere else threads

    async def work(saver: SQLAlchemySaver, dry: bool) -> Removed:
        return await saver.aretention(thread_ids=chosen, older_than=older_than, keep=keep, dry_run=dry)

    asyncio.run(_removing(place, work, form, yes=yes, dry_run=dry_run, threads=threads))


@click.command()
@placed
@formed
@consenting
@click.option("--vacuum", is_flag=True, help="Give free space back to the file system (SQLite).")
@click.argument("threads", nargs=-1)
def gc(place: Place, form: Form, yes: bool, dry_run: bool, vacuum: bool, threads: tuple[str, ...]) -> None:
    """Delete what no checkpoint needs: values left over, writes whose checkpoint never came.

    In all threads, or in THREADS. Not while a transfer or an import writes to the same database.
    """

    async def work(saver: SQLAlchemySaver, dry: bool) -> Removed:
        return await saver.asweep(thread_ids=threads or None, dry_run=dry)

    asyncio.run(_removing(place, work, form, yes=yes, dry_run=dry_run, vacuum=vacuum))


async def _removing(
    place: Place,
    work: Work,
    form: Form,
    *,
    yes: bool,
    dry_run: bool,
    threads: Sequence[str] = (),
    vacuum: bool = False,
) -> None:
    async with changing(place) as saver:
        for thread_id in threads:
            await ids.require(saver, thread_id)
        planned = await work(saver, True)
        if dry_run:
            show_removed(planned, form, dry_run=True)
            return
        if not planned.bytes and not planned.threads and not vacuum:
            show_removed(planned, form, dry_run=False)
            return
        if not agreed(removed_text(planned, "This deletes"), yes=yes):
            note("Nothing was deleted.")
            return
        show_removed(await work(saver, False), form, dry_run=False)
        if vacuum:
            await saver.areclaim_space()
