"""LangGraph checkpoints in your SQLAlchemy database: SQLite and PostgreSQL, sync and async."""

from __future__ import annotations

from cpstore.engines import Engines
from cpstore.errors import (
    AsyncOnlyError,
    ConfigurationError,
    CpstoreError,
    InvalidConfigError,
    MemoryDatabaseError,
    MigrationTurnError,
    MissingDriverError,
    NotMigratedError,
    UnsupportedDatabaseError,
)
from cpstore.models import Base, Checkpoint, CheckpointBlob, CheckpointWrite
from cpstore.saver import SQLAlchemySaver

__all__ = [
    "AsyncOnlyError",
    "Base",
    "Checkpoint",
    "CheckpointBlob",
    "CheckpointWrite",
    "ConfigurationError",
    "CpstoreError",
    "Engines",
    "InvalidConfigError",
    "MemoryDatabaseError",
    "MigrationTurnError",
    "MissingDriverError",
    "NotMigratedError",
    "SQLAlchemySaver",
    "UnsupportedDatabaseError",
]
