"""`cpstore db`: the tables of a database."""

from __future__ import annotations

import click

from cpstore import migrations
from cpstore.cli.places import place_options, prefix_option, schema_option, url_option
from cpstore.migrations import State, Status

__all__ = ["db"]

_EXIT_CODES = {State.CURRENT: 0, State.BEHIND: 3, State.EMPTY: 3, State.AHEAD: 4}
_NOT_OURS = 5


@click.group()
def db() -> None:
    """The tables of a database."""


@db.command()
@place_options
@click.argument("revision", default="head")
def upgrade(url: str, schema: str | None, prefix: str, revision: str) -> None:
    """Migrate to REVISION; without one, to the newest."""
    migrations.upgrade(url, revision, schema=schema, prefix=prefix)
    _show(migrations.check(url, schema=schema, prefix=prefix))


@db.command()
@place_options
def current(url: str, schema: str | None, prefix: str) -> None:
    """Print the revision that the database has."""
    _show(migrations.check(url, schema=schema, prefix=prefix))


@db.command()
@place_options
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
@place_options
@click.argument("revision")
def stamp(url: str, schema: str | None, prefix: str, revision: str) -> None:
    """Write down that the database is at REVISION, without migrating it."""
    migrations.stamp(url, revision, schema=schema, prefix=prefix)
    _show(migrations.check(url, schema=schema, prefix=prefix))


@db.command()
@url_option
@schema_option
def adopt(url: str, schema: str | None) -> None:
    """Take over the tables of langgraph-checkpoint-postgres in place, and migrate to the newest revision."""
    migrations.adopt(url, schema=schema)
    _show(migrations.check(url, schema=schema))


@db.command()
@place_options
@click.option("--from", "start", help="The revision that the database has; without it, none.")
@click.argument("revision", default="head")
def sql(url: str, schema: str | None, prefix: str, start: str | None, revision: str) -> None:
    """Print the SQL of a migration, for psql or sqlite3. Of the URL only the kind of database counts."""
    click.echo(migrations.sql(url, revision, start=start, schema=schema, prefix=prefix), nl=False)


@db.command()
@schema_option
@prefix_option
@click.option("--role", required=True, help="The role of the application.")
def grants(schema: str | None, prefix: str, role: str) -> None:
    """Print the SQL that lets a PostgreSQL role use the tables, and not change them."""
    click.echo(migrations.grants(role, schema=schema, prefix=prefix), nl=False)


def _show(status: Status) -> None:
    found = status.revision or status.state.value
    if status.revision == status.head:
        click.echo(f"{found} (newest)")
    elif status.state in (State.EMPTY, State.BEHIND):
        click.echo(f"{found} (newest is {status.head})")
    else:
        click.echo(f"{found} ({status.state.value}; newest is {status.head})")
