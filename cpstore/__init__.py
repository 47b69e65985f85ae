"""LangGraph checkpoints in your SQLAlchemy database: SQLite and PostgreSQL, sync and async."""

from __future__ import annotations

from cpstore.engines import Engines
from cpstore.errors import (
    AsyncOnlyError,
    ConfigurationError,
    CpstoreError,
    DatabaseBusyError,
    InvalidConfigError,
    MemoryDatabaseError,
    MigrationTurnError,
    MissingDriverError,
    NotMigratedError,
    ThreadExistsError,
    TypeNotAllowedError,
    UnknownCheckpointError,
    UnreadableValueError,
    UnstorableValueError,
    UnsupportedDatabaseError,
)
from cpstore.metadata import Except, Only
from cpstore.models import Base, Checkpoint, CheckpointBlob, CheckpointWrite
from cpstore.plans import Removed
from cpstore.saver import SQLAlchemySaver
from cpstore.serde import AESGCMSerializer, Codec, Serializer
from cpstore.summaries import CheckpointSummary, ThreadSummary

__all__ = [
    "AESGCMSerializer",
    "AsyncOnlyError",
    "Base",
    "Checkpoint",
    "CheckpointBlob",
    "CheckpointSummary",
    "CheckpointWrite",
    "Codec",
    "ConfigurationError",
    "CpstoreError",
    "DatabaseBusyError",
    "Engines",
    "Except",
    "InvalidConfigError",
    "MemoryDatabaseError",
    "MigrationTurnError",
    "MissingDriverError",
    "NotMigratedError",
    "Only",
    "Removed",
    "SQLAlchemySaver",
    "Serializer",
    "ThreadExistsError",
    "ThreadSummary",
    "TypeNotAllowedError",
    "UnknownCheckpointError",
    "UnreadableValueError",
    "UnstorableValueError",
    "UnsupportedDatabaseError",
]
