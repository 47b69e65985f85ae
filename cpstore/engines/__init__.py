"""Engines from a database URL.

Only engines that are made here are configured here: those of an application stay as they are.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import URL, AsyncAdaptedQueuePool, Engine, QueuePool, create_engine, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AssertionPool, SingletonThreadPool, StaticPool

from cpstore.engines.sessions import BUSY_SECONDS, configured
from cpstore.errors import (
    ConfigurationError,
    MemoryDatabaseError,
    MissingDriverError,
    UnknownSourceError,
    UnsupportedDatabaseError,
)

__all__ = [
    "Engines",
    "capacity",
    "check_file",
    "check_memory",
    "from_url",
    "has_sync",
    "in_event_loop",
    "is_memory",
    "normalise",
    "read_only",
]

_SYNC = {"sqlite+pysqlite", "postgresql+psycopg"}
_ASYNC = {"sqlite+aiosqlite", "postgresql+psycopg", "postgresql+asyncpg"}
_DRIVERS = {"sqlite": "sqlite+pysqlite", "postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
_EXTRAS = {"sqlite+aiosqlite": "sqlite", "postgresql+psycopg": "postgres", "postgresql+asyncpg": "asyncpg"}

_STATELESS: dict[str, dict[str, Any]] = {
    "postgresql+psycopg": {"prepare_threshold": None},
    "postgresql+asyncpg": {
        # The first is asyncpg's own, the others are SQLAlchemy's. It prepares each statement anyway: without
        # a name, so that asyncpg sends it once more where it is executed.
        "statement_cache_size": 0,
        "prepared_statement_cache_size": 0,
        "prepared_statement_name_func": str,
    },
}
"""By driver, what lets it leave nothing in a session: the next statement may run in another one."""


class Engines(NamedTuple):
    """What one URL gives: an engine for sync calls, one for async calls, or both."""

    sync: Engine | None
    asynchronous: AsyncEngine | None


def normalise(url: str | URL) -> URL:
    """Give a URL with its driver: `postgres` and `postgresql` mean psycopg 3 on every SQLAlchemy.

    Raises:
        ConfigurationError: It is no URL.
        UnsupportedDatabaseError: It names another database or driver.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(
            "This is no database URL; one looks like sqlite:///chat.db or postgresql://user@host/name"
        ) from error
    named = parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))
    if named.drivername not in _SYNC | _ASYNC:
        raise UnsupportedDatabaseError(f"{UnsupportedDatabaseError()} Not: {named.drivername}")
    return named


def from_url(url: str | URL, *, pooler: bool = False, **options: Any) -> Engines:
    """Make the engines that the URL's driver allows.

    psycopg serves sync and async. asyncpg is async, and has a psycopg engine beside it for sync calls where
    that is installed and the URL says nothing that only asyncpg understands. `sqlite://` is sync, and the
    saver runs it in threads; `sqlite+aiosqlite://` is async.

    Args:
        url: The database.
        pooler: A transaction pooler is between us and PostgreSQL, so sessions must be left as they were.
            Nothing to SQLite.
        options: Given to SQLAlchemy as they are. `connect_args` go before ours.

    Raises:
        ConfigurationError: As :func:`normalise`.
        MissingDriverError: The driver is not installed; the message names the extra that brings it.
    """
    return _engines(normalise(url), options, _STATELESS if pooler else {}, pooler)


def _engines(
    url: URL, options: dict[str, Any], arguments: dict[str, dict[str, Any]], pooler: bool = False
) -> Engines:
    """Make engines; `arguments` has what each driver is given beside the options."""
    sync = url if url.drivername in _SYNC else _sync_twin(url, options)
    return Engines(
        None if sync is None else _make_sync(sync, pooler, _options(sync, QueuePool, arguments, options)),
        _make_async(url, pooler, _options(url, AsyncAdaptedQueuePool, arguments, options))
        if url.drivername in _ASYNC
        else None,
    )


def has_sync(url: str | URL) -> bool:
    """Tell whether a URL's own driver has a sync engine.

    Raises:
        ConfigurationError: As :func:`normalise`.
    """
    return normalise(url).drivername in _SYNC


def read_only(url: str | URL, *, pooler: bool = False, whole_session: bool = False) -> Engines:
    """Make engines as :func:`from_url` does, which can only read; a replica is good enough for them.

    Args:
        url: The database.
        pooler: As for :func:`from_url`.
        whole_session: Say it to PostgreSQL as the session begins (`default_transaction_read_only`), and not
            only for each transaction. Behind a transaction pooler, which refuses that, it is not said.

    Raises:
        UnknownSourceError: It is an SQLite file that does not exist, which would be made.
        ConfigurationError: As :func:`from_url`.
        MissingDriverError: As :func:`from_url`.
    """
    url = normalise(url)
    if url.get_backend_name() == "sqlite":
        return from_url(url if is_memory(url) else _unwritable(url))
    options = {"execution_options": {"postgresql_readonly": True}}
    if whole_session and not pooler:
        return _engines(url, options, _only_reading(url))
    return from_url(url, pooler=pooler, **options)


