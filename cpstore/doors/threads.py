"""Threads that run units of work on a sync engine for async callers."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["Threads", "to_the_end"]

T = TypeVar("T")

_UNBOUND = 32


class Threads:
    """Worker threads of one engine: as many as its pool lends connections, begun when they are needed.

    asyncio's own are only four more than the machine has processors, and the application may keep them all
    busy. Each event loop has its own here: a process that was forked waits for no thread of its parent.

    Args:
        connections: What the pool lends at most; None: it has no bound.
    """

    def __init__(self, connections: int | None) -> None:
        self._count = connections or _UNBOUND
        self._executors: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = (
            WeakKeyDictionary()
        )

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread.

        A caller that is cancelled waits for the end of work that has begun: a thread cannot be stopped.
        """
        running = self._executor().submit(contextvars.copy_context().run, work)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.cancelled():
                await _end_of(asyncio.wrap_future(running))
            raise

    def _executor(self) -> ThreadPoolExecutor:
        loop = asyncio.get_running_loop()
        if loop not in self._executors:
            self._executors[loop] = ThreadPoolExecutor(self._count, "cpstore")
        return self._executors[loop]


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await what may not stop half-way. A caller that is cancelled waits for its end."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        await _end_of(task)
        raise
    return task.result()


async def _end_of(future: asyncio.Future[Any]) -> None:
    """Wait for the end of what a cancelled caller gives up, however often it is cancelled."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    if not future.cancelled():
        future.exception()  # seen, and given up with the call
