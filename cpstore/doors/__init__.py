"""Doors to the database: take a connection, run one unit of work, give the connection back.

All that differs between sync and async, and between engines, is here. A unit runs on a sync connection
behind either door: an async engine gives one through `run_sync`, which costs no more than awaits written by
hand. Nothing is held between two calls.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from cpstore.dialects import dialect_for
from cpstore.doors.async_engine import AsyncEngineDoor
from cpstore.doors.base import Door
from cpstore.doors.engine import EngineDoor
from cpstore.doors.transaction import AsyncTransactionDoor, TransactionDoor
from cpstore.doors.twin import TwinDoor
from cpstore.engines import Engines
from cpstore.errors import ConfigurationError
from cpstore.models import Models

__all__ = ["Door", "Holder", "door_of", "door_within"]

_Open = Connection | Session | AsyncConnection | AsyncSession
Holder = _Open | scoped_session[Any] | async_scoped_session[Any]
"""What an application has opened a transaction on."""


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


def door_within(holder: Any, models: Models) -> Door:
    """Give the door to a transaction that a caller has opened.

    Raises:
        ConfigurationError: It is no connection and no session.
    """
    if isinstance(holder, (scoped_session, async_scoped_session)):
        holder = holder()
    if not isinstance(holder, _Open):
        raise ConfigurationError(
            f"Pass a Session, Connection, AsyncSession or AsyncConnection, not {type(holder).__name__}"
        )
    bind: Any = holder
    if isinstance(holder, (Session, AsyncSession)):
        bind = holder.get_bind(mapper=models.checkpoint)
    sql = dialect_for(bind.dialect.name, models.tables)
    if isinstance(holder, (Connection, Session)):
        return TransactionDoor(holder, sql, models)
    return AsyncTransactionDoor(holder, sql, models)
