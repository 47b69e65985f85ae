"""Addresses of pages: every id is quoted, whatever characters it has."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote, urlencode

__all__ = ["end", "link", "place_of"]


def link(root: str, page: str, **asked: Any) -> str:
    """Give the address of a page below `root`, with what is asked of it; None and empty are left out."""
    given = {name: value for name, value in asked.items() if value not in (None, "")}
    return f"{root}{page}" + (f"?{urlencode(given)}" if given else "")


def end(checkpoint_id: str, namespace: str) -> str:
    """Give one text for a checkpoint of a thread, to be one end of a difference."""
    return f"{quote(checkpoint_id, safe='')}/{quote(namespace, safe='')}"


def place_of(text: str) -> tuple[str, str]:
    """Give the id and the namespace of :func:`end`; without a namespace, the root graph's is meant."""
    checkpoint_id, _, namespace = text.partition("/")
    return unquote(checkpoint_id), unquote(namespace)
