"""`cpstore web` and `cpstore export --html`: what they say, and what they refuse."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from cpstore.cli import main
from tests.looked_at import THREAD, tell
from tests.test_browser import served

if TYPE_CHECKING:
    from pathlib import Path

    from cpstore import SQLAlchemySaver


def test_the_address_is_all_that_it_prints(dialect_url: str) -> None:
    with served(dialect_url) as address:
        assert address.startswith("http://127.0.0.1:")
        token = address.rstrip("/").rpartition("/")[2]
        assert len(token) >= 22  # 128 bits in base 64
    with served(dialect_url) as again:
        assert not again.endswith(f"/{token}/")


def heed_interrupts() -> None:
    """A shell lets what it starts in the background ignore them, and so all that these tests start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_it_ends_quietly_when_it_is_interrupted(dialect_url: str) -> None:
    command = [sys.executable, "-m", "cpstore", "web", "--url", dialect_url]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=heed_interrupts, **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def told(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.stderr.strip()


def test_without_its_packages_it_says_which_extra(dialect_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["cpstore.cli.web"], "find_spec", lambda name: None)
    message = "Error: The page needs more packages: pip install 'cpstore[web]'"
    assert told("web", "--url", dialect_url) == (1, message)
    assert told("export", THREAD, "--html", "--url", dialect_url) == (1, message)


def test_a_database_without_tables_is_told_at_once(empty_dialect_url: str) -> None:
    code, message = told("web", "--url", empty_dialect_url)
    assert code == 1
    assert "upgrade" in message


def test_no_file_is_made(tmp_path: Path) -> None:
    code, message = told("web", "--url", f"sqlite:///{tmp_path}/none.db")
    assert (code, list(tmp_path.iterdir())) == (1, [])
    assert "There is no file" in message


def test_a_page_is_of_one_thread(dialect_url: str, keeper: SQLAlchemySaver) -> None:
    tell(keeper)
    assert told("export", "--html", "--url", dialect_url)[0] == 2
    assert told("export", "a", "b", "--html", "--url", dialect_url)[0] == 2
    assert told("export", "a", "--redact", "--url", dialect_url)[0] == 2
    code, message = told("export", "unknown", "--html", "--url", dialect_url)
    assert (code, "unknown" in message) == (1, True)


def test_a_file_that_fails_is_not_left_behind(dialect_url: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert told("export", "unknown", "--html", "--output", str(file), "--url", dialect_url)[0] == 1
    assert not file.exists()
