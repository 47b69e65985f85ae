"""Where a value is stored: what an encrypted value is bound to, and what an error names."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeGuard

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from cpstore.errors import CpstoreError, TypeNotAllowedError, UnreadableValueError, UnstorableValueError
from cpstore.records import UNVERSIONED, Blob, Key, object_in, parsed_object
from cpstore.serde import Serializer
from cpstore.serde.joining import joined

__all__ = [
    "Place",
    "Rebinder",
    "appends",
    "described",
    "dump",
    "dump_list",
    "inlines",
    "load",
    "load_blob",
    "load_inline",
    "load_pieces",
    "load_text",
    "note",
    "of_blob",
    "of_document",
    "of_value",
    "of_write",
    "rebinder_for",
]

Change = Callable[[tuple[str, bytes], bytes, bytes], tuple[str, bytes]]
"""Gives a value's type and bytes anew, from those that it has, its place, and the place that it comes to."""


_MOST_BYTES = 1 << 30
"""The most bytes that a compressed list may have, if the serializer does not say."""


class Place(NamedTuple):
    """Where a value is stored; its key and its description are made when somebody asks for them.

    Attributes:
        what: Of which kind: `blob`, `value`, `document` or `write`.
        checkpoint: The checkpoint that has it, or points at it.
        names: What else is in its key; of a write, its channel comes last, and else first.
    """

    what: str
    checkpoint: Key
    names: tuple[str, ...]

    def __bytes__(self) -> bytes:
        """Give the key as bytes that no other key has. A blob is bound to no checkpoint."""
        owner = self.checkpoint[:2] if self.what == "blob" else self.checkpoint
        return json.dumps((self.what, *owner, *self.names)).encode()

    @property
    def description(self) -> str:
        """The place, for people."""
        checkpoint = described(self.checkpoint)
        if self.what == "document":
            return f"the document of {checkpoint}"
        if self.what == "write":
            return f"the write of task {self.names[0]!r} to channel {self.names[-1]!r} under {checkpoint}"
        return f"channel {self.names[0]!r} of {checkpoint}"


def of_blob(key: Key, channel: str, version: str) -> Place:
    """Give the place of a blob. A checkpoint that points at it is named, but the blob is not bound to it."""
    return Place("blob", key, (channel, version))


def of_value(key: Key, channel: str) -> Place:
    """Give the place of a value without a version, in its checkpoint."""
    return Place("value", key, (channel,))


def of_document(key: Key) -> Place:
    """Give the place of a document that is one value with all its channels, as other savers have it."""
    return Place("document", key, ())


def of_write(key: Key, task_id: str, idx: int, channel: str) -> Place:
    """Give the place of a pending write."""
    return Place("write", key, (task_id, str(idx), channel))


def dump(serde: SerializerProtocol, value: Any, place: Place) -> tuple[str, bytes]:
    """Encode a value for its place.

    Raises:
        UnstorableValueError: The serializer refused it. The message names the place and the type, never the
            value.
    """
    try:
        if hasattr(serde, "dumps_at"):
            kind, data = serde.dumps_at(value, bytes(place))
            return kind, data
        return serde.dumps_typed(value)
    except Exception as error:
        raise _unstorable(value, error, place) from _shown(serde, error)


def dump_list(serde: Serializer, value: list[Any], place: Place) -> bytes | None:
    """Encode a list, not compressed, for a serializer that :func:`appends`; None: it is to be dumped.

    Raises:
        UnstorableValueError: As :func:`dump`.
    """
    try:
        return serde.dumps_list(value)
    except Exception as error:
        raise _unstorable(value, error, place) from _shown(serde, error)


def _unstorable(value: Any, error: Exception, place: Place) -> UnstorableValueError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    reason = str(error) if isinstance(error, (TypeError, CpstoreError)) else type(error).__name__
    return UnstorableValueError(f"A {kind} for {place.description} cannot be stored: {reason}")


def load(serde: SerializerProtocol, kind: str, blob: bytes | None, place: Place) -> Any:
    """Decode the value at a place.

    Raises:
        UnreadableValueError: The serializer refused it; the message names the place.
        TypeNotAllowedError: It is of a type that is not allowed.
    """
    try:
        if hasattr(serde, "loads_at"):
            return serde.loads_at((kind, blob or b""), bytes(place))
        return serde.loads_typed((kind, blob or b""))
    except Exception as error:
        raise _unreadable(serde, error, place) from _shown(serde, error)


