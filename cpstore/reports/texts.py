"""Text that came out of a database, for a terminal or a page: whoever wrote it may be anybody."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["counted", "json_text", "one_line", "printable", "size_text"]

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
"""What moves a cursor, changes colours, turns the direction of writing or cannot be seen; and halves of
characters, which no encoding has. Line feeds and tabs are no harm."""

_UNITS = ("kB", "MB", "GB", "TB")


def printable(text: str) -> str:
    r"""Give a text with control characters as escapes, such as `\x1b` or `\u202e`."""
    return _UNPRINTABLE.sub(_escaped, text)


def one_line(text: str, width: int | None = None) -> str:
    r"""Give a text as one line that is printable; a line feed is `\n`. What is longer than `width` is cut."""
    line = printable(text).replace("\n", "\\n").replace("\t", "\\t")
    return line if width is None or len(line) <= width else line[: max(width - 1, 0)] + "…"


def json_text(document: Any, *, indent: int | None = None) -> str:
    """Give the JSON of a document, in which nothing is but what is printable."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def counted(count: int, name: str) -> str:
    """Give a number of things for people, such as `1 thread` or `1,204 threads`."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def size_text(size: int) -> str:
    """Give a number of bytes for people, such as `512 B` or `1.2 MB`."""
    if size < 1000:
        return f"{size} B"
    number = float(size)
    for unit in _UNITS:
        number /= 1000
        if number < 999.95 or unit == _UNITS[-1]:
            break
    return f"{number:.1f} {unit}"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
