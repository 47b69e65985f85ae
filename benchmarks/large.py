"""One large value."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.contenders import BACKENDS, Contender, thread
from benchmarks.figures import Times
from benchmarks.rounds import in_turns, timed
from benchmarks.workloads import Step, big

MEGABYTES = 64
QUICK_MEGABYTES = 8


async def measure(bench: Bench) -> None:
    """Each way to a database."""
    megabytes = bench.choose(QUICK_MEGABYTES, MEGABYTES)
    step = big(megabytes * 2**20)
    for backend in BACKENDS:
        bench.say(f"big, {backend.name}")
        times = await run(await bench.pair(backend), step, f"{backend.name} big", bench.choose(2, 5))
        bench.compare("big", backend.name, f"{megabytes} MiB", times, "put", "get_tuple")


async def run(pair: list[Contender], step: Step, thread_id: str, rounds: int) -> Times:
    """Store it, read it, delete it."""
    times = Times()

    async def work(contender: Contender) -> None:
        config = thread(thread_id)
        put = contender.put(config, step.checkpoint, step.metadata, step.new_versions)
        await timed(times, contender.name, "put", put)
        await timed(times, contender.name, "get_tuple", contender.get_tuple(config))
        await contender.delete_thread(thread_id)

    await in_turns(pair, 1, work)
    times.of.clear()
    await in_turns(pair, rounds, work)
    return times