def load_blob(serde: SerializerProtocol, key: Key, blob: Blob) -> Any:
    """Decode a blob that holds all of its value. Its place is made only if somebody asks for it.

    Raises:
        UnreadableValueError: As :func:`load`.
        TypeNotAllowedError: As :func:`load`.
    """
    if hasattr(serde, "loads_at"):
        return load(serde, blob.type, blob.blob, of_blob(key, blob.channel, blob.version))
    try:
        return serde.loads_typed((blob.type, blob.blob or b""))
    except Exception as error:
        place = of_blob(key, blob.channel, blob.version)
        raise _unreadable(serde, error, place) from _shown(serde, error)


def load_pieces(
    serde: SerializerProtocol, pieces: Sequence[tuple[str, bytes | None, Place]], place: Place
) -> Any:
    """Decode a list from the blobs that hold it, each with its own place, in the order of their items.

    Raises:
        UnreadableValueError: As :func:`load`, or they are not the whole list.
        TypeNotAllowedError: As :func:`load`.
    """
    sealed: Any = serde if hasattr(serde, "open_at") else None
    try:
        typed = (
            sealed.open_at((kind, blob or b""), bytes(there)) if sealed else (kind, blob or b"")
            for kind, blob, there in pieces
        )
        whole = joined(typed, getattr(serde, "max_bytes", _MOST_BYTES))
        return sealed.loads_opened(whole) if sealed else serde.loads_typed(whole)
    except Exception as error:
        last, size = pieces[-1][0], sum(len(blob or b"") for _, blob, _ in pieces)
        return note(serde, last, size, error, place)


def note(serde: SerializerProtocol, kind: str, size: int, error: Exception, place: Place) -> Any:
    """Give the note of a serializer that has one for a value that cannot be read.

    Raises:
        UnreadableValueError: It has none; the message names the place.
        TypeNotAllowedError: As that, of a type that is not allowed.
    """
    if hasattr(serde, "unread"):
        return serde.unread(kind, size, error)
    raise _unreadable(serde, error, place) from _shown(serde, error)


def load_inline(serde: SerializerProtocol, values: dict[str, Any], key: Key) -> dict[str, Any]:
    """Give values that stand in a document as they are; a serializer that binds values to places decides.

    Raises:
        UnreadableValueError: The serializer takes no value that it did not seal.
    """
    if not hasattr(serde, "loads_at"):
        return values
    return {
        channel: load(serde, "json", json.dumps(value).encode(), of_value(key, channel))
        for channel, value in values.items()
    }


def load_text(serde: SerializerProtocol, typed: Any, place: Place) -> Any:
    """Decode a value that stands in the document, as its type and its bytes in base 64.

    Raises:
        UnreadableValueError: It is no such pair, or the serializer refused it; the message names the place.
        TypeNotAllowedError: It is of a type that is not allowed.
    """
    try:
        kind, blob = _from_text(serde, typed, place)
    except UnreadableValueError as error:
        return note(serde, "", 0, error, place)
    return load(serde, kind, blob, place)


def inlines(serde: SerializerProtocol) -> bool:
    """Tell whether primitive values may stand in the document, beside the serializer.

    Only where we know that it hides nothing: another one may encrypt, and so may a subclass of ours.
    """
    encode = getattr(serde.dumps_typed, "__func__", None)
    return encode in (Serializer.dumps_typed, JsonPlusSerializer.dumps_typed)


def appends(serde: SerializerProtocol) -> TypeGuard[Serializer]:
    """Tell whether a list that grows may be stored in pieces.

    Only by our own serializer, while it is free in its forms: whoever changes what is stored, as by
    encryption, would have to say that each piece can be read for itself.
    """
    encode = getattr(serde.dumps_typed, "__func__", None)
    return isinstance(serde, Serializer) and encode is Serializer.dumps_typed and not serde.compatible


