"""The pages of docs/ do what they say: their Python runs, each page in one module."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))


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


def run(code: str, page: Path, module: ModuleType) -> None:
    exec(compile(code, str(page), "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - our own pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, module: ModuleType) -> None:
    for code in blocks(page):
        run(code, page, module)


def test_there_are_pages() -> None:
    assert {"security.md", "values.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
