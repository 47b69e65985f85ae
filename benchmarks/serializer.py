"""cpstore's serializer beside langgraph-checkpoint's in one run, and the event loop while a state is read.

python -m benchmarks.serializer [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from benchmarks.rounds import without_collector
from cpstore import Serializer, SQLAlchemySaver

TEN_MEGABYTES = 10_000_000


def messages() -> list[Any]:
    """A chat that calls tools, with what models tell of their work."""
    usage = {"input_tokens": 12, "output_tokens": 34, "total_tokens": 46}
    turns: list[Any] = []
    for number in range(34):
        call = {"name": "search", "args": {"query": f"q{number}"}, "id": f"c{number}"}
        turns += [
            HumanMessage(f"What about {number}? " * 5, id=f"h{number}"),
            AIMessage("Let me see. " * 10, id=f"a{number}", tool_calls=[call], usage_metadata=usage),
            ToolMessage("Found it. " * 20, tool_call_id=f"c{number}", id=f"t{number}"),
        ]
    return turns[:100]


def documents() -> dict[str, Any]:
    """What a retriever gives."""
    found = [Document("A page of text. " * 60, metadata={"source": f"{n}.md", "page": n}) for n in range(50)]
    return {"query": "text", "scores": [number / 50 for number in range(50)], "documents": found}


CASES: dict[str, Callable[[], Any]] = {
    "100 messages": messages,
    "a dict of 50 documents": documents,
    "10,000 ints": lambda: list(range(10_000)),
    "10 MB of text": lambda: ["x" * 1000] * (TEN_MEGABYTES // 1000),
}


def seconds_of(work: Callable[[], Any], repeat: int) -> float:
    began = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - began) / repeat


def compare(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> tuple[float, float, float]:
    """Medians of both, taken in turns, and the median of the ratios of neighbours."""
    repeat = max(1, int(0.01 / max(seconds_of(theirs, 1), 1e-6)))
    pairs = []
    for _ in range(rounds):
        with without_collector():
            pairs.append((seconds_of(ours, repeat), seconds_of(theirs, repeat)))
    mine, other = zip(*pairs, strict=True)
    return median(mine), median(other), median(one / two for one, two in pairs)


def serializers(rounds: int) -> None:
    print(f"{'':24}{'':8}{'cpstore':>12}{'langgraph':>12}{'ratio':>8}")
    for name, make in CASES.items():
        one_case(name, make(), rounds)


def one_case(name: str, value: Any, rounds: int) -> None:
    ours, theirs = Serializer(), JsonPlusSerializer(allowed_msgpack_modules=True)
    mine, other = ours.dumps_typed(value), theirs.dumps_typed(value)
    tell(name, "encode", compare(lambda: ours.dumps_typed(value), lambda: theirs.dumps_typed(value), rounds))
    tell(name, "decode", compare(lambda: ours.loads_typed(mine), lambda: theirs.loads_typed(other), rounds))


def tell(name: str, what: str, figures: tuple[float, float, float]) -> None:
    mine, other, ratio = figures
    print(f"{name:24}{what:8}{mine * 1e6:>9.0f} us{other * 1e6:>9.0f} us{ratio:>8.2f}")


# The event loop

STATES: dict[str, Callable[[], Any]] = {
    "10 MB of text": CASES["10 MB of text"],
    "10 MB of messages": lambda: messages() * (TEN_MEGABYTES // len(Serializer().dumps_typed(messages())[1])),
    "one text of 10 MB": lambda: "x" * TEN_MEGABYTES,
}


async def longest_stall(work: Callable[[], Any]) -> tuple[float, float]:
    """The longest time in which a task that always wants to run did not, and how long the work took."""
    gaps: list[float] = []

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    gaps.clear()
    began = time.perf_counter()
    result = await work()
    took = time.perf_counter() - began
    await asyncio.sleep(0)
    ticking.cancel()
    longest = max(gaps)
    del result  # taking it apart takes its time too, but belongs to nobody's reading
    return longest, took


async def stalls(url: str, rounds: int) -> None:
    print(f"\n{'aget_tuple':24}{'':12}{'takes':>10}{'longest stall':>16}")
    async with SQLAlchemySaver.from_url(url) as saver:
        await saver.asetup()
        for name, make in STATES.items():
            stored = await put(saver, name, make())
            found = [await longest_stall(lambda: saver.aget_tuple(stored)) for _ in range(rounds)]  # noqa: B023
            stall, took = median(one for one, _ in found), median(one for _, one in found)
            print(f"{name:24}{url.partition(':')[0]:12}{took * 1e3:>7.1f} ms{stall * 1e3:>13.1f} ms")


async def put(saver: SQLAlchemySaver, name: str, value: Any) -> Any:
    made: Any = {**empty_checkpoint(), "channel_values": {"state": value}, "channel_versions": {"state": "1"}}
    config: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
    return await saver.aput(config, made, {}, {"state": "1"})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds: does it run at all?")
    rounds = 3 if parser.parse_args().quick else 25
    serializers(rounds)
    with tempfile.TemporaryDirectory() as folder:
        for driver in ("sqlite", "sqlite+aiosqlite"):
            asyncio.run(stalls(f"{driver}:///{Path(folder) / 'bench.db'}", max(3, rounds // 3)))


if __name__ == "__main__":
    main()
