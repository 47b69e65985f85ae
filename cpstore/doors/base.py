"""What every door can do."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from cpstore.dialects import Dialect, Mode
from cpstore.errors import CpstoreError
from cpstore.models import Models, Tables
from cpstore.ops import Unit

__all__ = ["EXPLAIN", "Door", "migrations"]

P = ParamSpec("P")
T = TypeVar("T")


class Door(Protocol):
    """What the saver needs to know of a database connection: two ways to run one unit of work."""

    @property
    def models(self) -> Models:
        """The models of the tables that it was made for."""

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work."""

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Async version of :meth:`run`."""

    def on(self, tables: Tables) -> Door:
        """Give a door to other tables of the same database."""

    def migrate(self) -> None:
        """Bring the database to the newest revision."""

    async def amigrate(self) -> None:
        """Async version of :meth:`migrate`."""

    def close(self) -> None:
        """Dispose what a sync call can dispose."""

    async def aclose(self) -> None:
        """Dispose everything."""


def migrations() -> ModuleType:
    """Import :mod:`cpstore.migrations` late: Alembic is large, and a migrated database never needs it."""
    return import_module("cpstore.migrations")


def _explain(connection: Connection, _sql: Dialect, models: Models) -> CpstoreError | None:
    try:
        reason: CpstoreError | None = migrations().explain(connection, models)
    except DBAPIError:  # who asks may not have the right to look: the first error is better than this one
        return None
    return reason


EXPLAIN: Unit[[Models], CpstoreError | None] = Unit(Mode.READ, _explain)
"""Looks why a table or a column was not found."""
