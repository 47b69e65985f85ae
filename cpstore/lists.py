"""Lists that grow, to blobs with what is new in them, and back. Pure: no database, no waiting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from langgraph.checkpoint.serde.base import SerializerProtocol

from cpstore import places
from cpstore.appends import Appends, Line, Place, grown, whole
from cpstore.errors import UnreadableValueError
from cpstore.pieces import Piece, PieceRow, is_piece
from cpstore.records import (
    Blob,
    BlobKey,
    CheckpointRecord,
    HeldValue,
    Key,
    LoadedCheckpoint,
    StoredList,
)
from cpstore.serde import Serializer

__all__ = ["encode", "lines_read", "lines_stored", "load", "without_pieces"]


def encode(
    serde: Serializer, key: Key, blob: BlobKey, value: list[Any], known: Appends
) -> tuple[Blob, list[StoredList]]:
    """Encode a list: its blob, and the list it stands for if it is stored in pieces.

    Raises:
        UnstorableValueError: The serializer refused it.
    """
    place = places.of_blob(key, *blob[2:])
    data = places.dump_list(serde, value, place)
    if data is None:
        return Blob(*blob[2:], *places.dump(serde, value, place)), []
    found = grown(known.line(Place(*blob[:3])), blob.version, data, len(value))
    if found is None:
        return Blob(*blob[2:], *serde.compressed("msgpack", data)), []
    line, own = found
    made, row = _packed(serde, StoredList(blob.channel, line, data, len(value)), own)
    return row, [made]


def _packed(serde: Serializer, made: StoredList, own: bytes) -> tuple[StoredList, Blob]:
    """Give a list whose last blob has the type that its bytes get, and that blob."""
    *before, last = made.line
    kind, data = serde.compressed(last.type, own)
    line = (*before, PieceRow(last.version, kind, last.piece))
    return replace(made, line=line), Blob(made.channel, last.version, kind, data)


def without_pieces(serde: SerializerProtocol, record: CheckpointRecord) -> CheckpointRecord:
    """Give a record whose lists need no other blobs."""
    lists, blobs = [], {blob.channel: blob for blob in record.blobs}
    for old in record.lists:
        line, own = whole(old.line[-1].version, old.data, old.items)
        made, blobs[old.channel] = _packed(cast("Serializer", serde), replace(old, line=line), own)
        lists.append(made)
    return replace(record, blobs=tuple(blobs.values()), lists=tuple(lists))


def lines_stored(record: CheckpointRecord) -> dict[Place, Line]:
    """Give the blobs of the lists that were stored."""
    return {Place(*record.key[:2], each.channel): each.line for each in record.lists}


def lines_read(loaded: LoadedCheckpoint) -> dict[Place, Line]:
    """Give the blobs of the lists that were read, none of which is gone."""
    return {
        Place(*loaded.row.key[:2], blob.channel): tuple(
            PieceRow(row.version, row.type, piece)
            for row in (*before, blob)
            if row is not None and (piece := Piece.of(row.type)) is not None
        )
        for blob, before in loaded.values
        if is_piece(blob.type)
    }


def load(serde: SerializerProtocol, key: Key, value: HeldValue) -> Any:
    """Decode the value of a blob, with those that hold the beginning of its list.

    Raises:
        UnreadableValueError: The serializer refused it, or they are not the whole list.
    """
    blob, before = value
    if not is_piece(blob.type):
        return places.load_blob(serde, key, blob)
    place = places.of_blob(key, blob.channel, blob.version)
    rows = []
    for row in (*before, blob):
        if row is None:
            gone = UnreadableValueError("a blob with a part of the list is gone")
            return places.note(serde, blob.type, len(blob.blob or b""), gone, place)
        rows.append((row.type, row.blob, places.of_blob(key, row.channel, row.version)))
    return places.load_pieces(serde, rows, place)
