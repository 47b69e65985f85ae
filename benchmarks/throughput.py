"""32 callers at the same time on ten connections, of cpstore's pool and of psycopg's."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count

from benchmarks.bench import Bench
from benchmarks.contenders import BACKENDS, OFFICIAL, OURS, Backend, Contender, thread
from benchmarks.figures import Figure, Sample
from benchmarks.rounds import at_once, in_turns
from benchmarks.workloads import Step, chat

CALLERS = 32
CONNECTIONS = 10
FIRST_STEP = 20
OPERATIONS_OF_A_STEP = 3


@dataclass
class Crowd:
    """Callers that all use one saver, each on a thread of its own."""

    contender: Contender
    backend: str
    steps: list[Step]
    rates: list[float] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)

    async def work(self) -> None:
        """One round: how many operations a second all of them do together."""
        number = next(self.numbers)
        names = [f"{self.backend} crowd {number} {caller}" for caller in range(CALLERS)]
        began = time.perf_counter()
        await (self.in_threads(names) if self.contender.sync else self.in_tasks(names))
        seconds = time.perf_counter() - began
        self.rates.append(CALLERS * len(self.steps) * OPERATIONS_OF_A_STEP / seconds)

    async def in_tasks(self, names: list[str]) -> None:
        await asyncio.gather(*map(self.call, names))

    async def in_threads(self, names: list[str]) -> None:
        with ThreadPoolExecutor(CALLERS) as pool:
            list(pool.map(lambda name: at_once(self.call(name)), names))

    async def call(self, name: str) -> None:
        """What one caller does."""
        config = thread(name)
        for step in self.steps:
            config = await self.contender.store(config, step)
            await self.contender.get_tuple(thread(name))


async def measure(bench: Bench) -> None:
    """Each way to PostgreSQL: the official saver of SQLite has one connection."""
    for backend in BACKENDS:
        if backend.pooled is not None:
            bench.say(f"concurrent, {backend.name}")
            await measure_backend(bench, backend)


async def measure_backend(bench: Bench, backend: Backend) -> None:
    """Both on pools of the same size."""
    steps = chat(FIRST_STEP + bench.choose(2, 5))[FIRST_STEP:]
    first, others = steps[0], steps[1:]
    whole = Step(first.checkpoint, first.metadata, first.checkpoint["channel_versions"], first.writes, "task")
    ours = backend.ours(bench.place(backend.dialect, OURS), pool_size=CONNECTIONS, max_overflow=0)
    theirs = backend.theirs(bench.place(backend.dialect, OFFICIAL), CONNECTIONS)
    async with ours as one, theirs as other:
        crowds = [Crowd(contender, backend.name, [whole, *others]) for contender in (one, other)]
        await in_turns(crowds, 1, Crowd.work)
        await in_turns(crowds, bench.choose(3, 12), Crowd.work)
    mine, official = (Sample.of_rates(crowd.rates[1:]) for crowd in crowds)
    case = f"{CALLERS} callers"
    figure = Figure("concurrent", backend.name, case, "throughput", mine, official, unit="ops/s")
    bench.results.figures.append(figure)
