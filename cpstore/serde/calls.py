"""Which call rebuilds an object of a class: one that the encoder writes, with arguments as it writes them.

An argument may be more than it seems: a stored range or network is small, and a set of its items is not. So
containers are made only of what is there item by item, and bytes only of bytes.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import pathlib
import sys
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

from langgraph.store.base import Item

from cpstore.serde import wire

__all__ = ["Builder", "builder_of", "is_stored_as", "send_builder"]

Builder = Callable[[Any], Any]

_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_BYTES = (bytes, bytearray)
_OF_ONE = (
    *(*_CONTAINERS, *_BYTES, str, int, float, decimal.Decimal, uuid.UUID, zoneinfo.ZoneInfo),
    *(ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv6Address, ipaddress.IPv6Network),
    *(pathlib.PurePath, dt.timezone),
)
_OF_SEVERAL = (
    *(pathlib.PurePath, int, complex, range, collections.deque, fractions.Fraction),
    *(dt.timedelta, dt.date, dt.timezone),
)
_OF_NAMED = (dt.datetime, dt.time, Item)

_SMALL = frozenset({bool, bytes, complex, dt.timedelta, float, int, str, type(None)})


def is_stored_as(code: int, kind: Any) -> bool:
    """Tell whether objects of a class are written this way, by us or by langgraph-checkpoint."""
    if not isinstance(kind, type):
        return False
    if code in (wire.PYDANTIC_V1, wire.PYDANTIC_V2, wire.FIELDS):
        return _has_fields(kind)
    if code == wire.KEYWORDS:
        return _has_fields(kind) or _has_names(kind) or issubclass(kind, _OF_NAMED)
    if issubclass(kind, enum.Enum):
        return code == wire.SINGLE
    if code == wire.POSITIONAL:
        return issubclass(kind, _OF_SEVERAL)
    return issubclass(kind, _OF_ONE) or _is_scalar(kind) or hasattr(kind, "get_secret_value")


def _has_fields(kind: type) -> bool:
    return hasattr(kind, "model_fields") or hasattr(kind, "__fields__")


def _has_names(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_asdict"))


def _is_scalar(kind: type) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, numpy.generic)


def builder_of(code: int, kind: Any) -> Builder:
    """Give the function that rebuilds an object from what was stored for it."""
    if code == wire.SINGLE:
        return _single_builder(kind)
    if code == wire.POSITIONAL:
        return _positional_builder(kind)
    if code == wire.FIELDS and not kind.__private_attributes__:
        return _fields_builder(kind)
    if code in (wire.PYDANTIC_V1, wire.PYDANTIC_V2, wire.FIELDS) and _needs_aliases(kind):
        return lambda fields: kind.model_construct(**fields)
    if dataclasses.is_dataclass(kind):
        return _dataclass_builder(kind)
    return lambda fields: kind(**fields)


def send_builder(code: int, kind: Any) -> Builder:
    """Give the function that rebuilds a `Send`, whose third argument has a name."""
    if code == wire.KEYWORDS:
        return lambda fields: kind(**fields)
    return lambda arguments: _send(kind, *arguments)


def _send(kind: Any, node: str, arg: Any, timeout: Any = None) -> Any:
    return kind(node, arg) if timeout is None else kind(node, arg, timeout=timeout)


def _single_builder(kind: Any) -> Builder:
    if issubclass(kind, enum.Enum) or hasattr(kind, "get_secret_value"):
        return kind  # type: ignore[no-any-return]
    taken: frozenset[type] = _SMALL
    if issubclass(kind, _CONTAINERS):
        taken = frozenset({list, dict})
    elif issubclass(kind, _BYTES):
        taken = frozenset({bytes})

    def build(argument: Any) -> Any:
        _check(argument, taken)
        return kind(argument)

    return build


def _positional_builder(kind: Any) -> Builder:
    taken = _SMALL | {list}
    if isinstance(kind, type) and issubclass(kind, fractions.Fraction):
        taken = frozenset({int})  # of a text such as 1E999999999 it would make a huge number

    def build(arguments: Any) -> Any:
        _check(arguments, frozenset({list}))
        for argument in arguments:
            _check(argument, taken)
        return kind(*arguments)

    return build


def _check(argument: Any, taken: frozenset[type]) -> None:
    if type(argument) not in taken:
        raise TypeError("never written so")


def _fields_builder(kind: Any) -> Builder:
    """Put fields back as they were. If the class has other fields by now, its constructor decides."""
    names = frozenset(kind.model_fields)
    takes_extra = kind.model_config.get("extra") == "allow"
    new, put = kind.__new__, object.__setattr__

    def build(fields: dict[str, Any]) -> Any:
        extra: dict[str, Any] | None = {} if takes_extra else None
        if fields.keys() != names:
            if takes_extra:
                extra = {name: fields[name] for name in fields.keys() - names}
                fields = {name: item for name, item in fields.items() if name in names}
            if fields.keys() != names:
                return kind(**fields, **(extra or {}))
        made = new(kind)
        put(made, "__dict__", fields)
        put(made, "__pydantic_fields_set__", set(names))
        put(made, "__pydantic_extra__", extra)
        put(made, "__pydantic_private__", None)
        return made

    return build


def _needs_aliases(kind: Any) -> bool:
    fields = getattr(kind, "model_fields", {})
    by_name = getattr(kind, "model_config", {}).get("populate_by_name")
    return not by_name and any(getattr(each, "validation_alias", None) for each in fields.values())


def _dataclass_builder(kind: Any) -> Builder:
    later = [each.name for each in dataclasses.fields(kind) if not each.init]

    def build(fields: dict[str, Any]) -> Any:
        made = kind(**{name: value for name, value in fields.items() if name not in later})
        for name in later:
            object.__setattr__(made, name, fields[name])
        return made

    return build if later else lambda fields: kind(**fields)
