"""How near cpstore is to its own SQL: the same statements through psycopg alone.

What cpstore sends is recorded from an engine, so the floor stays true when the SQL changes. It is sent again
to another database, prepared, with results in binary, and without any encoding or decoding of values.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from sqlalchemy import URL, Engine, create_engine, event

from benchmarks.bench import Bench
from benchmarks.contenders import OURS, thread
from benchmarks.databases import dsn_of, text_of
from benchmarks.figures import Figure, Times
from benchmarks.rounds import in_turns, timed
from benchmarks.workloads import WORKLOADS, Step
from cpstore import SQLAlchemySaver, addresses, codec, ops
from cpstore.doors import Door, door_of
from cpstore.models import MODELS

FLOOR, WITHOUT_CODEC = "floor", "without codec"
OPERATIONS = ("put", "put_writes", "get_tuple")
STEPS = 40
STEPS_OF_A_ROUND = 5


@dataclass(frozen=True)
class Call:
    """A statement as SQLAlchemy gives it to psycopg."""

    statement: str
    parameters: Any
    many: bool


@dataclass(frozen=True)
class Task:
    """One operation of a step, and the work that it is to one contender."""

    operation: str
    work: Callable[[], Any]


@dataclass
class Worker:
    """Does the tasks of a thread, round by round."""

    name: str
    tasks: list[Task]
    times: Times
    done: int = 0

    async def work(self) -> None:
        """The steps of a round."""
        end = self.done + STEPS_OF_A_ROUND * len(OPERATIONS)
        for task in self.tasks[self.done : end]:
            await timed(self.times, self.name, task.operation, called(task.work))
        self.done = end


async def called(work: Callable[[], Any]) -> Any:
    """What is called is awaited, as everywhere here."""
    return work()


def following(config: RunnableConfig, step: Step) -> RunnableConfig:
    """What `put` returns for a step."""
    known = config["configurable"]
    return {"configurable": {**known, "checkpoint_id": step.checkpoint["id"]}}


def saver_tasks(saver: SQLAlchemySaver, name: str, steps: list[Step]) -> list[Task]:
    """The whole saver."""
    tasks: list[Task] = []
    config = thread(name)
    for step in steps:
        parent, config = config, following(config, step)
        put = (parent, step.checkpoint, step.metadata, step.new_versions)
        writes = (config, step.writes, step.task_id)
        tasks += [
            Task("put", partial(saver.put, *put)),
            Task("put_writes", partial(saver.put_writes, *writes)),
            Task("get_tuple", partial(saver.get_tuple, thread(name))),
        ]
    return tasks


def door_tasks(door: Door, saver: SQLAlchemySaver, name: str, steps: list[Step]) -> list[Task]:
    """The units of work on records that were encoded before; what they read is not decoded."""
    tasks: list[Task] = []
    config = thread(name)
    for step in steps:
        parent, config = config, following(config, step)
        put = codec.encode_checkpoint(saver.serde, parent, step.checkpoint, step.metadata, step.new_versions)
        writes = codec.encode_writes(saver.serde, config, step.writes, step.task_id, "")
        tasks += [
            Task("put", partial(door.run, ops.put, put)),
            Task("put_writes", partial(door.run, ops.put_writes, writes)),
            Task("get_tuple", partial(door.run, ops.get, addresses.address_of(thread(name)))),
        ]
    return tasks


def recorded(url: URL, name: str, steps: list[Step]) -> list[tuple[str, list[Call]]]:
    """What cpstore sends in each operation of a thread."""
    engine = create_engine(url)
    saver = SQLAlchemySaver(engine)
    saver.setup()
    calls: list[Call] = []

    @event.listens_for(engine, "before_cursor_execute")
    def record(_connection: Any, _cursor: Any, statement: str, sent: Any, _context: Any, many: bool) -> None:
        calls.append(Call(statement, sent, many))

    found = []
    for task in saver_tasks(saver, name, steps):
        calls.clear()
        task.work()
        found.append((task.operation, list(calls)))
    engine.dispose()
    return found


def floor_tasks(connection: psycopg.Connection[Any], sent: list[tuple[str, list[Call]]]) -> list[Task]:
    """The same statements through psycopg alone."""
    return [Task(operation, partial(execute, connection, calls)) for operation, calls in sent]


def execute(connection: psycopg.Connection[Any], calls: list[Call]) -> None:
    """Send statements as cheaply as psycopg can; several are one transaction, as in cpstore."""
    if len(calls) > 1:
        with connection.transaction():
            for call in calls:
                send(connection, call)
    else:
        send(connection, calls[0])


def send(connection: psycopg.Connection[Any], call: Call) -> None:
    """One statement, and all rows of its result."""
    statement = call.statement.encode()
    if call.many:
        connection.cursor(binary=True).executemany(statement, call.parameters)
        return
    cursor = connection.execute(statement, call.parameters, prepare=True, binary=True)
    if cursor.description:
        cursor.fetchall()


async def measure(bench: Bench) -> None:
    """Every workload, each on databases of its own."""
    for case in WORKLOADS:
        bench.say(f"floor, {case}")
        with ExitStack() as stack:
            times = await run(bench, stack, case)
        floor = {name: times.sample(FLOOR, name) for name in OPERATIONS}
        for who, suffix in ((OURS, ""), (WITHOUT_CODEC, f", {WITHOUT_CODEC}")):
            bench.results.figures += [
                Figure("floor", "postgres sync", case, name + suffix, times.sample(who, name), least, FLOOR)
                for name, least in floor.items()
            ]


async def run(bench: Bench, stack: ExitStack, case: str) -> Times:
    """All contenders on the same threads in turns; the first thread warms up."""
    times, steps = Times(), WORKLOADS[case](STEPS)
    places = [stack.enter_context(bench.databases.new("postgresql")) for _ in range(4)]
    saver, coded = (engine_saver(stack, place) for place in places[1:3])
    connection = prepared(stack, places[3])
    door = door_of(coded[0], MODELS)
    for number in range(bench.choose(1, 8) + 1):
        name, noted = f"{case} {number}", times if number else Times()
        tasks = {
            OURS: saver_tasks(saver[1], name, steps),
            WITHOUT_CODEC: door_tasks(door, coded[1], name, steps),
            FLOOR: floor_tasks(connection, recorded(places[0], name, steps)),
        }
        workers = [Worker(who, found, noted) for who, found in tasks.items()]
        await in_turns(workers, STEPS // STEPS_OF_A_ROUND, Worker.work)
    return times


def engine_saver(stack: ExitStack, url: URL) -> tuple[Engine, SQLAlchemySaver]:
    """An engine and a saver on it."""
    engine = create_engine(url)
    stack.callback(engine.dispose)
    saver = SQLAlchemySaver(engine)
    saver.setup()
    return engine, saver


def prepared(stack: ExitStack, url: URL) -> psycopg.Connection[Any]:
    """A connection of psycopg to a database that has the tables."""
    with SQLAlchemySaver.from_url(text_of(url)) as saver:
        saver.setup()
    return stack.enter_context(psycopg.connect(dsn_of(url), autocommit=True))
