"""What cpstore wants to reach: a bound for each figure that matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from benchmarks.figures import Figure

Measure = Literal["ratio", "bytes"]


@dataclass(frozen=True)
class Target:
    """A bound, and the figures that it is for; names may be patterns.

    Attributes:
        measure: what is bound: the ratio of ours to the other, or the bytes of ours.
        more: more is better; else less is.
    """

    suite: str
    backend: str
    case: str
    operation: str
    bound: float
    measure: Measure = "ratio"
    more: bool = False
    against: str = "official"

    def covers(self, figure: Figure) -> bool:
        """Whether it is for this figure."""
        names = ("suite", "backend", "case", "operation", "against")
        return all(fnmatchcase(getattr(figure, name), getattr(self, name)) for name in names)

    def is_met(self, figure: Figure) -> bool:
        """Whether the figure keeps to the bound."""
        value = figure.ratio if self.measure == "ratio" else figure.ours.median
        return value >= self.bound if self.more else value <= self.bound

    def __str__(self) -> str:
        bound = f"{self.bound / 1e6:g} MB" if self.measure == "bytes" else f"{self.bound:.2f}"
        return f"{'≥' if self.more else '≤'} {bound}"


def operations(backend: str, case: str, **bounds: float) -> Iterator[Target]:
    """Bounds of operations on the threads of a workload; `list20` is `list 20`."""
    for name, bound in bounds.items():
        yield Target("operations", backend, case, name.replace("list20", "list 20"), bound)


TARGETS = (
    *operations("postgres sync", "*", put=0.95, put_writes=0.95, get_tuple=0.9, list20=0.6),
    *operations("postgres async", "*", put=0.9, put_writes=0.9, get_tuple=0.9, list20=0.6),
    *operations("postgres asyncpg", "*", put=0.85, put_writes=0.85, get_tuple=0.85, list20=0.6),
    *operations("sqlite sync", "chat", put=1.0, get_tuple=0.95),
    *operations("sqlite sync", "wide", put=0.5, get_tuple=0.9),
    *operations("sqlite sync", "*", put_writes=1.0, list20=0.7),
    *operations("sqlite async", "*", put=0.7, put_writes=0.7, get_tuple=0.7, list20=0.7),
    Target("floor", "*", "*", "*", 1.35, against="floor"),
    Target("concurrent", "*", "*", "throughput", 1.3, more=True),
    Target("graph", "*", "*", "invoke", 1.0),
    Target("many", "*", "*", "*", 1.3, against="1,000 checkpoints"),
    Target("long", "*", "*", "storage at 400", 4e6, "bytes"),
    Target("long", "*", "*", "storage at 800", 2.4, against="storage at 400"),
    Target("long", "*", "*", "put at 400", 4.0, against="put at 20"),
    Target("long", "postgres*", "*", "put at 400", 0.3),
    Target("long", "sqlite*", "*", "put at 400", 0.6),
    Target("long", "*", "*", "get_tuple at 400", 0.85),
)
"""The first that covers a figure counts."""


def target_of(figure: Figure) -> Target | None:
    """The bound of a figure, if it has one."""
    return next((target for target in TARGETS if target.covers(figure)), None)
