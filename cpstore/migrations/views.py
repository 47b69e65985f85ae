"""The two views for people, which a database has if somebody asked for them.

They are no step of the history: a database without them is complete, and whoever may not make them loses
nothing. A script that has to change what they show drops them, and an upgrade makes them again.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Connection, inspect

from cpstore import engines
from cpstore.dialects import CreateView, Dialect, DropView, View, views_of
from cpstore.errors import NotMigratedError
from cpstore.migrations.scripts import head
from cpstore.migrations.status import explanation, placed, status_of
from cpstore.migrations.steps import speak
from cpstore.names import Names, names_of

__all__ = ["create_on", "drop_on", "restore_on", "there", "views_sql"]


def create_on(connection: Connection, names: Names) -> None:
    """Make the views, in place of those that are there.

    Raises:
        CpstoreError: The tables are not there.
    """
    status, here = status_of(connection, names), placed(connection, names)
    sql = speak(connection.dialect.name, here)
    if len(status.tables) < len(sql.tables):
        raise explanation(status) or NotMigratedError
    if not sql.replaces_views:
        drop_on(connection, names)
    for view in _views(sql, here):
        connection.execute(CreateView(view))


def drop_on(connection: Connection, names: Names) -> None:
    """Drop those of the views that are there."""
    found, names = there(connection, names), placed(connection, names)
    for view in _views(speak(connection.dialect.name, names), names):
        if view.name in found:
            connection.execute(DropView(view))


def there(connection: Connection, names: Names) -> set[str]:
    """Give the names of those of the views that are there."""
    names = placed(connection, names)
    ours = {view.name for view in _views(speak(connection.dialect.name, names), names)}
    return ours & set(inspect(connection).get_view_names(schema=names.schema))


def restore_on(connection: Connection, names: Names, before: set[str]) -> None:
    """Make the views again, if they were there before an upgrade to the newest revision took them away."""
    if before - there(connection, names) and status_of(connection, names).revision == head():
        create_on(connection, names)


def views_sql(url: str | URL, *, drop: bool = False, schema: str | None = None, prefix: str = "") -> str:
    """Give the SQL that makes the views, for `psql` or `sqlite3`. No database is asked.

    Args:
        url: A URL that tells which database it is for; `postgresql://` and `sqlite://` are enough.
        drop: Give the SQL that drops them instead.
        schema: Where the tables are. All names are then qualified by it.
        prefix: What their names begin with, and so those of the views.

    Raises:
        UnsupportedDatabaseError: It is another database.
    """
    named, names = engines.normalise(url), names_of(schema, prefix)
    sql, dialect = speak(named.get_backend_name(), names), _dialect(named)
    views = _views(sql, names)
    dropped = [DropView(view) for view in views] if drop or not sql.replaces_views else []
    created = [] if drop else [CreateView(view) for view in views]
    return "".join(f"{element.compile(dialect=dialect)};\n" for element in [*dropped, *created])


def _views(sql: Dialect, names: Names) -> list[View]:
    return [view._replace(name=names.of(view.name)) for view in views_of(sql)]


def _dialect(url: URL) -> Any:
    kind: Any = url.get_dialect()
    return kind()
