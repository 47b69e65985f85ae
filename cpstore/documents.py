"""Documents of langgraph-checkpoint-sqlite, taken apart into rows of ours. Pure: no database, no waiting.

A document there is one value with all channel values in it, the same ones again in each checkpoint. Here a
value is a blob, once for each version of its channel.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from cpstore import places
from cpstore.addresses import identifier
from cpstore.codec import damage_named, dump_document, is_inline
from cpstore.errors import UnreadableValueError
from cpstore.metadata import dump_metadata
from cpstore.places import Place
from cpstore.records import TASKS, UNVERSIONED, Key, format_of, version_text
from cpstore.serde import raw

__all__ = ["Unpacked", "unpack", "write_row"]

Dump = Callable[[Any, Place], tuple[str, bytes]]

_SENDS = "pending_sends"


@dataclass(frozen=True)
class Unpacked:
    """One checkpoint taken apart.

    Attributes:
        row: Its row, without its document.
        document: Its document, without the values that can be blobs.
        blobs: Rows of its values, by their channels.
        sure: Whether the same value always has the same bytes.
    """

    row: dict[str, Any]
    document: dict[str, Any]
    blobs: dict[str, dict[str, Any]]
    sure: bool

    def stored(self, own: Collection[str] = ()) -> dict[str, Any]:
        """Give the checkpoint's row; its document holds the values of its `own` channels.

        Those are values that differ from the blob of their version: versions repeated, or a node changed a
        value in place. The document goes before the blob.
        """
        values = {
            channel: _as_text(self.blobs[channel]["type"], self.blobs[channel]["blob"]) for channel in own
        }
        encoded = self.document[UNVERSIONED] | values
        rest = {name: part for name, part in self.document.items() if name != UNVERSIONED}
        return self.row | {"checkpoint": dump_document(rest | ({UNVERSIONED: encoded} if encoded else {}))}


def unpack(row: Mapping[str, Any], serde: SerializerProtocol | None) -> Unpacked:
    """Take a checkpoint's row apart.

    Objects are not rebuilt, if its type is one that can be taken apart without it. Another one, such as an
    encrypted one, is decoded and its values are encoded again by `serde`.

    Raises:
        UnreadableValueError: It is damaged, or of a type that needs a serializer to be read.
        UnstorableValueError: The serializer refused a value.
        InvalidConfigError: A name in it cannot be stored.
    """
    key = Key(*(identifier(name, row[name]) for name in Key._fields))
    with damage_named(key):
        document, dump, inlines = _loaded(key, row["type"], row["checkpoint"], serde)
        return _unpacked(key, row, document, dump, inlines)


def write_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Give the row of a pending write, whose value stays as it is."""
    names = {name: identifier(name, row[name]) for name in (*Key._fields, "task_id", "channel")}
    return {"task_path": "", **row, **names, "blob": row["blob"] or b""}


def _loaded(
    key: Key, kind: str, data: bytes, serde: SerializerProtocol | None
) -> tuple[dict[str, Any], Dump, bool]:
    """Give a document, what encodes values in it, and whether primitive ones may stand in ours."""
    if raw.takes_apart(kind):
        return raw.load(kind, data), lambda value, _: (kind, raw.dump(kind, value)), True
    if serde is None:
        raise UnreadableValueError(
            f"The document of {places.described(key)} is of type {kind!r}: pass the serde= that reads it"
        )
    document = places.load(serde, kind, data, places.of_document(key))
    return document, partial(places.dump, serde), places.inlines(serde)


def _unpacked(
    key: Key, row: Mapping[str, Any], document: Mapping[str, Any], dump: Dump, inlines: bool
) -> Unpacked:
    versions = document.get("channel_versions") or {}
    inline: dict[str, Any] = {}
    bare: dict[str, list[str]] = {}
    blobs: dict[str, dict[str, Any]] = {}
    rest, values = _with_sends(document)
    for channel, value in values.items():
        version = versions.get(channel)
        if version is None:
            bare[channel] = _as_text(*dump(value, places.of_value(key, channel)))
        elif inlines and isinstance(version, str) and is_inline(value):
            inline[channel] = value  # a version that is a number may be another fork's too
        else:
            blobs[channel] = _blob_row(key, channel, version_text(version), value, dump)
    return Unpacked(
        row=key._asdict()
        | {
            "parent_checkpoint_id": row["parent_checkpoint_id"] or None,
            "type": None,
            "metadata": dump_metadata(json.loads(row["metadata"] or b"{}")),
        },
        document={**rest, "channel_values": inline, UNVERSIONED: bare},
        blobs=blobs,
        sure=raw.takes_apart(row["type"]),
    )


def _with_sends(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give a document without its values, and these; at first, sends were not among them."""
    rest = dict(document)
    values = dict(rest.pop("channel_values", None) or {})
    if format_of(rest) < 4 and rest.get(_SENDS):
        values.setdefault(TASKS, rest.pop(_SENDS))
    return rest, values


def _blob_row(key: Key, channel: str, version: str, value: Any, dump: Dump) -> dict[str, Any]:
    names = identifier("channel", channel), identifier("version", version)
    kind, blob = dump(value, places.of_blob(key, *names))
    return {
        "thread_id": key.thread_id,
        "checkpoint_ns": key.checkpoint_ns,
        "channel": names[0],
        "version": names[1],
        "type": kind,
        "blob": blob,
    }


def _as_text(kind: str, blob: bytes) -> list[str]:
    return [kind, base64.b64encode(blob).decode("ascii")]
