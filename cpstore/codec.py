"""LangGraph's checkpoints and writes to records, and back. Pure: no database, no waiting.

A checkpoint becomes one JSON document and a blob for each channel that is new in it. Short primitive values
stay in the document, under `channel_values`, where anyone who reads JSON sees them. A value that has no
version at all cannot have a blob, so it stays in the document too, encoded, under `__unversioned__`. Of a
list that continues one that is stored, the blob has what is new.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from cpstore import lists, places
from cpstore.addresses import (
    address_of,
    config_of,
    identifier,
    key_of,
    next_version,
    version_order,
)
from cpstore.appends import Appends
from cpstore.errors import CpstoreError, InvalidConfigError, UnreadableValueError
from cpstore.metadata import MetadataKeys, Only, dump_metadata, is_storable, kept_metadata
from cpstore.places import Place
from cpstore.records import (
    EMPTY,
    TASKS,
    UNVERSIONED,
    Blob,
    BlobKey,
    ChannelHistory,
    CheckpointRecord,
    CheckpointRow,
    HeldValue,
    Key,
    LoadedCheckpoint,
    StoredList,
    Write,
    WritesRecord,
    version_text,
)
from cpstore.serde import Serializer

__all__ = [
    "damage_named",
    "decode",
    "decode_histories",
    "dump_document",
    "encode_checkpoint",
    "encode_writes",
    "is_inline",
]

_INLINE_CHARACTERS = 256
_INLINE_BITS = 63
_UNCHANGING = frozenset({str, bytes, int, float, bool, type(None)})

Shared = dict[int, Any]

_SUSPICIOUS = re.compile(r"\\u(?:0000|d[89a-f])")
"""How JSON writes a NUL, a lone surrogate, or something that is as good as it looks."""


def encode_checkpoint(
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    keys: MetadataKeys | None = None,
    known: Appends | None = None,
) -> CheckpointRecord:
    """Encode what `put` was given. The config's `checkpoint_id` is the parent. No argument is changed.

    Args:
        serde: The serializer.
        config: As for `put`.
        checkpoint: As for `put`.
        metadata: As for `put`.
        new_versions: As for `put`.
        keys: The metadata that is stored.
        known: The lists that are stored already, whose continuations are stored without them; None: lists
            are stored as other values are.

    Raises:
        UnstorableValueError: The serializer refused a value; nothing is stored then.
    """
    address = address_of(config)
    key = Key(address.thread_id, address.checkpoint_ns, identifier("checkpoint_id", checkpoint["id"]))
    values = checkpoint.get("channel_values") or {}
    inline = {}
    if places.inlines(serde):
        inline = {channel: value for channel, value in values.items() if is_inline(value)}
    elif keys is None:
        keys = Only()
    fresh = {channel: version for channel, version in new_versions.items() if channel not in inline}
    blobs, growing = _encode_blobs(serde, key, fresh, values, known if places.appends(serde) else None)
    return CheckpointRecord(
        key=key,
        parent_checkpoint_id=address.checkpoint_id,
        checkpoint=_document(serde, key, checkpoint, inline),
        metadata=dump_metadata(kept_metadata(get_checkpoint_metadata(config, metadata), keys)),
        blobs=blobs,
        lists=growing,
    )


def encode_writes(
    serde: SerializerProtocol,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> WritesRecord:
    """Encode what `put_writes` was given. Of two writes to one special channel the last is meant."""
    key = key_of(config)
    task = identifier("task_id", task_id)
    encoded = {}
    for position, (channel, value) in enumerate(writes):
        idx = WRITES_IDX_MAP.get(channel, position)
        name = identifier("channel", channel)
        typed = places.dump(serde, value, places.of_write(key, task, idx, name))
        encoded[idx] = Write(task, idx, name, *typed, task_path)
    return WritesRecord(key, tuple(encoded.values()))


def decode_histories(
    serde: SerializerProtocol, histories: Mapping[str, ChannelHistory]
) -> dict[str, DeltaChannelHistory]:
    """Give what LangGraph rebuilds delta channels from.

    Raises:
        UnreadableValueError: A value, or the row that has it, cannot be read.
    """
    decoded: dict[str, DeltaChannelHistory] = {}
    for channel, history in histories.items():
        decoded[channel] = {"writes": [_decode_write(serde, key, write) for key, write in history.writes]}
        if history.seed is not None:
            row, value = history.seed
            with damage_named(row.key):
                seed = _values(serde, row, (value,) if value else (), {}, {channel})
                decoded[channel]["seed"] = seed[channel]
    return decoded


def decode(
    serde: SerializerProtocol, loaded: LoadedCheckpoint, shared: Shared | None = None
) -> CheckpointTuple:
    """Give what LangGraph is to see. All values are made anew: LangGraph changes them in place.

    Args:
        serde: The serializer.
        loaded: The checkpoint.
        shared: Values that nobody can change, such as texts, by the stored value they are of. Checkpoints
            that were loaded together have it together, so that these are decoded once.

    Raises:
        UnreadableValueError: A value, or the row itself, cannot be read.
    """
    with damage_named(loaded.row.key):
        return _decode(serde, loaded, {} if shared is None else shared)


@contextmanager
def damage_named(key: Key) -> Iterator[None]:
    """Whatever a damaged row does to its reader, the error names the row."""
    try:
        yield
    except CpstoreError:
        raise
    except Exception as error:
        raise UnreadableValueError(f"The row of {places.described(key)} is damaged") from error


def _decode(serde: SerializerProtocol, loaded: LoadedCheckpoint, shared: Shared) -> CheckpointTuple:
    row = loaded.row
    parent = row.parent_checkpoint_id
    return CheckpointTuple(
        config=config_of(row.key),
        checkpoint=_decode_checkpoint(serde, loaded, shared),
        metadata=cast("CheckpointMetadata", json.loads(row.metadata)),
        parent_config=None if parent is None else config_of(row.key._replace(checkpoint_id=parent)),
        pending_writes=[
            _decode_write(serde, row.key, write) for write in sorted(loaded.writes, key=Write.order)
        ],
    )


def _document(serde: SerializerProtocol, key: Key, checkpoint: Checkpoint, inline: dict[str, Any]) -> str:
    document: dict[str, Any] = {**checkpoint, "channel_values": inline}
    versions = checkpoint.get("channel_versions") or {}
    bare = {
        channel: _dump_text(serde, value, places.of_value(key, channel))
        for channel, value in (checkpoint.get("channel_values") or {}).items()
        if channel not in inline and channel not in versions
    }
    if bare:
        document[UNVERSIONED] = bare
    return dump_document(document)


def dump_document(document: dict[str, Any]) -> str:
    """Give the text of a checkpoint's document.

    Raises:
        InvalidConfigError: A name in it has a character that PostgreSQL cannot store.
    """
    text = json.dumps(document, allow_nan=False)
    if _SUSPICIOUS.search(text) and (broken := _broken_text(document)) is not None:
        raise InvalidConfigError(
            f"{broken!a}, a name in the checkpoint, has a character that cannot be stored"
        )
    return text


def _broken_text(part: Any) -> str | None:
    """Find a text that PostgreSQL refuses: names of channels and nodes are checked, for all databases."""
    if isinstance(part, str):
        return None if is_storable(part) else part
    if isinstance(part, dict):
        part = (*part, *part.values())
    if not isinstance(part, (list, tuple)):
        return None
    return next((found for each in part if (found := _broken_text(each)) is not None), None)


def _dump_text(serde: SerializerProtocol, value: Any, place: Place) -> tuple[str, str]:
    kind, blob = places.dump(serde, value, place)
    return kind, base64.b64encode(blob).decode("ascii")


def _encode_blobs(
    serde: SerializerProtocol,
    key: Key,
    versions: Mapping[str, Any],
    values: Mapping[str, Any],
    known: Appends | None,
) -> tuple[tuple[Blob, ...], tuple[StoredList, ...]]:
    blobs: list[Blob] = []
    growing: list[StoredList] = []
    for channel, version in versions.items():
        place = BlobKey(
            *key[:2], identifier("channel", channel), identifier("version", version_text(version))
        )
        value = values.get(channel)
        if channel not in values:
            blobs.append(Blob(*place[2:], EMPTY, None))
        elif known is not None and type(value) is list:
            blob, stored = lists.encode(cast("Serializer", serde), key, place, value, known)
            blobs.append(blob)
            growing += stored
        else:
            blobs.append(Blob(*place[2:], *places.dump(serde, value, places.of_blob(key, *place[2:]))))
    return tuple(blobs), tuple(growing)


def is_inline(value: Any) -> bool:
    """Tell whether JSON, and PostgreSQL's JSONB, keep a value exactly, and it is short.

    JSONB holds numbers as decimals: 1e16 would come back as an int, and -0.0 without its sign.
    """
    kind = type(value)
    if kind is str:
        return len(value) <= _INLINE_CHARACTERS and is_storable(value)
    if kind is int:
        return bool(value.bit_length() <= _INLINE_BITS)
    if kind is float:
        return (
            math.isfinite(value) and "e" not in repr(value) and math.copysign(1, value) == (value >= 0 or -1)
        )
    return value is None or kind is bool


def _decode_write(serde: SerializerProtocol, key: Key, write: Write) -> PendingWrite:
    place = places.of_write(key, write.task_id, write.idx, write.channel)
    return write.task_id, write.channel, places.load(serde, write.type, write.blob, place)


def _decode_checkpoint(serde: SerializerProtocol, loaded: LoadedCheckpoint, shared: Shared) -> Checkpoint:
    document = dict(loaded.row.document)
    document["channel_values"] = _values(serde, loaded.row, loaded.values, shared)
    document.pop(UNVERSIONED, None)
    if loaded.sends and loaded.row.sends_key is not None:
        _move_sends(serde, document, loaded.row.sends_key, loaded.sends)
    return cast("Checkpoint", document)


def _values(
    serde: SerializerProtocol,
    row: CheckpointRow,
    held: Iterable[HeldValue],
    shared: Shared,
    wanted: Container[str] | None = None,
) -> dict[str, Any]:
    """Give the values of channels: a blob goes before one that is inline, one that is encoded before both."""
    standing = row.part("channel_values")
    if wanted is not None:
        standing = {channel: value for channel, value in standing.items() if channel in wanted}
    values = dict(places.load_inline(serde, standing, row.key))
    for value in held:
        if id(value) in shared:
            values[value.blob.channel] = shared[id(value)]
        elif value.blob.type != EMPTY:
            values[value.blob.channel] = _value(serde, row.key, value, shared)
    for channel, typed in row.unversioned.items():
        if wanted is None or channel in wanted:
            values[channel] = places.load_text(serde, typed, places.of_value(row.key, channel))
    return values


def _value(serde: SerializerProtocol, key: Key, value: HeldValue, shared: Shared) -> Any:
    decoded = lists.load(serde, key, value)
    if type(decoded) in _UNCHANGING:
        shared[id(value)] = decoded
    return decoded


def _move_sends(
    serde: SerializerProtocol, document: dict[str, Any], sender: Key, sends: Sequence[Write]
) -> None:
    """Put a parent's sends where formats since 4 have them: in the tasks channel."""
    document["channel_values"][TASKS] = [
        _decode_write(serde, sender, write)[2] for write in sorted(sends, key=Write.order)
    ]
    versions = dict(document.get("channel_versions") or {})
    versions[TASKS] = max(versions.values(), key=version_order, default=next_version(None))
    document["channel_versions"] = versions
