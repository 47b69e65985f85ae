"""`cpstore transfer`: threads from database to database."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractContextManager
from typing import Any

import click

from cpstore import engines
from cpstore.cli.places import Place, opened
from cpstore.names import Names, names_of
from cpstore.transfer import Progress, Transferred, atransfer

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
@click.option("--from-schema", help="The schema of the source's tables.")
@click.option("--from-prefix", default="", help="What the names of the source's tables begin with.")
@click.option(
    "--to-schema", envvar="CPSTORE_SCHEMA", show_envvar=True, help="The schema of the target's tables."
)
@click.option(
    "--to-prefix",
    envvar="CPSTORE_PREFIX",
    default="",
    show_envvar=True,
    help="What the names of the target's tables begin with.",
)
def transfer(
    source: str,
    target: str,
    threads: tuple[str, ...],
    upgrade: bool,
    from_schema: str | None,
    from_prefix: str,
    to_schema: str | None,
    to_prefix: str,
) -> None:
    """Bring to a database what it lacks of another one's threads.

    The source is only read. Run it again after an interruption, or to bring what came meanwhile.
    """
    names = names_of(from_schema, from_prefix), names_of(to_schema, to_prefix)
    click.echo(_told(asyncio.run(_transfer((source, target), names, threads, upgrade))))


async def _transfer(
    urls: tuple[str, str], names: tuple[Names, Names], threads: tuple[str, ...], upgrade: bool
) -> Transferred:
    async with (
        opened(engines.read_only(urls[0]), Place(urls[0], *names[0])) as source,
        opened(engines.from_url(urls[1]), Place(urls[1], *names[1])) as target,
    ):
        if upgrade:
            await target.asetup()
        with _bar() as bar:
            return await atransfer(source, target, threads=threads or None, on_progress=_shown_in(bar))


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
