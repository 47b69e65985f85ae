"""LangGraph checkpoints in your SQLAlchemy database: SQLite and PostgreSQL, sync and async."""

from __future__ import annotations

from cpstore.engines import Engines
from cpstore.errors import (
    AsyncOnlyError,
    ConfigurationError,
    CpstoreError,
    DatabaseBusyError,
    ForeignTablesError,
    InvalidConfigError,
    MemoryDatabaseError,
    MigrationTurnError,
    MissingDriverError,
    NewerDatabaseError,
    NotMigratedError,
    OtherHistoryError,
    OutdatedDatabaseError,
    SameDatabaseError,
    ThreadExistsError,
    TransactionError,
    TransactionOverError,
    TransferIncompleteError,
    TypeNotAllowedError,
    UnknownCheckpointError,
    UnknownRevisionError,
    UnknownSourceError,
    UnknownThreadError,
    UnreadableValueError,
    UnstorableValueError,
    UnsupportedDatabaseError,
)
from cpstore.metadata import Except, Only
from cpstore.models import Base, Checkpoint, CheckpointBlob, CheckpointWrite, Models, declare_models
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
    "ForeignTablesError",
    "InvalidConfigError",
    "MemoryDatabaseError",
    "MigrationTurnError",
    "MissingDriverError",
    "Models",
    "NewerDatabaseError",
    "NotMigratedError",
    "Only",
    "OtherHistoryError",
    "OutdatedDatabaseError",
    "Removed",
    "SQLAlchemySaver",
    "SameDatabaseError",
    "Serializer",
    "ThreadExistsError",
    "ThreadSummary",
    "TransactionError",
    "TransactionOverError",
    "TransferIncompleteError",
    "TypeNotAllowedError",
    "UnknownCheckpointError",
    "UnknownRevisionError",
    "UnknownSourceError",
    "UnknownThreadError",
    "UnreadableValueError",
    "UnstorableValueError",
    "UnsupportedDatabaseError",
    "declare_models",
]
