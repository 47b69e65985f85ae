"""One transaction at a time on a connection that everybody shares.

A `StaticPool` gives the same connection to all threads and tasks at once, as SQLite's memory databases need.
Their transactions would run into each other. Other pools need no turns, and get none.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine
from sqlalchemy.pool import StaticPool

__all__ = ["aturn", "turn"]

_locks: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()


@contextmanager
def turn(engine: Engine) -> Iterator[None]:
    """Wait for the turn of an engine, if it needs one."""
    if not isinstance(engine.pool, StaticPool):
        yield
        return
    with _lock(engine):
        yield


@asynccontextmanager
async def aturn(engine: Engine) -> AsyncIterator[None]:
    """Async version of :func:`turn`."""
    if not isinstance(engine.pool, StaticPool):
        yield
        return
    lock = _lock(engine)
    while not lock.acquire(blocking=False):  # noqa: ASYNC110 - a lock of asyncio belongs to one event loop
        await asyncio.sleep(0.001)
    try:
        yield
    finally:
        lock.release()


def _lock(engine: Engine) -> threading.Lock:
    return _locks.setdefault(engine.pool, threading.Lock())
