"""The command line: parse, call the public API, print."""

from __future__ import annotations

import click
from sqlalchemy.exc import DBAPIError

from cpstore.cli.db import db
from cpstore.cli.transfer import transfer
from cpstore.errors import CpstoreError

__all__ = ["main"]


class _OneLineErrors(click.Group):
    """Shows an error of cpstore or of the database as one line, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except CpstoreError as error:
            raise click.ClickException(str(error)) from error
        except (DBAPIError, OSError) as error:  # asyncpg cannot connect: an OSError
            told = str(getattr(error, "orig", error)).strip() or type(error).__name__
            raise click.ClickException(told.splitlines()[0]) from error


@click.group(cls=_OneLineErrors)
@click.version_option(package_name="cpstore")
def main() -> None:
    """LangGraph checkpoints in your SQLAlchemy database."""


main.add_command(db)
main.add_command(transfer)
