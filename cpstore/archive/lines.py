r"""The form of the lines of an archive.

The first one is :data:`HEAD`. Then come the threads, one after the other: their rows, and a line that ends
the thread and counts them. Each line is a JSON object::

    {"kind": "checkpoint", "thread_id": …, …, "checkpoint": {…}, "metadata": {…}, "crc32": "0f3a9c12"}
    {"kind": "blob", "thread_id": …, …, "type": "msgpack", "blob": "3gAR…", "crc32": …}
    {"kind": "write", "thread_id": …, …, "type": "msgpack", "blob": "pEJlcm4=", "crc32": …}
    {"kind": "end", "thread_id": …, "checkpoints": 12, "blobs": 30, "writes": 4, "crc32": …}

`crc32` is that of the line without it, as if it ended there. Who changes a line takes it away. A document
that JSON in Python cannot hold exactly, or that is damaged, stands as text: `checkpoint_text`.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from decimal import Decimal
from typing import Any

from cpstore.errors import DamagedLineError

__all__ = ["HEAD", "KINDS", "Row", "dump", "load", "row_line", "row_of"]

Row = dict[str, Any]

HEAD = '{"format": "cpstore", "version": 1}'
"""The first line."""

KINDS = {"checkpoint": "checkpoints", "blob": "blobs", "write": "writes"}
"""The kinds of lines, and the tables that they are rows of."""

_DOCUMENTS = ("checkpoint", "metadata")
_CRC = re.compile(r', "crc32": "([0-9a-f]{8})"\}$')

_COLUMNS: dict[str, dict[str, Any]] = {
    "checkpoints": {
        **dict.fromkeys(("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint", "metadata"), str),
        **dict.fromkeys(("parent_checkpoint_id", "type"), (str, type(None))),
    },
    "blobs": {
        **dict.fromkeys(("thread_id", "checkpoint_ns", "channel", "version", "type"), str),
        "blob": (bytes, type(None)),
    },
    "writes": {
        **dict.fromkeys(("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "channel"), str),
        "task_path": str,
        "idx": int,
        "type": (str, type(None)),
        "blob": bytes,
    },
}
"""The columns of each table, and what is in them."""


def dump(document: dict[str, Any]) -> str:
    """Give the line of a document."""
    body = json.dumps(document)
    return f'{body[:-1]}, "crc32": "{zlib.crc32(body.encode()):08x}"}}'


def load(line: str) -> dict[str, Any]:
    """Give the document of a line.

    Raises:
        DamagedLineError: It is none of ours, or was changed.
    """
    if found := _CRC.search(line):
        line = line[: found.start()] + "}"
        if int(found[1], 16) != zlib.crc32(line.encode(errors="surrogatepass")):
            raise DamagedLineError("is damaged: its crc32 is another one")
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        raise DamagedLineError("is damaged: it is no JSON") from None
    if not isinstance(document, dict):
        raise DamagedLineError("is no JSON object")
    return document


def row_line(kind: str, row: Row) -> str:
    """Give the line of a row of a table, by column names."""
    document: dict[str, Any] = {"kind": kind}
    for name in _COLUMNS[KINDS[kind]]:
        value = row[name]
        if name in _DOCUMENTS:
            document |= _parsed(name, value)
        else:
            document[name] = value if name != "blob" or value is None else _text_of(value)
    return dump(document)


def _text_of(blob: bytes) -> str:
    return base64.b64encode(blob).decode("ascii")


def _parsed(name: str, text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
        if isinstance(document, dict) and _exactly(json.dumps(document, allow_nan=False)) == _exactly(text):
            return {name: document}
    except (ValueError, RecursionError):
        pass
    return {f"{name}_text": text}


def _exactly(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def row_of(document: dict[str, Any]) -> tuple[str, Row]:
    """Give the table and the row, by column names, of a line's document.

    Raises:
        DamagedLineError: Something is missing in it, or is no such thing.
    """
    part = KINDS.get(str(document.get("kind")))
    if part is None:
        raise DamagedLineError("is of no kind that this cpstore knows")
    row = {name: _column(document, name) for name in _COLUMNS[part]}
    for name, kinds in _COLUMNS[part].items():
        if not isinstance(row[name], kinds) or isinstance(row[name], bool):
            raise DamagedLineError(f"is damaged: {name} is missing in it, or is no such thing")
        if isinstance(row[name], str) and not _is_storable(row[name]):
            raise DamagedLineError(f"is damaged: {name} has a character that cannot be stored")
    return part, row


def _column(document: dict[str, Any], name: str) -> Any:
    value = document.get(name)
    if name in _DOCUMENTS:
        return document.get(f"{name}_text") if value is None else json.dumps(value)
    if name == "blob" and value is not None:
        try:
            return base64.b64decode(value, validate=True)
        except (TypeError, ValueError):
            raise DamagedLineError("is damaged: its blob is no base64") from None
    return value


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
