"""Times in ids: LangGraph's checkpoint ids are UUIDs of version 6, which begin with their time."""

from __future__ import annotations

import datetime as dt
import uuid

__all__ = ["time_of"]

_EPOCH = dt.datetime(1582, 10, 15, tzinfo=dt.timezone.utc)
"""Where the time of a UUID begins. Source: RFC 9562, section 5.6."""


def time_of(checkpoint_id: str) -> dt.datetime | None:
    """Give the time at which a checkpoint was made, in UTC to the microsecond; None if its id has none."""
    try:
        parsed = uuid.UUID(checkpoint_id)
    except ValueError:
        return None
    if parsed.version != 6:
        return None
    ticks = (parsed.int >> 80) << 12 | (parsed.int >> 64) & 0xFFF
    return _EPOCH + dt.timedelta(microseconds=ticks // 10)
