"""The rooms and their doors: who may import whom, how large things may be, who may name a database."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "cpstore"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_alembic" not in path.parts)

ABOVE = {"langgraph", "langchain_core"}
ROOMS: dict[str, set[str]] = {
    # room: what it may import, of cpstore's rooms and of the libraries that are fenced
    "errors": set(),
    "pieces": set(),
    "records": {"errors", "pieces"},
    "filters": set(),
    "metadata": set(),
    "structure": set(),
    "plans": {"structure"},
    "storage": {"structure"},
    "times": set(),
    "summaries": {"times"},
    "addresses": {"errors", "records", *ABOVE},
    "retention": {"addresses", "metadata", "records", "times"},
    "serde": {"errors", "pieces", "ormsgpack", *ABOVE},
    "places": {"errors", "records", "serde", *ABOVE},
    "appends": {"pieces", "serde"},
    "lists": {"appends", "errors", "pieces", "places", "records", "serde", *ABOVE},
    "codec": {"addresses", "appends", "errors", "lists", "metadata", "places", "records", "serde", *ABOVE},
    "documents": {"addresses", "codec", "errors", "metadata", "places", "records", "serde", *ABOVE},
    "queries": {"addresses", "metadata", "records", *ABOVE},
    "names": {"errors"},
    "models": {"errors", "names", "sqlalchemy"},
    "dialects": {"errors", "models", "records", "sqlalchemy"},
    "ops": {
        "dialects",
        "errors",
        "filters",
        "pieces",
        "plans",
        "records",
        "storage",
        "structure",
        "summaries",
        "sqlalchemy",
    },
    "engines": {"dialects", "errors", "sqlalchemy"},
    "migrations": {"dialects", "engines", "errors", "models", "names", "sqlalchemy", "alembic"},
    "alembic": {"models", "names"},
    "foreign": {"models", "sqlalchemy"},
    "doors": {"dialects", "engines", "errors", "models", "ops", "sqlalchemy"},
    "saver": {
        *("addresses", "appends", "codec", "doors", "engines", "errors", "lists", "metadata", "models"),
        *("names", "ops", "places"),
        *("plans", "queries", "records", "retention", "serde", "storage", "summaries", "sqlalchemy", *ABOVE),
    },
    "server": {"errors", "saver"},
    "archive": {
        *("addresses", "dialects", "doors", "errors", "ops", "saver", "transfer", "sqlalchemy"),
    },
    "reports": {"records", "serde", "storage", "summaries", "times", *ABOVE},
    "trees": {"reports", "summaries"},
    "web": {
        *("engines", "errors", "reports", "saver", "serde", "summaries", "trees", "sqlalchemy", *ABOVE),
    },
    "transfer": {
        *("addresses", "dialects", "documents", "doors", "engines", "errors", "foreign", "migrations"),
        *("models", "ops", "places", "records", "saver", "sqlalchemy", *ABOVE),
    },
    "cli": {
        *("archive", "engines", "errors", "migrations", "names", "plans", "reports", "saver", "serde"),
        *("summaries", "transfer", "trees", "web", "sqlalchemy", *ABOVE),
    },
    "__main__": {"cli"},
    "": {"engines", "errors", "metadata", "models", "plans", "saver", "serde", "storage", "summaries"},
}
FENCED = {"alembic", "sqlalchemy", "ormsgpack", *ABOVE}

NAMES_DATABASES = {"dialects", "engines", "models"}
DATABASES = {"sqlite", "postgresql"}

LINES_OF_A_FILE = 350
LINES_OF_A_FUNCTION = 50


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def room_of(path: Path) -> str:
    name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if name == "__init__" else name


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "cpstore":
            yield from (f"cpstore.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def neighbours(path: Path) -> set[str]:
    names = {
        name.split(".")[1] if name.startswith("cpstore.") else name.split(".")[0]
        for name in imported(parsed(path))
    }
    return (names & (set(ROOMS) | FENCED)) - {room_of(path)}


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


def bare_strings(tree: ast.Module) -> set[str]:
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_what_lies_below_it(path: Path) -> None:
    assert neighbours(path) <= ROOMS[room_of(path)]


def test_every_room_is_on_the_plan() -> None:
    assert {room_of(path) for path in MODULES} == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_database_is_named_only_where_databases_differ(path: Path) -> None:
    if room_of(path) in NAMES_DATABASES:
        return
    tree = parsed(path)
    assert not bare_strings(tree) & DATABASES
    assert not any(name.startswith("sqlalchemy.dialects") for name in imported(tree))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_sql_is_made_of_text(path: Path) -> None:
    """Raw text is for migrations and pragmas; a key of a caller can never reach it."""
    from_sqlalchemy = [
        alias.name
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy")
        for alias in node.names
    ]
    assert "text" not in from_sqlalchemy


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_are_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LINES_OF_A_FILE
    assert {name: lines for name, lines in functions(path) if lines > LINES_OF_A_FUNCTION} == {}


def test_most_functions_are_very_small() -> None:
    lengths = [lines for path in MODULES for _, lines in functions(path)]
    assert median(lengths) <= 9
    assert quantiles(lengths, n=10)[-1] <= 32


def test_migrations_hide_no_library() -> None:
    """`alembic/__init__.py` would be imported in place of Alembic, in every run from the repository."""
    assert not (ROOT / "alembic" / "__init__.py").exists()
