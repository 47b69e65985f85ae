"""Classes by name: which may be rebuilt. Each is looked up once."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Collection
from typing import Any

from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES

from cpstore.errors import TypeNotAllowedError, UnreadableValueError
from cpstore.serde import wire
from cpstore.serde.calls import Builder, builder_of, is_stored_as, send_builder

__all__ = ["Classes", "TypeName", "name_of"]

TypeName = tuple[str, str]

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

_FACTORIES = frozenset({"bool", "dict", "float", "int", "list", "set", "str", "tuple"})
"""What a defaultdict may call for its missing items, besides allowed types."""

_MOVED = {"pathlib._local": "pathlib"}
"""Modules that only some versions of Python have, and where their classes are in all of them."""


def name_of(kind: type) -> TypeName:
    """Give the name by which a class can be found again.

    Raises:
        TypeError: It cannot be found by its name, as one that is defined in a function.
    """
    module, name = _MOVED.get(kind.__module__, kind.__module__), kind.__qualname__
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
        if type(module) is not str or type(name) is not str:
            raise UnreadableValueError("The stored bytes are no value of ours: a class has no name")
        key = (code, module, name)
        if key not in self._builders:
            self._builders[key] = self._find(code, module, name)
        return self._builders[key]

    def _find(self, code: int, module: str, name: str) -> Builder:
        if (module, name) == ("re", "compile"):
            return builder_of(wire.POSITIONAL, re.compile)
        safe = (module, name) in _CALLABLE
        found = self._import(module, name, safe)
        if (module, name) == ("langgraph.types", "Send"):
            return send_builder(code, found)
        if not is_stored_as(code, found):
            raise TypeNotAllowedError(f"{module}.{name} is no type that is stored this way")
        return builder_of(code, found)

    def find(self, module: str, name: str) -> type:
        """Give an allowed class, to hand it over rather than to call it.

        Raises:
            TypeNotAllowedError: It is not allowed.
            UnreadableValueError: It is not there.
        """
        found = self._import(module, name, module == "builtins" and name in _FACTORIES)
        if not isinstance(found, type):
            raise TypeNotAllowedError(f"{module}.{name} is no type")
        return found

    def _import(self, module: str, name: str, safe: bool) -> Any:
        if safe or self.allowed is True or (module, name) in (self.allowed or ()):
            return _import(module, name)
        last = name.rpartition(".")[2]
        if last != name and (module, last) in (self.allowed or ()):
            # LangGraph names a class that is defined inside another one only by its last name.
            found = _import(module, name)
            if (found.__module__, found.__qualname__) == (module, name):
                return found
        raise TypeNotAllowedError(f"{module}.{name} is not an allowed type: add it to allowed_types")


def _import(module: str, name: str) -> Any:
    try:
        found: Any = importlib.import_module(_MOVED.get(module, module))
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, TypeError, ValueError):
        raise UnreadableValueError(f"The class {module}.{name} is gone: it cannot be imported") from None
    return found
