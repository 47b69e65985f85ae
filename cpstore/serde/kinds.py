"""How objects of each kind are taken apart: an extension type, and what its constructor is called with."""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import pathlib
import re
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.store.base import Item

from cpstore.serde import arrays, wire
from cpstore.serde.classes import name_of

__all__ = ["Codec", "Encode", "encoder_for"]

Encode = Callable[[Any], tuple[int, Any]]
"""Takes an object apart: gives an extension type and its content."""


_SEND = ("langgraph.types", "Send")  # langgraph itself need not be installed


@dataclasses.dataclass(frozen=True)
class Codec:
    """How a type of one's own is stored, without pickle.

    Attributes:
        type: The type, exactly; subclasses need codecs of their own.
        name: Its name in stored rows. It must stay the same for ever, and no other codec may have it.
        encode: Gives a value that can be stored: of lists, dicts, texts, numbers, bytes…
        decode: Gives the object for that value.
    """

    type: type
    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def encoder_for(value: Any, codecs: dict[type, Codec]) -> Encode:
    """Give the function that takes objects of this one's class apart.

    Raises:
        TypeError: Such objects cannot be stored.
    """
    kind = type(value)
    if kind in codecs:
        codec = codecs[kind]
        return lambda one: (wire.OWN, ["codec", codec.name, codec.encode(one)])
    if kind in _EXACT:
        return _EXACT[kind]
    encode = arrays.encoder_for(value) or _by_protocol(kind) or _by_base(kind)
    if encode is None:
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be stored: give it a codec")
    return encode


def _by_protocol(kind: type) -> Encode | None:  # noqa: C901 - one question a line
    """Follow the order in which langgraph-checkpoint asks."""
    if hasattr(kind, "model_dump") and hasattr(kind, "model_fields"):
        return _pydantic(kind)
    if callable(getattr(kind, "get_secret_value", None)):
        return _calls(wire.SINGLE, kind, lambda one: one.get_secret_value())
    if hasattr(kind, "__fields__") and callable(getattr(kind, "dict", None)):
        return _calls(wire.PYDANTIC_V1, kind, lambda one: one.dict())
    if issubclass(kind, tuple) and hasattr(kind, "_asdict"):
        return _calls(wire.KEYWORDS, kind, lambda one: one._asdict())
    if issubclass(kind, enum.Enum):
        return _calls(wire.SINGLE, kind, lambda one: one.value)
    if (kind.__module__, kind.__qualname__) == _SEND:
        return _calls(wire.POSITIONAL, kind, _send_arguments)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return _calls(wire.KEYWORDS, kind, lambda one: {name: getattr(one, name) for name in names})
    if issubclass(kind, Item):
        return _calls(wire.KEYWORDS, kind, lambda one: {name: getattr(one, name) for name in Item.__slots__})
    return None


def _by_base(kind: type) -> Encode | None:
    if issubclass(kind, BaseException):
        return None
    for base, (code, take) in _BASES.items():
        if issubclass(kind, base):
            if issubclass(kind, collections.defaultdict):
                return None  # its constructor takes something else
            # What a subclass carries beside its value would be lost; the base itself carries nothing.
            return _calls(code, kind, take if kind is base else _without_attributes(kind, base, take))
    return None


def _calls(code: int, kind: type, take: Callable[[Any], Any]) -> Encode:
    """Give an encoder for a call of the class; one that cannot be found by its name is refused now."""
    module, name = name_of(kind)
    return lambda one: (code, [module, name, take(one)])


def _without_attributes(kind: type, base: type, take: Callable[[Any], Any]) -> Callable[[Any], Any]:
    slots = _slots(kind) - _slots(base)

    def taken(one: Any) -> Any:
        if getattr(one, "__dict__", None) or any(hasattr(one, slot) for slot in slots):
            raise TypeError(
                f"{kind.__module__}.{kind.__qualname__} has attributes of its own: give it a codec"
            )
        return take(one)

    return taken


def _slots(kind: type) -> set[str]:
    return set(copyreg._slotnames(kind))  # type: ignore[attr-defined]


def _pydantic(kind: Any) -> Encode:
    """Take the fields as they are: objects in them keep their classes, which `model_dump` would lose.

    The last item tells so: such fields are put back, and not validated again.
    """
    module, name = name_of(kind)
    names = tuple(kind.model_fields)
    known = frozenset(names)

    def encode(one: Any) -> tuple[int, Any]:
        fields = one.__dict__
        if fields.keys() != known:  # something cached beside the fields
            fields = {each: fields[each] for each in names if each in fields}
        if extra := one.__pydantic_extra__:
            fields = {**fields, **extra}
        return wire.PYDANTIC_V2, [module, name, fields, "model_validate_json", True]

    return encode


def _send_arguments(send: Any) -> list[Any]:
    timeout = getattr(send, "timeout", None)
    return [send.node, send.arg] if timeout is None else [send.node, send.arg, timeout]


