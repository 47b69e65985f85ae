"""Documents taken apart without rebuilding what is in them.

langgraph-checkpoint-sqlite stores a checkpoint as one value, with all channel values in it. Each can be
stored by itself under the same type: an object is an extension whose bytes are handed on as they are, so no
class is looked up, and none has to be there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import ormsgpack

from cpstore.serde import wire

__all__ = ["dump", "load", "takes_apart"]


def takes_apart(kind: str) -> bool:
    """Tell whether values of a type can be taken apart here."""
    return kind in _FORMS


def load(kind: str, data: bytes) -> Any:
    """Give the outermost dicts, lists and plain values; an object in them is only good for :func:`dump`."""
    return _FORMS[kind][0](data)


def dump(kind: str, part: Any) -> bytes:
    """Give the bytes of a part of what :func:`load` gave, which mean what they meant there."""
    return _FORMS[kind][1](part)


def _load_msgpack(data: bytes) -> Any:
    return ormsgpack.unpackb(data, ext_hook=ormsgpack.Ext, option=wire.UNPACK)


def _dump_msgpack(part: Any) -> bytes:
    return ormsgpack.packb(part, option=ormsgpack.OPT_NON_STR_KEYS)


def _dump_json(part: Any) -> bytes:
    return json.dumps(part).encode()


_FORMS: dict[str, tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    "msgpack": (_load_msgpack, _dump_msgpack),
    "json": (json.loads, _dump_json),
}
