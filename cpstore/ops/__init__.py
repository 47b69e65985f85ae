"""Units of work: plain functions on a sync connection. They know records and statements, nothing else."""

from __future__ import annotations

from cpstore.ops.browsing import history, thread_ids, threads
from cpstore.ops.delta import delta_history
from cpstore.ops.reading import get, page
from cpstore.ops.structure import (
    checkpoints_of_runs,
    copy_thread,
    delete_checkpoints,
    prune,
    reclaim,
    retain,
    storage,
    sweep,
)
from cpstore.ops.transfer import (
    all_thread_ids,
    columns,
    identity,
    lacks_tables,
    present_keys,
    row_counts,
    row_keys,
    rows,
    store_rows,
)
from cpstore.ops.unit import Unit
from cpstore.ops.writing import delete_thread, put, put_writes

__all__ = [
    "Unit",
    "all_thread_ids",
    "checkpoints_of_runs",
    "columns",
    "copy_thread",
    "delete_checkpoints",
    "delete_thread",
    "delta_history",
    "get",
    "history",
    "identity",
    "lacks_tables",
    "page",
    "present_keys",
    "prune",
    "put",
    "put_writes",
    "reclaim",
    "retain",
    "row_counts",
    "row_keys",
    "rows",
    "storage",
    "store_rows",
    "sweep",
    "thread_ids",
    "threads",
]
