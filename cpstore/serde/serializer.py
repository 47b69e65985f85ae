"""The serializer that the saver uses unless it is given another one."""

from __future__ import annotations

import copy
import json
import pickle as pickling
from collections.abc import Collection, Iterable
from typing import Any, Literal

from langgraph.checkpoint.serde import _msgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from typing_extensions import Self

from cpstore.errors import ConfigurationError, TypeNotAllowedError, UnreadableValueError
from cpstore.serde import wire
from cpstore.serde.classes import Classes, TypeName
from cpstore.serde.compression import compress, decompress, resolve
from cpstore.serde.decoding import Decoder
from cpstore.serde.encoding import Encoder
from cpstore.serde.kinds import Codec

__all__ = ["Serializer"]

_LANGCHAIN = "langchain_core"


class Serializer(JsonPlusSerializer):
    """Encodes values so that they come back exactly, or refuses them.

    It reads all that langgraph-checkpoint's `JsonPlusSerializer` wrote, and that one reads what this one
    writes of the types that it keeps itself.

    Args:
        allowed_types: Classes, or their (module, name), that may be rebuilt besides LangGraph's safe ones;
            any other is an error. None: any class of a kind that is stored, unless LANGGRAPH_STRICT_MSGPACK
            is set, which means none.
        on_error: What to do about an object that cannot be rebuilt: `raise`, or give its data `raw`.
        compression: None, `zlib`, `zstd`, or `auto` (zstd where it is installed). Older rows stay readable.
        codecs: How to store types of one's own.
        pickle: Store what is of no other kind by pickle, and read such rows. Whoever can write a row can then
            run code in your process.
        max_bytes: The most bytes that a compressed value may have when it is read.
        compatible: Write only what langgraph-checkpoint's `JsonPlusSerializer` reads, and refuse the rest.

    Raises:
        ConfigurationError: An argument is none of these, or asks for what `compatible` rules out.
    """

    def __init__(
        self,
        *,
        allowed_types: Iterable[type | TypeName] | None = None,
        on_error: Literal["raise", "raw"] = "raise",
        compression: str | None = None,
        codecs: Iterable[Codec] = (),
        pickle: bool = False,
        max_bytes: int = 1 << 30,
        compatible: bool = False,
    ) -> None:
        super().__init__(pickle_fallback=pickle)
        if on_error not in ("raise", "raw"):
            raise ConfigurationError(f"on_error must be raise or raw, not {on_error!r}")
        self._raw = on_error == "raw"
        self._compression = resolve(compression)
        self._max_bytes = max_bytes
        self._codecs = _checked(codecs)
        self.compatible = compatible
        if compatible and (compression or pickle or self._codecs):
            raise ConfigurationError(
                "langgraph-checkpoint reads nothing that is compressed, pickled or of a codec: leave"
                " compression, pickle and codecs out, or compatible"
            )
        self._encoder = Encoder({codec.type: codec for codec in self._codecs.values()}, compatible=compatible)
        strict = allowed_types is not None or _msgpack.STRICT_MSGPACK_ENABLED
        self._allow(_names(allowed_types or ()) if strict else True)

    @property
    def max_bytes(self) -> int:
        """The most bytes that a compressed value may have when it is read."""
        return self._max_bytes

    def compressed(self, kind: str, data: bytes) -> tuple[str, bytes]:
        """Give the type tag and bytes of what is encoded already."""
        return compress(self._compression, kind, data)

    def dumps_list(self, obj: list[Any]) -> bytes | None:
        """Give a list in MessagePack, not compressed; None if it is stored in another way.

        Raises:
            TypeError: As :meth:`dumps_typed`.
        """
        try:
            return self._encoder.encode(obj)
        except (TypeError, RecursionError):
            if not self.pickle_fallback:
                raise
            return None

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Give a value's type tag and bytes.

        Raises:
            TypeError: It, or something in it, cannot be stored so that it comes back as it is.
        """
        if obj is None:
            return "null", b""
        if type(obj) is bytes:
            return compress(self._compression, "bytes", obj)
        if type(obj) is bytearray:
            return compress(self._compression, "bytearray", bytes(obj))
        if isinstance(obj, BaseException):
            obj = repr(obj)  # as langgraph-checkpoint does: LangGraph shows it, and never raises it again
        try:
            return compress(self._compression, "msgpack", self._encoder.encode(obj))
        except (TypeError, RecursionError):
            if not self.pickle_fallback:
                raise
            return compress(self._compression, "pickle", pickling.dumps(obj))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Give the value of a type tag and bytes.

        Raises:
            UnreadableValueError: They are damaged, or an object in them cannot be rebuilt.
            TypeNotAllowedError: A class in them is not allowed.
        """
        kind, content = data if data[0] == "msgpack" else decompress(*data, self._max_bytes)
        if kind == "msgpack":
            return self._decoder.decode(content)
        if kind == "null":
            return None
        if kind == "bytes":
            return content
        if kind == "bytearray":
            return bytearray(content)
        if kind == "json":
            return self._loads_json(content)
        if kind == "pickle" and self.pickle_fallback:
            return pickling.loads(content)  # noqa: S301 - asked for by name
        if kind == "pickle":
            raise TypeNotAllowedError("The value was pickled, and pickle is off")
        raise UnreadableValueError(f"The type {kind!r} is unknown: is another serializer needed to read it?")

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[TypeName | type]) -> Self:  # type: ignore[override]
        """Give a serializer that allows more types; itself if it allows them already."""
        if self._classes.allowed is True:
            return self
        allowed = frozenset(self._classes.allowed or ())
        merged = allowed | _names(extra_allowlist)
        if merged == allowed:
            return self
        clone = copy.copy(self)
        clone._allow(merged)
        return clone

    def _allow(self, allowed: Collection[TypeName] | bool) -> None:
        self._classes = Classes(allowed)
        self._decoder = Decoder(self._classes, self._codecs, raw=self._raw)
        # Nobody writes JSON any more, so such a row may be anybody's: it never names what is imported.
        named = Classes(() if isinstance(allowed, bool) else allowed)
        self._json_decoder = Decoder(named, self._codecs, raw=self._raw)

    def _loads_json(self, content: bytes) -> Any:
        try:
            return json.loads(content, object_hook=self._revive)
        except UnreadableValueError:
            raise
        except Exception as error:
            raise UnreadableValueError("The stored JSON is damaged, or an object in it refused it") from error

    def _revive(self, value: dict[str, Any]) -> Any:
        """Rebuild LangChain's form of an object in JSON, if its class is allowed."""
        if value.get("type") != "constructor" or value.get("lc") not in (1, 2):
            return value
        *modules, name = value["id"]
        module = ".".join(modules)
        if value["lc"] == 1:
            module = _module_of(name, module)
        args, kwargs = value.get("args") or [], value.get("kwargs") or {}
        if value.get("method") == "fromisoformat":
            return self._json_decoder.extension(wire.METHOD, [module, name, *args, "fromisoformat"])
        if len(args) == 1 and not kwargs:
            return self._json_decoder.call(wire.SINGLE, module, name, args[0])
        if args or not kwargs:
            return self._json_decoder.call(wire.POSITIONAL, module, name, args)
        code = wire.PYDANTIC_V2 if module.startswith(_LANGCHAIN) else wire.KEYWORDS
        return self._json_decoder.call(code, module, name, kwargs)


def _checked(codecs: Iterable[Codec]) -> dict[str, Codec]:
    found: dict[str, Codec] = {}
    for codec in codecs:
        if codec.name in found:
            raise ConfigurationError(f"Two codecs have the name {codec.name!r}")
        found[codec.name] = codec
    return found


def _names(types: Iterable[TypeName | type]) -> frozenset[TypeName]:
    return frozenset(
        (each.__module__, each.__qualname__) if isinstance(each, type) else (each[0], each[-1])
        for each in types
    )


def _module_of(name: str, module: str) -> str:
    """Give the module where a message class is now: LangChain's older names say only its family."""
    for safe_module, safe_name in (key[:2] for key in _msgpack.SAFE_MSGPACK_TYPES):
        if safe_name == name and safe_module.startswith(_LANGCHAIN):
            return safe_module
    return module
