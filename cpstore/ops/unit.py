"""A unit of work: what runs on a connection between taking it and giving it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from sqlalchemy import Connection

from cpstore.dialects import Dialect, Mode, Step

__all__ = ["Unit", "execute", "unit"]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Unit(Generic[P, T]):
    """A function on a sync connection, and what it needs from that connection.

    It opens no transaction and closes none: only the door that calls it does.

    Attributes:
        mode: What it needs from the connection.
        work: The function.
        repeatable: Done again after it took effect, it changes nothing and gives the same. One that is not
            is not repeated when its connection dies while it is committed.
    """

    mode: Mode
    work: Callable[Concatenate[Connection, Dialect, P], T]
    repeatable: bool = True

    def __call__(self, connection: Connection, sql: Dialect, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the work on `connection`."""
        return self.work(connection, sql, *args, **kwargs)


def unit(
    mode: Mode, *, repeatable: bool = True
) -> Callable[[Callable[Concatenate[Connection, Dialect, P], T]], Unit[P, T]]:
    """Make a function a unit of work; the arguments are those of :class:`Unit`."""

    def make(work: Callable[Concatenate[Connection, Dialect, P], T]) -> Unit[P, T]:
        return Unit(mode, work, repeatable)

    return make


def execute(connection: Connection, step: Step) -> Any:
    """Run a statement with its parameters, and give its result.

    Its type has another form in each version of SQLAlchemy, so it has none here.
    """
    return connection.execute(step.statement, step.parameters)
