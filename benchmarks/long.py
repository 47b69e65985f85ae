"""A conversation that grows message by message: what its storage and its operations come to."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from statistics import median

from langchain_core.runnables import RunnableConfig
from sqlalchemy import URL

from benchmarks.bench import Bench
from benchmarks.contenders import OFFICIAL, OURS, Backend, Contender, backend, thread
from benchmarks.databases import DIALECTS, bytes_of
from benchmarks.figures import Curve, Figure, Sample, Times
from benchmarks.rounds import in_turns, timed
from benchmarks.workloads import Step, long

WINDOW = 10
"""So many puts up to a length say what a put costs at that length."""

READS = 5
TIMED_AT = (20, 100, 200, 400)
STORED_AT = (100, 200, 400, 800)
THREAD = "long"


@dataclass
class Conversation:
    """One saver's thread, in a database of its own."""

    contender: Contender
    url: URL
    steps: list[Step]
    times: Times
    length: int = 0
    config: RunnableConfig = field(default_factory=lambda: thread(THREAD))
    storage: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.contender.name

    async def grow(self) -> None:
        """The messages of a window."""
        saver = self.contender
        end = self.length + WINDOW
        for step in self.steps[self.length : end]:
            put = saver.put(self.config, step.checkpoint, step.metadata, step.new_versions)
            self.config = await timed(self.times, self.name, f"put at {end}", put)
            writes = saver.put_writes(self.config, step.writes, step.task_id)
            await timed(self.times, self.name, f"put_writes at {end}", writes)
        self.length = end

    async def read(self) -> None:
        """The state as it is now."""
        reading = self.contender.get_tuple(thread(THREAD))
        await timed(self.times, self.name, f"get_tuple at {self.length}", reading)

    def weigh(self) -> None:
        """The database as it is now."""
        self.storage[self.length] = bytes_of(self.url)

    def puts(self) -> list[tuple[int, float]]:
        """The time of a put by length, in microseconds; the first window warms up."""
        lengths = range(2 * WINDOW, self.length + 1, WINDOW)
        return [(length, median(self.times.of[self.name, f"put at {length}"]) * 1e6) for length in lengths]

    def sizes(self) -> list[tuple[int, float]]:
        """The storage by length."""
        return [(length, float(size)) for length, size in self.storage.items()]


async def measure(bench: Bench) -> None:
    """Both databases."""
    steps = long(bench.choose(100, max(STORED_AT)))
    for dialect in DIALECTS:
        way = backend(dialect)
        bench.say(f"long, {way.name}")
        report(bench, way, await converse(bench, way, steps))


async def converse(bench: Bench, way: Backend, steps: list[Step]) -> list[Conversation]:
    """Let both savers have the whole conversation."""
    times = Times()
    async with AsyncExitStack() as stack:
        places = [stack.enter_context(bench.databases.new(way.dialect)) for _ in range(2)]
        ours = await stack.enter_async_context(way.ours(places[0]))
        theirs = await stack.enter_async_context(way.theirs(places[1]))
        both = [Conversation(ours, places[0], steps, times), Conversation(theirs, places[1], steps, times)]
        while both[0].length < len(steps):
            await in_turns(both, 1, Conversation.grow)
            both[0], both[1] = both[1], both[0]
            await look(both)
    return sorted(both, key=lambda conversation: (OURS, OFFICIAL).index(conversation.name))


async def look(both: list[Conversation]) -> None:
    """Read and weigh, at the lengths that the report shows."""
    length = both[0].length
    if length in (WINDOW, *TIMED_AT):  # the first reads warm up
        await in_turns(both, READS, Conversation.read)
    if length in STORED_AT or length % (len(both[0].steps) // 20) == 0:
        for conversation in both:
            conversation.weigh()


def report(bench: Bench, way: Backend, both: list[Conversation]) -> None:
    """Note the times and sizes at some lengths, how they grow, and the curves."""
    ours, theirs = both
    for length in TIMED_AT:
        if length <= ours.length:
            operations = [f"{name} at {length}" for name in ("put", "put_writes", "get_tuple")]
            bench.compare("long", way.name, "1 kB messages", ours.times, *operations)
    figures = bench.results.figures
    figures += [stored(way, length, ours, theirs) for length in STORED_AT if length in ours.storage]
    figures += growths(way, ours)
    for one in both:
        bench.results.curves += [
            Curve(way.dialect, one.name, "storage", "bytes", one.sizes()),
            Curve(way.dialect, one.name, "put", "us", one.puts()),
        ]


def stored(way: Backend, length: int, ours: Conversation, theirs: Conversation) -> Figure:
    """The storage of both at a length."""
    mine, other = (Sample.of_one(one.storage[length]) for one in (ours, theirs))
    return Figure("long", way.name, "1 kB messages", f"storage at {length}", mine, other, unit="bytes")


def growths(way: Backend, ours: Conversation) -> list[Figure]:
    """cpstore beside itself when the conversation was shorter."""
    found = []
    case = "1 kB messages"
    if ours.length >= 400:
        late, early = (ours.times.sample(OURS, f"put at {length}") for length in (400, 20))
        found.append(Figure("long", way.name, case, "put at 400", late, early, against="put at 20"))
    if ours.length >= 800:
        late, early = (Sample.of_one(ours.storage[length]) for length in (800, 400))
        against = "storage at 400"
        found.append(Figure("long", way.name, case, "storage at 800", late, early, against, "bytes"))
    return found
