"""`cpstore transfer`, through every driver; and killed in its midst."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from langgraph.checkpoint.sqlite import SqliteSaver

from cpstore import SQLAlchemySaver
from cpstore.cli import main
from tests.test_transfer import fill, listed, migrated, place, put, rows_of
from tests.test_transfer_sqlite_saver import assert_same
from tests.test_transfer_sqlite_saver import put as put_official

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
NOTHING = "Nothing to transfer: of {} all is there.\n"


@pytest.fixture
def other_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A second database: a file."""
    with migrated(request, "sqlite", "other") as url:
        yield url


def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["transfer", *arguments], env=environment)
    return result.exit_code, result.stdout, result.stderr


def sync(url: str) -> str:
    return re.sub(r"\+\w+:", ":", url, count=1)


def test_both_directions(other_url: str, database_url: str, tmp_path: Path) -> None:
    with SQLAlchemySaver.from_url(other_url) as saver:
        fill(saver, 3)
        expected = listed(saver)
    code, told, progress = run("--from", other_url, "--to", database_url)
    assert (code, progress) == (0, "")
    assert re.fullmatch(
        r"Transferred 9 checkpoints, 9 blobs, 18 writes \([\d,]+ bytes\) of 3 threads;"
        r" 3 threads compared and counted\.\n",
        told,
    )
    assert run("--from", other_url, CPSTORE_DATABASE_URL=database_url) == (0, NOTHING.format("3 threads"), "")

    third = f"sqlite+aiosqlite:///{tmp_path / 'third.db'}"
    chosen = ("--thread", "thread 1", "--thread", "thread 2")
    code, _, error = run("--from", database_url, "--to", third, *chosen)
    assert (code, error.count("\n")) == (1, 1)
    assert "cpstore db upgrade" in error
    code, told, _ = run("--from", database_url, "--to", third, "--upgrade", *chosen)
    assert (code, told[:24]) == (0, "Transferred 6 checkpoint")
    with SQLAlchemySaver.from_url(sync(third)) as saver:
        assert listed(saver) == [
            one for one in expected if one.config["configurable"]["thread_id"] != "thread 0"
        ]


def test_prefixes(other_url: str, database_url: str) -> None:
    with SQLAlchemySaver.from_url(other_url, prefix="old_") as saver:
        saver.setup()
        fill(saver, 2)
        expected = listed(saver)
    names = ("--from-prefix", "old_", "--to-prefix", "new_")
    assert run("--from", other_url, "--to", database_url, "--upgrade", *names)[0] == 0
    with SQLAlchemySaver.from_url(sync(database_url), prefix="new_") as saver:
        assert listed(saver) == expected
    code, told, _ = run(
        "--from", other_url, "--to", database_url, "--from-prefix=old_", CPSTORE_PREFIX="new_"
    )
    assert (code, told) == (0, NOTHING.format("2 threads"))
    assert run("--from", other_url, "--to", database_url, "--from-prefix", "none_")[0] == 1


def test_a_file_of_sqlite_saver(tmp_path: Path, database_url: str) -> None:
    file = tmp_path / "official.db"
    with SqliteSaver.from_conn_string(str(file)) as official:
        put_official(official, place("1"), {"a": [1]}, {"a": "1.1"})
        code, told, _ = run("--from", f"sqlite:///{file}", "--to", database_url)
        assert (code, told[:26]) == (0, "Transferred 1 checkpoint, ")
        assert " of 1 thread; 1 thread compared" in told
        with SQLAlchemySaver.from_url(sync(database_url)) as target:
            assert_same(official, target)


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("sqlite:///missing.db", "sqlite:///other.db", "no file"),
        ("mysql://user:secret@host/name", "sqlite:///other.db", "speaks SQLite"),
        ("postgresql://user:secret@127.0.0.1:1/name", "sqlite:///other.db", "refused"),
        ("postgresql+asyncpg://user:secret@127.0.0.1:1/name", "sqlite:///other.db", "127.0.0.1"),
        ("sqlite:///text.txt", "sqlite:///other.db", "not a database"),
        ("sqlite:///other.db", "sqlite:///other.db", "same tables"),
    ],
)
def test_errors_are_one_line_without_passwords(
    other_url: str, tmp_path: Path, source: str, target: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("text " * 1000)
    with SQLAlchemySaver.from_url(other_url) as saver:
        fill(saver, 1)
    code, output, error = run("--from", source, "--to", target)
    assert (code, output) == (1, "")
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    assert told in error
    assert "secret" not in error


def test_a_missing_url_is_a_usage_error() -> None:
    assert run("--to", "sqlite://")[0] == 2
    assert run("--from", "sqlite://", CPSTORE_DATABASE_URL="")[0] == 2


def test_the_bar_is_shown_on_a_terminal_beside_the_output(other_url: str, dialect_url: str) -> None:
    with SQLAlchemySaver.from_url(other_url) as saver:
        fill(saver, 2)
    reader, terminal = os.openpty()
    program = "from cpstore.cli import main; main()"
    command = [sys.executable, "-c", program, "transfer", "--from", other_url, "--to", dialect_url]
    told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=terminal, check=True, text=True)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is closed
        while part := os.read(reader, 1 << 16):
            shown += part
    os.close(reader)
    assert b"Rows" in shown
    assert b"100%" in shown
    assert told.stdout.startswith("Transferred 6 checkpoints")
    assert told.stdout.count("\n") == 1


@pytest.mark.parametrize("after", [1, 4, 16])
def test_a_run_that_is_killed_is_completed_by_the_next(other_url: str, dialect_url: str, after: int) -> None:
    with SQLAlchemySaver.from_url(other_url) as source, SQLAlchemySaver.from_url(dialect_url) as target:
        config = place("long")
        for step in range(60):
            config = put(source, config, {"words": [step] * 1000, "other": "word " * 100})
            source.put_writes(config, [("words", n) for n in range(20)], "task")
        command = [sys.executable, "-c", KILLED, "transfer", "--from", other_url, "--to", dialect_url]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(after):
                process.stdout.readline()
            time.sleep(0.01)
            process.kill()
        complete = {found.checkpoint["id"]: found for found in listed(source)}
        for found in listed(target):
            assert found == complete[found.checkpoint["id"]]
        assert run("--from", other_url, "--to", dialect_url)[0] == 0
        assert rows_of(target)[1:] == rows_of(source)[1:]
        assert listed(target) == listed(source)
        assert run("--from", other_url, "--to", dialect_url)[1] == NOTHING.format("1 thread")


KILLED = """
import sys
from cpstore.cli import main
from cpstore.transfer import amounts, thread
amounts._ROWS, thread.KEYS = 20, 50
command = sys.modules["cpstore.cli.transfer"]
command._shown_in = lambda bar: lambda progress: print(progress, flush=True)
main()
"""
"""The command, with small batches, telling of each."""
