"""All that checkpoints are made of, in one statement: each one is a round trip, and a snapshot by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    LargeBinary,
    Select,
    Text,
    and_,
    cast,
    func,
    literal_column,
    not_,
    null,
    select,
    true,
    union_all,
)

from cpstore.dialects.keys import Step, bound, number, text_of
from cpstore.dialects.reading import Reading
from cpstore.models import Tables
from cpstore.records import TASKS, Address, BlobKey, Key, Query

__all__ = ["BYTES", "AtOnce", "starts_piece"]

BYTES = "cpstore_bytes"
"""The execution option of statements that read blobs, whose results psycopg can take as bytes."""

_NOTHING = cast(null(), Text())
_NO_NUMBER = cast(null(), Integer())
_NO_BYTES = cast(null(), LargeBinary())

_PLACE = ("thread_id", "checkpoint_ns")
_CHECKPOINT = (*Key._fields, "parent_checkpoint_id", "checkpoint_text", "metadata_text")
_BLOB = BlobKey._fields
_WRITE = (*Key._fields, "task_id", "channel", "type", "task_path", "idx", "blob")


class AtOnce(Reading):
    """Rows of four kinds below each other, each with ten columns.

    0 are the checkpoints: thread, namespace, id, parent, document, metadata, nothing, place in their order,
    no bytes. 1 are their blobs, and those that hold the beginnings of their lists: thread, namespace,
    nothing, channel, version, type, nothing, no number, bytes. 2 are the writes under them: thread,
    namespace, checkpoint, task, channel, type, path, position, bytes. 3 are the sends of their parents, which
    are writes too: only checkpoints before format 4 need them.

    Each table is asked by its primary key, and with the bound thread where there is one.
    """

    copies_rows: ClassVar[bool] = False
    """Whether a part of a statement that is named is a copy of all that is in it.

    Large values do not belong there then; and keys are made distinct, so that they are such a part, and the
    rows that they are of are not read before them.
    """

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        # Short names: psycopg parses a statement of more than 4,096 characters at each execution.
        self._checkpoints = tables.checkpoints.alias("c")
        self._blobs = tables.blobs.alias("b")
        self._writes = tables.writes.alias("w")

    # What is asked for

    def loaded(self, address: Address) -> Step:
        """The rows of the checkpoint at an address; none, if it is not there."""
        statement = self._newest_at_once if address.checkpoint_id is None else self._exact_at_once
        return Step(statement, self.address_parameters(address))

    def loaded_page(self, query: Query, size: int) -> Step:
        """The rows of up to `size` checkpoints that a query asks for, newest first."""
        return Step(self._page_at_once(self.given(query), size), self.scan_parameters(query))

    def loaded_keys(self, keys: Sequence[Key]) -> Step:
        """The rows of checkpoints by their keys, in no order."""
        return self.keyed(self._keys_at_once, keys)

    @cached_property
    def _newest_at_once(self) -> Any:
        row = self._checkpoints.c
        newest = self._in_place.order_by(row.checkpoint_id.desc()).limit(number(1))
        return self._at_once(newest.cte("t"), frozenset(_PLACE), alone=True)

    @cached_property
    def _exact_at_once(self) -> Any:
        exact = self._in_place.where(self._checkpoints.c.checkpoint_id == bound("checkpoint_id"))
        return self._at_once(exact.cte("t"), frozenset(_PLACE), alone=True)

    @lru_cache(maxsize=128)  # noqa: B019 - a dialect is made once for the same tables
    def _page_at_once(self, given: tuple[str, ...], size: int) -> Any:
        table = self._checkpoints
        found = self.conditions(select(*self._columns), given, table).order_by(*self.order(given, table))
        page = found.limit(number(size)).subquery("p")
        order = self.order(given, page)
        place = func.row_number().over(order_by=order or None).label("place")
        return self._at_once(select(*list(page.c)[:-1], place).cte("t"), frozenset(given))

    @cache  # noqa: B019 - a dialect is made once for the same tables
    def _keys_at_once(self, in_thread: bool) -> Any:
        table: Any = self._checkpoints
        among = self.among_keys_of_thread(table) if in_thread else self.among_keys_of_threads(table)
        found = select(*self._columns).where(among)
        return self._at_once(found.cte("t"), frozenset({"thread_id"} if in_thread else ()))

    @property
    def _in_place(self) -> Select[Any]:
        row = self._checkpoints.c
        return select(*self._columns).where(*(row[name] == bound(name) for name in _PLACE))

    @property
    def _columns(self) -> list[ColumnElement[Any]]:
        row = self._checkpoints.c
        return [
            *(row[name] for name in (*Key._fields, "parent_checkpoint_id")),
            text_of(row.checkpoint),
            text_of(row.metadata),
            self.versions_of(row.checkpoint).label("versions"),
            self.has_own_sends(row.checkpoint).label("has_own_sends"),
            _NO_NUMBER.label("place"),
        ]

    # How it is said

    def _at_once(self, target: CTE, given: frozenset[str], *, alone: bool = False) -> Any:
        own = self._own(target, given, alone).cte("o")
        columns = [target.c[name] for name in _CHECKPOINT]
        rows = union_all(
            select(number(0), *columns, _NOTHING, target.c.place, _NO_BYTES),
            *self._stored(own, given),
            self._written(2, target, target.c.checkpoint_id, given),
            self._written(3, target, target.c.parent_checkpoint_id, given).where(
                self._writes.c.channel == literal_column(f"'{TASKS}'"), not_(target.c.has_own_sends)
            ),
        )
        return rows.execution_options(**{BYTES: True})

    def _own(self, target: CTE, given: frozenset[str], alone: bool) -> Select[Any]:
        """A blob for each version, each looked up by its key: a long thread has very many others."""
        each = self.versions_in(target.c.versions)
        columns = (*(target.c[name] for name in _PLACE), each.c.key, cast(each.c.value, Text()))
        named: Select[Any] = select(
            *(column.label(name) for column, name in zip(columns, _BLOB, strict=True))
        )
        named = named.select_from(target.join(each, true()))
        keys = named if alone and not self.copies_rows else named.distinct()
        kept = [column for column in self._blobs.c if not self.copies_rows or column.key != "blob"]
        return self._blobs_by(keys, kept, given)

    def _stored(self, own: CTE, given: frozenset[str]) -> list[Select[Any]]:
        """The blobs of versions, and those that hold what is before the items of others, each once."""
        before = self.versions_before(own.c.type)
        columns = (*(own.c[name] for name in _BLOB[:-1]), before.c.value.label("version"))
        # The condition stands in `versions_before` too. Here it tells PostgreSQL's planner that they are few:
        # of many it would think that a plan for these very keys is worth making anew at each execution.
        named: Any = select(*columns).select_from(own.join(before, true())).where(starts_piece(own.c.type))
        keys = select(*(own.c[name] for name in _BLOB))
        more = keys.union(named) if self.copies_rows else named.except_(keys)
        row = self._blobs_by(more, list(self._blobs.c), given).subquery("p").c
        beginnings = select(number(1), *_blob_columns(row))
        return [beginnings] if self.copies_rows else [select(number(1), *_blob_columns(own.c)), beginnings]

    def _blobs_by(self, keys: Any, columns: list[Any], given: frozenset[str]) -> Select[Any]:
        wanted, row = keys.subquery("k"), self._blobs.c
        conditions = [
            *self.in_place(row, wanted.c, given),
            row.channel == wanted.c.channel,
            row.version == wanted.c.version,
        ]
        return self.looked_up(wanted, columns, conditions)

    def _written(
        self, kind: int, target: CTE, checkpoint_id: ColumnElement[Any], given: frozenset[str]
    ) -> Select[Any]:
        row = self._writes.c
        return select(number(kind), *(row[name] for name in _WRITE)).where(
            *self.in_place(row, target.c, given), row.checkpoint_id == checkpoint_id
        )

    # What each database says in its own way

    def versions_of(self, document: ColumnElement[Any]) -> ColumnElement[Any]:
        """Give the versions of the channels in a checkpoint's document, a JSON object in any case."""
        raise NotImplementedError

    def has_own_sends(self, document: ColumnElement[Any]) -> ColumnElement[bool]:
        """Give the condition that a checkpoint's document is of format 4 or newer."""
        raise NotImplementedError

    def versions_in(self, versions: ColumnElement[Any]) -> FromClause:
        """Give `key` and `value` of all members of a JSON object, as texts."""
        raise NotImplementedError

    def versions_before(self, kind: ColumnElement[str]) -> FromClause:
        """Give as `value` the versions that the type of a blob names: see :mod:`cpstore.pieces`."""
        raise NotImplementedError

    def looked_up(
        self, keys: FromClause, columns: list[Any], conditions: list[ColumnElement[bool]]
    ) -> Select[Any]:
        """Give columns of the row of a table for each of some keys, if it is there.

        Overridden where a planner might read the whole table for it.
        """
        return select(*columns).select_from(keys.join(columns[0].table, and_(*conditions)))

    def in_place(self, row: Any, source: Any, given: frozenset[str]) -> list[ColumnElement[bool]]:
        """Give the condition that a row is where it is asked for: as it is bound, or as `source` says.

        Overridden where a planner would begin with all rows of a thread that is bound.
        """
        return [row[name] == (bound(name) if name in given else source[name]) for name in _PLACE]

    def tells_versions(self, versions: Iterable[Any]) -> bool:
        """Tell whether `versions_in` gives versions as they are in the keys of blobs.

        Overridden where a database has a text of its own for some numbers.
        """
        return True


def starts_piece(kind: ColumnElement[str]) -> ColumnElement[bool]:
    """Give the condition that the type of a blob is that of a list in pieces: see :mod:`cpstore.pieces`."""
    return kind.startswith(literal_column("'items;'"))


def _blob_columns(row: Any) -> list[ColumnElement[Any]]:
    keys = (row.thread_id, row.checkpoint_ns, _NOTHING)
    return [*keys, row.channel, row.version, row.type, _NOTHING, _NO_NUMBER, row.blob]
