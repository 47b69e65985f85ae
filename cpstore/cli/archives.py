"""`cpstore export` and `cpstore import`: threads as lines of JSON."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TextIO

import click

from cpstore.archive import Imported, aexport_lines, aimport_lines
from cpstore.cli import ids
from cpstore.cli.output import counting, show_text
from cpstore.cli.places import Place, changing, looking, placed
from cpstore.cli.web import require_web
from cpstore.reports import counted

__all__ = ["export", "import_"]

_MEMORY = 8 << 20
"""What comes through a pipe stays in memory up to so many bytes, and goes to a temporary file then."""


@click.command()
@placed
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of stdout."
)
@click.option("--html", is_flag=True, help="Write one thread as a page, to look at without a server.")
@click.option("--redact", is_flag=True, help="With --html: replace all values by their kind and length.")
@click.option(
    "--limit", type=click.IntRange(0), help="With --html: explain so many of the newest checkpoints."
)
@click.argument("threads", nargs=-1)
def export(
    place: Place, output: Path | None, html: bool, redact: bool, limit: int | None, threads: tuple[str, ...]
) -> None:
    """Write THREADS, or all threads, as lines of JSON, which `cpstore import` reads; or one as a page."""
    if (redact or limit is not None) and not html:
        raise click.UsageError("--redact and --limit are for --html.")
    if html and len(threads) != 1:
        raise click.UsageError("--html writes one thread: name it.")
    write = partial(_html, place, threads[0], redact, limit) if html else partial(_export, place, threads)
    if output is None:
        asyncio.run(write(sys.stdout))
        return
    part = output.with_name(f"{output.name}.part")
    with part.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        asyncio.run(write(file))
    part.replace(output)


async def _html(place: Place, thread_id: str, redact: bool, limit: int | None, file: TextIO) -> None:
    require_web()
    from cpstore.web import pages_of

    async with looking(place) as saver:
        async for part in pages_of(saver, thread_id, redact=redact, limit=limit):
            file.write(part)


async def _export(place: Place, threads: tuple[str, ...], file: TextIO) -> None:
    async with looking(place) as saver:
        for thread_id in threads:
            await ids.require(saver, thread_id)
        with counting("lines") as tell:
            count = 0
            async for line in aexport_lines(saver, threads or None):
                file.write(f"{line}\n")
                count += 1
                tell(count)


@click.command("import")
@placed
@click.argument("file", type=click.File("rb"), default="-")
def import_(place: Place, file: IO[bytes]) -> None:
    """Store the threads of FILE, or of stdin, that `cpstore export` wrote: all of them or none.

    A thread that the database has already is refused, and so is a file with a damaged line.
    """
    with _from_start(file) as lines:
        done = asyncio.run(_import(place, lines))
    counts = ((done.checkpoints, "checkpoint"), (done.blobs, "value"), (done.writes, "write"))
    told = ", ".join(counted(*each) for each in counts)
    show_text(f"Imported {told} of {counted(done.threads, 'thread')}.")


async def _import(place: Place, file: IO[bytes]) -> Imported:
    def read() -> Iterator[str]:
        file.seek(0)
        return (line.decode(errors="replace") for line in file)

    async with changing(place) as saver:
        return await aimport_lines(saver, read)


@contextmanager
def _from_start(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Give a file that can be read again from its start."""
    if file.seekable():
        yield file
        return
    with tempfile.SpooledTemporaryFile(_MEMORY) as copied:
        shutil.copyfileobj(file, copied)
        yield copied
