"""Units of work: plain functions on a sync connection. They know records and statements, nothing else."""

from __future__ import annotations

from cpstore.ops.browsing import history, thread_ids, threads
from cpstore.ops.delta import delta_history
from cpstore.ops.reading import get, lacks_tables, page
from cpstore.ops.structure import (
    checkpoints_of_runs,
    copy_thread,
    delete_checkpoints,
    prune,
    reclaim,
    retain,
)
from cpstore.ops.unit import Unit
from cpstore.ops.writing import delete_thread, put, put_writes

__all__ = [
    "Unit",
    "checkpoints_of_runs",
    "copy_thread",
    "delete_checkpoints",
    "delete_thread",
    "delta_history",
    "get",
    "history",
    "lacks_tables",
    "page",
    "prune",
    "put",
    "put_writes",
    "reclaim",
    "retain",
    "thread_ids",
    "threads",
]
