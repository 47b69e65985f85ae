"""The command line: parse, call the public API, print."""

from __future__ import annotations

import click

from cpstore.cli.db import db
from cpstore.errors import CpstoreError

__all__ = ["main"]


class _OneLineErrors(click.Group):
    """Shows an error of cpstore as one line that says what to do, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except CpstoreError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_OneLineErrors)
@click.version_option(package_name="cpstore")
def main() -> None:
    """LangGraph checkpoints in your SQLAlchemy database."""


main.add_command(db)
