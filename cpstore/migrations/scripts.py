"""The migration scripts: where they are, and how Alembic is told of a database."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from alembic.config import Config
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection

from cpstore.errors import UnknownRevisionError
from cpstore.models import models_of
from cpstore.names import Names

__all__ = ["config", "head", "include_name", "known", "resolved", "revisions_after", "scripts"]


def scripts() -> Path:
    """Give the folder of the migration scripts: inside an installed wheel, or beside the package."""
    package = Path(__file__).parent.parent
    installed = package / "_alembic"
    return installed if installed.is_dir() else package.parent / "alembic"


def config(
    connection: Connection | None = None,
    names: Names | None = None,
    *,
    url: str | None = None,
    output: TextIO | None = None,
) -> Config:
    """Give an Alembic config for our scripts.

    Args:
        connection: What they are to run on.
        names: How the tables are named there.
        url: The database that SQL is written for, without a connection.
        output: Where it is written to.
    """
    attributes = {"connection": connection, "names": names or Names(), "url": url}
    made = Config(attributes=attributes, output_buffer=output)
    made.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    return made


def include_name(names: Names) -> Any:
    """Give what lets Alembic look at our own tables only: others in the database are not ours to compare."""
    ours = {table.name for table in models_of(names).tables}

    def included(name: str | None, kind: str, _parents: Any) -> bool:
        return name == names.schema if kind == "schema" else kind != "table" or name in ours

    return included


def head() -> str:
    """Give the newest revision that this cpstore knows."""
    return known()[-1]


@cache
def known() -> list[str]:
    """Give all revisions that this cpstore knows, oldest first."""
    return [script.revision for script in _walked()][::-1]


def resolved(revision: str) -> str:
    """Give the revision that is meant: itself, or the newest for `head`; `base`, which means none, stays.

    Raises:
        UnknownRevisionError: There is none.
    """
    if revision != "base" and revision not in (*known(), "head"):
        names = ", ".join(known())
        raise UnknownRevisionError(f"This cpstore knows no revision {revision!r}; it knows: {names}, head.")
    return head() if revision == "head" else revision


def revisions_after(revision: str | None) -> Iterator[Script]:
    """Give the scripts that a database of a revision has not run yet, newest first."""
    for script in _walked():
        if script.revision == revision:
            return
        yield script


def _walked() -> Iterator[Script]:
    return ScriptDirectory.from_config(config()).walk_revisions()
