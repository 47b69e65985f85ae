"""Who comes first, where only one can.

A `StaticPool` gives the same connection to all threads and tasks at once, as SQLite's memory databases need.
Their transactions would run into each other.

SQLite has one writer at a time. Another one that comes meanwhile sleeps, looks, and sleeps longer, so that
two threads of a graph that save a step together would wait for milliseconds where the work takes a fraction
of one. In one process they queue here instead. Whoever waits long goes on to SQLite's own busy timeout:
another process may be what is waited for.

Others need no turns, and get none.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine
from sqlalchemy.pool import StaticPool

__all__ = ["aturn", "turn"]

_WRITER_SECONDS = 1.0
"""So long a writer waits for others of its process."""

_AT_ONCE = nullcontext()

_locks: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)  # whoever held one is not there


def turn(engine: Engine, *, alone: bool = False) -> AbstractContextManager[None]:
    """Wait for the turn of an engine, if it needs one; `alone`: for work that has to be alone."""
    shared = isinstance(engine.pool, StaticPool)
    return _turn(engine, shared) if shared or alone else _AT_ONCE


def aturn(engine: Engine, *, alone: bool = False) -> AbstractAsyncContextManager[None]:
    """Async version of :func:`turn`."""
    shared = isinstance(engine.pool, StaticPool)
    return _aturn(engine, shared) if shared or alone else _AT_ONCE


@contextmanager
def _turn(engine: Engine, shared: bool) -> Iterator[None]:
    lock = _lock(engine)
    taken = lock.acquire(timeout=-1 if shared else _WRITER_SECONDS)
    try:
        yield
    finally:
        if taken:
            lock.release()


@asynccontextmanager
async def _aturn(engine: Engine, shared: bool) -> AsyncIterator[None]:
    lock = _lock(engine)
    deadline = float("inf") if shared else time.monotonic() + _WRITER_SECONDS
    # A lock of asyncio belongs to one event loop
    while not (taken := lock.acquire(blocking=False)) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    try:
        yield
    finally:
        if taken:
            lock.release()


def _lock(engine: Engine) -> threading.Lock:
    return _locks.setdefault(engine.pool, threading.Lock())
