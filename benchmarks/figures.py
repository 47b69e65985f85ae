"""Figures: what was measured of cpstore, beside what it was measured against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from statistics import median
from typing import Any, Literal

Unit = Literal["us", "ops/s", "bytes"]


@dataclass(frozen=True)
class Sample:
    """Many measurements of one thing: `p95` is what 95 in 100 of them are not worse than."""

    median: float
    p95: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample:
        """What measurements say of which less is better, each in the unit of its figure."""
        return cls(median(values), percentile(values, 0.95), len(values))

    @classmethod
    def of_rates(cls, values: Sequence[float]) -> Sample:
        """What measurements say of which more is better."""
        return cls(median(values), -percentile([-value for value in values], 0.95), len(values))

    @classmethod
    def of_seconds(cls, values: Sequence[float]) -> Sample:
        """What times say, in microseconds."""
        return cls.of([value * 1e6 for value in values])

    @classmethod
    def of_one(cls, value: float) -> Sample:
        """What is counted, not measured."""
        return cls(value, value, 1)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not below so many of them (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True)
class Figure:
    """One line of the report.

    Attributes:
        suite: the part of the benchmark, as `--only` names it.
        backend: the database and the way to it.
        case: which data.
        operation: what was done.
        ours: cpstore's.
        other: that of what it is compared with.
        against: what that is: the official saver, or cpstore itself in another state.
    """

    suite: str
    backend: str
    case: str
    operation: str
    ours: Sample
    other: Sample
    against: str = "official"
    unit: Unit = "us"

    @property
    def ratio(self) -> float:
        """Ours to the other, by medians."""
        return self.ours.median / self.other.median

    def as_json(self) -> dict[str, Any]:
        """Everything, for `results.json`."""
        return {**asdict(self), "ratio": self.ratio}


@dataclass(frozen=True)
class Curve:
    """How something grows with the length of a conversation: pairs of messages and a value."""

    backend: str
    contender: str
    what: str
    unit: Unit
    points: list[tuple[int, float]]


@dataclass
class Results:
    """All that a run has found."""

    figures: list[Figure] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)


@dataclass
class Times:
    """Seconds, by whose and of what."""

    of: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, who: str, what: str, seconds: float) -> None:
        """Note one measurement."""
        self.of[who, what].append(seconds)

    def sample(self, who: str, what: str) -> Sample:
        """What all of them say."""
        return Sample.of_seconds(self.of[who, what])
