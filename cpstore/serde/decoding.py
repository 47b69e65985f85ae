"""MessagePack to values: what was stored, or an error that names what is in the way."""

from __future__ import annotations

import collections
import datetime as dt
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import ormsgpack
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from cpstore.errors import TypeNotAllowedError, UnreadableValueError
from cpstore.serde import arrays, wire
from cpstore.serde.classes import Classes
from cpstore.serde.kinds import Codec

__all__ = ["Decoder", "Unpacking"]

_log = logging.getLogger("cpstore.serde")

_TWO, _END = b"\x92", b"\xa3end"
"""MessagePack's head of a list of two items, and a text to be the second of them."""

_CALLS = {wire.SINGLE, wire.POSITIONAL, wire.KEYWORDS, wire.PYDANTIC_V1, wire.PYDANTIC_V2}


class Extensions(Protocol):
    """What is asked for the objects in a value."""

    def extension(self, code: int, content: Any) -> Any:
        """Give the object of an extension type."""


class Decoder:
    """Decodes values.

    Args:
        classes: The classes that may be rebuilt.
        codecs: How to decode types of the user's own, by their names.
        raw: Give the stored data of an object that cannot be rebuilt, rather than an error.
    """

    def __init__(self, classes: Classes, codecs: Mapping[str, Codec], *, raw: bool) -> None:
        self._classes = classes
        self._codecs = codecs
        self._raw = raw
        self._reported: set[tuple[str, str]] = set()

    def decode(self, data: bytes) -> Any:
        """Give the value of some bytes.

        Raises:
            UnreadableValueError: They are none of ours, or an object in them cannot be rebuilt.
        """
        return Unpacking(self).unpack(data)

    def extension(self, code: int, content: Any) -> Any:
        """Give the object of an extension type."""
        if code in _CALLS:
            as_they_were = code == wire.PYDANTIC_V2 and len(content) > 4 and content[4] is True
            return self.call(wire.FIELDS if as_they_were else code, *content[:3])
        if code == wire.METHOD:
            return _method(*content)
        if code == wire.DELTA_SNAPSHOT:
            return _DeltaSnapshot(content)
        if code == wire.NUMPY_ARRAY:
            return self._rebuild("numpy", "ndarray", lambda: arrays.read_array(*content), content)
        if code == wire.OWN:
            return self._own(*content)
        raise UnreadableValueError(
            f"MessagePack extension type {code} is unknown: written by a newer version?"
        )

    def call(self, code: int, module: str, name: str, content: Any) -> Any:
        """Give the object of a call; raw: what it is called with, if the object cannot be rebuilt."""
        try:
            return self._classes.builder(code, module, name)(content)
        except Exception as error:
            return self._given_up(module, name, error, content)

    def _rebuild(self, module: str, name: str, build: Callable[[], Any], content: Any) -> Any:
        try:
            return build()
        except Exception as error:
            return self._given_up(module, name, error, content)

    def _given_up(self, module: str, name: str, error: Exception, content: Any) -> Any:
        if self._raw and type(module) is type(name) is str:
            self._report(module, name, error)
            return content
        if isinstance(error, UnreadableValueError):
            raise error
        # Not the error's own text: it may show the value.
        reason = type(error).__name__
        raise UnreadableValueError(f"{module}.{name} refused what was stored ({reason})") from error

    def _report(self, module: str, name: str, error: Exception) -> None:
        if (module, name) not in self._reported:
            self._reported.add((module, name))
            extra = {"stored_type": f"{module}.{name}", "reason": type(error).__name__}
            _log.warning("%s.%s cannot be rebuilt; its data is given as it is", module, name, extra=extra)

    def _own(self, kind: str, *content: Any) -> Any:
        if kind == "text":
            return content[0].decode(errors="surrogatepass")
        if kind == "dict":
            return dict(content[0])
        if kind == "codec":
            name, stored = content
            return self._rebuild("codec", name, lambda: self._codec(name).decode(stored), stored)
        if kind == "defaultdict":
            factory, values = content
            return self._rebuild(
                "collections", "defaultdict", lambda: self._defaultdict(factory, values), values
            )
        if kind not in arrays.KINDS:
            raise UnreadableValueError("The stored value is of an unknown kind: written by a newer version?")
        return self._rebuild(*arrays.KINDS[kind], lambda: arrays.decode(kind, list(content)), list(content))

    def _codec(self, name: str) -> Codec:
        if name not in self._codecs:
            raise UnreadableValueError(f"There is no codec with the name {name!r}: give the serializer one")
        return self._codecs[name]

    def _defaultdict(self, factory: Any, values: Any) -> Any:
        found = None if factory is None else self._classes.find(*factory)
        return collections.defaultdict(found, values)


class Unpacking:
    """One call: ormsgpack does not pass errors of its callback on, so the first is kept here."""

    __slots__ = ("_decoder", "_error")

    def __init__(self, decoder: Extensions) -> None:
        self._decoder = decoder
        self._error: Exception | None = None

    def unpack(self, data: bytes) -> Any:
        """Unpack the bytes as the first of two items: ormsgpack does not tell of bytes that are left over."""
        both = b"".join((_TWO, data, _END))
        try:
            value, end = ormsgpack.unpackb(both, ext_hook=self._extension, option=wire.UNPACK)
        except Exception as error:
            if isinstance(self._error, UnreadableValueError):
                raise self._error from self._error.__cause__
            raise UnreadableValueError("The stored bytes are no value of ours") from (self._error or error)
        if type(end) is not str or end != "end":  # an array compares item by item
            raise UnreadableValueError("The stored bytes are no value of ours: there are too many")
        return value

    def _extension(self, code: int, data: bytes) -> Any:
        try:
            content = ormsgpack.unpackb(data, ext_hook=self._extension, option=wire.UNPACK)
            return self._decoder.extension(code, content)
        except Exception as error:
            self._error = self._error or error
            raise


def _method(module: str, name: str, argument: Any, method: str) -> Any:
    if (module, name, method) != ("datetime", "datetime", "fromisoformat"):
        raise TypeNotAllowedError(f"{module}.{name}.{method} is never called")
    return dt.datetime.fromisoformat(argument)
