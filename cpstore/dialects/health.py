"""How a database fares: its settings, the sizes of the tables, the rights on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection

from cpstore.models import Tables

__all__ = ["Finding", "Health"]


class Finding(NamedTuple):
    """Something that was looked at.

    Attributes:
        name: What.
        value: How it is.
        problem: What is wrong with that, and what to do; None: nothing.
    """

    name: str
    value: str
    problem: str | None = None


class Health:
    """The questions; each database overrides all of them, because there is no standard way to ask."""

    tables: Tables

    def settings(self, connection: Connection) -> Iterator[Finding]:
        """Look at the version of the database, and at what decides whether it loses what it has stored."""
        raise NotImplementedError

    def relations(self, connection: Connection) -> Iterator[Finding]:
        """Look at the tables and their indexes, which are there, or should be."""
        raise NotImplementedError

    def rights(self, connection: Connection, version_table: str) -> Iterator[Finding]:
        """Look at what who is connected may do."""
        raise NotImplementedError
