"""`cpstore transfer`: threads from database to database."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractContextManager
from typing import Any

import click

from cpstore.engines import has_sync
from cpstore.saver import SQLAlchemySaver
from cpstore.transfer import Progress, Transferred, atransfer
from cpstore.transfer import transfer as transfer_now

__all__ = ["transfer"]


@click.command()
@click.option(
    "--from",
    "source",
    required=True,
    metavar="URL",
    help="Where threads are read: a database of cpstore or langgraph-checkpoint-postgres, or a file of"
    " langgraph-checkpoint-sqlite (sqlite:///old.db).",
)
@click.option(
    "--to",
    "target",
    required=True,
    metavar="URL",
    envvar="CPSTORE_DATABASE_URL",
    show_envvar=True,
    help="Where they are written.",
)
@click.option("--thread", "threads", multiple=True, metavar="ID", help="Only this thread; may be repeated.")
@click.option("--upgrade", is_flag=True, help="Migrate the target to the newest revision first.")
def transfer(source: str, target: str, threads: tuple[str, ...], upgrade: bool) -> None:
    """Bring to a database what it lacks of another one's threads.

    The source is only read. Run it again after an interruption, or to bring what came meanwhile.
    """
    if has_sync(source) and has_sync(target):
        if upgrade:
            _upgrade(target)
        with _bar() as bar:
            done = transfer_now(source, target, threads=threads or None, on_progress=_shown_in(bar))
    else:
        done = asyncio.run(_atransfer(source, target, threads, upgrade))
    click.echo(_told(done))


async def _atransfer(source: str, target: str, threads: tuple[str, ...], upgrade: bool) -> Transferred:
    if upgrade:
        async with SQLAlchemySaver.from_url(target) as saver:
            await saver.asetup()
    with _bar() as bar:
        return await atransfer(source, target, threads=threads or None, on_progress=_shown_in(bar))


def _upgrade(target: str) -> None:
    with SQLAlchemySaver.from_url(target) as saver:
        saver.setup()


def _bar() -> AbstractContextManager[Any]:
    return click.progressbar(length=1, label="Rows", file=sys.stderr, hidden=not sys.stderr.isatty())


def _shown_in(bar: Any) -> Any:
    def show(progress: Progress) -> None:
        bar.length = max(progress.total, 1)
        bar.update(progress.done - bar.pos)

    return show


def _told(done: Transferred) -> str:
    if not done.changed:
        return f"Nothing to transfer: of {_number(done.threads, 'thread')} all is there."
    return (
        f"Transferred {_number(done.checkpoints, 'checkpoint')}, {_number(done.blobs, 'blob')},"
        f" {_number(done.writes, 'write')} ({done.bytes:,} bytes) of {_number(done.changed, 'thread')};"
        f" {_number(done.threads, 'thread')} compared and counted."
    )


def _number(count: int, name: str) -> str:
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"
