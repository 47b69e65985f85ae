"""A run of the benchmark: where it works, how long it takes over it, what it has found."""

from __future__ import annotations

import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import URL

from benchmarks.contenders import OFFICIAL, OURS, Backend, Contender
from benchmarks.databases import Databases, Dialect
from benchmarks.figures import Figure, Results, Times

T = TypeVar("T")


@dataclass
class Bench:
    """What every suite is given.

    Attributes:
        databases: makes databases.
        stack: closes savers at the end.
        quick: few rounds on little data: it shows that all works, and its figures are rough.
        results: what the suites have found.
    """

    databases: Databases
    stack: AsyncExitStack
    quick: bool
    results: Results = field(default_factory=Results)
    _places: dict[tuple[Dialect, str], URL] = field(default_factory=dict)
    _pairs: dict[str, list[Contender]] = field(default_factory=dict)
    _began: float = field(default_factory=time.perf_counter)

    def choose(self, quick: T, full: T) -> T:
        """What this run takes."""
        return quick if self.quick else full

    def say(self, what: str) -> None:
        """Tell who waits what is at work."""
        print(f"{time.perf_counter() - self._began:7.1f} s  {what}", file=sys.stderr, flush=True)

    def place(self, dialect: Dialect, who: str) -> URL:
        """The database of a contender, one for all ways and suites: both tables' sizes grow alike."""
        if (dialect, who) not in self._places:
            self._places[dialect, who] = self.databases.lasting(dialect)
        return self._places[dialect, who]

    async def pair(self, backend: Backend) -> list[Contender]:
        """cpstore and the official saver, opened once and warm from then on."""
        if backend.name not in self._pairs:
            ours = backend.ours(self.place(backend.dialect, OURS))
            theirs = backend.theirs(self.place(backend.dialect, OFFICIAL))
            self._pairs[backend.name] = [
                await self.stack.enter_async_context(ours),
                await self.stack.enter_async_context(theirs),
            ]
        return self._pairs[backend.name]

    def compare(self, suite: str, backend: str, case: str, times: Times, *operations: str) -> None:
        """Note what the times of both savers say of some operations."""
        for operation in operations:
            ours, other = times.sample(OURS, operation), times.sample(OFFICIAL, operation)
            self.results.figures.append(Figure(suite, backend, case, operation, ours, other))
