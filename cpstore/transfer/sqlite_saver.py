"""One thread out of a file of langgraph-checkpoint-sqlite, whose checkpoints have to be taken apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from langgraph.checkpoint.serde.base import SerializerProtocol

from cpstore.documents import Unpacked, unpack, write_row
from cpstore.records import UNVERSIONED, parsed_object
from cpstore.transfer.amounts import chunks, size_of_row
from cpstore.transfer.steps import Steps
from cpstore.transfer.thread import Row, RowKey, ThreadTransfer, comparable, key_of

__all__ = ["SqliteSaverTransfer"]

_REMEMBERED = 10_000
"""So many blobs are known by their digests. Others are asked for when a checkpoint has them again."""


class SqliteSaverTransfer(ThreadTransfer):
    """Brings what the target lacks of a thread of `SqliteSaver`.

    Args:
        serde: What reads documents that cannot be taken apart as they are.
        arguments: As for :class:`ThreadTransfer`.
    """

    parts: ClassVar[Sequence[str]] = ("writes",)

    def __init__(self, serde: SerializerProtocol | None, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._serde = serde
        self._known: dict[RowKey, bytes] = {}
        self._sure = True

    def as_stored(self, part: str, row: Row) -> Row:
        """Give the row of a write."""
        return write_row(row)

    def store_checkpoints(self, rows: Sequence[Row]) -> Steps[None]:
        """Take checkpoints apart, and store values that are not there before the checkpoints."""
        unpacked = [unpack(row, self._serde) for row in rows]
        self._sure = all(one.sure for one in unpacked)
        yield from self._learn(unpacked)
        new: list[Row] = []
        checkpoints = [one.stored(self._told_apart(one, new)) for one in unpacked]
        for some in chunks((row, size_of_row(row)) for row in new):
            yield from self.store("blobs", some, new=len(some))
        for some in chunks((row, size_of_row(row)) for row in checkpoints):
            yield from self.store_changed("checkpoints", some)
        self._forget()

    def same(self, part: str, mine: Row, theirs: Row) -> bool:
        """Leave out values that were encoded anew, and may have other bytes each time."""
        if self._sure or part != "checkpoints":
            return super().same(part, mine, theirs)
        return bool(comparable(part, _without_values(mine)) == comparable(part, _without_values(theirs)))

    def _learn(self, unpacked: Sequence[Unpacked]) -> Steps[None]:
        """Find out which of their blobs are there."""
        asked = {key_of("blobs", blob) for blob in _blobs(unpacked)} - self._known.keys()
        if not asked or not self.held["blobs"]:
            return
        for row in (yield from self.rows(self.target, "blobs", sorted(asked))):
            opened = row if self.rebinder is None else self.rebinder.opened("blobs", row)
            self._known[key_of("blobs", row)] = _digest(opened)

    def _told_apart(self, one: Unpacked, new: list[Row]) -> list[str]:
        """Give the channels whose value is not that of the blob, and add the blobs that are new."""
        own = []
        for channel, blob in one.blobs.items():
            digest = _digest(blob)
            known = self._known.setdefault(key := key_of("blobs", blob), digest)
            if known is digest:
                new.append(blob)
            elif one.sure and known != digest:
                own.append(channel)
            self._known[key] = self._known.pop(key)  # the last one to be forgotten
        return own

    def _forget(self) -> None:
        for key in list(self._known)[:-_REMEMBERED]:
            del self._known[key]


def _blobs(unpacked: Sequence[Unpacked]) -> Iterator[Row]:
    return (blob for one in unpacked for blob in one.blobs.values())


def _digest(blob: Row) -> bytes:
    return hashlib.blake2b(blob["type"].encode() + b"\0" + (blob["blob"] or b""), digest_size=16).digest()


def _without_values(row: Row) -> Row:
    document = parsed_object(row["checkpoint"]) or {}
    document.pop(UNVERSIONED, None)
    return row | {"checkpoint": json.dumps(document)}
