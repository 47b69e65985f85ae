"""A saver's threads as a whole: delete, prune, retain, copy."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

from cpstore import addresses, ops, places
from cpstore.plans import Removed
from cpstore.retention import Rule, by_thread, checked_list, kept_by
from cpstore.saver.connected import Connected

__all__ = ["Threads"]


class Threads(Connected):
    """What is done to threads as a whole. No value is read for it."""

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints, blobs and writes of a thread. One that is unknown is no error.

        Raises:
            InvalidConfigError: The id cannot have been stored.
            NotMigratedError: The tables are not there.
        """
        self._door.run(ops.delete_thread, addresses.identifier("thread_id", thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Async version of :meth:`delete_thread`."""
        await self._door.arun(ops.delete_thread, addresses.identifier("thread_id", thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs made, in all threads and namespaces, each thread at once.

        Their writes go with them, calls of subgraphs that they made, and blobs that nobody else points at. A
        checkpoint that another one needs stays: to rebuild a delta channel, or, before format 4, for its
        sends. A parent that is gone is a parent no more. Runs that are unknown are no error.

        Args:
            run_ids: Values of `run_id` in the metadata.

        Raises:
            TypeError: `run_ids` is one text.
            NotMigratedError: The tables are not there.
        """
        found = self._door.run(ops.checkpoints_of_runs, checked_list("run_ids", run_ids))
        for thread_id, keys in by_thread(found).items():
            self._door.run(ops.delete_checkpoints, thread_id, keys)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async version of :meth:`delete_for_runs`."""
        found = await self._door.arun(ops.checkpoints_of_runs, checked_list("run_ids", run_ids))
        for thread_id, keys in by_thread(found).items():
            await self._door.arun(ops.delete_checkpoints, thread_id, keys)

    def copy_thread(
        self, source_thread_id: str, target_thread_id: str, *, checkpoint_id: str | None = None
    ) -> None:
        """Copy a thread to a new one, which goes on independently. The ids of checkpoints stay.

        Args:
            source_thread_id: The thread to copy. Without `checkpoint_id`, one that is unknown is no error.
            target_thread_id: The new thread.
            checkpoint_id: Copy only this checkpoint of the root graph, its ancestors, and the subgraphs'
                checkpoints under them. Its own writes, and the subgraphs that it called, belong to the
                children that it has: they come along only if it has none.

        Raises:
            ThreadExistsError: The target has checkpoints already.
            UnknownCheckpointError: The source has no such checkpoint.
            InvalidConfigError: An id cannot be stored.
            NotMigratedError: The tables are not there.
        """
        names = addresses.copied(source_thread_id, target_thread_id, checkpoint_id)
        self._door.run(ops.copy_thread, *names, places.rebinder_for(self.serde, names[1]))

    async def acopy_thread(
        self, source_thread_id: str, target_thread_id: str, *, checkpoint_id: str | None = None
    ) -> None:
        """Async version of :meth:`copy_thread`."""
        names = addresses.copied(source_thread_id, target_thread_id, checkpoint_id)
        await self._door.arun(ops.copy_thread, *names, places.rebinder_for(self.serde, names[1]))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads, each at once, while runs may append to them.

        Args:
            thread_ids: The threads. Those that are unknown are no error.
            strategy: `keep_latest` keeps the newest checkpoint of each namespace with its writes and blobs,
                and whole ancestors that it needs: to rebuild a delta channel, or, before format 4, for its
                sends. A parent that is gone is a parent no more. Calls of subgraphs go with the root graph's
                checkpoint that made them. `delete` deletes the threads.

        Raises:
            TypeError: `thread_ids` is one text.
            ValueError: The strategy is unknown.
            NotMigratedError: The tables are not there.
        """
        kept = kept_by(strategy)
        for thread_id in addresses.thread_ids(thread_ids):
            self._door.run(ops.prune, thread_id, kept)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Async version of :meth:`prune`."""
        kept = kept_by(strategy)
        for thread_id in addresses.thread_ids(thread_ids):
            await self._door.arun(ops.prune, thread_id, kept)

    def retention(
        self,
        *,
        thread_ids: Sequence[str] | None = None,
        older_than: dt.timedelta | dt.datetime | None = None,
        keep: int | None = None,
        limit: int | None = None,
        after: str | None = None,
        dry_run: bool = False,
    ) -> Removed:
        """Delete old threads, and old checkpoints of the others, thread by thread in the order of their ids.

        Each thread is its own transaction; a call that was interrupted can simply be made again. Threads that
        stay can be resumed.

        Args:
            thread_ids: Only these threads; None: all.
            older_than: Delete threads whose newest checkpoint is older than this time (with a time zone), or
                than this long ago. The time is that in the checkpoint's id; one without a time is never old.
            keep: Of other threads, keep so many of the newest checkpoints in each namespace, and what they
                need, as `prune` does. None: keep all.
            limit: Look at no more than so many threads now. None: at all of them.
            after: Go on after this thread: what the last call gave as `after`.
            dry_run: Delete nothing, and tell what would be deleted.

        Returns:
            What was deleted, or would be. Its `after` is None when there are no more threads to look at.

        Raises:
            ValueError: Neither `older_than` nor `keep` is given, a number is below 1, or a time has no zone.
            TypeError: `thread_ids` is one text.
            NotMigratedError: The tables are not there.
        """
        rule = Rule.of(thread_ids, older_than, keep, limit, after)
        removed = Removed()
        while not rule.done:
            found = self._door.run(ops.thread_ids, rule.after, rule.batch, rule.thread_ids)
            for thread_id, kept, newest in rule.decide(found):
                removed += self._door.run(ops.retain, thread_id, kept, newest, dry_run)
            rule = rule.following(found)
        return replace(removed, after=rule.after)

    async def aretention(
        self,
        *,
        thread_ids: Sequence[str] | None = None,
        older_than: dt.timedelta | dt.datetime | None = None,
        keep: int | None = None,
        limit: int | None = None,
        after: str | None = None,
        dry_run: bool = False,
    ) -> Removed:
        """Async version of :meth:`retention`."""
        rule = Rule.of(thread_ids, older_than, keep, limit, after)
        removed = Removed()
        while not rule.done:
            found = await self._door.arun(ops.thread_ids, rule.after, rule.batch, rule.thread_ids)
            for thread_id, kept, newest in rule.decide(found):
                removed += await self._door.arun(ops.retain, thread_id, kept, newest, dry_run)
            rule = rule.following(found)
        return replace(removed, after=rule.after)

    def sweep(self, *, thread_ids: Sequence[str] | None = None, dry_run: bool = False) -> Removed:
        """Delete what no checkpoint needs, thread by thread: values left over, and writes of no checkpoint.

        A run that was killed, or another tool, may leave such rows. Threads read as before. Do not call it
        while rows come to the database in another way than by savers, as by a transfer.

        Args:
            thread_ids: Only these threads; None: all.
            dry_run: Delete nothing, and tell what would be deleted.

        Raises:
            TypeError: `thread_ids` is one text.
            InvalidConfigError: An id cannot have been stored.
            NotMigratedError: The tables are not there.
        """
        removed = Removed()
        for thread_id in self._thread_ids(thread_ids):
            removed += self._door.run(ops.sweep, thread_id, dry_run)
        return removed

    async def asweep(self, *, thread_ids: Sequence[str] | None = None, dry_run: bool = False) -> Removed:
        """Async version of :meth:`sweep`."""
        removed = Removed()
        async for thread_id in self._athread_ids(thread_ids):
            removed += await self._door.arun(ops.sweep, thread_id, dry_run)
        return removed
