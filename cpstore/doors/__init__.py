"""Doors to the database: take a connection, run one unit of work, give the connection back.

All that differs between sync and async, and between engines, is here. A unit runs on a sync connection
behind either door: an async engine gives one through `run_sync`, which costs no more than awaits written by
hand. Nothing is held between two calls.
"""

from __future__ import annotations

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore.dialects import dialect_for
from cpstore.doors.async_engine import AsyncEngineDoor
from cpstore.doors.base import Door
from cpstore.doors.engine import EngineDoor
from cpstore.doors.twin import TwinDoor
from cpstore.engines import Engines
from cpstore.errors import ConfigurationError
from cpstore.models import Models

__all__ = ["Door", "door_of"]


def door_of(engine: Engine | AsyncEngine | Engines, models: Models) -> Door:
    """Give the door to an engine, or to two engines on one database."""
    if isinstance(engine, Engine):
        return EngineDoor(engine, dialect_for(engine.dialect.name, models.tables), models)
    if isinstance(engine, AsyncEngine):
        return AsyncEngineDoor(engine, dialect_for(engine.dialect.name, models.tables), models)
    if not isinstance(engine, Engines):
        raise ConfigurationError(f"Pass an Engine, an AsyncEngine or Engines, not {type(engine).__name__}")
    if engine.sync is not None and engine.asynchronous is not None:
        sql = dialect_for(engine.sync.dialect.name, models.tables)
        sync, asynchronous = engine.sync, engine.asynchronous
        return TwinDoor(EngineDoor(sync, sql, models), AsyncEngineDoor(asynchronous, sql, models))
    return door_of(engine.sync or engine.asynchronous, models)  # type: ignore[arg-type]
