"""Proof that the wheel is complete: installed elsewhere, it migrates both databases and saves on them.

    python -m tests.prove_wheel dist/cpstore-0.1.0-py3-none-any.whl

nox runs it. It needs no cpstore itself, only what `tests.postgres` needs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZipFile

from sqlalchemy import URL, NullPool, create_engine, inspect

from tests.postgres import server, temporary_database

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "alembic"

TABLES = {"checkpoints", "checkpoint_blobs", "checkpoint_writes", "cpstore_alembic_version"}

SAVE_AND_READ = """
import sys
from langgraph.checkpoint.base import empty_checkpoint
from cpstore import SQLAlchemySaver

words = ["from", "the", "wheel"]
checkpoint = empty_checkpoint() | {"channel_values": {"words": words}, "channel_versions": {"words": "1"}}
with SQLAlchemySaver.from_url(sys.argv[1]) as saver:
    config = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    stored = saver.put(config, checkpoint, {"source": "input", "step": -1}, {"words": "1"})
    saver.put_writes(stored, [("words", ["more"])], "task")
    found = saver.get_tuple(config)
    assert found.checkpoint["channel_values"] == {"words": words}, found
    assert found.pending_writes == [("task", "words", ["more"])], found
"""

WHERE = "import cpstore; print(cpstore.__file__)"


@dataclass(frozen=True)
class Installation:
    """A virtual environment with the wheel, in a folder that is far from the repository."""

    folder: Path

    @property
    def programs(self) -> Path:
        """Where the environment's programs are."""
        return self.folder / "venv" / ("Scripts" if os.name == "nt" else "bin")

    def python(self, *arguments: str) -> str:
        """Run the environment's Python, which looks at nothing else on this machine (-I)."""
        return self.run("python", "-I", *arguments)

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the environment, and return what it printed.

        Raises:
            SystemExit: it failed; the message holds all that it wrote.
        """
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
            capture_output=True,
            text=True,
            check=False,
        )
        require(done.returncode == 0, f"{program} {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
        return done.stdout.strip()


def require(condition: bool, message: str) -> None:
    """End the proof unless the condition holds."""
    if not condition:
        raise SystemExit(f"The wheel is not good: {message}")


def prove_content(wheel: Path) -> None:
    """It holds the type marker and all migration scripts, and nothing that is not the package."""
    names = set(ZipFile(wheel).namelist())
    scripts = [path.relative_to(SCRIPTS) for path in SCRIPTS.rglob("*") if path.suffix in {".py", ".mako"}]
    wanted = {"cpstore/py.typed", *(f"cpstore/_alembic/{script.as_posix()}" for script in scripts)}
    require(len(scripts) >= 3, f"no migration scripts in {SCRIPTS}")
    require(wanted <= names, f"it lacks {sorted(wanted - names)}")
    others = {name for name in names if not name.startswith(("cpstore/", "cpstore-"))}
    require(not others, f"it also holds {sorted(others)}")
    require(not any("__pycache__" in name for name in names), "it holds compiled files")


@contextmanager
def installed(wheel: Path) -> Iterator[Installation]:
    """The wheel with all its extras in an environment of its own, removed at the end."""
    with TemporaryDirectory(prefix="cpstore-wheel-") as name:
        installation = Installation(Path(name))
        venv.create(installation.folder / "venv", with_pip=True, symlinks=os.name != "nt")
        installation.python("-m", "pip", "install", "--quiet", f"{wheel.resolve()}[all]")
        place = Path(installation.python("-c", WHERE))
        require(place.is_relative_to(installation.folder), f"cpstore was imported from {place}")
        yield installation


def prove_migration(installation: Installation, url: URL) -> None:
    """An empty database gets the tables from the command line, then keeps a checkpoint."""
    address = url.render_as_string(hide_password=False)
    require(not tables(url), f"{url} is not empty")
    for _ in range(2):
        said = installation.run("cpstore", "db", "upgrade", "--url", address)
        require(said.endswith("(newest)"), f"cpstore db upgrade said: {said}")
    require(tables(url) == TABLES, f"the upgrade made {sorted(tables(url))}")
    installation.python("-c", SAVE_AND_READ, address)
    say(f"{url.get_backend_name()}: migrated to {said}; put and get_tuple work")


def tables(url: URL) -> set[str]:
    """The names of a database's tables, as SQLAlchemy finds them without cpstore."""
    return set(inspect(create_engine(url, poolclass=NullPool)).get_table_names())


def say(text: str) -> None:
    """Print a line at once, between those of the processes."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(wheel: Path) -> None:
    """Prove a wheel's content, then what it does on each database."""
    prove_content(wheel)
    with installed(wheel) as installation:
        say(f"{wheel.name}: complete, and installed in {installation.folder}")
        empty_file = installation.folder / "empty.db"
        empty_file.touch()
        prove_migration(installation, URL.create("sqlite", database=str(empty_file)))
        with server() as running, temporary_database(running.url) as url:
            prove_migration(installation, url)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
