"""Statements that look around: ancestors, threads, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, literal_column, select, tuple_

from cpstore.dialects.keys import Keys, Step, bound, checkpoint_columns, key_columns, number, size_of, text_of
from cpstore.records import ERROR, INTERRUPT, BlobKey, Key

__all__ = ["Browsing"]


class Browsing(Keys):
    """The statements that find things and measure them, without reading values."""

    # Ancestors

    def ancestors(self, key: Key, size: int) -> Step:
        """Up to `size` checkpoints from `key` upward, parent by parent."""
        return Step(self._ancestors(size), {f"p_{name}": value for name, value in key._asdict().items()})

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _ancestors(self, size: int) -> Select[Any]:
        row = self.tables.checkpoints.c
        here = (row.thread_id == bound("thread_id")) & (row.checkpoint_ns == bound("checkpoint_ns"))
        # Short names: an engine's `label_length` would cut longer ones, in one half of the statement only.
        step = (row.checkpoint_id.label("id"), row.parent_checkpoint_id.label("parent"))
        start = select(*step, number(1).label("depth"))
        chain = start.where(here, row.checkpoint_id == bound("checkpoint_id")).cte("chain", recursive=True)
        chain = chain.union_all(
            select(*step, (chain.c.depth + number(1)).label("depth")).where(
                here, row.checkpoint_id == chain.c.parent, chain.c.depth < number(size)
            )
        )
        return (
            select(*checkpoint_columns(self.tables.checkpoints))
            .join(chain, chain.c.id == row.checkpoint_id)
            .where(here)
            .order_by(chain.c.depth)
        )

    def writes_in_channels(self, thread_id: str, keys: Sequence[Key], channels: Sequence[str]) -> Step:
        """The writes to channels under checkpoints of one thread; their order is not said."""
        parameters = self.thread_parameters(thread_id, [key[1:] for key in keys])
        return Step(
            self._writes_in_channels,
            parameters | self.key_parameters([(channel,) for channel in channels], "channels"),
        )

    @cached_property
    def _writes_in_channels(self) -> Select[Any]:
        table = self.tables.writes
        return select(table).where(
            self.among_keys_of_thread(table), table.c.channel.in_(self.bound_keys(1, "channels"))
        )

    # Sizes

    def blob_sizes(self, thread_id: str, keys: Sequence[BlobKey]) -> Step:
        """Type and bytes of blobs of one thread by their keys; those that are not there are left out."""
        return Step(self._blob_sizes, self.thread_parameters(thread_id, [key[1:] for key in keys]))

    @cached_property
    def _blob_sizes(self) -> Select[Any]:
        table = self.tables.blobs
        keys = [table.c[name] for name in key_columns(table)]
        return select(*keys, table.c.type, size_of(table.c.blob)).where(self.among_keys_of_thread(table))

    def write_sizes(self, thread_id: str, keys: Sequence[Key]) -> Step:
        """What is known of the writes under checkpoints of one thread; those without writes are left out.

        Their number and bytes; how many of them are interrupts, and how many are errors.
        """
        return Step(self._write_sizes, self.thread_parameters(thread_id, [key[1:] for key in keys]))

    @cached_property
    def _write_sizes(self) -> Select[Any]:
        table = self.tables.writes
        keys = [table.c[name] for name in key_columns(table)]
        special = [_count_of(table.c.channel, name) for name in (INTERRUPT, ERROR)]
        sizes = select(*keys, func.count(), func.sum(size_of(table.c.blob)), *special)
        return sizes.where(self.among_keys_of_thread(table)).group_by(*keys)

    # Threads

    def newest_entries(self, after: Sequence[str] | None, seen: Sequence[str], size: int) -> Step:
        """The newest checkpoints below a cursor, of threads that were not seen: id and thread."""
        parameters = self.key_parameters([(thread_id,) for thread_id in seen], "seen") if seen else {}
        if after is not None:
            parameters |= {"p_after_checkpoint_id": after[0], "p_after_thread_id": after[1]}
        return Step(self._newest_entries(after is not None, bool(seen), size), parameters)

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _newest_entries(self, goes_on: bool, skips: bool, size: int) -> Select[Any]:
        row = self.tables.checkpoints.c
        order = [row.checkpoint_id, row.thread_id]
        statement = select(*order)
        if goes_on:
            cursor = tuple_(bound("after_checkpoint_id"), bound("after_thread_id"))
            statement = statement.where(tuple_(*order) < cursor)
        if skips:
            statement = statement.where(row.thread_id.not_in(self.bound_keys(1, "seen")))
        return statement.order_by(*(column.desc() for column in order)).limit(number(size))

    def thread_ids(self, after: str | None, size: int, chosen: Sequence[str] | None) -> Step:
        """Thread ids in their order, with the greatest checkpoint id of each; of chosen ones, or of all."""
        parameters = {} if chosen is None else self.key_parameters([(each,) for each in chosen])
        if after is not None:
            parameters |= {"p_after": after}
        return Step(self._thread_ids(after is not None, chosen is not None, size), parameters)

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _thread_ids(self, goes_on: bool, chooses: bool, size: int) -> Select[Any]:
        row = self.tables.checkpoints.c
        statement = select(func.max(row.checkpoint_id), row.thread_id).group_by(row.thread_id)
        if goes_on:
            statement = statement.where(row.thread_id > bound("after"))
        if chooses:
            statement = statement.where(self.among_keys([row.thread_id]))
        return statement.order_by(row.thread_id).limit(number(size))

    def thread_facts(self, thread_ids: Sequence[str]) -> Step:
        """For each namespace of threads: the smallest and greatest checkpoint id, and their number."""
        return Step(self._thread_facts, self.key_parameters([(thread_id,) for thread_id in thread_ids]))

    @cached_property
    def _thread_facts(self) -> Select[Any]:
        row = self.tables.checkpoints.c
        keys = [row.thread_id, row.checkpoint_ns]
        facts: list[ColumnElement[Any]] = [
            func.min(row.checkpoint_id),
            func.max(row.checkpoint_id),
            func.count(),
        ]
        return select(*keys, *facts).where(self.among_keys([row.thread_id])).group_by(*keys)

    def metadata_of(self, keys: Sequence[Key]) -> Step:
        """The metadata of checkpoints by their keys."""
        return Step(self._metadata_of, self.key_parameters(keys))

    @cached_property
    def _metadata_of(self) -> Select[Any]:
        table = self.tables.checkpoints
        return select(table.c.thread_id, text_of(table.c.metadata)).where(self.among_keys_of_threads(table))


def _count_of(channel: ColumnElement[str], name: str) -> ColumnElement[int]:
    return func.sum(case((channel == literal_column(f"'{name}'"), number(1)), else_=number(0)))
