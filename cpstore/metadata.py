"""Metadata as JSON: one rule for both databases, and it never fails a run.

What JSON cannot hold is put in a text form that one can search for. NUL and lone surrogates, which
PostgreSQL refuses, are replaced by U+FFFD; numbers that are none become `"NaN"`, `"Infinity"`, `"-Infinity"`.
"""

from __future__ import annotations

import datetime
import enum
import json
import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["Except", "MetadataKeys", "Only", "dump_metadata", "is_storable", "kept_metadata", "plain"]

_LANGGRAPHS = frozenset(
    {"counters_since_delta_snapshot", "delta_writes_versioned", "parents", "run_id", "source", "step"}
)
"""What LangGraph itself writes and reads. It is always kept."""

_REPLACEMENT = "\ufffd"
_UNSTORABLE = dict.fromkeys((0, *range(55296, 57344)), _REPLACEMENT)
_UNSTORABLE_CHARACTER = re.compile("[\0\ud800-\udfff]")
_DIGITS_THAT_PYTHON_PRINTS = 4000
_DEPTH = 100
"""Of containers in each other. PostgreSQL and Python's JSON take some hundreds."""


class Only:
    """Of metadata, keep only these keys, and LangGraph's own.

    Args:
        keys: Keys at the top of the metadata, which are also keys of `configurable` and of a config's
            `metadata`.
    """

    def __init__(self, *keys: str) -> None:
        self.keys = frozenset(keys)

    def __contains__(self, key: object) -> bool:
        return key in self.keys


class Except:
    """Of metadata, keep everything but these keys: `Except("api_key")`. LangGraph's own stay.

    Args:
        keys: Keys at the top of the metadata, which are also keys of `configurable` and of a config's
            `metadata`.
    """

    def __init__(self, *keys: str) -> None:
        self.keys = frozenset(keys)

    def __contains__(self, key: object) -> bool:
        return key not in self.keys


MetadataKeys = Only | Except
"""What decides which keys of metadata are stored."""


def kept_metadata(metadata: Mapping[str, Any], keys: MetadataKeys | None) -> Mapping[str, Any]:
    """Give the metadata that may be stored; None keeps all of it."""
    if keys is None:
        return metadata
    return {key: value for key, value in metadata.items() if key in _LANGGRAPHS or key in keys}


def is_storable(text: str) -> bool:
    """Tell whether PostgreSQL can store a text: it has no NUL and no lone surrogate."""
    return _UNSTORABLE_CHARACTER.search(text) is None


def dump_metadata(metadata: Mapping[str, Any]) -> str:
    """Give metadata, or a filter for it, as JSON text."""
    return json.dumps(plain(metadata), allow_nan=False)


def plain(value: Any) -> Any:
    """Give a value of JSON for any value."""
    return _plain(value, ())


def _plain(value: Any, around: tuple[int, ...]) -> Any:
    """Give a value of JSON for a value in containers, which are known by their ids."""
    if value is None or isinstance(value, bool):
        return value
    if type(value) in (str, int, float):
        return _scalar(value)
    if id(value) in around or len(around) == _DEPTH:
        return _text(value)
    try:
        return _plain_object(value, (*around, id(value)))
    except Exception:  # it is the caller's class: whatever it raises, the run goes on
        return _text(value)


def _scalar(value: str | int | float) -> str | int | float:
    if isinstance(value, str):
        return str.__str__(value).translate(_UNSTORABLE)
    if isinstance(value, int):
        return int(value) if value.bit_length() < _DIGITS_THAT_PYTHON_PRINTS else hex(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value.is_integer() and "e" in repr(value):
        return int(value)  # JSONB would put zeros for the exponent, which is another number
    return float(value)


def _plain_object(value: Any, around: tuple[int, ...]) -> Any:
    if isinstance(value, enum.Enum):
        return _plain(value.value, around)
    if isinstance(value, (str, int, float)):
        return _scalar(value)
    if isinstance(value, Mapping):
        return {_text(key): _plain(item, around) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, around) for item in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return _plain(value.model_dump(), around)
    return _text(value)


def _text(value: Any) -> str:
    """Give the text of any object; of one that has none, its type's name."""
    try:
        text = str(value)
    except Exception:  # RecursionError is one
        text = f"<{type(value).__module__}.{type(value).__qualname__}>"
    return text.translate(_UNSTORABLE)
