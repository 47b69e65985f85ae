"""`cpstore db`: the tables of a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from cpstore import migrations
from cpstore.migrations import State, Status

__all__ = ["db"]

_EXIT_CODES = {State.CURRENT: 0, State.BEHIND: 3, State.EMPTY: 3, State.AHEAD: 4}
_NOT_OURS = 5


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorated(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


_url = click.option(
    "--url",
    envvar="CPSTORE_DATABASE_URL",
    required=True,
    show_envvar=True,
    help="The database, such as sqlite:///chat.db or postgresql://user@host/name.",
)
_schema = click.option(
    "--schema", envvar="CPSTORE_SCHEMA", show_envvar=True, help="The schema of the tables."
)
_prefix = click.option(
    "--prefix",
    envvar="CPSTORE_PREFIX",
    default="",
    show_envvar=True,
    help="What the names of the tables begin with.",
)
_place = _options(_url, _schema, _prefix)


@click.group()
def db() -> None:
    """The tables of a database."""


@db.command()
@_place
@click.argument("revision", default="head")
def upgrade(url: str, schema: str | None, prefix: str, revision: str) -> None:
    """Migrate to REVISION; without one, to the newest."""
    migrations.upgrade(url, revision, schema=schema, prefix=prefix)
    _show(migrations.check(url, schema=schema, prefix=prefix))


@db.command()
@_place
def current(url: str, schema: str | None, prefix: str) -> None:
    """Print the revision that the database has."""
    _show(migrations.check(url, schema=schema, prefix=prefix))


@db.command()
@_place
@click.pass_context
def check(context: click.Context, url: str, schema: str | None, prefix: str) -> None:
    """Tell by the exit code how the database stands to this cpstore.

    0: current. 3: behind, or not migrated (run `cpstore db upgrade`). 4: ahead (written by a newer cpstore).
    5: not ours, or incomplete.
    """
    status = migrations.check(url, schema=schema, prefix=prefix)
    _show(status)
    context.exit(_EXIT_CODES.get(status.state, _NOT_OURS))


@db.command()
@_place
@click.argument("revision")
def stamp(url: str, schema: str | None, prefix: str, revision: str) -> None:
    """Write down that the database is at REVISION, without migrating it."""
    migrations.stamp(url, revision, schema=schema, prefix=prefix)
    _show(migrations.check(url, schema=schema, prefix=prefix))


@db.command()
@_url
@_schema
def adopt(url: str, schema: str | None) -> None:
    """Take over the tables of langgraph-checkpoint-postgres in place, and migrate to the newest revision."""
    migrations.adopt(url, schema=schema)
    _show(migrations.check(url, schema=schema))


@db.command()
@_place
@click.option("--from", "start", help="The revision that the database has; without it, none.")
@click.argument("revision", default="head")
def sql(url: str, schema: str | None, prefix: str, start: str | None, revision: str) -> None:
    """Print the SQL of a migration, for psql or sqlite3. Of the URL only the kind of database counts."""
    click.echo(migrations.sql(url, revision, start=start, schema=schema, prefix=prefix), nl=False)


@db.command()
@_schema
@_prefix
@click.option("--role", required=True, help="The role of the application.")
def grants(schema: str | None, prefix: str, role: str) -> None:
    """Print the SQL that lets a PostgreSQL role use the tables, and not change them."""
    click.echo(migrations.grants(role, schema=schema, prefix=prefix), nl=False)


@db.command()
@_place
@click.option("--drop", is_flag=True, help="Drop them instead.")
@click.option("--sql", "as_sql", is_flag=True, help="Print the SQL, and ask no database.")
def views(url: str, schema: str | None, prefix: str, drop: bool, as_sql: bool) -> None:
    """Make two views for psql and its like: cpstore_threads and cpstore_checkpoints. Nothing needs them."""
    if as_sql:
        click.echo(migrations.views_sql(url, drop=drop, schema=schema, prefix=prefix), nl=False)
    elif drop:
        migrations.drop_views(url, schema=schema, prefix=prefix)
    else:
        migrations.create_views(url, schema=schema, prefix=prefix)


def _show(status: Status) -> None:
    found = status.revision or status.state.value
    if status.revision == status.head:
        click.echo(f"{found} (newest)")
    elif status.state in (State.EMPTY, State.BEHIND):
        click.echo(f"{found} (newest is {status.head})")
    else:
        click.echo(f"{found} ({status.state.value}; newest is {status.head})")
