"""Nothing is destroyed before somebody has seen what, and said yes."""

from __future__ import annotations

import sys
from typing import Any

import click

from cpstore.cli.output import Form, note, show_document, show_text
from cpstore.plans import Removed
from cpstore.reports import counted, size_text

__all__ = ["agreed", "can_ask", "consenting", "removed_document", "removed_text", "show_removed"]


def consenting(command: Any) -> Any:
    """Give a command the options `--yes` and `--dry-run`."""
    yes = click.option("--yes", is_flag=True, help="Do not ask.")
    return click.option("--dry-run", is_flag=True, help="Only say what would be done.")(yes(command))


def can_ask() -> bool:
    """Tell whether somebody sits at a terminal."""
    return sys.stdin.isatty()


def agreed(told: str, *, yes: bool) -> bool:
    """Say what is about to be done, and ask whether it may.

    Raises:
        ClickException: Nobody can be asked.
    """
    note(told)
    if yes:
        return True
    if not can_ask():
        raise click.ClickException("Nobody can be asked here: pass --yes, or --dry-run to see what goes.")
    # Not click.confirm: some versions of it write a part of the question to stdout.
    click.echo("Go on? [y/N]: ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def removed_text(removed: Removed, verb: str) -> str:
    """Give what a deletion takes, or took, for people."""
    counts = (
        (removed.threads, "thread"),
        (removed.checkpoints, "checkpoint"),
        (removed.blobs, "value"),
        (removed.writes, "write"),
    )
    told = ", ".join(counted(*each) for each in counts)
    return f"{verb} {told}: {size_text(removed.bytes)}."


def removed_document(removed: Removed, *, dry_run: bool) -> dict[str, Any]:
    """Give the document of what a deletion takes, or took."""
    names = ("threads", "checkpoints", "blobs", "writes", "bytes")
    return {"dry_run": dry_run, **{name: getattr(removed, name) for name in names}}


def show_removed(removed: Removed, form: Form, *, dry_run: bool) -> None:
    """Print it."""
    if form == "text":
        show_text(removed_text(removed, "Would delete" if dry_run else "Deleted"))
    else:
        show_document(removed_document(removed, dry_run=dry_run), form)
