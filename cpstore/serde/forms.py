"""How objects of well-known classes are shown: a date as a date, a path as a path."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from typing import Any

from cpstore.errors import UnreadableValueError
from cpstore.serde import wire
from cpstore.serde.arrays import KINDS
from cpstore.serde.shapes import PlainObject

__all__ = ["call_form", "own_form"]

_NAMED = {wire.KEYWORDS, wire.PYDANTIC_V1, wire.PYDANTIC_V2}

_ITEMS = 1000
"""An array with more items is told of by its bytes."""

_FORMATS = dict(
    zip(("b1", "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"), "?efdbhiqBHIQ", strict=True)
)
"""numpy's names of types and those of `struct`."""

_HIDDEN = "**********"


def call_form(code: int, module: Any, name: Any, content: Any) -> Any:
    """Give what stands for an object that a call would rebuild; how it looks if it is of no known class.

    Raises:
        UnreadableValueError: The class has no name.
    """
    if type(module) is not str or type(name) is not str:
        raise UnreadableValueError("The stored bytes are no value of ours: a class has no name")
    kind = _name(module, name)
    form = (_OF_SEVERAL.get(kind) if code == wire.POSITIONAL else None) or _FORMS.get(kind)
    if form is not None:
        try:
            return form(kind, content)
        except Exception:  # noqa: S110 - then it is shown as it was stored
            pass
    if code in _NAMED and isinstance(content, dict) and all(type(key) is str for key in content):
        return PlainObject(kind, content)
    return PlainObject(kind, {"value": content})


def own_form(kind: Any, *content: Any) -> Any:
    """Give what stands for a value that is stored under our own extension type."""
    if kind == "text":
        return content[0].decode(errors="surrogatepass")
    if kind == "dict":
        return dict(content[0]) if _are_texts(content[0]) else PlainObject("dict", {"items": content[0]})
    if kind == "codec":
        return PlainObject(f"codec {content[0]}", {"value": content[1]})
    if kind == "defaultdict":
        return PlainObject("collections.defaultdict", {"value": content[1]})
    if kind == "array":
        return PlainObject("numpy.ndarray", _array(*content))
    if kind == "scalar":
        return PlainObject("numpy.generic", _array(content[0], [1], "C", content[1]))
    name = ".".join(KINDS[kind]) if kind in KINDS else f"cpstore {kind}"
    fields = _FIELDS.get(kind, ())
    if len(fields) != len(content):
        return PlainObject(name, {"value": list(content)})
    return PlainObject(name, dict(zip(fields, content, strict=True)))


def _are_texts(pairs: list[list[Any]]) -> bool:
    return all(type(key) is str for key, _ in pairs)


def _name(module: str, name: str) -> str:
    if module == "builtins":
        return name
    return f"{'pathlib' if module == 'pathlib._local' else module}.{name}"


_FIELDS = {
    "frame": ("columns", "index", "data"),
    "index": ("kind", "name", "value"),
    "series": ("name", "index", "data"),
    "timedelta": ("nanoseconds", "unit", "zone"),
    "timestamp": ("nanoseconds", "unit", "zone"),
}


def _array(dtype: Any, shape: list[int], order: str, data: bytes) -> dict[str, Any]:
    """Give an array's items in the order of its memory; of a large or structured one, only the bytes."""
    fields: dict[str, Any] = {"dtype": dtype, "shape": shape}
    if order != "C":
        fields["order"] = order
    form = _FORMATS.get(dtype[1:]) if isinstance(dtype, str) else None
    count = math.prod(shape)
    if form is None or count > _ITEMS or struct.calcsize(f"={count}{form}") != len(data):
        return {**fields, "bytes": len(data)}
    return {**fields, "value": list(struct.unpack(f"{'>' if dtype[0] == '>' else '<'}{count}{form}", data))}


# Forms


def _value(take: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    return lambda kind, content: PlainObject(kind, {"value": take(content)})


def _fields(*names: str) -> Callable[[str, Any], Any]:
    return lambda kind, content: PlainObject(kind, dict(zip(names, content, strict=True)))


def _bytearray(_kind: str, content: Any) -> Any:
    if not isinstance(content, bytes):
        raise TypeError("never written so")
    return bytearray(content)


def _uuid(kind: str, content: str) -> Any:
    digits = f"{int(content, 16):032x}"
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return PlainObject(kind, {"value": "-".join(parts)})


def _path(parts: list[str]) -> str:
    if not parts:
        return "."
    first, rest = parts[0], parts[1:]
    separator = "\\" if "\\" in first else "/"
    return (first if first.endswith(separator) else first + separator * bool(rest)) + separator.join(rest)


def _moment(kind: str, content: Any) -> Any:
    if isinstance(content, str):
        return PlainObject(kind, {"value": content})
    rest = dict(content)
    zone, fold = rest.pop("tzinfo"), rest.pop("fold")
    made = dt.datetime(**rest) if "year" in rest else dt.time(**rest)
    zones = {} if zone is None else {"tzinfo": zone.fields["value"]}
    return PlainObject(kind, {"value": made.isoformat(), **zones, **({"fold": fold} if fold else {})})


def _zone(kind: str, content: Any) -> Any:
    return PlainObject(kind, {"value": str(dt.timezone(_delta(content[0].fields["value"])))})


def _delta(text: str) -> dt.timedelta:
    return dt.timedelta(seconds=float(text.removesuffix(" s")))


def _duration(content: list[int]) -> str:
    days, seconds, microseconds = content
    fraction = f".{microseconds:06}" if microseconds else ""
    return f"{days * 86400 + seconds}{fraction} s"


def _send(kind: str, content: Any) -> Any:
    if isinstance(content, dict):
        return PlainObject(kind, content)
    names = ("node", "arg", "timeout")[: len(content)]
    return PlainObject(kind, dict(zip(names, content, strict=True)))


_OF_SEVERAL: dict[str, Callable[[str, Any], Any]] = {
    "collections.deque": _fields("value", "maxlen"),
    "complex": _fields("real", "imag"),
    "int": lambda _, content: int(content[0], content[1]),
    "range": _fields("start", "stop", "step"),
}
"""The same, for those whose constructor was given several arguments."""

_FORMS: dict[str, Callable[[str, Any], Any]] = {
    "bytearray": _bytearray,
    "collections.OrderedDict": lambda kind, content: PlainObject(kind, {"items": content}),
    "datetime.date": _value(lambda parts: dt.date(*parts).isoformat()),
    "datetime.datetime": _moment,
    "datetime.time": _moment,
    "datetime.timedelta": _value(_duration),
    "datetime.timezone": _zone,
    "fractions.Fraction": _value(lambda parts: "/".join(map(str, parts))),
    "langgraph.types.Send": _send,
    "pydantic.types.SecretBytes": _value(lambda _: _HIDDEN),
    "pydantic.types.SecretStr": _value(lambda _: _HIDDEN),
    "re.compile": _fields("pattern", "flags"),
    "uuid.UUID": _uuid,
    **{
        f"pathlib.{name}": _value(_path)
        for name in ("Path", "PosixPath", "PurePath", "PurePosixPath", "PureWindowsPath", "WindowsPath")
    },
}
"""By class, what stands for an object. One that fails is passed over."""
