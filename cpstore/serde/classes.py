"""Classes by name: which may be rebuilt, and by what kind of call. Each is looked up once."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import pathlib
import sys
from collections.abc import Callable, Collection
from typing import Any

from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES

from cpstore.errors import TypeNotAllowedError, UnreadableValueError
from cpstore.serde import wire

__all__ = ["Builder", "Classes", "TypeName", "name_of"]

TypeName = tuple[str, str]
Builder = Callable[[Any], Any]

_PLAIN = {
    *(("builtins", name) for name in ("bytearray", "complex", "int", "range", "tuple")),
    *(("collections", name) for name in ("Counter", "OrderedDict", "deque")),
    ("fractions", "Fraction"),
    *(("numpy", f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *(("numpy", name) for name in ("bool", "bool_", "float16", "float32", "float64")),
}
"""What we write for plain values, besides LangGraph's safe types. Calling them runs nothing of anybody's."""

_CALLABLE = {
    *((module, name) for module, name, *_ in SAFE_MSGPACK_TYPES),
    *_PLAIN,
}


def name_of(kind: type) -> TypeName:
    """Give the name by which a class can be found again.

    Raises:
        TypeError: It cannot be found by its name, as one that is defined in a function.
    """
    module, name = kind.__module__, kind.__qualname__
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not kind:
        raise TypeError(f"{module}.{name} cannot be found by its name: define it at the top of a module")
    return module, name


class Classes:
    """The classes that may be rebuilt.

    Args:
        allowed: Names that are allowed besides the safe ones; True: any class that is of a kind we store.
    """

    def __init__(self, allowed: Collection[TypeName] | bool) -> None:
        self.allowed = allowed
        self._builders: dict[tuple[int, str, str], Builder] = {}

    def builder(self, code: int, module: str, name: str) -> Builder:
        """Give the function that rebuilds an object from what was stored for it.

        Raises:
            TypeNotAllowedError: The class is not allowed, or of no kind that is ever stored this way.
            UnreadableValueError: The class is not there.
        """
        key = (code, module, name)
        if key not in self._builders:
            self._builders[key] = self._find(code, module, name)
        return self._builders[key]

    def _find(self, code: int, module: str, name: str) -> Builder:
        safe = (module, name) in _CALLABLE
        if not safe and self.allowed is not True and (module, name) not in (self.allowed or ()):
            raise TypeNotAllowedError(f"{module}.{name} is not an allowed type: add it to allowed_types")
        found = _import(module, name)
        if (module, name) == ("langgraph.types", "Send"):
            return lambda arguments: _send(found, *arguments)
        if not safe and not _is_stored_as(code, found):
            raise TypeNotAllowedError(f"{module}.{name} is no type that is stored this way")
        return _builder_of(code, found)

    def find(self, module: str, name: str) -> Any:
        """Give an allowed class, to hand it over rather than to call it.

        Raises:
            TypeNotAllowedError: It is not allowed.
            UnreadableValueError: It is not there.
        """
        builtin = module == "builtins" and name in {
            "bool",
            "dict",
            "float",
            "int",
            "list",
            "set",
            "str",
            "tuple",
        }
        if not builtin and self.allowed is not True and (module, name) not in (self.allowed or ()):
            raise TypeNotAllowedError(f"{module}.{name} is not an allowed type: add it to allowed_types")
        found = _import(module, name)
        if not isinstance(found, type):
            raise TypeNotAllowedError(f"{module}.{name} is no type")
        return found


def _import(module: str, name: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        raise UnreadableValueError(f"The class {module}.{name} is gone: it cannot be imported") from None
    return found


def _send(kind: Any, node: str, arg: Any, timeout: Any = None) -> Any:
    return kind(node, arg) if timeout is None else kind(node, arg, timeout=timeout)


def _is_stored_as(code: int, kind: Any) -> bool:
    """Tell whether the encoder writes objects of a class this way: no other is ever called."""
    if not isinstance(kind, type):
        return False
    if code in (wire.PYDANTIC_V1, wire.PYDANTIC_V2, wire.FIELDS):
        return hasattr(kind, "model_fields") or hasattr(kind, "__fields__")
    if code == wire.KEYWORDS:
        return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") or hasattr(kind, "__slots__")
    if code == wire.POSITIONAL:
        return issubclass(kind, (pathlib.PurePath, *_VALUES))
    return issubclass(kind, (enum.Enum, *_VALUES)) or hasattr(kind, "get_secret_value")


def _values() -> tuple[type, ...]:
    named = [_import(module, name) for module, name in sorted(_CALLABLE) if module in _VALUE_MODULES]
    return (str, bytes, int, float, list, dict, *(kind for kind in named if isinstance(kind, type)))


_VALUE_MODULES = {
    "builtins",
    "collections",
    "datetime",
    "decimal",
    "fractions",
    "ipaddress",
    "uuid",
    "zoneinfo",
}
_VALUES = tuple(kind for kind in _values() if kind is not range)


def _builder_of(code: int, kind: Any) -> Builder:
    if code == wire.SINGLE:
        return kind  # type: ignore[no-any-return]
    if code == wire.POSITIONAL:
        return lambda arguments: kind(*arguments)
    if code == wire.FIELDS and not kind.__private_attributes__:
        return _fields_builder(kind)
    if code in (wire.PYDANTIC_V1, wire.PYDANTIC_V2, wire.FIELDS) and _needs_aliases(kind):
        return lambda fields: kind.model_construct(**fields)
    if dataclasses.is_dataclass(kind):
        return _dataclass_builder(kind)
    return lambda fields: kind(**fields)


def _fields_builder(kind: Any) -> Builder:
    """Put fields back as they were. If the class has other fields by now, its constructor decides."""
    names = frozenset(kind.model_fields)
    takes_extra = kind.model_config.get("extra") == "allow"
    new, put = kind.__new__, object.__setattr__

    def build(fields: dict[str, Any]) -> Any:
        extra = {name: fields.pop(name) for name in fields.keys() - names} if takes_extra else None
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
