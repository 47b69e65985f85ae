"""The example of the README does what the README says, on both dialects."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.engine import make_url

import cpstore

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

EXAMPLE = Path(__file__).parent.parent / "examples" / "survive.py"
PACKAGE_FOLDER = Path(cpstore.__file__).parent.parent  # so that the example uses the package under test


def run_example(url: URL | str, folder: Path) -> str:
    """Run the example as a user does, and return what it printed."""
    text = make_url(url).render_as_string(hide_password=False)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), "--url", text],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGE_FOLDER)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def tree_of(story: str) -> list[str]:
    """The drawn history as steps and sources, without what differs from run to run."""
    return re.findall(r"\* step +(-?\d+ +\w+).*", story)


def test_example_survives_its_kill(dialect_url: URL | str, tmp_path: Path) -> None:
    story = run_example(dialect_url, tmp_path)
    assert "finished and saved: flights, hotels; still running: weather" in story
    assert re.search(r"killed process \d+ with SIGKILL \(exit status -9\)", story)
    assert "ran again: only weather\n" in story
    assert re.findall(r"<== head: (\w+)", story) == ["Lisbon", "Oslo"]
    assert len(tree_of(story)) == 10
    assert len(story.splitlines()) < 45


def test_example_runs_again_on_the_same_database(dialect_url: URL | str, tmp_path: Path) -> None:
    first, second = (run_example(dialect_url, tmp_path) for _ in range(2))
    assert tree_of(first) == tree_of(second)
