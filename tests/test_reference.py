"""The reference in docs/reference has every public name, and nothing that is gone."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import cpstore

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "api.md"

WHOLE = ("cpstore.alembic", "cpstore.server")
"""Modules of which the page takes all that is public."""

PARTS = ("cpstore.migrations", "cpstore.transfer")
"""Modules of which it names each thing."""

NOT_FOR_APPLICATIONS = {
    *("amigrate", "explain", "include_name", "migrate", "scripts", "take_turn"),
}
"""What `cpstore.migrations` gives to the saver and to our own `env.py`."""


def directives(kind: str) -> list[str]:
    """The objects that directives of a kind name."""
    return re.findall(rf"^\.\. auto(?:{kind}):: (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def named() -> list[str]:
    return directives("class|exception|function|data")


def test_nothing_is_there_twice() -> None:
    assert len(named()) == len(set(named()))


def test_every_public_name_is_in_the_reference() -> None:
    top = {name.removeprefix("cpstore.") for name in named() if name.count(".") == 1}
    assert top == set(cpstore.__all__)


@pytest.mark.parametrize("module", PARTS)
def test_every_public_name_of_a_module_is_in_the_reference(module: str) -> None:
    found = {name.removeprefix(f"{module}.") for name in named() if name.startswith(f"{module}.")}
    assert found == set(importlib.import_module(module).__all__) - NOT_FOR_APPLICATIONS


@pytest.mark.parametrize("module", WHOLE)
def test_a_whole_module_is_in_the_reference(module: str) -> None:
    assert f".. automodule:: {module}\n   :members:\n" in PAGE.read_text(encoding="utf-8")


def test_the_reference_of_commands_is_made_of_all_of_them() -> None:
    text = PAGE.with_name("cli.md").read_text(encoding="utf-8")
    assert ".. click:: cpstore.cli:main\n   :prog: cpstore\n   :nested: full\n" in text


@pytest.mark.parametrize("name", named())
def test_what_is_named_has_a_docstring(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    assert name == "cpstore.transfer.Database" or (found.__doc__ or "").strip()
