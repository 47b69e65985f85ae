"""What the reading methods are asked, to queries: checked before anything is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata, get_checkpoint_metadata

from cpstore.addresses import configurable_of, identifier, optional_identifier
from cpstore.metadata import dump_metadata
from cpstore.records import Query, ThreadQuery

__all__ = ["channels_of", "history_query", "query", "thread_query"]

_FEWEST_THREADS, _MOST_THREADS = 50, 200


def query(
    config: RunnableConfig | None,
    filter: Mapping[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> Query:
    """Encode what `list` was given.

    Raises:
        ValueError: `limit` is negative.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit must be None or at least 0, not {limit}")
    configurable = configurable_of(config)
    return Query(
        thread_id=_place(configurable, "thread_id"),
        checkpoint_ns=_place(configurable, "checkpoint_ns"),
        checkpoint_id=optional_identifier(configurable, "checkpoint_id"),
        before=optional_identifier(configurable_of(before), "checkpoint_id"),
        filter=_pattern(filter),
        limit=limit,
        exhausted=limit == 0,
    )


def _place(configurable: Mapping[str, Any], name: str) -> str | None:
    """Give a thread or a namespace. An empty text is one, too, and does not mean all of them."""
    value = configurable.get(name)
    return None if value is None else identifier(name, value)


def history_query(thread_id: Any, checkpoint_ns: str | None, limit: int | None) -> Query:
    """Encode what `history` was given.

    Raises:
        ValueError: `limit` is negative.
    """
    place = {"thread_id": identifier("thread_id", thread_id), "checkpoint_ns": checkpoint_ns}
    return query({"configurable": place}, None, None, limit)


def thread_query(
    limit: int, after: str | None, filter: Mapping[str, Any] | None, order: str
) -> ThreadQuery | None:
    """Encode what `list_threads` was given; None if it asks for nothing.

    Raises:
        ValueError: `limit` is negative, or `order` or `after` is none of ours.
    """
    if limit < 0:
        raise ValueError(f"limit must be at least 0, not {limit}")
    if order not in ("newest", "thread_id"):
        raise ValueError(f"order must be newest or thread_id, not {order!r}")
    return ThreadQuery(
        size=min(max(limit, _FEWEST_THREADS), _MOST_THREADS),
        by_id=order == "thread_id",
        after=None if after is None else _cursor(after),
        filter=_pattern(filter),
    )


def _pattern(filter: Mapping[str, Any] | None) -> str | None:
    """Encode a filter as metadata are encoded, after LangGraph has taken out of them what it takes out."""
    if not filter:
        return None
    return dump_metadata(get_checkpoint_metadata({}, cast("CheckpointMetadata", dict(filter))))


def _cursor(text: str) -> tuple[str, str]:
    try:
        checkpoint_id, thread_id = json.loads(text)
    except (TypeError, ValueError):
        raise ValueError("after must be the cursor of a thread that list_threads gave") from None
    return identifier("checkpoint_id", checkpoint_id), identifier("thread_id", thread_id)


def channels_of(channels: Sequence[str]) -> list[str]:
    """Encode the channels that `get_delta_channel_history` was given, each once."""
    return list(dict.fromkeys(identifier("channel", channel) for channel in channels))
