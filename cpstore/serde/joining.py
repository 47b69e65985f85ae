"""Lists that are stored in pieces, put together."""

from __future__ import annotations

from collections.abc import Iterable

from cpstore.errors import UnreadableValueError
from cpstore.pieces import Piece
from cpstore.serde.compression import decompress

__all__ = ["header_bytes", "joined"]


def header_bytes(items: int) -> bytes:
    """Give the header of a MessagePack array."""
    if items < 16:
        return bytes((0x90 | items,))
    return b"\xdc" + items.to_bytes(2, "big") if items < 1 << 16 else b"\xdd" + items.to_bytes(4, "big")


def joined(pieces: Iterable[tuple[str, bytes]], limit: int) -> tuple[str, bytes]:
    """Give type and bytes of a list from its pieces, which are in the order of their items.

    Raises:
        UnreadableValueError: They do not follow each other, are damaged, or have more than `limit` bytes.
    """
    parts: list[bytes] = []
    size = items = 0
    for kind, data in pieces:
        bare, part = decompress(kind, data, limit - size)
        piece = Piece.of(bare)
        size += len(part)
        if piece is None or piece.bytes != size:
            raise UnreadableValueError("The blobs that hold parts of the list do not follow each other")
        items = piece.items
        parts.append(part)
    return "msgpack", b"".join((header_bytes(items), *parts))
