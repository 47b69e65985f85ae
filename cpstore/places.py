"""Where a value is stored: what an encrypted value is bound to, and what an error names."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from cpstore.errors import CpstoreError, TypeNotAllowedError, UnreadableValueError, UnstorableValueError
from cpstore.records import UNVERSIONED, Key, parsed_object

__all__ = [
    "Place",
    "Rebinder",
    "described",
    "dump",
    "inlines",
    "load",
    "of_blob",
    "of_value",
    "of_write",
    "rebinder_for",
]


class Place(NamedTuple):
    """The key of a stored value, and its description for people."""

    key: tuple[str, ...]
    description: str

    def __bytes__(self) -> bytes:
        """Give the key as bytes that no other key has."""
        return json.dumps(self.key).encode()


def of_blob(key: Key, channel: str, version: str) -> Place:
    """Give the place of a blob. A checkpoint that points at it is named, but the blob is not bound to it."""
    place = ("blob", key.thread_id, key.checkpoint_ns, channel, version)
    return Place(place, f"channel {channel!r} of {described(key)}")


def of_value(key: Key, channel: str) -> Place:
    """Give the place of a value without a version, in its checkpoint."""
    return Place(("value", *key, channel), f"channel {channel!r} of {described(key)}")


def of_write(key: Key, task_id: str, idx: int, channel: str) -> Place:
    """Give the place of a pending write."""
    place = ("write", *key, task_id, str(idx), channel)
    return Place(place, f"the write of task {task_id!r} to channel {channel!r} under {described(key)}")


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
        kind_of_value = f"{type(value).__module__}.{type(value).__qualname__}"
        reason = str(error) if isinstance(error, (TypeError, CpstoreError)) else type(error).__name__
        raise UnstorableValueError(
            f"A {kind_of_value} for {place.description} cannot be stored: {reason}"
        ) from error


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
        wrapper = TypeNotAllowedError if isinstance(error, TypeNotAllowedError) else UnreadableValueError
        reason = str(error) if isinstance(error, CpstoreError) else type(error).__name__
        raise wrapper(f"The value at {place.description} cannot be read: {reason}") from error


def inlines(serde: SerializerProtocol) -> bool:
    """Tell whether primitive values may stand in the document, beside the serializer.

    Only where we know that it hides nothing: another one may encrypt.
    """
    return isinstance(serde, JsonPlusSerializer)


def described(key: Key) -> str:
    """Give the name of a checkpoint for people."""
    namespace = f", namespace {key.checkpoint_ns!r}" if key.checkpoint_ns else ""
    return f"thread {key.thread_id!r}{namespace}, checkpoint {key.checkpoint_id!r}"


def rebinder_for(serde: SerializerProtocol, target: str) -> Rebinder | None:
    """Give what binds values to another thread; None if the serializer does not bind them to places."""
    return Rebinder(serde, target) if hasattr(serde, "rebind") else None


class Rebinder:
    """Binds the values of rows to another thread, for a serializer that binds values to places.

    Args:
        serde: The serializer; it has a method `rebind`.
        target: The other thread.
    """

    def __init__(self, serde: Any, target: str) -> None:
        self._serde = serde
        self._target = target

    def __call__(self, part: str, row: dict[str, Any]) -> dict[str, Any]:
        """Give a row of a table, by column names, as it is to stand in the other thread."""
        key = Key(row["thread_id"], row["checkpoint_ns"], row.get("checkpoint_id", ""))
        if part == "checkpoints":
            return row | {"checkpoint": self._document(key, row["checkpoint"])}
        if row["blob"] is None:
            return row
        kind, blob = self._moved(key, row["type"], row["blob"], lambda at: _place_of(part, at, row))
        return row | {"type": kind, "blob": blob}

    def _document(self, key: Key, text: str) -> str:
        document = parsed_object(text)
        if document is None or UNVERSIONED not in document:
            return text
        for channel, (kind, blob) in document[UNVERSIONED].items():
            place = partial(of_value, channel=channel)
            kind, moved = self._moved(key, kind, base64.b64decode(blob), place)
            document[UNVERSIONED][channel] = [kind, base64.b64encode(moved).decode("ascii")]
        return json.dumps(document)

    def _moved(self, key: Key, kind: str, blob: bytes, place: Callable[[Key], Place]) -> tuple[str, bytes]:
        there = key._replace(thread_id=self._target)
        kind, moved = self._serde.rebind((kind, blob), bytes(place(key)), bytes(place(there)))
        return kind, moved


def _place_of(part: str, key: Key, row: dict[str, Any]) -> Place:
    if part == "blobs":
        return of_blob(key, row["channel"], row["version"])
    return of_write(key, row["task_id"], row["idx"], row["channel"])
