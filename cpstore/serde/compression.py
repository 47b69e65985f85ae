"""Compression of encoded values, recorded in their type: `msgpack:zstd`, `msgpack:zlib`."""

from __future__ import annotations

import zlib
from importlib.util import find_spec
from typing import Any

from cpstore.errors import ConfigurationError, UnreadableValueError

__all__ = ["METHODS", "compress", "decompress", "resolve"]

METHODS = ("auto", "zlib", "zstd")

_SMALLEST = 512
"""Values below so many bytes stay as they are: there is nothing to gain."""

_PIECE = 1 << 20
"""So many bytes are unpacked at a time: a reader of zstd takes the memory for all that it is asked for."""


def resolve(method: str | None) -> str | None:
    """Give the method that is meant: `auto` is zstd where it is installed, else zlib.

    Raises:
        ConfigurationError: It is unknown, or not installed.
    """
    if method is None or method == "zlib":
        return method
    if method not in METHODS:
        raise ConfigurationError(f"compression must be None or one of {', '.join(METHODS)}, not {method!r}")
    if _zstd() is not None:
        return "zstd"
    if method == "zstd":
        raise ConfigurationError("zstd is not installed: pip install zstandard")
    return "zlib"


def compress(method: str | None, kind: str, data: bytes) -> tuple[str, bytes]:
    """Give type and bytes, compressed if that makes them smaller."""
    if method is None or len(data) < _SMALLEST:
        return kind, data
    packed = zlib.compress(data) if method == "zlib" else _zstd().ZstdCompressor().compress(data)
    return (f"{kind}:{method}", packed) if len(packed) < len(data) else (kind, data)


def decompress(kind: str, data: bytes, limit: int) -> tuple[str, bytes]:
    """Give type and bytes as they were before they were compressed.

    Raises:
        UnreadableValueError: They are more than `limit` bytes, or damaged.
    """
    kind, _, method = kind.partition(":")
    if not method:
        return kind, data
    try:
        unpacked = _DECOMPRESSORS[method](data, limit)
    except KeyError:
        raise UnreadableValueError(f"The compression {method!r} is unknown") from None
    except UnreadableValueError:
        raise
    except Exception as error:
        raise UnreadableValueError("The compressed bytes are damaged") from error
    return kind, unpacked


def _unzlib(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj()
    unpacked = stream.decompress(data, limit + 1)
    _check(len(unpacked), limit)
    if not stream.eof:
        raise ValueError("cut off")
    return unpacked


def _unzstd(data: bytes, limit: int) -> bytes:
    module = _zstd()
    if module is None:
        raise UnreadableValueError("The value is compressed with zstd: pip install zstandard")
    size = module.frame_content_size(data)
    _check(size, limit)
    unpacked = bytearray()
    with module.ZstdDecompressor().stream_reader(data) as stream:
        while len(unpacked) <= limit and (part := stream.read(_PIECE)):
            unpacked += part
    _check(len(unpacked), limit)
    if len(unpacked) != size:
        raise ValueError("cut off")
    return bytes(unpacked)


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise UnreadableValueError(f"The value has more than {limit} bytes: raise max_bytes to read it")


def _zstd() -> Any:
    if find_spec("zstandard") is None:
        return None
    import zstandard

    return zstandard


_DECOMPRESSORS = {"zlib": _unzlib, "zstd": _unzstd}
