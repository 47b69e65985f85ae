"""What people are shown of threads and checkpoints, as documents: plain dicts and lists that JSON can hold.

Pure functions of what a saver's views and `get_tuple` give; nothing is read here, and nothing printed. Keys
stand in an order that does not change, and channels and metadata in that of their names. Give the saver
:class:`~cpstore.PlainSerializer`, so that no class of the application's is needed.
"""

from __future__ import annotations

from cpstore.reports.differences import difference_document, unified
from cpstore.reports.states import interrupts_document, state_document, values_document, write_documents
from cpstore.reports.storage import StorageSum, channel_document, storage_document
from cpstore.reports.summaries import checkpoint_document, thread_document
from cpstore.reports.texts import counted, one_line, printable, size_text

__all__ = [
    "StorageSum",
    "channel_document",
    "checkpoint_document",
    "counted",
    "difference_document",
    "interrupts_document",
    "one_line",
    "printable",
    "size_text",
    "state_document",
    "storage_document",
    "thread_document",
    "unified",
    "values_document",
    "write_documents",
]
