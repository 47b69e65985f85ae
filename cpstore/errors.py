"""Every error that cpstore raises itself.

Errors of the database reach the caller as SQLAlchemy raised them; these are only for what the database
cannot say::

    CpstoreError
    ├── ConfigurationError (ValueError)
    │   ├── UnsupportedDatabaseError
    │   ├── MissingDriverError (ImportError)
    │   ├── MemoryDatabaseError
    │   ├── UnknownSourceError
    │   └── SameDatabaseError
    ├── InvalidConfigError (ValueError)
    ├── AsyncOnlyError (RuntimeError)
    ├── NotMigratedError
    │   └── OutdatedDatabaseError
    ├── NewerDatabaseError
    ├── ForeignTablesError
    ├── UnknownRevisionError (LookupError)
    ├── DatabaseBusyError (TimeoutError)
    ├── TransactionError (RuntimeError)
    │   ├── TransactionOverError
    │   └── BrokenTransactionError
    ├── UnstorableValueError (TypeError)
    ├── UnreadableValueError (ValueError)
    │   └── TypeNotAllowedError
    ├── ThreadExistsError (ValueError)
    │   └── OtherHistoryError
    ├── UnknownCheckpointError (LookupError)
    ├── UnknownThreadError (LookupError)
    ├── TransferIncompleteError
    ├── DamagedLineError (ValueError)
    └── MigrationTurnError (TimeoutError)
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "AsyncOnlyError",
    "BrokenTransactionError",
    "ConfigurationError",
    "CpstoreError",
    "DamagedLineError",
    "DatabaseBusyError",
    "ForeignTablesError",
    "InvalidConfigError",
    "MemoryDatabaseError",
    "MigrationTurnError",
    "MissingDriverError",
    "NewerDatabaseError",
    "NotMigratedError",
    "OtherHistoryError",
    "OutdatedDatabaseError",
    "SameDatabaseError",
    "ThreadExistsError",
    "TransactionError",
    "TransactionOverError",
    "TransferIncompleteError",
    "TypeNotAllowedError",
    "UnknownCheckpointError",
    "UnknownRevisionError",
    "UnknownSourceError",
    "UnknownThreadError",
    "UnreadableValueError",
    "UnstorableValueError",
    "UnsupportedDatabaseError",
]


_NAMED = 20
"""So many threads are named in a message."""


class CpstoreError(Exception):
    """cpstore could not do what it was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self._from_docstring())

    @classmethod
    def _from_docstring(cls) -> str:
        return " ".join((cls.__doc__ or "").split())


class _OfThreadsError(CpstoreError):
    """Something is the matter with threads."""

    def __init__(self, threads: Sequence[str]) -> None:
        self.threads = tuple(threads)
        named = ", ".join(map(repr, self.threads[:_NAMED]))
        more = len(self.threads) - _NAMED
        rest = f" and {more} more" if more > 0 else ""
        super().__init__(f"{self._from_docstring()} Threads: {named}{rest}")


class ConfigurationError(CpstoreError, ValueError):
    """The saver was given something that it cannot work with."""


class UnsupportedDatabaseError(ConfigurationError):
    """cpstore speaks SQLite (pysqlite, aiosqlite) and PostgreSQL (psycopg 3, asyncpg)."""


class MissingDriverError(ConfigurationError, ImportError):
    """The database driver is not installed: install the extra of cpstore that brings it."""


class MemoryDatabaseError(ConfigurationError):
    """This pool gives every connection its own empty SQLite memory database.

    LangGraph calls the saver from several threads, so each of them would see another database. Create the
    engine with `poolclass=StaticPool`, or let `SQLAlchemySaver.from_url("sqlite://")` make it.
    """


class UnknownSourceError(ConfigurationError):
    """There is nothing to transfer from.

    The source is no file that exists, or a database that has the tables neither of cpstore, nor of
    langgraph-checkpoint-postgres, nor of langgraph-checkpoint-sqlite.
    """


