"""What is tried again, how often, and what is not: without a database."""

from __future__ import annotations

import asyncio
import ssl
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import asyncpg  # type: ignore[import-untyped,unused-ignore]
import pytest
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, InternalError, OperationalError

from cpstore.dialects import Dialect, Mode, PostgreSQL, dialect_for
from cpstore.doors import retries
from cpstore.doors.retries import Call
from cpstore.models import MODELS
from cpstore.ops.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ATTEMPTS = 7


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited between attempts, without the waiting."""
    waited: list[float] = []

    async def asleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(retries, "time", SimpleNamespace(sleep=waited.append, monotonic=time.monotonic))
    monkeypatch.setattr(retries, "asyncio", SimpleNamespace(sleep=asleep))
    return waited


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest) -> Callable[[Call[str], Any], str]:
    """Each of the two loops."""
    if request.param == "sync":
        return retries.run

    def run(call: Call[str], attempt: Callable[[Call[str]], str]) -> str:
        async def awaited(call: Call[str]) -> str:
            return attempt(call)

        return asyncio.run(retries.arun(call, awaited))

    return run


class DriverError(Exception):
    """What a driver says, with or without an SQLSTATE."""

    def __init__(self, sqlstate: str | None = None) -> None:
        super().__init__("the driver's words")
        self.sqlstate = sqlstate


def died(kind: type[DBAPIError] = OperationalError) -> DBAPIError:
    return kind("SELECT 1", {}, DriverError(), connection_invalidated=True)


def failed(sqlstate: str | None, kind: type[DBAPIError] = OperationalError) -> DBAPIError:
    return kind("SELECT 1", {}, DriverError(sqlstate))


class Offline(PostgreSQL):
    """It knows its errors, and opens no transaction."""

    @contextmanager
    def transaction(self, connection: Connection, mode: Mode) -> Iterator[None]:
        yield


class Scene:
    """A unit that fails where it is told to, as often as it is told to."""

    def __init__(self, mode: Mode = Mode.READ, *, repeatable: bool = True, known: bool = True) -> None:
        self.engine = create_engine("postgresql+psycopg://")
        self.engine.dialect.server_version_info = (18, 6) if known else None
        self.unit = Unit(mode, self.work, repeatable)
        self.works: list[BaseException | None] = []
        self.connects: list[BaseException | None] = []
        self.commits: list[BaseException | None] = []
        self.attempts = 0
        self.connection: Any = None  # the unit never looks at it

    def work(self, _connection: Connection, _sql: Dialect, answer: str, *, mark: str) -> str:
        raise_next(self.works)
        return answer + mark

    def attempt(self, call: Call[str]) -> str:
        self.attempts += 1
        raise_next(self.connects)
        done = call(self.connection)
        raise_next(self.commits)
        return done

    @property
    def call(self) -> Call[str]:
        return Call(self.engine, Offline(MODELS.tables), self.unit, "done", mark="!")


def raise_next(errors: list[BaseException | None]) -> None:
    error = errors.pop(0) if errors else None
    if error is not None:
        raise error


@pytest.mark.parametrize("stage", ["connects", "works", "commits"])
@pytest.mark.parametrize(
    "error", [died(), died(InterfaceError), died(DBAPIError)], ids=lambda error: type(error).__name__
)
def test_a_dead_connection_ends_an_attempt(
    make: Callable[..., str], pauses: list[float], stage: str, error: DBAPIError
) -> None:
    scene = Scene()
    setattr(scene, stage, [error, error])
    assert make(scene.call, scene.attempt) == "done!"
    assert (scene.attempts, len(pauses)) == (3, 2)


@pytest.mark.parametrize(
    "error",
    [
        failed("57P01"),
        failed("57P02"),
        failed("08006", DBAPIError),
        failed(None, InternalError),
        asyncpg.InternalClientError(),  # through SQLAlchemy 2.0
    ],
    ids=repr,
)
def test_a_connection_whose_end_has_not_been_heard_of_is_not_lent_again(
    make: Callable[..., str], pauses: list[float], error: Exception
) -> None:
    """asyncpg gets the server's last words and the end of the connection one after the other."""
    scene, given_up = Scene(), Mock(spec=Connection)
    scene.connection, scene.works = given_up, [error]
    assert make(scene.call, scene.attempt) == "done!"
    assert scene.attempts == 2
    given_up.invalidate.assert_called_once_with(error)


@pytest.mark.parametrize("stage", ["works", "commits"])
@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
@pytest.mark.parametrize("repeatable", [True, False])
def test_what_the_database_undid_is_done_again(
    make: Callable[..., str], pauses: list[float], stage: str, sqlstate: str, repeatable: bool
) -> None:
    scene = Scene(repeatable=repeatable)
    setattr(scene, stage, [failed(sqlstate)])
    assert make(scene.call, scene.attempt) == "done!"
    assert scene.attempts == 2


SOON: list[Exception] = [
    failed(None),  # psycopg, whatever the server said
    failed("57P03", DBAPIError),
    failed("57P01"),
    failed("08006"),
    failed("53300"),
    DriverError("57P03"),  # asyncpg, through SQLAlchemy 2.0
    asyncpg.InternalClientError(),
    ConnectionRefusedError(),
    TimeoutError(),
    FileNotFoundError(),  # a socket that comes back with the server
]


