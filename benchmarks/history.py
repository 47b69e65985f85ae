"""Lists of a thread of 200 checkpoints."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.contenders import BACKENDS, Contender, backend, thread
from benchmarks.databases import DIALECTS
from benchmarks.figures import Times
from benchmarks.rounds import in_turns, timed
from benchmarks.workloads import Step, chat

THREAD = "history"
CHECKPOINTS = 200
LIMITS = (20, 200)


async def measure(bench: Bench) -> None:
    """Fill once for each database, read through every way."""
    steps = chat(CHECKPOINTS)
    for dialect in DIALECTS:
        bench.say(f"history, filling {dialect}")
        for contender in await bench.pair(backend(dialect)):
            await fill(contender, steps)
    for way in BACKENDS:
        bench.say(f"history, {way.name}")
        times = await read(await bench.pair(way), bench.choose(3, 15))
        bench.compare("history", way.name, "chat", times, *(f"list {limit}" for limit in LIMITS))


async def fill(contender: Contender, steps: list[Step]) -> None:
    """Store the thread."""
    config = thread(THREAD)
    for step in steps:
        config = await contender.store(config, step)


async def read(pair: list[Contender], rounds: int) -> Times:
    """Read it with each limit."""
    times = Times()

    async def look(contender: Contender) -> None:
        for limit in LIMITS:
            await timed(times, contender.name, f"list {limit}", contender.list(thread(THREAD), limit))

    await in_turns(pair, 1, look)
    times.of.clear()
    await in_turns(pair, rounds, look)
    return times