def _big_int(value: int) -> tuple[int, Any]:
    # In base 16, which Python reads at any length: decimal text has a limit.
    return wire.POSITIONAL, ["builtins", "int", [f"{value:x}", 16]]


def _datetime(value: dt.datetime) -> tuple[int, Any]:
    if value.fold or isinstance(value.tzinfo, zoneinfo.ZoneInfo):
        return wire.KEYWORDS, ["datetime", "datetime", _datetime_parts(value)]
    return wire.METHOD, ["datetime", "datetime", value.isoformat(), "fromisoformat"]


def _datetime_parts(value: dt.datetime) -> dict[str, Any]:
    names = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo", "fold")
    return {name: getattr(value, name) for name in names}


def _time(value: dt.time) -> tuple[int, Any]:
    names = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
    return wire.KEYWORDS, ["datetime", "time", {name: getattr(value, name) for name in names}]


def _unbounded(value: collections.deque[Any]) -> list[Any]:
    if value.maxlen is not None:
        raise TypeError("A bounded deque of a class of its own cannot be stored: give it a codec")
    return list(value)


def _deque(value: collections.deque[Any]) -> tuple[int, Any]:
    if value.maxlen is None:
        return wire.SINGLE, ["collections", "deque", list(value)]
    return wire.POSITIONAL, ["collections", "deque", [list(value), value.maxlen]]


def _defaultdict(value: collections.defaultdict[Any, Any]) -> tuple[int, Any]:
    factory = value.default_factory
    if factory is not None and not isinstance(factory, type):
        raise TypeError("The default_factory of a defaultdict must be a class that can be imported, or None")
    return wire.OWN, ["defaultdict", None if factory is None else name_of(factory), dict(value)]


def _zone(value: zoneinfo.ZoneInfo) -> tuple[int, Any]:
    if value.key is None:
        raise TypeError("A time zone that was made from a file has no name to find it by")
    return wire.SINGLE, ["zoneinfo", "ZoneInfo", value.key]


def _exact(code: int, module: str, name: str, take: Callable[[Any], Any]) -> Encode:
    return lambda one: (code, [module, name, take(one)])


_EXACT: dict[type, Encode] = {
    int: _big_int,
    tuple: _exact(wire.SINGLE, "builtins", "tuple", list),
    set: _exact(wire.SINGLE, "builtins", "set", list),
    frozenset: _exact(wire.SINGLE, "builtins", "frozenset", list),
    complex: _exact(wire.POSITIONAL, "builtins", "complex", lambda one: [one.real, one.imag]),
    range: _exact(wire.POSITIONAL, "builtins", "range", lambda one: [one.start, one.stop, one.step]),
    collections.deque: _deque,
    collections.OrderedDict: _exact(
        wire.SINGLE, "collections", "OrderedDict", lambda one: [list(pair) for pair in one.items()]
    ),
    collections.Counter: _exact(wire.SINGLE, "collections", "Counter", dict),
    collections.defaultdict: _defaultdict,
    fractions.Fraction: _exact(
        wire.POSITIONAL, "fractions", "Fraction", lambda one: [one.numerator, one.denominator]
    ),
    dt.datetime: _datetime,
    dt.time: _time,
    dt.timezone: _exact(wire.POSITIONAL, "datetime", "timezone", lambda one: list(one.__getinitargs__())),
    zoneinfo.ZoneInfo: _zone,
    re.Pattern: _exact(wire.POSITIONAL, "re", "compile", lambda one: [one.pattern, one.flags]),
    _DeltaSnapshot: lambda one: (wire.DELTA_SNAPSHOT, one.value),
}

_BASES: dict[type, tuple[int, Callable[[Any], Any]]] = {
    pathlib.PurePath: (wire.POSITIONAL, lambda one: list(one.parts)),
    uuid.UUID: (wire.SINGLE, lambda one: one.hex),
    decimal.Decimal: (wire.SINGLE, str),
    **{
        kind: (wire.SINGLE, str)
        for family in ("4", "6")
        for kind in (getattr(ipaddress, f"IPv{family}{what}") for what in ("Interface", "Address", "Network"))
    },
    dt.timedelta: (wire.POSITIONAL, lambda one: [one.days, one.seconds, one.microseconds]),
    dt.datetime: (wire.KEYWORDS, _datetime_parts),
    dt.date: (wire.POSITIONAL, lambda one: [one.year, one.month, one.day]),
    str: (wire.SINGLE, str.__str__),
    int: (wire.SINGLE, int.__int__),
    float: (wire.SINGLE, float.__float__),
    bytes: (wire.SINGLE, bytes.__bytes__ if hasattr(bytes, "__bytes__") else bytes),
    list: (wire.SINGLE, list),
    tuple: (wire.SINGLE, list),
    dict: (wire.SINGLE, dict),
    set: (wire.SINGLE, list),
    frozenset: (wire.SINGLE, list),
    collections.deque: (wire.SINGLE, _unbounded),
}
