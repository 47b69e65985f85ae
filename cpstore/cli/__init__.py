"""The command line: parse, call the public API, print."""

from __future__ import annotations

import io
import sys

import click
from sqlalchemy.exc import DBAPIError

from cpstore.cli.archives import export, import_
from cpstore.cli.changing import copy, delete, gc, prune
from cpstore.cli.db import db
from cpstore.cli.reading import history, threads, tree, writes
from cpstore.cli.states import diff, show
from cpstore.cli.stats import stats
from cpstore.cli.transfer import transfer
from cpstore.cli.web import web
from cpstore.errors import CpstoreError
from cpstore.reports import one_line

__all__ = ["main"]


class _OneLineErrors(click.Group):
    """Shows an error of cpstore or of the database as one line, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # who read us wants no more, as `head`: click ends quietly
        except (CpstoreError, ValueError) as error:
            raise click.ClickException(one_line(str(error))) from error
        except (DBAPIError, OSError) as error:  # asyncpg cannot connect: an OSError
            told = str(getattr(error, "orig", error)).strip() or type(error).__name__
            raise click.ClickException(one_line(told.splitlines()[0])) from error


@click.group(cls=_OneLineErrors)
@click.version_option(package_name="cpstore")
def main() -> None:
    """LangGraph checkpoints in your SQLAlchemy database."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an encoding may lack a character of a value


for command in (
    *(copy, db, delete, diff, export, gc, history, import_, prune, show),
    *(stats, threads, transfer, tree, web, writes),
):
    main.add_command(command)
