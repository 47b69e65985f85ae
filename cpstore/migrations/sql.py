"""SQL for people who run it themselves: the migrations, and the rights that a role needs."""

from __future__ import annotations

from io import StringIO
from typing import Any

from alembic import command
from sqlalchemy import URL

from cpstore import engines
from cpstore.dialects import PostgreSQL
from cpstore.migrations.scripts import config, resolved
from cpstore.migrations.steps import one_at_a_time, speak
from cpstore.models import models_of
from cpstore.names import names_of

__all__ = ["grants", "sql"]


def sql(
    url: str | URL,
    revision: str = "head",
    *,
    start: str | None = None,
    schema: str | None = None,
    prefix: str = "",
) -> str:
    """Give the SQL of a migration, for `psql` or `sqlite3`. No database is asked.

    Args:
        url: A URL that tells which database it is for; `postgresql://` and `sqlite://` are enough.
        revision: The revision to reach.
        start: The revision that the database has; None: it has none.
        schema: Where the tables are to be. All names are then qualified by it.
        prefix: What their names begin with.

    Raises:
        UnsupportedDatabaseError: It is another database.
        UnknownRevisionError: This cpstore knows no such revision.
    """
    named, names, output = engines.normalise(url), names_of(schema, prefix), StringIO()
    made = config(names=names, url=str(named), output=output)
    steps = f"{resolved(start)}:{resolved(revision)}" if start else resolved(revision)
    with one_at_a_time:
        command.upgrade(made, steps, sql=True)
    creation = None if start else speak(named.get_backend_name(), names).create_schema
    dialect: Any = named.get_dialect()
    first = "" if creation is None else f"{creation.compile(dialect=dialect())};\n\n"
    return first + output.getvalue()


def grants(role: str, *, schema: str | None = None, prefix: str = "") -> str:
    """Give the SQL that lets a PostgreSQL role use the tables, and not change them.

    Args:
        role: The role of the application.
        schema: Where the tables are; None: where the connection looks for them.
        prefix: What their names begin with.
    """
    names = names_of(schema, prefix)
    return PostgreSQL(models_of(names).tables).grants(role, names.version_table)
