"""Lists that grow: which part of one is new. Pure, but for what is remembered of the lists that went by."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

from cpstore.pieces import DIGEST_BYTES, Piece, PieceRow, digest_of, may_be_named
from cpstore.serde.joining import header_bytes

__all__ = ["Appends", "Line", "Place", "grown", "whole"]

_SMALLEST_BYTES = 4096
"""A list that is smaller is stored as it is: there is little to gain, and anyone can read it."""

_MOST_APPENDS = 1023
"""After so many a list is stored whole again, so that it is read from at most 11 blobs."""

_REMEMBERED = 1024
"""So many lists are remembered, those that were used last: about 2 kB each."""

Line = tuple[PieceRow, ...]
"""The blobs that hold a list, in the order of their items. The last one is that of the version itself."""


class Place(NamedTuple):
    """The channel that a list is in."""

    thread_id: str
    checkpoint_ns: str
    channel: str


class Appends:
    """What is remembered of the lists that were stored and read: where each is, never what is in it.

    It may be forgotten, or wrong, at any time: what is written is checked against the database.
    """

    def __init__(self) -> None:
        self._lines: OrderedDict[Place, Line] = OrderedDict()
        self._lock = threading.Lock()

    def line(self, place: Place) -> Line:
        """Give the blobs of the list that was last seen at a place; none if it is not known."""
        with self._lock:
            return self._lines.get(place, ())

    def remember(self, lines: Mapping[Place, Line]) -> None:
        """Remember lists that are in the database."""
        with self._lock:
            for place, line in lines.items():
                self._lines[place] = line
                self._lines.move_to_end(place)
            while len(self._lines) > _REMEMBERED:
                self._lines.popitem(last=False)


def grown(line: Line, version: str, data: bytes, items: int) -> tuple[Line, bytes] | None:
    """Give the blobs that hold a list, and the bytes of the last one of them, which is to be stored.

    Args:
        line: The blobs of an earlier list. If that one is the beginning of this, its blobs are used again.
        version: The version of the list.
        data: All of it, in MessagePack.
        items: The number of its items.

    Returns:
        None if it is better stored as it is.
    """
    body = memoryview(data)[len(header_bytes(items)) :]
    if len(body) < _SMALLEST_BYTES or not may_be_named(version):
        return None
    digest = _continued(line, body, items)
    if digest is not None:
        number = line[-1].piece.number + (line[-1].version != version)
        kept = _kept(line, number)
        start = kept[-1].piece.bytes if kept else 0
        outweighs = 4 * (len(body) - start) > 3 * len(body)
        if kept and number <= _MOST_APPENDS and not outweighs and version not in _versions(kept):
            piece = Piece(number, items, len(body), digest, _versions(kept))
            return (*kept, PieceRow(version, piece.kind, piece)), bytes(body[start:])
    return whole(version, data, items, digest)


def whole(version: str, data: bytes, items: int, digest: str | None = None) -> tuple[Line, bytes]:
    """Give the blob that holds all of a list, and its bytes."""
    body = memoryview(data)[len(header_bytes(items)) :]
    piece = Piece(0, items, len(body), digest or digest_of(body), ())
    return (PieceRow(version, piece.kind, piece),), bytes(body)


def _continued(line: Line, body: memoryview, items: int) -> str | None:
    """Give the digest of a list, if the one that `line` has is its beginning."""
    if not line:
        return None
    known = line[-1].piece
    if known.bytes > len(body) or known.items > items or not known.digest:
        return None
    digest = blake2b(body[: known.bytes], digest_size=DIGEST_BYTES)
    if digest.hexdigest() != known.digest:
        return None
    digest.update(body[known.bytes :])
    return digest.hexdigest()


def _kept(line: Line, number: int) -> Line:
    """Give the blobs that append `number` needs of those that the one before it was read from."""
    last = number - (number & -number)
    return tuple(row for row in line if row.piece.number <= last and number)


def _versions(line: Iterable[PieceRow]) -> tuple[str, ...]:
    return tuple(row.version for row in line)
