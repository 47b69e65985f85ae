"""All that one checkpoint is made of, in one statement: on PostgreSQL each statement is a round trip."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    LargeBinary,
    Select,
    Text,
    case,
    cast,
    false,
    func,
    literal_column,
    not_,
    null,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB

from cpstore.dialects.keys import Keys, Step, bound, number, text_of
from cpstore.records import TASKS, Address

__all__ = ["AtOnce"]

_NOTHING = cast(null(), Text())
_NO_NUMBER = cast(null(), Integer())
_NO_BYTES = cast(null(), LargeBinary())


class AtOnce(Keys):
    """Rows of four kinds below each other.

    0 is the checkpoint: id, parent, document, metadata. 1 are its blobs: channel, version, type, nothing, no
    number, bytes. 2 are the writes under it: task, channel, type, path, position, bytes. 3 are the sends of
    its parent, which are writes too: only checkpoints before format 4 need them.
    """

    def loaded(self, address: Address) -> Step:
        """The rows of the checkpoint at an address; none, if it is not there."""
        parameters = {f"p_{name}": value for name, value in vars(address).items() if value is not None}
        return Step(
            self._newest_at_once if address.checkpoint_id is None else self._exact_at_once, parameters
        )

    @cached_property
    def _newest_at_once(self) -> Any:
        row = self.tables.checkpoints.c
        return self._at_once(self._found.order_by(row.checkpoint_id.desc()).limit(number(1)))

    @cached_property
    def _exact_at_once(self) -> Any:
        return self._at_once(
            self._found.where(self.tables.checkpoints.c.checkpoint_id == bound("checkpoint_id"))
        )

    @property
    def _found(self) -> Select[Any]:
        row = self.tables.checkpoints.c
        return select(
            row.checkpoint_id,
            row.parent_checkpoint_id,
            text_of(row.checkpoint),
            text_of(row.metadata),
            _part(row.checkpoint, "channel_versions").label("versions"),
            _part(row.checkpoint, "v").label("format"),
        ).where(row.thread_id == bound("thread_id"), row.checkpoint_ns == bound("checkpoint_ns"))

    def _at_once(self, found: Select[Any]) -> Any:
        target = found.cte("target")
        return union_all(
            select(number(0), *list(target.c)[:4], _NO_NUMBER, _NO_BYTES),
            self._blobs_of(target),
            self._writes_of(target),
            self._sends_of(target),
        )

    def _blobs_of(self, target: CTE) -> Select[Any]:
        """A blob for each version, each looked up by its key: a long thread has very many others."""
        row = self.tables.blobs.c
        is_object = func.jsonb_typeof(target.c.versions) == literal_column("'object'")
        versions = case((is_object, target.c.versions), else_=literal_column("'{}'::jsonb"))
        each = func.jsonb_each_text(versions).table_valued("key", "value", name="each").render_derived()
        blob = (
            select(row.channel, row.version, row.type, row.blob)
            .where(
                row.thread_id == bound("thread_id"),
                row.checkpoint_ns == bound("checkpoint_ns"),
                row.channel == each.c.key,
                row.version == each.c.value,
            )
            .limit(number(1))
            .lateral("found")
        )
        held = self._with_pieces(blob)
        columns = (number(1), held.c.channel, held.c.version, held.c.type, _NOTHING, _NO_NUMBER, held.c.blob)
        return select(*columns).select_from(target.join(each, true()).join(blob, true()).join(held, true()))

    def _with_pieces(self, blob: FromClause) -> FromClause:
        """A blob, and those that hold the beginning of its list: its type says which."""
        row = self.tables.blobs.c
        named = func.split_part(blob.c.type, literal_column("';'"), number(6))
        is_piece = blob.c.type.startswith(literal_column("'items;'"))
        versions = case((is_piece, named), else_=null())
        each = func.unnest(func.string_to_array(versions, literal_column("','")))
        before = each.table_valued("version", name="before").render_derived()
        beginning = (
            select(row.channel, row.version, row.type, row.blob)
            .select_from(before.join(self.tables.blobs, row.version == before.c.version))
            .where(
                row.thread_id == bound("thread_id"),
                row.checkpoint_ns == bound("checkpoint_ns"),
                row.channel == blob.c.channel,
            )
        )
        itself = select(blob.c.channel, blob.c.version, blob.c.type, blob.c.blob)
        return union_all(itself.correlate(blob), beginning.correlate(blob)).lateral("held")

    def _writes_of(self, target: CTE) -> Select[Any]:
        return self._written(2, target, target.c.checkpoint_id)

    def _sends_of(self, target: CTE) -> Select[Any]:
        row = self.tables.writes.c
        is_number = func.jsonb_typeof(target.c.format) == literal_column("'number'")
        has_own = case((is_number, cast(target.c.format, Integer()) >= number(4)), else_=false())
        sends = self._written(3, target, target.c.parent_checkpoint_id)
        return sends.where(row.channel == literal_column(f"'{TASKS}'"), not_(has_own))

    def _written(self, kind: int, target: CTE, checkpoint_id: ColumnElement[Any]) -> Select[Any]:
        row = self.tables.writes.c
        columns = (row.task_id, row.channel, row.type, row.task_path, row.idx, row.blob)
        return select(number(kind), *columns).where(
            row.thread_id == bound("thread_id"),
            row.checkpoint_ns == bound("checkpoint_ns"),
            row.checkpoint_id == checkpoint_id,
        )


def _part(document: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    """Give a part of a JSON document, whose name is ours and stands in the statement."""
    return document.op("->", return_type=JSONB())(literal_column(f"'{name}'"))
