"""docs/tables.md and docs/views.md say what is in the database: columns, types, keys, indexes, on both."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine, inspect, text

from cpstore import migrations

if TYPE_CHECKING:
    from tests.ways import Dialect

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "tables.md").read_text(encoding="utf-8")
VIEWS = (DOCS / "views.md").read_text(encoding="utf-8")

COLUMNS = {
    "postgresql": (
        "SELECT column_name, data_type"
        " || coalesce('(' || character_maximum_length || ')', '')"
        " || coalesce(' COLLATE \"' || collation_name || '\"', ''),"
        " is_nullable = 'YES', regexp_replace(column_default, '::.*', '')"
        " FROM information_schema.columns WHERE table_name = :name ORDER BY ordinal_position"
    ),
    "sqlite": 'SELECT name, type, "notnull" = 0, dflt_value FROM pragma_table_info(:name)',
}

INDEXES = {
    "postgresql": (
        "SELECT relname, array_to_string(ARRAY("
        "SELECT pg_get_indexdef(indexrelid, n, true) FROM generate_series(1, indnatts) n), ', ')"
        " FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
        " WHERE relname LIKE 'checkpoint%' AND NOT indisprimary"
    ),
    "sqlite": (
        "SELECT name, substr(sql, instr(sql, '(') + 1, length(sql) - instr(sql, '(') - 1)"
        " FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ),
}


def sections(page: str = PAGE) -> dict[str, str]:
    """A page's sections about tables, by the names of these."""
    parts = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    return {part[1 : part.index("`", 1)]: part for part in parts if part.startswith("`")}


def rows(part: str) -> list[list[str]]:
    """The rows of the one table in a part of the page."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in part.splitlines()
        if line.startswith("|")
    ]
    return cells[2:]


def code(cell: str) -> str:
    """What stands in a cell as code; nothing in an empty one."""
    return cell.strip("`")


def described(engine: Engine, dialect: Dialect, table: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        found = connection.execute(text(COLUMNS[dialect]), {"name": table}).all()
    return [(name, kind, bool(null), default or "") for name, kind, null, default in found]


def test_the_page_has_all_tables(database: Engine) -> None:
    assert set(sections()) == set(inspect(database).get_table_names())


@pytest.mark.parametrize("table", sections())
def test_columns_are_those_of_the_database(database: Engine, dialect: Dialect, table: str) -> None:
    kind = {"postgresql": 1, "sqlite": 2}[dialect]
    told = [
        (code(row[0]), code(row[kind]), {"yes": True, "no": False}[row[3]], code(row[4]))
        for row in rows(sections()[table])
    ]
    assert told == described(database, dialect, table)


@pytest.mark.parametrize("table", sections())
def test_keys_are_those_of_the_database(database: Engine, table: str) -> None:
    ((name, columns),) = re.findall(r"^Primary key: `(\w+)` \((.*)\)$", sections()[table], re.MULTILINE)
    key = inspect(database).get_pk_constraint(table)
    assert (key["name"], key["constrained_columns"]) == (name, re.findall(r"\w+", columns))
    assert inspect(database).get_foreign_keys(table) == []


def test_indexes_are_those_of_the_database(database: Engine, dialect: Dialect) -> None:
    part = PAGE[PAGE.index("## Indexes") : PAGE.index("## What a type says")]
    told = {code(row[0]): code(row[{"postgresql": 1, "sqlite": 2}[dialect]]) for row in rows(part)}
    with database.connect() as connection:
        assert told == {row[0]: row[1] for row in connection.execute(text(INDEXES[dialect]))}


@pytest.mark.parametrize("view", sections(VIEWS))
def test_columns_of_views_are_those_of_the_database(database: Engine, dialect: Dialect, view: str) -> None:
    migrations.create_views(database)
    told, found = rows(sections(VIEWS)[view]), described(database, dialect, view)
    assert [code(row[0]) for row in told] == [row[0] for row in found]
    if dialect == "postgresql":  # on SQLite, a column that is computed has no type
        assert [code(row[1]) for row in told] == [row[1].split(" COLLATE")[0] for row in found]


def test_the_page_has_all_views(database: Engine) -> None:
    migrations.create_views(database)
    assert set(sections(VIEWS)) == set(inspect(database).get_view_names())
