"""A real pgbouncer between the tests and their PostgreSQL server, wherever one can be had.

Two providers are asked in this order, none of which needs root:

    path      the machine's own pgbouncer
    package   Debian's package and the libraries that it misses, fetched by apt-get and only unpacked

Where both fail the tests of poolers are not run, and the end of the session's output says so; where CI is set
they fail.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from tests import postgres
from tests.cluster import SERVER_ACCOUNT, free_port, lent_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECONDS_TO_START = 20
SECONDS_TO_FETCH = 60

SYSTEM_FOLDERS = os.pathsep.join(("/usr/sbin", "/usr/local/sbin"))

MISSING = "no pgbouncer here: install it (apt-get install pgbouncer), or let apt-get reach Debian's packages"


class NoPoolerError(Exception):
    """No provider has a pgbouncer; the message says what was tried."""


@dataclass(frozen=True)
class Program:
    """A pgbouncer that can be started: where it is, and where the libraries are that came with it."""

    provider: str
    path: Path
    libraries: tuple[Path, ...] = ()

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that it runs in."""
        folders = os.pathsep.join(map(str, self.libraries))
        return {**os.environ, "LD_LIBRARY_PATH": folders} if folders else os.environ

    @property
    def version(self) -> str:
        """What it calls itself."""
        done = subprocess.run(
            [str(self.path), "--version"],
            env=self.environment,
            user=SERVER_ACCOUNT,
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split("\n", 1)[0]

    @property
    def prepares(self) -> bool:
        """Whether it can follow prepared statements itself, which these tests switch off."""
        numbers = re.findall(r"\d+", self.version)
        return tuple(map(int, numbers[:2])) >= (1, 21)


@contextmanager
def program() -> Iterator[Program]:
    """The first provider's pgbouncer that starts.

    Raises:
        NoPoolerError: there is none.
    """
    failures: list[str] = []
    with lent_directory(None) as folder:
        for provider in PROVIDERS:
            try:
                found = provider(folder)
                if found is not None:
                    found.version  # noqa: B018 - the libraries must be there
                    break
            except (OSError, subprocess.SubprocessError) as failure:
                failures.append(f"{provider.__name__} failed: {failure}")
        else:
            raise NoPoolerError("\n".join([MISSING, *failures]))
        yield found


def path(_folder: Path) -> Program | None:
    """The one that the machine has, in a folder that is not always on the PATH of everybody."""
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path=SYSTEM_FOLDERS)
    return Program("path", Path(found)) if found else None


def package(folder: Path) -> Program | None:
    """Debian's, unpacked into a folder: nothing is installed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return None
    options = apt_options(folder)
    apt("apt-get", *options, "update", "--quiet", folder=folder)
    for name in ("pgbouncer", *missing_libraries(options, folder)):
        apt("apt-get", *options, "download", "--quiet", name, folder=folder)
    for archive in folder.glob("*.deb"):
        apt("dpkg", "--extract", str(archive), str(folder / "root"), folder=folder)
    libraries = {found.parent for found in (folder / "root").rglob("lib*.so*")}
    return Program("package", folder / "root" / "usr" / "sbin" / "pgbouncer", tuple(sorted(libraries)))


def apt_options(folder: Path) -> list[str]:
    """Let apt-get keep its lists in a folder of ours: those of the machine are root's, and may be old."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    options = [f"Dir::State::lists={folder / 'lists'}", f"Dir::Cache={folder / 'cache'}"]
    if SERVER_ACCOUNT is not None:
        options.append("APT::Sandbox::User=root")  # else apt-get's own account needs rights in the folder
    return [part for option in options for part in ("-o", option)]


def missing_libraries(options: list[str], folder: Path) -> list[str]:
    """The libraries among its dependencies that are not installed."""
    depends = apt("apt-cache", *options, "depends", "pgbouncer", folder=folder)
    return [name for name in re.findall(r"Depends: (lib\S+)", depends) if not installed(name)]


def installed(name: str) -> bool:
    command = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", name]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout == "installed"


def apt(*command: str, folder: Path) -> str:
    """What a command of the package system wrote.

    Raises:
        OSError: it failed; the message holds what it said.
    """
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_TO_FETCH, check=False
    )
    if done.returncode:
        raise OSError(f"{' '.join(command[:1])} {command[-1]}: {done.stderr.strip()}")
    return done.stdout


PROVIDERS: tuple[Callable[[Path], Program | None], ...] = (path, package)


@contextmanager
def running(found: Program, server: URL, size: int) -> Iterator[URL]:
    """A pgbouncer in transaction mode before a server, with so many server connections for each database.

    It has the databases of the server under their names. It logs in as the server's URL says, whoever asks.
    """
    with lent_directory(None) as folder:
        url = server.set(host="127.0.0.1", port=free_port(), username="somebody", password=None)
        (folder / "pgbouncer.ini").write_text(settings(found, server, url, size))
        (folder / "pgbouncer.ini").chmod(0o644)
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen(
                [str(found.path), str(folder / "pgbouncer.ini")],
                env=found.environment,
                user=SERVER_ACCOUNT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            ) as process,
        ):
            try:
                wait_for(url, process, folder / "log")
                yield url
            finally:
                process.terminate()


def order(url: URL, command: str) -> None:
    """Give a pgbouncer an order, such as RECONNECT: it has a database of its own for that, without SQL."""
    address = f"host={url.host} port={url.port} user={url.username} dbname=pgbouncer"
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute(command)


def settings(found: Program, server: URL, url: URL, size: int) -> str:
    """The text of pgbouncer.ini."""
    login = {"host": server.host, "port": server.port, "user": server.username, "password": server.password}
    target = " ".join(f"{key}={quoted(value)}" for key, value in login.items() if value is not None)
    options = {
        "listen_addr": url.host,
        "listen_port": url.port,
        "unix_socket_dir": "",
        "auth_type": "any",
        "admin_users": url.username,
        "pool_mode": "transaction",
        "default_pool_size": size,
        "max_client_conn": 200,
        **({"max_prepared_statements": 0} if found.prepares else {}),
    }
    lines = [f"{name} = {value}" for name, value in options.items()]
    return "\n".join(["[databases]", f"* = {target}", "[pgbouncer]", *lines, ""])


def quoted(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def wait_for(url: URL, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until it answers.

    Raises:
        NoPoolerError: it ended, or does not answer; the message holds what it wrote.
    """
    deadline = time.monotonic() + SECONDS_TO_START
    while process.poll() is None and time.monotonic() < deadline:
        try:
            postgres.ask(url, "SELECT 1")
        except DBAPIError:
            time.sleep(0.05)
        else:
            return
    raise NoPoolerError(f"pgbouncer did not start:\n{log.read_text(errors='replace')}")