@pytest.mark.parametrize("error", SOON, ids=repr)
def test_a_server_that_was_there_is_waited_for(
    make: Callable[..., str], pauses: list[float], error: Exception
) -> None:
    scene = Scene()
    scene.connects = [error] * 3
    assert make(scene.call, scene.attempt) == "done!"
    assert scene.attempts == 4


@pytest.mark.parametrize("error", SOON, ids=repr)
def test_a_server_that_was_never_there_is_not(make: Callable[..., str], error: Exception) -> None:
    scene = Scene(known=False)
    scene.connects = [error]
    with pytest.raises(type(error)) as caught:
        make(scene.call, scene.attempt)
    assert caught.value is error
    assert scene.attempts == 1


@pytest.mark.parametrize(
    ("stage", "error"),
    [
        ("connects", failed("28P01")),
        ("connects", failed("3D000")),
        ("connects", failed(None, InterfaceError)),
        ("connects", ValueError()),
        ("works", failed("57014")),  # cancelled, or timed out
        ("works", failed("55P03")),
        ("works", failed("23505", IntegrityError)),
        ("works", failed("57P03")),
        ("works", failed(None)),
        ("works", TimeoutError()),
        ("works", ssl.SSLError()),
        ("works", KeyError()),
        ("works", asyncio.CancelledError()),
        ("works", KeyboardInterrupt()),
        ("commits", failed("23505", IntegrityError)),
        ("commits", OSError()),
    ],
    ids=repr,
)
def test_other_errors_reach_the_caller_at_once(stage: str, error: BaseException) -> None:
    scene = Scene()
    setattr(scene, stage, [error])
    with pytest.raises(type(error)) as caught:
        retries.run(scene.call, scene.attempt)
    assert caught.value is error
    assert scene.attempts == 1


async def test_a_cancelled_task_makes_no_other_attempt() -> None:
    scene = Scene()

    async def attempt(call: Call[str]) -> str:
        scene.attempts += 1
        await asyncio.sleep(60)
        return call(scene.connection)

    task = asyncio.create_task(retries.arun(scene.call, attempt))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert scene.attempts == 1


@pytest.mark.parametrize("stage", ["connects", "works", "commits"])
def test_attempts_and_pauses_are_bounded(make: Callable[..., str], pauses: list[float], stage: str) -> None:
    scene, errors = Scene(), [died() for _ in range(100)]
    setattr(scene, stage, list(errors))
    with pytest.raises(OperationalError) as caught:
        make(scene.call, scene.attempt)
    assert scene.attempts == ATTEMPTS
    assert caught.value is errors[ATTEMPTS - 1]
    assert len(pauses) == ATTEMPTS - 1
    assert pauses[0] <= 0.03
    assert 3 < sum(pauses) < 11


def test_pauses_are_not_the_same_for_two_that_collided(pauses: list[float]) -> None:
    for _ in range(2):
        scene = Scene()
        scene.works = [failed("40P01")] * 3
        retries.run(scene.call, scene.attempt)
    assert pauses[:3] != pauses[3:]


def test_attempts_that_take_long_are_bounded_too(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """A firewall that drops packets lets each attempt to connect wait for minutes."""
    now = iter(range(0, 1000, 10))
    clock = SimpleNamespace(sleep=pauses.append, monotonic=lambda: next(now))
    monkeypatch.setattr(retries, "time", clock)
    scene = Scene()
    scene.connects = [TimeoutError()] * 100
    with pytest.raises(TimeoutError):
        retries.run(scene.call, scene.attempt)
    assert scene.attempts == 2


@pytest.mark.parametrize(
    ("mode", "stage", "attempts"),
    [
        (Mode.WRITE, "connects", 2),
        (Mode.WRITE, "works", 2),
        (Mode.WRITE, "commits", 1),
        (Mode.COPY, "commits", 1),
        (Mode.STATEMENT, "connects", 2),
        (Mode.STATEMENT, "works", 1),  # it commits itself
        (Mode.ALONE, "works", 1),
    ],
)
def test_what_must_not_be_repeated_is_not_once_it_may_be_there(
    pauses: list[float], mode: Mode, stage: str, attempts: int
) -> None:
    scene = Scene(mode, repeatable=False)
    error = died()
    setattr(scene, stage, [error])
    if attempts == 1:
        with pytest.raises(OperationalError) as caught:
            retries.run(scene.call, scene.attempt)
        assert caught.value is error
    else:
        assert retries.run(scene.call, scene.attempt) == "done!"
    assert scene.attempts == attempts


def test_a_file_does_not_come_back(tmp_path: Any) -> None:
    engine: Engine = create_engine(f"sqlite:///{tmp_path}/nowhere/x.db")
    engine.dialect.server_version_info = (3, 45)
    call = Call(engine, dialect_for("sqlite", MODELS.tables), Scene().unit, "done", mark="!")
    attempts: list[Call[str]] = []

    def attempt(call: Call[str]) -> str:
        attempts.append(call)
        with engine.connect() as connection:
            return call(connection)

    with pytest.raises(OperationalError):
        retries.run(call, attempt)
    assert attempts == [call]
