"""Lists that grow are stored in pieces: what the type of such a blob says.

A blob of type `items;…;` holds the MessagePack of some items of a list, one after the other, without the
header of the array. A list that another one continues is not stored again: the new blob has the items of the
last appends, and names the versions whose blobs have those before them.

Appends are counted from the last blob that has all of its list. Append k stores the items of the last
`k & -k` appends, so what is before it ends with append `k - (k & -k)`, and so on down to 0: n appends store
O(n log n) items, and a list is read from at most log2(n) + 2 blobs. Nothing is ever rewritten, so every
version, of every fork, is read in the same way.

The type tells all of that, and a digest of the list. So two blobs of one type hold the same items, and
whoever continues a list can see to it that its beginning is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

__all__ = [
    "DIGEST_BYTES",
    "Piece",
    "PieceRow",
    "anonymous",
    "digest_of",
    "is_piece",
    "may_be_named",
    "pieces_before",
]

_TYPE = re.compile(r"items;([\w.,-]*);(\d{1,9});(\d{1,18});(\d{1,18});([0-9a-f]{32}|);", re.ASCII)
_VERSION = re.compile(r"[\w.-]{1,64}", re.ASCII)
DIGEST_BYTES = 16


@dataclass(frozen=True)
class Piece:
    """What the type of a blob with items says.

    Attributes:
        number: How many appends it is from the last blob that has all of its list; that one is 0.
        items: The number of items of the list, these and those before.
        bytes: The bytes of all these items in MessagePack, before they are compressed.
        digest: Their BLAKE2b of 16 bytes, in hexadecimal digits; empty where it would tell too much.
        before: The versions of the blobs that have what is before it, in the order of their items.
    """

    number: int
    items: int
    bytes: int
    digest: str
    before: tuple[str, ...]

    @classmethod
    def of(cls, kind: str) -> Piece | None:
        """Read the type of a blob; None if it is not that of a piece."""
        found = _TYPE.match(kind)
        if found is None:
            return None
        before, number, items, size, digest = found.groups()
        return cls(int(number), int(items), int(size), digest, tuple(before.split(",")) if before else ())

    @property
    def kind(self) -> str:
        """The type; how the bytes are compressed stands after it."""
        return f"items;{','.join(self.before)};{self.number};{self.items};{self.bytes};{self.digest};"


@dataclass(frozen=True)
class PieceRow:
    """A blob that holds items, by its version, with its whole type."""

    version: str
    type: str
    piece: Piece


def is_piece(kind: str) -> bool:
    """Tell whether this is the type of a piece, or one that is damaged."""
    return kind.startswith("items;")


def pieces_before(kind: str) -> tuple[str, ...]:
    """Give the versions of the blobs that a blob of this type needs to be read."""
    if not is_piece(kind):
        return ()
    piece = Piece.of(kind)
    return () if piece is None else piece.before


def may_be_named(version: str) -> bool:
    """Tell whether a version may stand in a type."""
    return _VERSION.fullmatch(version) is not None


def digest_of(body: bytes | memoryview) -> str:
    """Give the digest of items in MessagePack."""
    return blake2b(body, digest_size=DIGEST_BYTES).hexdigest()


def anonymous(kind: str) -> str:
    """Give a type without its digest, by which a text could be guessed that is encrypted."""
    found = _TYPE.match(kind)
    return kind if found is None else kind[: found.start(5)] + kind[found.end(5) :]
