"""The README does what it says: its code runs, its commands are CI's, its versions are the package's."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import postgres
from tests.conftest import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

PLACEHOLDER = "user:password@localhost/app"
"""What stands in the README for the account, the address and the database of a PostgreSQL server."""

PROGRAMS = {
    "cpstore": ["-c", "from cpstore.cli import main; main(prog_name='cpstore')"],
    "alembic": ["-m", "alembic"],
}
"""How the README's programs are run by this very Python, whatever PATH has."""


def blocks(language: str) -> list[str]:
    """The README's code blocks in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def shell_lines(*programs: str) -> list[str]:
    """The lines of shell that begin with one of these programs."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line.split()[0] in programs]


def set_up_commands() -> list[str]:
    """The commands that do all the set-up on a fresh machine."""
    return shell_lines("python3")


def lower_bounds() -> list[tuple[str, str]]:
    """The package's requirements with their lowest versions."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    required = text[text.index("\ndependencies = [") : text.index("\n[project.scripts]")]
    return re.findall(r'"([a-z-]+)(?:\[\w+\])?>=([\d.]+)', required)


def run(arguments: list[str], folder: Path) -> str:
    """Run this Python in a folder, with the package under test, and return what was printed."""
    done = subprocess.run(
        # The README's engines live as long as their programs, which do not close them.
        [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def address(postgres_server: postgres.Server) -> Iterator[str]:
    """What to put in place of the placeholder: an empty database of this test."""
    with postgres.temporary_database(postgres_server.url) as url:
        yield text_of(url).partition("://")[2]


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_prints_what_its_comments_say(
    request: pytest.FixtureRequest, tmp_path: Path, number: int
) -> None:
    block = blocks("python")[number]
    expected = re.findall(r"^ *print\(.*\)  # (.+)$", block, re.MULTILINE)
    if PLACEHOLDER in block:
        block = block.replace(PLACEHOLDER, request.getfixturevalue("address"))
    program = tmp_path / "readme.py"
    program.write_text(block, encoding="utf-8")
    assert expected
    assert run([str(program)], tmp_path).splitlines() == expected


@pytest.mark.parametrize("word", [" create_engine(", " create_async_engine(", ".from_url("])
def test_python_is_there_for_each_kind_of_engine(word: str) -> None:
    assert any(word in block for block in blocks("python"))


@pytest.mark.parametrize("line", shell_lines(*PROGRAMS))
def test_each_migration_command_runs(tmp_path: Path, line: str) -> None:
    program, *arguments = shlex.split(line.replace("sqlite:///", f"sqlite:///{tmp_path}/"))
    run([*PROGRAMS[program], *arguments], ROOT if program == "alembic" else tmp_path)
    assert (tmp_path / "app.db").exists() != (" current " in line)  # which only looks


def test_ci_runs_both_set_up_commands() -> None:
    ci = [line.strip() for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()]
    assert len(set_up_commands()) == 2
    for command in set_up_commands():
        assert command in ci


def test_the_main_job_runs_on_postgresql_too() -> None:
    main_job = set_up_commands()[0].rpartition(" && ")[2]
    assert f"{main_job} --url postgresql://{PLACEHOLDER}" in shell_lines(".venv/bin/python")


@pytest.mark.parametrize(("name", "version"), lower_bounds())
def test_lowest_versions_are_the_packages_own(name: str, version: str) -> None:
    rows = [[cell.strip() for cell in row.split("|")] for row in README.splitlines() if row.startswith("|")]
    assert [row[2].split(",")[0] for row in rows if row[1].lower() == name] == [version]


@pytest.mark.parametrize(("name", "version"), lower_bounds())
def test_tox_tries_the_lowest_versions(name: str, version: str) -> None:
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    pinned = re.findall(rf"^    {name}(?:\[\w+\])?==([\d.]+)$", tox, re.MULTILINE)
    assert [one for one in pinned if f"{one}.".startswith(f"{version}.")] == pinned != []
