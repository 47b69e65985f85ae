"""The door to two engines on one database."""

from __future__ import annotations

from typing import ParamSpec, TypeVar

from cpstore.doors.async_engine import AsyncEngineDoor
from cpstore.doors.engine import EngineDoor
from cpstore.models import Models, Tables
from cpstore.ops import Unit

__all__ = ["TwinDoor"]

P = ParamSpec("P")
T = TypeVar("T")


class TwinDoor:
    """An engine for sync calls and another for async calls, on the same database."""

    def __init__(self, sync: EngineDoor, asynchronous: AsyncEngineDoor) -> None:
        self._sync = sync
        self._async = asynchronous

    @property
    def models(self) -> Models:
        """The models of their tables."""
        return self._sync.models

    def run(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work on the sync engine."""
        return self._sync.run(unit, *args, **kwargs)

    async def arun(self, unit: Unit[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a unit of work on the async engine."""
        return await self._async.arun(unit, *args, **kwargs)

    def on(self, tables: Tables) -> TwinDoor:
        """Give a door to other tables of the same database."""
        return TwinDoor(self._sync.on(tables), self._async.on(tables))

    def migrate(self) -> None:
        """Bring the database to the newest revision."""
        self._sync.migrate()

    async def amigrate(self) -> None:
        """Async version of :meth:`migrate`."""
        await self._async.amigrate()

    def close(self) -> None:
        """Dispose the sync engine."""
        self._sync.close()

    async def aclose(self) -> None:
        """Dispose both engines."""
        await self._sync.aclose()
        await self._async.aclose()
