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
    ThreadExistsError,
    UnknownCheckpointError,
    UnsupportedDatabaseError,
)
from cpstore.models import Base, Checkpoint, CheckpointBlob, CheckpointWrite
from cpstore.saver import SQLAlchemySaver
from cpstore.structure import Removed
from cpstore.summaries import CheckpointSummary, ThreadSummary

__all__ = [
    "AsyncOnlyError",
    "Base",
    "Checkpoint",
    "CheckpointBlob",
    "CheckpointSummary",
    "CheckpointWrite",
    "ConfigurationError",
    "CpstoreError",
    "Engines",
    "InvalidConfigError",
    "MemoryDatabaseError",
    "MigrationTurnError",
    "MissingDriverError",
    "NotMigratedError",
    "Removed",
    "SQLAlchemySaver",
    "ThreadExistsError",
    "ThreadSummary",
    "UnknownCheckpointError",
    "UnsupportedDatabaseError",
]
