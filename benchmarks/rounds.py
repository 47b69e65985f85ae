"""Fair turns: contenders work in short rounds, one after the other, and begin in turn.

What disturbs the machine for a second then falls on all of them. The garbage collector rests inside a round,
since its work falls on either side by chance.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from benchmarks.figures import Times

T = TypeVar("T")


@contextmanager
def without_collector() -> Iterator[None]:
    """Collect before, and not within."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def in_turns(contenders: Sequence[T], rounds: int, work: Callable[[T], Awaitable[None]]) -> None:
    """Let each contender do the work once in each round; in odd rounds the last one begins."""
    for number in range(rounds):
        order = contenders if number % 2 == 0 else contenders[::-1]
        with without_collector():
            for contender in order:
                await work(contender)


async def timed(times: Times, who: str, what: str, work: Awaitable[T]) -> T:
    """Await the work and note how long it took."""
    began = time.perf_counter()
    result = await work
    times.add(who, what, time.perf_counter() - began)
    return result


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run, without an event loop, what never waits for one: the work of a sync contender."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("A sync contender waited for an event loop")
