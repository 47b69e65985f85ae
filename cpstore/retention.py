"""Which threads and checkpoints a retention rule keeps: pure decisions, thread by thread."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from typing_extensions import Self

from cpstore.addresses import identifier, thread_ids
from cpstore.metadata import plain
from cpstore.records import Key
from cpstore.times import time_of

__all__ = ["Decision", "Rule", "by_thread", "checked_list", "kept_by"]

_BATCH = 500
_STRATEGIES = {"keep_latest": 1, "delete": 0}


class Decision(NamedTuple):
    """What is to be done to a thread: how many checkpoints each namespace keeps.

    One that is deleted for its age is left alone if `newest` is not its newest checkpoint any more.
    """

    thread_id: str
    keep: int
    newest: str | None


@dataclass(frozen=True)
class Rule:
    """A retention rule, and where it stands in the order of thread ids."""

    thread_ids: tuple[str, ...] | None
    cutoff: dt.datetime | None
    keep: int | None
    left: int | None
    after: str | None
    done: bool = False

    @classmethod
    def of(
        cls,
        chosen: Sequence[str] | None,
        older_than: dt.timedelta | dt.datetime | None,
        keep: int | None,
        limit: int | None,
        after: str | None,
    ) -> Self:
        """Make a rule of what `retention` was given.

        Raises:
            ValueError: Nothing is asked for, a number is below 1, or a time has no zone.
            TypeError: `chosen` is one text.
        """
        if older_than is None and keep is None:
            raise ValueError("Say what to delete: pass older_than, keep, or both")
        for name, count in (("keep", keep), ("limit", limit)):
            if count is not None and count < 1:
                raise ValueError(f"{name} must be at least 1, not {count}")
        return cls(
            None if chosen is None else tuple(thread_ids(chosen)),
            None if older_than is None else _cutoff(older_than),
            keep,
            limit,
            None if after is None else identifier("thread_id", after),
            done=chosen is not None and not chosen,
        )

    @property
    def batch(self) -> int:
        """So many threads to look at next."""
        return _BATCH if self.left is None else min(self.left, _BATCH)

    def decide(self, found: Iterable[tuple[str, str]]) -> Iterator[Decision]:
        """Give the threads of which something may go."""
        for thread_id, newest in found:
            time = time_of(newest)
            if self.cutoff is not None and time is not None and time < self.cutoff:
                yield Decision(thread_id, 0, newest)
            elif self.keep is not None:
                yield Decision(thread_id, self.keep, None)

    def following(self, found: Sequence[tuple[str, str]]) -> Self:
        """Give the rule as it stands after these threads."""
        if len(found) < self.batch:
            return replace(self, after=None, done=True)
        left = None if self.left is None else self.left - len(found)
        return replace(self, after=found[-1][0], left=left, done=left == 0)


def kept_by(strategy: str) -> int:
    """Give how many checkpoints of each namespace a prune strategy keeps.

    Raises:
        ValueError: It is unknown.
    """
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(_STRATEGIES)}, not {strategy!r}")
    return _STRATEGIES[strategy]


def checked_list(name: str, values: Sequence[str]) -> list[str]:
    """Give run ids as they stand in stored metadata.

    Raises:
        TypeError: It is one text, whose letters would be taken for ids.
    """
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name} must be a sequence of ids, not one text")
    return list(dict.fromkeys(plain(str(value)) for value in values))


def by_thread(keys: Iterable[Key]) -> dict[str, list[Key]]:
    """Give keys by their thread."""
    found: dict[str, list[Key]] = defaultdict(list)
    for key in keys:
        found[key.thread_id].append(key)
    return found


def _cutoff(older_than: dt.timedelta | dt.datetime) -> dt.datetime:
    if isinstance(older_than, dt.timedelta):
        return dt.datetime.now(dt.timezone.utc) - older_than
    if older_than.tzinfo is None:
        raise ValueError("older_than needs a time zone: pass datetime.now(timezone.utc) - …, or a timedelta")
    return older_than
