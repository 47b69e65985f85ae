"""Statements that read. Each is built once for its shape, so that its compiled form is found again.

Wherever one thread is meant, its bound id stands beside each table by itself: a sharded database finds the
shard by it, and a planner the range of the primary key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar

from sqlalchemy import BindParameter, ColumnElement, FromClause, Select, Table, literal_column, select, tuple_

from cpstore.dialects.keys import Keys, Step, bound, checkpoint_columns, number, text_of
from cpstore.records import TASKS, Address, BlobKey, Key, Query

__all__ = ["Reading"]

_KEY = Key._fields
_CONDITIONS = ("thread_id", "checkpoint_ns", "checkpoint_id", "before", "filter", "after")


class Reading(Keys):
    """The read statements over the three tables."""

    filters_metadata: ClassVar[bool] = False
    """Whether the database can tell if metadata contains a filter; if not, the reader reads it and looks."""

    # One checkpoint

    def at(self, address: Address) -> Step:
        """The row of the checkpoint at an address: of the newest one, if it names none."""
        statement = self._newest if address.checkpoint_id is None else self._exact
        return Step(statement, self.address_parameters(address))

    @staticmethod
    def address_parameters(address: Address) -> dict[str, Any]:
        """Give the parameters of a statement that is bound to an address."""
        return {f"p_{name}": value for name, value in vars(address).items() if value is not None}

    @cached_property
    def _newest(self) -> Select[Any]:
        return self._in_namespace.order_by(self.tables.checkpoints.c.checkpoint_id.desc()).limit(number(1))

    @cached_property
    def _exact(self) -> Select[Any]:
        return self._in_namespace.where(self.tables.checkpoints.c.checkpoint_id == bound("checkpoint_id"))

    @cached_property
    def _in_namespace(self) -> Select[Any]:
        row = self.tables.checkpoints.c
        return select(*checkpoint_columns(self.tables.checkpoints)).where(
            row.thread_id == bound("thread_id"), row.checkpoint_ns == bound("checkpoint_ns")
        )

    # Rows of many keys

    def checkpoints_of(self, keys: Sequence[Key]) -> Step:
        """The rows of checkpoints; their order is not said."""
        return self._keyed("checkpoints", keys)

    def blobs_of(self, keys: Sequence[BlobKey]) -> Step:
        """Blobs by their keys; those that are not there are left out."""
        return self._keyed("blobs", keys)

    def writes_of(self, keys: Sequence[Key]) -> Step:
        """All pending writes under checkpoints; their order is not said."""
        return self._keyed("writes", keys)

    def sends_of(self, keys: Sequence[Key]) -> Step:
        """The sends among the writes under checkpoints; their order is not said."""
        return self._keyed("sends", keys)

    def _keyed(self, what: str, keys: Sequence[tuple[str, ...]]) -> Step:
        return self.keyed(lambda in_thread: self._rows_of(what, in_thread), keys)

    def keyed(self, build: Callable[[bool], Any], keys: Sequence[tuple[str, ...]]) -> Step:
        """Ask for rows by their keys with a statement for those of one thread, or for those of any."""
        threads = {key[0] for key in keys}
        if len(threads) > 1:
            return Step(build(False), self.key_parameters(keys))
        return Step(build(True), self.thread_parameters(threads.pop(), [key[1:] for key in keys]))

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _rows_of(self, what: str, in_thread: bool) -> Select[Any]:
        table, statement = self._selected(what)
        among = self.among_keys_of_thread if in_thread else self.among_keys_of_threads
        return statement.where(among(table))

    def _selected(self, what: str) -> tuple[Table, Select[Any]]:
        if what == "checkpoints":
            return self.tables.checkpoints, select(*checkpoint_columns(self.tables.checkpoints))
        if what == "blobs":
            return self.tables.blobs, select(self.tables.blobs)
        statement = select(self.tables.writes)
        if what == "sends":
            statement = statement.where(self.tables.writes.c.channel == literal_column(f"'{TASKS}'"))
        return self.tables.writes, statement

    # Searching

    def scan(self, query: Query, size: int) -> Step:
        """The keys of up to `size` checkpoints that `query` asks for, newest first.

        Where the database cannot filter metadata, a fourth column has its text.
        """
        return Step(self._scanned(self.given(query), size), self.scan_parameters(query))

    def given(self, query: Query) -> tuple[str, ...]:
        """Give the names of the conditions of a query."""
        return tuple(name for name in _CONDITIONS if getattr(query, name) is not None)

    def scan_parameters(self, query: Query) -> dict[str, Any]:
        """Give the parameters of :meth:`conditions`."""
        given = self.given(query)
        parameters: dict[str, Any] = {f"p_{name}": getattr(query, name) for name in given if name != "after"}
        if not self.filters_metadata:
            parameters.pop("p_filter", None)
        if query.after is not None:
            parameters |= {f"p_after_{name}": value for name, value in query.after._asdict().items()}
        return parameters

    @lru_cache(maxsize=128)  # noqa: B019 - a dialect is made once for the same tables
    def _scanned(self, given: tuple[str, ...], size: int) -> Select[Any]:
        row = self.tables.checkpoints.c
        table = self.tables.checkpoints
        statement = self.conditions(select(*(row[name] for name in _KEY)), given, table)
        if "filter" in given and not self.filters_metadata:
            statement = statement.add_columns(text_of(row.metadata))
        return statement.order_by(*self.order(given, table)).limit(number(size))

    def conditions(self, statement: Select[Any], given: tuple[str, ...], table: FromClause) -> Select[Any]:
        """Give a select of checkpoints with what a query asks; of metadata only if `filters_metadata`."""
        row = table.c
        statement = statement.where(*(row[name] == bound(name) for name in _KEY if name in given))
        if "before" in given:
            statement = statement.where(row.checkpoint_id < bound("before"))
        if "filter" in given and self.filters_metadata:
            statement = statement.where(self.metadata_contains(row.metadata, bound("filter")))
        free = _free(given)
        if "after" in given and free:
            cursor = tuple_(*(bound(f"after_{name}") for name in free))
            statement = statement.where(tuple_(*(row[name] for name in free)) < cursor)
        return statement

    def order(self, given: tuple[str, ...], table: FromClause) -> list[ColumnElement[Any]]:
        """Give the order of a query's checkpoints, newest first: by what is not the same for all of them."""
        return [table.c[name].desc() for name in _free(given)]

    def metadata_contains(self, metadata: ColumnElement[Any], pattern: BindParameter[str]) -> Any:
        """Give the condition that metadata contains a bound JSON object; asked only if `filters_metadata`."""
        raise NotImplementedError


def _free(given: tuple[str, ...]) -> list[str]:
    return [name for name in ("checkpoint_id", "thread_id", "checkpoint_ns") if name not in given]
