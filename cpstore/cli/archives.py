"""`cpstore export` and `cpstore import`: threads as lines of JSON."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

import click

from cpstore.archive import Imported, aexport_lines, aimport_lines
from cpstore.cli import ids
from cpstore.cli.output import counting, show_text
from cpstore.cli.places import Place, changing, looking, placed

__all__ = ["export", "import_"]

_MEMORY = 8 << 20
"""What comes through a pipe stays in memory up to so many bytes, and goes to a temporary file then."""


@click.command()
@placed
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of stdout."
)
@click.argument("threads", nargs=-1)
def export(place: Place, output: Path | None, threads: tuple[str, ...]) -> None:
    """Write THREADS, or all threads, as lines of JSON, which `cpstore import` reads."""
    if output is None:
        asyncio.run(_export(place, threads, sys.stdout))
        return
    part = output.with_name(f"{output.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as file:
        asyncio.run(_export(place, threads, file))
    part.replace(output)


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
    told = ", ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counts)
    show_text(f"Imported {told} of {done.threads:,} thread{'' if done.threads == 1 else 's'}.")


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
