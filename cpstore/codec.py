"""LangGraph's checkpoints and writes to records, and back. Pure: no database, no waiting.

A checkpoint becomes one JSON document and a blob for each channel that is new in it. Short primitive values
stay in the document, under `channel_values`, where anyone who reads JSON sees them. A value that has no
version at all cannot have a blob, so it stays in the document too, encoded, under `__unversioned__`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from cpstore.addresses import (
    address_of,
    config_of,
    configurable_of,
    identifier,
    key_of,
    next_version,
    optional_identifier,
    version_order,
)
from cpstore.metadata import dump_metadata
from cpstore.records import (
    TASKS,
    Blob,
    CheckpointRecord,
    Key,
    LoadedCheckpoint,
    Query,
    Write,
    WritesRecord,
    version_text,
)

__all__ = ["decode", "encode_checkpoint", "encode_query", "encode_writes"]

_EMPTY = "empty"
_UNVERSIONED = "__unversioned__"
_INLINE_CHARACTERS = 256
_INLINE_BITS = 63


def encode_checkpoint(
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> CheckpointRecord:
    """Encode what `put` was given. The config's `checkpoint_id` is the parent. No argument is changed."""
    address = address_of(config)
    key = Key(address.thread_id, address.checkpoint_ns, identifier("checkpoint_id", checkpoint["id"]))
    values = checkpoint.get("channel_values") or {}
    inline = {channel: value for channel, value in values.items() if _is_inline(value)}
    return CheckpointRecord(
        key=key,
        parent_checkpoint_id=address.checkpoint_id,
        checkpoint=_dump_document(serde, checkpoint, inline),
        metadata=dump_metadata(get_checkpoint_metadata(config, metadata)),
        blobs=tuple(
            _encode_blob(serde, channel, version, values)
            for channel, version in new_versions.items()
            if channel not in inline
        ),
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
        typed = serde.dumps_typed(value)
        encoded[idx] = Write(task, idx, identifier("channel", channel), *typed, task_path)
    return WritesRecord(key, tuple(encoded.values()))


def encode_query(
    config: RunnableConfig | None,
    filter: Mapping[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> Query:
    """Encode what `list` was given.

    Raises:
        ValueError: `limit` is negative.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit must be None or at least 0, not {limit}")
    configurable = configurable_of(config)
    namespace = configurable.get("checkpoint_ns")
    return Query(
        thread_id=optional_identifier(configurable, "thread_id"),
        checkpoint_ns=None if namespace is None else identifier("checkpoint_ns", namespace),
        checkpoint_id=optional_identifier(configurable, "checkpoint_id"),
        before=optional_identifier(configurable_of(before), "checkpoint_id"),
        filter=dump_metadata(filter) if filter else None,
        limit=limit,
        exhausted=limit == 0,
    )


def decode(serde: SerializerProtocol, loaded: LoadedCheckpoint) -> CheckpointTuple:
    """Give what LangGraph is to see. All values are made anew: LangGraph changes them in place."""
    row = loaded.row
    parent = row.parent_checkpoint_id
    return CheckpointTuple(
        config=config_of(row.key),
        checkpoint=_decode_checkpoint(serde, loaded),
        metadata=cast("CheckpointMetadata", json.loads(row.metadata)),
        parent_config=None if parent is None else config_of(row.key._replace(checkpoint_id=parent)),
        pending_writes=[
            (write.task_id, write.channel, serde.loads_typed((write.type, write.blob)))
            for write in _in_order(loaded.writes)
        ],
    )


def _dump_document(serde: SerializerProtocol, checkpoint: Checkpoint, inline: dict[str, Any]) -> str:
    document: dict[str, Any] = {**checkpoint, "channel_values": inline}
    versions = checkpoint.get("channel_versions") or {}
    bare = {
        channel: value
        for channel, value in (checkpoint.get("channel_values") or {}).items()
        if channel not in inline and channel not in versions
    }
    if bare:
        document[_UNVERSIONED] = {channel: _dump_text(serde, value) for channel, value in bare.items()}
    return json.dumps(document, allow_nan=False)


def _dump_text(serde: SerializerProtocol, value: Any) -> tuple[str, str]:
    kind, blob = serde.dumps_typed(value)
    return kind, base64.b64encode(blob).decode("ascii")


def _encode_blob(serde: SerializerProtocol, channel: str, version: Any, values: Mapping[str, Any]) -> Blob:
    name, text = identifier("channel", channel), identifier("version", version_text(version))
    if channel not in values:
        return Blob(name, text, _EMPTY, None)
    return Blob(name, text, *serde.dumps_typed(values[channel]))


def _is_inline(value: Any) -> bool:
    """Tell whether JSON, and PostgreSQL's JSONB, keep a value exactly, and it is short.

    JSONB holds numbers as decimals: 1e16 would come back as an int, and -0.0 without its sign.
    """
    kind = type(value)
    if kind is str:
        return len(value) <= _INLINE_CHARACTERS and value.isprintable()
    if kind is int:
        return bool(value.bit_length() <= _INLINE_BITS)
    if kind is float:
        return (
            math.isfinite(value) and "e" not in repr(value) and math.copysign(1, value) == (value >= 0 or -1)
        )
    return value is None or kind is bool


def _decode_checkpoint(serde: SerializerProtocol, loaded: LoadedCheckpoint) -> Checkpoint:
    document = dict(loaded.row.document)
    values = dict(document.get("channel_values") or {})
    for channel, (kind, text) in document.pop(_UNVERSIONED, {}).items():
        values[channel] = serde.loads_typed((kind, base64.b64decode(text)))
    for blob in loaded.blobs:
        if blob.type != _EMPTY:
            values[blob.channel] = serde.loads_typed((blob.type, blob.blob or b""))
    document["channel_values"] = values
    if loaded.sends:
        _move_sends(serde, document, loaded.sends)
    return cast("Checkpoint", document)


def _move_sends(serde: SerializerProtocol, document: dict[str, Any], sends: Sequence[Write]) -> None:
    """Put a parent's sends where formats since 4 have them: in the tasks channel."""
    document["channel_values"][TASKS] = [
        serde.loads_typed((write.type, write.blob)) for write in _in_order(sends)
    ]
    versions = dict(document.get("channel_versions") or {})
    versions[TASKS] = max(versions.values(), key=version_order, default=next_version(None))
    document["channel_versions"] = versions


def _in_order(writes: Sequence[Write]) -> list[Write]:
    # By code point, whatever the collation of the database is; LangGraph's `writes_sort_key`.
    return sorted(writes, key=lambda write: (write.task_path, write.task_id, write.idx))
