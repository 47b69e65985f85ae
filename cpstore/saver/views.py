"""What a saver can tell of threads and checkpoints without reading any value."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from cpstore import ops, queries
from cpstore.records import Query
from cpstore.saver.connected import Connected
from cpstore.storage import ThreadStorage
from cpstore.summaries import CheckpointSummary, ThreadSummary

__all__ = ["Views"]


class Views(Connected):
    """Lists for people: they read keys, documents and sizes, and decode nothing."""

    def list_threads(
        self,
        *,
        limit: int = 100,
        after: str | None = None,
        filter: dict[str, Any] | None = None,
        order: str = "newest",
    ) -> builtins.list[ThreadSummary]:
        """List threads, a page at a time.

        Args:
            limit: At most so many threads.
            after: Go on below this thread: the `cursor` of the last one of the page before.
            filter: A JSON object that the metadata of a thread's newest checkpoint must contain (see `list`).
            order: `newest`: by the newest checkpoint, newest first. `thread_id`: by the thread's id.

        Raises:
            ValueError: `limit` is negative, or `order` or `after` is none of ours.
            NotMigratedError: The tables are not there.
        """
        query = queries.thread_query(limit, after, filter, order)
        found: builtins.list[ThreadSummary] = []
        while query is not None and len(found) < limit:
            page = self._door.run(ops.threads, query)
            found += page.items
            query = page.next
        return found[:limit]

    async def alist_threads(
        self,
        *,
        limit: int = 100,
        after: str | None = None,
        filter: dict[str, Any] | None = None,
        order: str = "newest",
    ) -> builtins.list[ThreadSummary]:
        """Async version of :meth:`list_threads`."""
        query = queries.thread_query(limit, after, filter, order)
        found: builtins.list[ThreadSummary] = []
        while query is not None and len(found) < limit:
            page = await self._door.arun(ops.threads, query)
            found += page.items
            query = page.next
        return found[:limit]

    def history(
        self, thread_id: str, *, checkpoint_ns: str | None = None, limit: int | None = None
    ) -> Iterator[CheckpointSummary]:
        """List the checkpoints of a thread without their values, newest first (by descending id).

        No connection is held while it yields.

        Args:
            thread_id: The thread.
            checkpoint_ns: Only this namespace; None: all, `""`: the root graph's.
            limit: At most so many. None: all of them.

        Raises:
            ValueError: `limit` is negative.
            InvalidConfigError: An id cannot have been stored.
            NotMigratedError: The tables are not there.
        """
        query: Query | None = queries.history_query(thread_id, checkpoint_ns, limit)
        while query is not None:
            page = self._door.run(ops.history, query)
            yield from page.items
            query = page.next

    async def ahistory(
        self, thread_id: str, *, checkpoint_ns: str | None = None, limit: int | None = None
    ) -> AsyncIterator[CheckpointSummary]:
        """Async version of :meth:`history`."""
        query: Query | None = queries.history_query(thread_id, checkpoint_ns, limit)
        while query is not None:
            page = await self._door.arun(ops.history, query)
            for summary in page.items:
                yield summary
            query = page.next

    def storage(self, *, thread_ids: Sequence[str] | None = None) -> Iterator[ThreadStorage]:
        """Tell what threads take, channel by channel, thread by thread in the order of their ids.

        All documents of a thread are read for it, in one snapshot, and none of its values. No connection is
        held while it yields.

        Args:
            thread_ids: Only these threads; None: all. One that is unknown takes nothing.

        Raises:
            TypeError: `thread_ids` is one text.
            InvalidConfigError: An id cannot have been stored.
            NotMigratedError: The tables are not there.
        """
        for thread_id in self._thread_ids(thread_ids):
            yield self._door.run(ops.storage, thread_id)

    async def astorage(self, *, thread_ids: Sequence[str] | None = None) -> AsyncIterator[ThreadStorage]:
        """Async version of :meth:`storage`."""
        async for thread_id in self._athread_ids(thread_ids):
            yield await self._door.arun(ops.storage, thread_id)
