"""Every error that cpstore raises itself.

Errors of the database reach the caller as SQLAlchemy raised them; these are only for what the database
cannot say::

    CpstoreError
    ├── ConfigurationError (ValueError)
    │   ├── UnsupportedDatabaseError
    │   ├── MissingDriverError (ImportError)
    │   └── MemoryDatabaseError
    ├── InvalidConfigError (ValueError)
    ├── AsyncOnlyError (RuntimeError)
    ├── NotMigratedError
    ├── DatabaseBusyError (TimeoutError)
    ├── UnstorableValueError (TypeError)
    ├── UnreadableValueError (ValueError)
    │   └── TypeNotAllowedError
    ├── ThreadExistsError (ValueError)
    ├── UnknownCheckpointError (LookupError)
    └── MigrationTurnError (TimeoutError)
"""

from __future__ import annotations

__all__ = [
    "AsyncOnlyError",
    "ConfigurationError",
    "CpstoreError",
    "DatabaseBusyError",
    "InvalidConfigError",
    "MemoryDatabaseError",
    "MigrationTurnError",
    "MissingDriverError",
    "NotMigratedError",
    "ThreadExistsError",
    "TypeNotAllowedError",
    "UnknownCheckpointError",
    "UnreadableValueError",
    "UnstorableValueError",
    "UnsupportedDatabaseError",
]


class CpstoreError(Exception):
    """cpstore could not do what it was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((self.__doc__ or "").split()))


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


class DatabaseBusyError(CpstoreError, TimeoutError):
    """Somebody else kept this SQLite database locked for the whole busy timeout; nothing was changed.

    Look for a process or a task that leaves a write transaction open. If writers only queue up, let them wait
    longer: `connect_args={"timeout": 60}`, in seconds.
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


class MigrationTurnError(CpstoreError, TimeoutError):
    """Another process is migrating this database, and did not end within the deadline.

    Look for a hanging migration (on PostgreSQL in `pg_stat_activity`), then run the upgrade again.
    """
