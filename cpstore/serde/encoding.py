"""Values to MessagePack: exactly, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ormsgpack

from cpstore.serde import wire
from cpstore.serde.kinds import Codec, Encode, encoder_for

__all__ = ["Encoder"]

_KEYS = frozenset({float, bool, bytes, type(None)})
_CONTAINERS = frozenset({list, dict})
_MUTABLE_BYTES = frozenset({bytearray, memoryview})
_SURROGATES = range(0xD800, 0xE000)


class Encoder:
    """Encodes values.

    Args:
        codecs: How to encode types of the user's own.
        compatible: Refuse what would need an extension type of ours.
    """

    def __init__(self, codecs: dict[type, Codec], *, compatible: bool = False) -> None:
        self._codecs = codecs
        self._compatible = compatible
        self._encoders: dict[type, Encode] = {}

    def encode(self, value: Any) -> bytes:
        """Give the bytes of a value.

        Raises:
            TypeError: It, or something in it, cannot be stored so that it comes back as it is.
        """
        return _Encoding(self._encoders, self._find, self._compatible).pack(value)

    def _find(self, value: Any) -> Encode:
        encode = self._encoders[type(value)] = encoder_for(value, self._codecs)
        return encode


class _Encoding:
    """One call: ormsgpack does not pass errors of its callbacks on, so the first is kept here."""

    __slots__ = ("_closely", "_compatible", "_encoders", "_error", "_find")

    def __init__(self, encoders: dict[type, Encode], find: Callable[[Any], Encode], compatible: bool) -> None:
        self._encoders = encoders
        self._find = find
        self._compatible = compatible
        self._closely = False
        self._error: Exception | None = None

    def pack(self, value: Any) -> bytes:
        """Pack a value as it is, if all keys in it are texts and no bytes are; look closer otherwise.

        After the first such one all are looked at closely: each object in it has been packed in vain, and
        would be again at each level.
        """
        if self._closely:
            return self._pack_closely(value)
        try:
            data = ormsgpack.packb(value, default=self._default, option=wire.PACK)
        except TypeError:
            if self._error is not None:
                raise self._error from None
            return self._pack_closely(value)
        # Written out, because it is asked for each object in a value: any() takes four times as long.
        if (b"\xc4" in data or b"\xc5" in data or b"\xc6" in data) and _has_mutable_bytes(value):
            return self._pack_closely(value)
        return data

    def _pack_closely(self, value: Any) -> bytes:
        self._closely = True
        option = wire.PACK | ormsgpack.OPT_NON_STR_KEYS
        try:
            return ormsgpack.packb(self._rebuilt(value), default=self._default, option=option)
        except TypeError as error:
            raise self._error or error from None

    def _default(self, value: Any) -> Any:
        try:
            encode = self._encoders.get(type(value)) or self._find(value)
            code, content = encode(value)
            if code == wire.OWN:
                self._check(f"{type(value).__module__}.{type(value).__qualname__}")
            return ormsgpack.Ext(code, self.pack(content))
        except Exception as error:
            self._error = self._error or error
            raise

    def _rebuilt(self, value: Any) -> Any:
        """Give a value in which everything that MessagePack would change is marked for what it is."""
        kind = type(value)
        if kind is str:
            return self._own("text", value.encode(errors="surrogatepass")) if _is_broken(value) else value
        if kind is list:
            return [self._rebuilt(item) for item in value]
        if kind is dict:
            return self._rebuilt_dict(value)
        if kind is bytearray:
            return ormsgpack.Ext(wire.SINGLE, self.pack(["builtins", "bytearray", bytes(value)]))
        if kind is memoryview:
            raise TypeError("A memoryview is a view of other data, not a value: store bytes")
        return value

    def _rebuilt_dict(self, value: dict[Any, Any]) -> Any:
        if all(_is_plain_key(key) for key in value):
            return {key: self._rebuilt(item) for key, item in value.items()}
        pairs = [[self._rebuilt(key), self._rebuilt(item)] for key, item in value.items()]
        return self._own("dict", pairs)

    def _own(self, kind: str, content: Any) -> Any:
        self._check(f"such a {kind}")
        return ormsgpack.Ext(wire.OWN, self._pack_closely([kind, content]))

    def _check(self, what: str) -> None:
        """Refuse what only we can read.

        Raises:
            TypeError: All that is written must be compatible.
        """
        if self._compatible:
            raise TypeError(f"langgraph-checkpoint cannot read {what}, and compatible=True is on")


def _has_mutable_bytes(value: Any) -> bool:
    """Tell whether a container holds a bytearray or a memoryview, which ormsgpack takes for bytes."""
    kind = type(value)
    if kind is dict:
        value = value.values()
    elif kind is not list:
        return kind in _MUTABLE_BYTES
    kinds = set(map(type, value))
    if kinds.isdisjoint(_CONTAINERS):
        return not kinds.isdisjoint(_MUTABLE_BYTES)
    return any(map(_has_mutable_bytes, value))


def _is_broken(text: str) -> bool:
    return any(ord(character) in _SURROGATES for character in text)


def _is_plain_key(key: Any) -> bool:
    """Tell whether MessagePack has the type of a key; others would become one of these."""
    kind = type(key)
    if kind is str:
        return not _is_broken(key)
    if kind is int:
        return bool(-(2**63) <= key < 2**64)
    if kind is tuple:
        return all(map(_is_plain_key, key))
    return kind in _KEYS