class SameDatabaseError(ConfigurationError):
    """Source and target of the transfer are the same tables."""


class InvalidConfigError(CpstoreError, ValueError):
    """A config or an identifier in it cannot be stored."""


class AsyncOnlyError(CpstoreError, RuntimeError):
    """This saver has only an AsyncEngine, so its sync methods cannot run here.

    Use the async methods (`ainvoke`, `aget_state`, …), or make the saver from a sync Engine, which serves
    both. From another thread, sync methods work while the event loop that last used the saver is running.
    """


class NotMigratedError(CpstoreError):
    """The tables of cpstore are not in this database.

    Run `cpstore db upgrade --url …`, or call `saver.setup()` (async: `await saver.asetup()`) once.
    """


class OutdatedDatabaseError(NotMigratedError):
    """The tables in this database are of an older cpstore.

    Run `cpstore db upgrade --url …`, or call `saver.setup()` (async: `await saver.asetup()`) once.
    """


class NewerDatabaseError(CpstoreError):
    """This database was written by a newer cpstore: install that version, or a newer one."""


class ForeignTablesError(CpstoreError):
    """There is a table here with the name of one of ours, which cpstore did not make. It was left untouched.

    Choose a `schema` or a `prefix` for cpstore's tables. Tables of langgraph-checkpoint-postgres can be
    adopted (`cpstore db adopt`) once its newest `setup()` has run; a file of langgraph-checkpoint-sqlite can
    be moved (`cpstore transfer`).
    """


class UnknownRevisionError(CpstoreError, LookupError):
    """This cpstore knows no such revision."""


class DatabaseBusyError(CpstoreError, TimeoutError):
    """Somebody else kept this SQLite database locked for the whole busy timeout; nothing was changed.

    Look for a process or a task that leaves a write transaction open. If writers only queue up, let them wait
    longer: `connect_args={"timeout": 60}`, in seconds.
    """


class TransactionError(CpstoreError, RuntimeError):
    """This cannot be done in the transaction that the saver has joined."""


class TransactionOverError(TransactionError):
    """The block has ended in which this saver was in the application's transaction.

    Make another one with `saver.within(…)`, or use the saver that it was made from. Runs must end before the
    block does: with `durability="async"`, too, LangGraph waits for its last checkpoint in `invoke`.
    """


class BrokenTransactionError(TransactionError):
    """The application's transaction is broken: its connection died, or the database rolled it back itself.

    Nothing of it will be committed. Roll it back, and begin again.
    """


class UnstorableValueError(CpstoreError, TypeError):
    """A value cannot be stored so that it comes back as it is."""


class UnreadableValueError(CpstoreError, ValueError):
    """A stored value cannot be read."""


class TypeNotAllowedError(UnreadableValueError):
    """A stored value is of a type that may not be rebuilt."""


class ThreadExistsError(CpstoreError, ValueError):
    """The thread to copy to has checkpoints already, and two histories cannot be one.

    Choose a new thread id, or delete that thread first.
    """


class UnknownCheckpointError(CpstoreError, LookupError):
    """The root graph of this thread has no checkpoint with this id."""


class OtherHistoryError(_OfThreadsError, ThreadExistsError):
    """The target has rows of these threads that the source has not, and two histories cannot be one.

    Nothing of them was written; all others were transferred. Delete them in the target and transfer again, or
    leave them as they are.
    """


class UnknownThreadError(CpstoreError, LookupError):
    """The source has no thread with this id."""


class TransferIncompleteError(_OfThreadsError):
    """The target has another number of rows of these threads than were read in the source.

    Somebody else wrote or deleted some meanwhile. Transfer again when nobody does.
    """


class DamagedLineError(CpstoreError, ValueError):
    """A line of an archive cannot be imported."""


class MigrationTurnError(CpstoreError, TimeoutError):
    """Another process is migrating this database, and did not end within the deadline.

    Look for a hanging migration (on PostgreSQL in `pg_stat_activity`), then run the upgrade again.
    """
