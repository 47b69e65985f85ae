"""Units of work: plain functions on a sync connection. They know records and statements, nothing else."""

from __future__ import annotations

from cpstore.ops.reading import get, lacks_tables, page
from cpstore.ops.unit import Unit
from cpstore.ops.writing import delete_thread, put, put_writes

__all__ = ["Unit", "delete_thread", "get", "lacks_tables", "page", "put", "put_writes"]