def described(key: Key) -> str:
    """Give the name of a checkpoint for people."""
    namespace = f", namespace {key.checkpoint_ns!r}" if key.checkpoint_ns else ""
    return f"thread {key.thread_id!r}{namespace}, checkpoint {key.checkpoint_id!r}"


def rebinder_for(serde: SerializerProtocol | None, target: str | None = None) -> Rebinder | None:
    """Give what binds values to another thread; None if the serializer does not bind them to places."""
    return Rebinder(serde, target) if hasattr(serde, "rebind") else None


class Rebinder:
    """Binds the values of rows anew, for a serializer that binds values to places.

    Args:
        serde: The serializer; it has a method `rebind`.
        target: The thread that they come to; None: their own.
    """

    def __init__(self, serde: Any, target: str | None = None) -> None:
        self._serde = serde
        self._target = target

    def __call__(self, part: str, row: dict[str, Any]) -> dict[str, Any]:
        """Give a row of a table, by column names, as it is to stand in the thread that it comes to.

        Raises:
            UnreadableValueError: A value in it is not bound to its place; the message names the place.
        """
        return self._changed(part, row, self._serde.rebind)

    def opened(self, part: str, row: dict[str, Any]) -> dict[str, Any]:
        """Give a row with its values as they were encoded, so that it can be compared with another.

        Raises:
            UnreadableValueError: As for a call.
        """
        return self._changed(part, row, lambda typed, place, _: self._serde.open_at(typed, place))

    def _changed(self, part: str, row: dict[str, Any], change: Change) -> dict[str, Any]:
        key = Key(row["thread_id"], row["checkpoint_ns"], row.get("checkpoint_id", ""))
        if part == "checkpoints":
            return row | {"checkpoint": self._document(key, row["checkpoint"], change)}
        if row["blob"] is None:
            return row
        kind, blob = self._moved(key, (row["type"], row["blob"]), partial(_place_of, part, row), change)
        return row | {"type": kind, "blob": blob}

    def _document(self, key: Key, text: str, change: Change) -> str:
        """Change the values in a document; those that stand there as they are get sealed, if they may."""
        document = parsed_object(text)
        if document is None:
            return text
        found = {channel: ("json", json.dumps(value).encode()) for channel, value in _inline(document)}
        for channel, typed in object_in(document, UNVERSIONED).items():
            found[channel] = _from_text(self._serde, typed, of_value(key, channel))
        if not found:
            return text
        document |= {"channel_values": {}, UNVERSIONED: {}}
        for channel, value in found.items():
            kind, moved = self._moved(key, value, partial(of_value, channel=channel), change)
            document[UNVERSIONED][channel] = [kind, base64.b64encode(moved).decode("ascii")]
        return json.dumps(document)

    def _moved(
        self, key: Key, typed: tuple[str, bytes], place: Callable[[Key], Place], change: Change
    ) -> tuple[str, bytes]:
        here = place(key)
        there = here if self._target is None else place(key._replace(thread_id=self._target))
        try:
            kind, moved = change(typed, bytes(here), bytes(there))
        except Exception as error:
            raise _unreadable(self._serde, error, here) from _shown(self._serde, error)
        return kind, moved


def _inline(document: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return object_in(document, "channel_values").items()


def _place_of(part: str, row: dict[str, Any], key: Key) -> Place:
    if part == "blobs":
        return of_blob(key, row["channel"], row["version"])
    return of_write(key, row["task_id"], row["idx"], row["channel"])


def _from_text(serde: SerializerProtocol, typed: Any, place: Place) -> tuple[str, bytes]:
    try:
        kind, text = typed
        return str(kind), base64.b64decode(text)
    except Exception as error:
        raise _unreadable(serde, error, place) from _shown(serde, error)


def _unreadable(serde: SerializerProtocol, error: Exception, place: Place) -> UnreadableValueError:
    wrapper = TypeNotAllowedError if isinstance(error, TypeNotAllowedError) else UnreadableValueError
    reason = str(error) if isinstance(error, CpstoreError) else type(error).__name__
    return wrapper(f"The value at {place.description} cannot be read: {reason}")


def _shown(serde: SerializerProtocol, error: Exception) -> Exception | None:
    """Give the cause of an error; none if the serializer may hide values: the cause's text may have one."""
    return error if inlines(serde) else None
