"""The order of units of work, told apart from who runs them.

What is to be done is a generator of calls; it gets the result of each. So it is written once, for sync and
async doors, and holds no connection between two calls.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from cpstore.doors import Door
from cpstore.ops import Unit

__all__ = ["Call", "Steps", "adrive", "call", "drive"]

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One unit of work to run behind a door."""

    door: Door
    unit: Unit[Any, Any]
    arguments: tuple[Any, ...]


Steps = Generator[Call, Any, T]
"""Yields calls, is sent their results, and returns its own."""


def call(door: Door, unit: Unit[Any, T], *arguments: Any) -> Steps[T]:
    """Give the steps that run one unit, and return its result with its type."""
    result: T = yield Call(door, unit, arguments)
    return result


def drive(steps: Steps[T]) -> T:
    """Run all calls through the sync side of their doors."""
    result: Any = None
    while True:
        try:
            asked = steps.send(result)
        except StopIteration as end:
            found: T = end.value
            return found
        result = asked.door.run(asked.unit, *asked.arguments)


async def adrive(steps: Steps[T]) -> T:
    """Async version of :func:`drive`."""
    result: Any = None
    while True:
        try:
            asked = steps.send(result)
        except StopIteration as end:
            found: T = end.value
            return found
        result = await asked.door.arun(asked.unit, *asked.arguments)
