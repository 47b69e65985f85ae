"""What is written beside a checkpoint, in every drawing."""

from __future__ import annotations

from cpstore.reports.texts import one_line, size_text
from cpstore.summaries import CheckpointSummary
from cpstore.trees.forest import Row

__all__ = ["label", "marks"]

_CHANNELS = 6
"""So many channels are named; of others, how many there are."""

_WIDTH = 60


def label(row: Row) -> list[str]:
    """Give the parts of a label: namespace (where one begins), step, source, channels, size, marks, id."""
    one = row.checkpoint
    begins = one.checkpoint_ns and row.kind in ("call", "root")
    parts = [
        one_line(one.checkpoint_ns, _WIDTH * 2) if begins else "",
        _step(one),
        _channels(one.updated_channels),
        size_text(one.total_bytes),
        *marks(row),
        one_line(one.checkpoint_id, _WIDTH),
    ]
    return [part for part in parts if part]


def marks(row: Row) -> list[str]:
    """Give what is remarkable: `interrupt`, `error`, `head`."""
    one = row.checkpoint
    there = {"interrupt": one.interrupts, "error": one.errors, "head": row.is_head}
    return [mark for mark, is_there in there.items() if is_there]


def _step(one: CheckpointSummary) -> str:
    step, source = one.metadata.get("step"), one.metadata.get("source")
    number = "" if step is None else f"step {one_line(str(step), _WIDTH)}"
    return " ".join(part for part in (number, one_line(str(source or ""), _WIDTH)) if part)


def _channels(updated: tuple[str, ...] | None) -> str:
    if not updated:
        return ""
    named = ", ".join(one_line(str(channel), _WIDTH) for channel in updated[:_CHANNELS])
    more = len(updated) - _CHANNELS
    return f"{named} and {more} more" if more > 0 else named
