"""One operation after the other, on the growing threads of a workload."""

from __future__ import annotations

from dataclasses import dataclass, field

from langchain_core.runnables import RunnableConfig

from benchmarks.bench import Bench
from benchmarks.contenders import BACKENDS, Backend, Contender, thread
from benchmarks.figures import Times
from benchmarks.rounds import in_turns, timed
from benchmarks.workloads import WORKLOADS, Step

STEPS = 40
STEPS_OF_A_ROUND = 5
STEPS_OF_A_WARM_UP = 10

OPERATIONS = ("put", "put_writes", "get_tuple", "list 20")


@dataclass
class Player:
    """Plays a workload to a saver, on one thread."""

    contender: Contender
    times: Times
    thread_id: str
    steps: list[Step]
    played: int = 0
    config: RunnableConfig = field(init=False)

    def __post_init__(self) -> None:
        self.config = thread(self.thread_id)

    async def play(self) -> None:
        """The steps of a round."""
        for step in self.steps[self.played : self.played + STEPS_OF_A_ROUND]:
            await self.one(step)
        self.played += STEPS_OF_A_ROUND

    async def one(self, step: Step) -> None:
        """One step, and a look at what is newest."""
        saver, times, name = self.contender, self.times, self.contender.name
        put = saver.put(self.config, step.checkpoint, step.metadata, step.new_versions)
        self.config = await timed(times, name, "put", put)
        writes = saver.put_writes(self.config, step.writes, step.task_id)
        await timed(times, name, "put_writes", writes)
        await timed(times, name, "get_tuple", saver.get_tuple(thread(self.thread_id)))

    async def look(self) -> None:
        """The newest 20 checkpoints."""
        await timed(
            self.times, self.contender.name, "list 20", self.contender.list(thread(self.thread_id), 20)
        )


async def measure(bench: Bench, case: str) -> None:
    """Every way to a database, with one workload."""
    for backend in BACKENDS:
        await measure_backend(bench, case, backend)


async def measure_backend(bench: Bench, case: str, backend: Backend) -> None:
    """Some threads one after the other, and one before them that does not count."""
    bench.say(f"{case}, {backend.name}")
    pair, steps, times = await bench.pair(backend), WORKLOADS[case](STEPS), Times()
    await play(pair, Times(), f"{backend.name} {case} warm-up", steps[:STEPS_OF_A_WARM_UP], lists=2)
    for number in range(bench.choose(1, 8)):
        await play(pair, times, f"{backend.name} {case} {number}", steps, lists=bench.choose(5, 10))
    bench.compare("operations", backend.name, case, times, *OPERATIONS)


async def play(pair: list[Contender], times: Times, thread_id: str, steps: list[Step], lists: int) -> None:
    """A thread of a workload, by both savers."""
    players = [Player(contender, times, thread_id, steps) for contender in pair]
    await in_turns(players, len(steps) // STEPS_OF_A_ROUND, Player.play)
    await in_turns(players, lists, Player.look)