def _only_reading(url: URL) -> dict[str, dict[str, Any]]:
    """Give, by driver, what makes every transaction of a session one that only reads."""
    given = url.query.get("options", "")
    said = [given] if isinstance(given, str) else [*given]
    return {
        "postgresql+psycopg": {"options": " ".join([*said, "-c default_transaction_read_only=on"]).strip()},
        "postgresql+asyncpg": {"server_settings": {"default_transaction_read_only": "on"}},
    }


def check_file(url: str | URL) -> None:
    """Refuse a URL of an SQLite file that does not exist, which connecting would make.

    Raises:
        UnknownSourceError: It is one.
        ConfigurationError: As :func:`normalise`.
    """
    url = normalise(url)
    if url.get_backend_name() == "sqlite" and not is_memory(url):
        _unwritable(url)


def _unwritable(url: URL) -> URL:
    name = url.database or ""
    if not name.startswith("file:"):
        file = Path(name)
        if not file.is_file():
            raise UnknownSourceError(
                f"There is no file {name}. Look at the URL; `cpstore db upgrade` makes a new database"
            )
        url = url.set(database=file.resolve().as_uri())
    return url.update_query_dict({"mode": "ro", "uri": "true"})


def _sync_twin(url: URL, options: dict[str, Any]) -> URL | None:
    alone = url.drivername != "postgresql+asyncpg" or url.query or "connect_args" in options
    return None if alone or find_spec("psycopg") is None else url.set(drivername="postgresql+psycopg")


def _make_sync(url: URL, pooler: bool, options: dict[str, Any]) -> Engine:
    try:
        engine = create_engine(url, **options)
    except ImportError as error:
        raise _missing_driver(url) from error
    return configured(engine, pooler)


def _make_async(url: URL, pooler: bool, options: dict[str, Any]) -> AsyncEngine:
    try:
        engine = create_async_engine(url, **options)
    except ImportError as error:
        raise _missing_driver(url) from error
    configured(engine.sync_engine, pooler)
    return engine


def _missing_driver(url: URL) -> MissingDriverError:
    return MissingDriverError(
        f"The driver of {url.drivername} is not installed: pip install 'cpstore[{_EXTRAS[url.drivername]}]'"
    )


def in_event_loop() -> bool:
    """Tell whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def is_memory(url: URL) -> bool:
    """Tell whether each connection of this URL has an SQLite database of its own, in memory."""
    if url.get_backend_name() != "sqlite":
        return False
    name = url.database or ":memory:"
    alone = url.query.get("cache") != "shared" and "cache=shared" not in name
    return alone and (":memory:" in name or url.query.get("mode") == "memory" or "mode=memory" in name)


def check_memory(engine: Engine) -> None:
    """Refuse an application's engine whose connections would each see another memory database.

    Raises:
        MemoryDatabaseError: It is one.
    """
    if is_memory(engine.url) and not _has_creator(engine.pool) and not _is_shared(engine.pool):
        raise MemoryDatabaseError


def _has_creator(pool: Any) -> bool:
    """Tell whether connections come from the application's own `creator`, whatever the URL says."""
    return getattr(pool._creator, "__module__", None) != "sqlalchemy.engine.create"


def _is_shared(pool: Any) -> bool:
    return isinstance(pool, StaticPool) or (isinstance(pool, QueuePool) and capacity(pool) == 1)


def capacity(pool: Any) -> int | None:
    """Give the number of connections that a pool lends at the same time; None if it has no bound."""
    if isinstance(pool, QueuePool):
        bound = pool.size() + pool._max_overflow
        return bound if pool.size() and pool._max_overflow >= 0 else None
    if isinstance(pool, SingletonThreadPool):
        return pool.size
    return 1 if isinstance(pool, (StaticPool, AssertionPool)) else None


def _options(
    url: URL, pool: type[QueuePool], arguments: dict[str, dict[str, Any]], options: dict[str, Any]
) -> dict[str, Any]:
    """Give our options for an engine below the caller's.

    A memory database has one connection, which callers take in turn, from any thread. A unit of work ends its
    transaction, whatever happens; so the pool need not roll back what comes back to it, which an async driver
    would have to be asked for. And the connection that came back last is lent first: its server has our rows
    and plans at hand.
    """
    unasked = {"pool_reset_on_return": None, "pool_use_lifo": True}
    alone = {"poolclass": pool, "pool_size": 1, "max_overflow": 0} if is_memory(url) else {}
    given = _connect_args(url) | arguments.get(url.drivername, {}) | options.get("connect_args", {})
    return unasked | alone | options | {"connect_args": given}


def _connect_args(url: URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        threads = {"check_same_thread": False} if is_memory(url) else {}
        # Wait for another writer rather than fail: a write of ours takes milliseconds, a migration seconds.
        return threads if "timeout" in url.query else {**threads, "timeout": BUSY_SECONDS}
    # What is one statement is most of what a saver does: it needs no transaction, and none to be left again;
    # and it is done again, so it is prepared the first time.
    return {"autocommit": True, "prepare_threshold": 0} if url.drivername == "postgresql+psycopg" else {}
