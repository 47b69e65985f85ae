"""Stored values as plain data: no class is imported and nothing of a row is run."""

from __future__ import annotations

import json
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from cpstore.errors import UnreadableValueError, UnstorableValueError
from cpstore.serde import wire
from cpstore.serde.compression import decompress
from cpstore.serde.decoding import Unpacking
from cpstore.serde.forms import call_form, own_form
from cpstore.serde.shapes import PlainObject, UnreadValue

__all__ = ["PlainSerializer"]

_CALLS = {wire.SINGLE, wire.POSITIONAL, wire.KEYWORDS, wire.PYDANTIC_V1, wire.PYDANTIC_V2}
_SNAPSHOT = f"{_DeltaSnapshot.__module__}.{_DeltaSnapshot.__qualname__}"


class PlainSerializer(SerializerProtocol):
    """Reads values of all serializers of cpstore and langgraph-checkpoint as plain data, for people.

    Give it as `serde=` to a saver that only reads. It needs none of the application's code and can run
    nothing. An object comes as :class:`PlainObject`, its class's name with what was stored for it. What is
    encrypted, pickled, damaged or of an unknown type comes as :class:`UnreadValue`, never as an error.

    Args:
        max_bytes: The most bytes that a compressed value may have.
    """

    def __init__(self, *, max_bytes: int = 1 << 28) -> None:
        self.max_bytes = max_bytes

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Refuse.

        Raises:
            UnstorableValueError: Always.
        """
        raise UnstorableValueError(
            "PlainSerializer only reads: what it gives is no value of the application's, and is never stored"
        )

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Give a value as plain data, or a note about it."""
        kind, content = data
        try:
            return self._loaded(kind, content)
        except Exception as error:
            return self.unread(kind, len(content), error)

    def unread(self, kind: str, size: int, error: Exception) -> UnreadValue:
        """Give the note in place of a value that cannot be read."""
        if "+" in kind:
            return UnreadValue("encrypted", kind, size)
        told = str(error) if isinstance(error, UnreadableValueError) else "The stored bytes are damaged"
        return UnreadValue(told, kind, size)

    def _loaded(self, kind: str, content: bytes) -> Any:
        if "+" in kind:
            return UnreadValue("encrypted", kind, len(content))
        bare, data = decompress(kind, content, self.max_bytes)
        if bare == "msgpack":
            return Unpacking(self).unpack(data)
        if bare == "null":
            return None
        if bare == "bytes":
            return data
        if bare == "bytearray":
            return bytearray(data)
        if bare == "json":
            return json.loads(data, object_hook=_of_json)
        why = "pickled" if bare == "pickle" else "of an unknown type"
        return UnreadValue(why, kind, len(content))

    def extension(self, code: int, content: Any) -> Any:
        """Give what stands for an object of an extension type."""
        if code in _CALLS:
            return call_form(code, *content[:3])
        if code == wire.METHOD:
            return call_form(wire.SINGLE, *content[:3])
        if code == wire.DELTA_SNAPSHOT:
            return PlainObject(_SNAPSHOT, {"value": content})
        if code == wire.NUMPY_ARRAY:
            return own_form("array", *content)
        if code == wire.OWN:
            return own_form(*content)
        return PlainObject(f"MessagePack extension {code}", {"value": content})


def _of_json(value: dict[str, Any]) -> Any:
    """Give LangChain's form of an object in JSON as one."""
    if value.get("type") != "constructor" or value.get("lc") not in (1, 2):
        return value
    *modules, name = value["id"]
    args, kwargs = value.get("args") or [], value.get("kwargs") or {}
    module = ".".join(map(str, modules))
    if len(args) == 1 and not kwargs:
        return call_form(wire.SINGLE, module, name, args[0])
    if args or not kwargs:
        return call_form(wire.POSITIONAL, module, name, args)
    return call_form(wire.KEYWORDS, module, name, kwargs)
