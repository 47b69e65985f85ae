"""Stored objects as plain data: what stands in their place where no class may be imported."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["PlainObject", "UnreadValue", "document"]

_TYPE, _UNREADABLE = "$type", "$unreadable"
_LEVELS = 200
"""So deep a document goes: whoever writes or draws it calls itself once a level."""

_INT_BITS = 8192
"""Python refuses to write longer ints as decimal text."""


@dataclass(frozen=True)
class PlainObject:
    """An object without its class.

    Attributes:
        type: The name of its class, with the module.
        fields: What was stored for it; of what is only one value, that as `value`.
    """

    type: str
    fields: dict[str, Any]

    def __hash__(self) -> int:
        return hash(self.type)  # it may be a key of a dict, and its fields cannot


@dataclass(frozen=True)
class UnreadValue:
    """A note in place of a value that cannot be read.

    Attributes:
        why: The reason, for people.
        type: The type tag that was stored.
        bytes: How many bytes were.
    """

    why: str
    type: str
    bytes: int


def document(value: Any, levels: int = _LEVELS) -> Any:
    """Give what JSON can say of a value that the plain serializer gave.

    An object is `{"$type": name, …}` with its fields; a value that cannot be read is `{"$unreadable": why,
    "type": …, "bytes": …}`. So are bytes, numbers that JSON has not, and dicts whose keys are no texts, or
    would look like these. Whatever is nested more than 200 levels deep is left out, and a note is there.
    """
    if value is None or type(value) in (str, bool):
        return value
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (bytes, bytearray)):
        text = base64.b64encode(value).decode("ascii")
        return {_TYPE: type(value).__name__, "base64": text}
    if levels == 0:
        return {_UNREADABLE: "nested too deeply"}
    return _container(value, levels - 1)


def _number(value: float) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else {_TYPE: "float", "value": str(value)}
    return value if value.bit_length() <= _INT_BITS else {_TYPE: "int", "value": hex(value)}


def _container(value: Any, levels: int) -> Any:
    if isinstance(value, PlainObject):
        if _TYPE in value.fields or _UNREADABLE in value.fields:
            return {_TYPE: value.type, "fields": _mapping(value.fields, levels)}
        return {_TYPE: value.type, **{name: document(item, levels) for name, item in value.fields.items()}}
    if isinstance(value, UnreadValue):
        return {_UNREADABLE: value.why, "type": value.type, "bytes": value.bytes}
    if isinstance(value, Mapping):
        return _mapping(value, levels)
    if type(value) is list:
        return [document(item, levels) for item in value]
    if isinstance(value, (list, tuple, set, frozenset)):
        return {_TYPE: type(value).__name__, "value": [document(item, levels) for item in value]}
    kind = type(value)  # of a serializer that builds objects
    return {_TYPE: f"{kind.__module__}.{kind.__qualname__}"}


def _mapping(value: Mapping[Any, Any], levels: int) -> Any:
    if all(type(key) is str for key in value) and not value.keys() & {_TYPE, _UNREADABLE}:
        return {key: document(item, levels) for key, item in value.items()}
    return {_TYPE: "dict", "items": [[document(each, levels) for each in pair] for pair in value.items()]}
