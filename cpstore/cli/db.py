"""`cpstore db`: the tables of a database."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from cpstore import engines, migrations
from cpstore.cli.consent import agreed, consenting
from cpstore.cli.output import Form, formed, note, show_document, show_documents, show_table, show_text
from cpstore.cli.places import Place, looking, place_options, prefix_option, schema_option, url_option
from cpstore.migrations import State, Status
from cpstore.reports import StorageSum, size_text

__all__ = ["db"]

_EXIT_CODES = {State.CURRENT: 0, State.BEHIND: 3, State.EMPTY: 3, State.AHEAD: 4}
_NOT_OURS, _UNWELL = 5, 6


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
@formed
def current(url: str, schema: str | None, prefix: str, form: Form) -> None:
    """Print the revision that the database has."""
    _show(migrations.check(url, schema=schema, prefix=prefix), form)


@db.command()
@place_options
@formed
@click.pass_context
def check(context: click.Context, url: str, schema: str | None, prefix: str, form: Form) -> None:
    """Tell by the exit code how the database stands to this cpstore.

    0: current. 3: behind, or not migrated (run `cpstore db upgrade`). 4: ahead (written by a newer cpstore).
    5: not ours, or incomplete.
    """
    status = migrations.check(url, schema=schema, prefix=prefix)
    _show(status, form)
    context.exit(_EXIT_CODES.get(status.state, _NOT_OURS))


@db.command()
@place_options
@consenting
@click.argument("revision")
def downgrade(url: str, schema: str | None, prefix: str, yes: bool, dry_run: bool, revision: str) -> None:
    """Undo migrations down to REVISION; `base` drops the tables with all that is in them."""
    engines.check_file(url)
    before = migrations.check(url, schema=schema, prefix=prefix)
    total = asyncio.run(_total(Place(url, schema, prefix))) if before.revision else {}
    loss = "all of it is dropped" if revision == "base" else "no row is deleted"
    told = (
        f"This goes from {before.revision or before.state.value} to {revision}. There are"
        f" {total.get('threads', 0):,} threads, {total.get('checkpoints', 0):,} checkpoints,"
        f" {size_text(total.get('bytes', 0))}: {loss}."
    )
    if dry_run:
        show_text(told)
    elif agreed(told, yes=yes):
        migrations.downgrade(url, revision, schema=schema, prefix=prefix)
        _show(migrations.check(url, schema=schema, prefix=prefix))
    else:
        note("Nothing was changed.")


async def _total(place: Place) -> dict[str, Any]:
    total = StorageSum()
    async with looking(place) as saver:
        async for one in saver.astorage():
            total.add(one)
    return total.document()


@db.command()
@place_options
@formed
@click.option("--timeout", default=60.0, show_default=True, metavar="SECONDS", help="How long to wait.")
@click.pass_context
def wait(
    context: click.Context, url: str, schema: str | None, prefix: str, form: Form, timeout: float
) -> None:
    """Wait until the database answers and is current. The exit codes are those of check.

    1: it did not answer in time.
    """
    status = migrations.wait_for(url, timeout=timeout, schema=schema, prefix=prefix)
    _show(status, form)
    context.exit(_EXIT_CODES.get(status.state, _NOT_OURS))


@db.command()
@place_options
@formed
@click.pass_context
def doctor(context: click.Context, form: Form, url: str, schema: str | None, prefix: str) -> None:
    """Tell what is right with the database and what is wrong.

    0: nothing is wrong. 6: something is.
    """
    findings = migrations.examine(url, schema=schema, prefix=prefix)
    if form == "text":
        rows = [["" if one.problem is None else "!", one.name, one.value] for one in findings]
        show_table(("", "WHAT", "HOW"), rows)
        for one in findings:
            if one.problem is not None:
                note(f"! {one.name}: {one.problem}")
    else:
        show_documents([one._asdict() for one in findings], form)
    context.exit(_UNWELL if any(one.problem for one in findings) else 0)


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


@db.command()
@place_options
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


def _show(status: Status, form: Form = "text") -> None:
    if form != "text":
        show_document({**status._asdict(), "state": status.state.value, "tables": list(status.tables)}, form)
        return
    found = status.revision or status.state.value
    if status.revision == status.head:
        click.echo(f"{found} (newest)")
    elif status.state in (State.EMPTY, State.BEHIND):
        click.echo(f"{found} (newest is {status.head})")
    else:
        click.echo(f"{found} ({status.state.value}; newest is {status.head})")
