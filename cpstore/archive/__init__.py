"""Threads as lines of JSON: out of a database and into another one, without a loss.

Values go as they are stored, as their type and their bytes in base 64; documents as JSON. No value is
decoded, and no class imported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

from cpstore import addresses
from cpstore.archive.exporting import export_steps
from cpstore.archive.importing import Imported, rows_of
from cpstore.archive.lines import HEAD
from cpstore.archive.storing import import_rows
from cpstore.saver import SQLAlchemySaver

__all__ = ["HEAD", "Imported", "aexport_lines", "aimport_lines", "export_lines", "import_lines"]

Reader = Callable[[], Iterable[str]]
"""Gives the lines of an archive, from the first one, each time that it is called."""


def export_lines(saver: SQLAlchemySaver, threads: Sequence[str] | None = None) -> Iterator[str]:
    """Give the lines of an archive, each without its line feed.

    Thread by thread, some rows at a time; no connection is held while it yields. Checkpoints are read before
    the blobs and writes that they need, so that runs may go on meanwhile; nothing may be deleted meanwhile.

    Args:
        saver: Where threads are read.
        threads: Ids of threads; None: all.

    Raises:
        UnknownThreadError: There is no such thread. It may come after other threads.
        NotMigratedError: The tables are not there.
        TypeError: `threads` is one text.
    """
    steps = export_steps(saver._door, None if threads is None else addresses.thread_ids(threads))
    result = None
    while True:
        try:
            asked = steps.send(result)
        except StopIteration:
            return
        if isinstance(asked, str):
            result = None
            yield asked
        else:
            result = asked.door.run(asked.unit, *asked.arguments)


async def aexport_lines(saver: SQLAlchemySaver, threads: Sequence[str] | None = None) -> AsyncIterator[str]:
    """Async version of :func:`export_lines`."""
    steps = export_steps(saver._door, None if threads is None else addresses.thread_ids(threads))
    result = None
    while True:
        try:
            asked = steps.send(result)
        except StopIteration:
            return
        if isinstance(asked, str):
            result = None
            yield asked
        else:
            result = await asked.door.arun(asked.unit, *asked.arguments)


def import_lines(saver: SQLAlchemySaver, read: Reader) -> Imported:
    """Store the threads of an archive, all or nothing: one transaction holds all of it.

    Args:
        saver: Where they are stored. It must be migrated.
        read: Gives the lines. It is called again if the transaction has to be begun again.

    Raises:
        DamagedLineError: A line is damaged, or lines are missing; the message has its number.
        ThreadExistsError: The database has checkpoints of one of the threads.
        NotMigratedError: The tables are not there.
    """
    return saver._door.run(import_rows, lambda: rows_of(read()))


async def aimport_lines(saver: SQLAlchemySaver, read: Reader) -> Imported:
    """Async version of :func:`import_lines`."""
    return await saver._door.arun(import_rows, lambda: rows_of(read()))
