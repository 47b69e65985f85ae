"""From database to database: all threads or some, between SQLite and PostgreSQL.

The source is only read. It has the tables of cpstore, or those of langgraph-checkpoint-postgres, which are
the same, or is a file of langgraph-checkpoint-sqlite. A transfer may be interrupted and run again; what is
there already is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langgraph.checkpoint.serde.base import SerializerProtocol
from sqlalchemy import URL

from cpstore import addresses, engines
from cpstore.doors import Door, door_of
from cpstore.engines import Engines
from cpstore.models import MODELS
from cpstore.saver import SQLAlchemySaver
from cpstore.transfer.amounts import Progress, Transferred
from cpstore.transfer.run import Run
from cpstore.transfer.steps import adrive, drive

__all__ = ["Database", "Progress", "Transferred", "atransfer", "transfer"]

Database = SQLAlchemySaver | str | URL
"""A saver, whose engine and tables (`schema=`, `prefix=`) are used, or a URL."""


def transfer(
    source: Database,
    target: Database,
    *,
    threads: Sequence[str] | None = None,
    serde: SerializerProtocol | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Transferred:
    """Bring to the target what it lacks of the source's threads.

    Rows go as they are: no value is decoded and no class imported. A checkpoint, or a special write such as
    an interrupt, that is there with another content is replaced. A checkpoint is stored after the blobs and
    writes that it needs, each batch in a transaction of its own. Runs of a thread in the source may go on
    meanwhile; what they save after its checkpoints were read comes with the next transfer.

    Args:
        source: Where threads are read: a saver, or a URL, which is opened to be read only. The tables may be
            those of langgraph-checkpoint-postgres (not adopted), or of langgraph-checkpoint-sqlite.
        target: Where they are written. It must be migrated.
        threads: Ids of threads; None: all.
        serde: Opens values and seals them with its current key, if it binds them to their places
            (:class:`~cpstore.AESGCMSerializer`; with `plain_rows` a database moves to encryption). It also
            reads documents of langgraph-checkpoint-sqlite that are encrypted or pickled, and encodes their
            values.
        on_progress: Called after each batch of rows.

    Returns:
        What was written; nothing, if all of it was there.

    Raises:
        OtherHistoryError: The target has rows of a thread that the source has not. Nothing is written of this
            thread; the others are transferred.
        TransferIncompleteError: In the end, a thread has another number of rows than were read.
        NotMigratedError: The target has no tables.
        CpstoreError: The target's tables are not those of this cpstore, as for
            :meth:`~cpstore.SQLAlchemySaver.setup`.
        UnknownSourceError: The source is no file, or has no tables.
        SameDatabaseError: Source and target are the same tables.
        UnknownThreadError: The source has no such thread. Nothing is written then.
        UnreadableValueError: A value cannot be sealed anew, or a document cannot be taken apart.
        TypeError: `threads` is one text.
        AsyncOnlyError: A side has only an async engine: use :func:`atransfer`.
    """
    sides = _opened(source, target)
    try:
        return drive(Run(*sides, _thread_ids(threads), serde, on_progress).steps())
    finally:
        for side, given in zip(sides, (source, target), strict=True):
            if not isinstance(given, SQLAlchemySaver):
                side.close()


async def atransfer(
    source: Database,
    target: Database,
    *,
    threads: Sequence[str] | None = None,
    serde: SerializerProtocol | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Transferred:
    """Async version of :func:`transfer`."""
    sides = _opened(source, target)
    try:
        return await adrive(Run(*sides, _thread_ids(threads), serde, on_progress).steps())
    finally:
        for side, given in zip(sides, (source, target), strict=True):
            if not isinstance(given, SQLAlchemySaver):
                await side.aclose()


def _opened(source: Database, target: Database) -> tuple[Door, Door]:
    return _door(source, engines.read_only), _door(target, engines.from_url)


def _door(database: Database, engines_of: Callable[[str | URL], Engines]) -> Door:
    if isinstance(database, SQLAlchemySaver):
        return database._door
    return door_of(engines_of(database), MODELS)


def _thread_ids(threads: Sequence[str] | None) -> list[str] | None:
    return None if threads is None else addresses.thread_ids(threads)
