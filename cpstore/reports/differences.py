"""What differs between two checkpoints, channel by channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from cpstore.reports.states import values_document
from cpstore.reports.texts import json_text

__all__ = ["difference_document", "unified"]

_CONTEXT = 3
_COMPARED = 2000
"""So many lines are compared with each other; the time for it grows with their square."""


def difference_document(before: CheckpointTuple, after: CheckpointTuple) -> dict[str, Any]:
    """Give the document of the difference: the channels that were added, removed or changed, by their names.

    Of a channel whose value was a list and is one, `items` says how many of the first ones are the `same`,
    how many others were `changed`, and how many were `appended` or `removed` at the end. `diff` has the
    lines of the JSON of both values, with a space, `-` or `+` at their beginning, and a line with `@@` where
    others are left out.
    """
    old, new = values_document(before), values_document(after)
    names = sorted(old.keys() | new.keys())
    changes = [change for name in names if (change := _change(name, old, new)) is not None]
    differing = {change["channel"] for change in changes}
    return {
        "before": _end(before),
        "after": _end(after),
        "channels": changes,
        "unchanged": [name for name in names if name not in differing],
    }


def _end(found: CheckpointTuple) -> dict[str, Any]:
    place: Any = found.config.get("configurable", {})
    metadata: Any = found.metadata
    names = ("thread_id", "checkpoint_ns", "checkpoint_id")
    return {
        **{name: place[name] for name in names},
        "step": metadata.get("step"),
        "source": metadata.get("source"),
    }


def _change(name: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any] | None:
    sides = [side.get(name, _ABSENT) for side in (old, new)]
    texts = [[] if side is _ABSENT else json_text(side, indent=2).split("\n") for side in sides]
    if texts[0] == texts[1]:
        return None
    change = "added" if name not in old else "removed" if name not in new else "changed"
    items = _items(*sides) if all(isinstance(side, list) for side in sides) else None
    return {"channel": name, "change": change, "items": items, "diff": list(unified(*texts))}


_ABSENT: Any = object()


def _items(old: list[Any], new: list[Any]) -> dict[str, int]:
    shorter = min(len(old), len(new))
    equal = [json_text(one) == json_text(other) for one, other in zip(old, new, strict=False)]
    same = next((position for position, is_equal in enumerate(equal) if not is_equal), shorter)
    return {
        "same": same,
        "changed": equal.count(False),
        "appended": len(new) - shorter,
        "removed": len(old) - shorter,
    }


def unified(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Give the lines of a unified difference, without a head for files."""
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    first = max(start - _CONTEXT, 0)
    last = max(end - _CONTEXT, 0)
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    for group in _groups(old, new, start - first, end - last):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        yield f"@@ -{_span(first + old_from, first + old_to)} +{_span(first + new_from, first + new_to)} @@"
        for tag, a_from, a_to, b_from, b_to in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[a_from:a_to])
            else:
                yield from (f"-{line}" for line in old[a_from:a_to])
                yield from (f"+{line}" for line in new[b_from:b_to])


Step = tuple[str, int, int, int, int]


def _groups(old: Sequence[str], new: Sequence[str], head: int, tail: int) -> list[list[Step]]:
    if max(len(old), len(new)) <= _COMPARED:
        return [list(group) for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT)]
    ends = len(old) - tail, len(new) - tail
    whole: Step = ("replace", head, ends[0], head, ends[1])
    return [[("equal", 0, head, 0, head), whole, ("equal", ends[0], len(old), ends[1], len(new))]]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _span(start: int, end: int) -> str:
    length = end - start
    return f"{start + 1 if length else start},{length}"
