"""The pages of docs/ do what they say: their Python runs, each page in one module, and prints as told."""

from __future__ import annotations

import gc
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cpstore.cli import main
from tests import postgres
from tests.conftest import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))

PLACEHOLDER = "user:password@localhost/app"
"""What stands in a page for the account, the address and the database of a PostgreSQL server."""


def blocks(page: Path) -> list[str]:
    """The Python of a page, each block after as many empty lines as stand before it, for errors to name."""
    text = page.read_text(encoding="utf-8")
    return [
        "\n" * text.count("\n", 0, found.start(1)) + found.group(1)
        for found in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """A module to run a page in: its classes are found by their names, as those of a program are."""
    monkeypatch.chdir(tmp_path)
    made = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", made)
    yield made
    made.__dict__.clear()
    gc.collect()  # what a page left open is told of here, and not in another test


def run(code: str, page: Path, module: ModuleType) -> None:
    exec(compile(code, str(page), "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - our own pages


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.fixture
def address(postgres_server: postgres.Server) -> Iterator[str]:
    """What to put in place of the placeholder: an empty database of this test."""
    with postgres.temporary_database(postgres_server.url) as url:
        yield text_of(url).partition("://")[2]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_python_of_a_page_runs(
    page: Path, module: ModuleType, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    code = blocks(page)
    if any(PLACEHOLDER in block for block in code):
        address = request.getfixturevalue("address")
        code = [block.replace(PLACEHOLDER, address) for block in code]
    for block in code:
        run(block, page, module)
    expected = re.findall(r"^ *print\(.*\)  # (.+)$", "\n".join(code), re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == expected


def commands(page: Path) -> list[str]:
    """The lines of shell on a page that call cpstore, without what they are piped into."""
    shell = re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.partition(" | ")[0] for block in shell for line in block.splitlines()]
    return [line for line in lines if line.startswith("cpstore ")]


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in commands(page)}))
def test_commands_are_there_with_their_options(line: str) -> None:
    """With `--help` a command is parsed as it stands, and not run."""
    result = CliRunner().invoke(main, [*shlex.split(line, comments=True)[1:], "--help"])
    assert result.exit_code == 0, result.output


def test_there_are_pages() -> None:
    assert {"security.md", "values.md", "reference/api.md"} <= set(map(name_of, PAGES))


@pytest.mark.parametrize(("number", "lines"), [(0, 10), (1, 12)])
def test_a_newcomer_has_little_to_read(number: int, lines: int) -> None:
    """SQLite in 10 lines, PostgreSQL in 12."""
    block = blocks(DOCS / "start.md")[number]
    assert len([line for line in block.splitlines() if line.strip()]) <= lines


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
