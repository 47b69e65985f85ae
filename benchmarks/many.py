"""A table of many checkpoints: cpstore beside itself when there are few."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from dataclasses import dataclass

import psycopg
from sqlalchemy import URL

from benchmarks.bench import Bench
from benchmarks.contenders import backend, thread
from benchmarks.databases import DIALECTS, Dialect, dsn_of, file_of, text_of
from benchmarks.figures import Figure, Times
from benchmarks.rounds import in_turns, timed
from benchmarks.workloads import text
from cpstore import Serializer, SQLAlchemySaver

FEW = 1_000
MANY = 1_000_000
QUICK_MANY = 100_000
LIMIT = 20

THREADS_AT_A_TIME = 20
CHECKPOINTS_OF_THREADS = 200
"""Twenty threads are busy at a time, in turns, until each of them has 10 checkpoints. So even few checkpoints
are of more threads than a look asks for, and both tables are asked for the same amount."""


@dataclass(frozen=True)
class Words:
    """What the databases say differently. Numbers are those of checkpoints, from 0."""

    numbers: str
    hexadecimal: str
    decimal: str
    json: str
    after: tuple[str, ...] = ()


WORDS: dict[Dialect, Words] = {
    "postgresql": Words(
        numbers="SELECT generate_series(0, {count} - 1)",
        hexadecimal="lpad(to_hex({0}), 6, '0')",
        decimal="lpad(({0})::text, 7, '0')",
        json="jsonb",
        after=("VACUUM ANALYZE",),  # as autovacuum would have done long ago
    ),
    "sqlite": Words(
        numbers="SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count} - 1",
        hexadecimal="printf('%06x', {0})",
        decimal="printf('%07d', {0})",
        json="text",
    ),
}

CHECKPOINTS = """
WITH RECURSIVE numbers(n) AS ({numbers}), rows AS (
SELECT n, {thread} AS thread, {id} AS id, {parent} AS parent FROM numbers)
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
SELECT thread, '', id, CASE WHEN n % {period} < {width} THEN NULL ELSE parent END,
CAST('{{"v": 4, "id": "' || id || '", "ts": "2026-02-02T06:25:42+00:00", "channel_values": {{"turn": ' || n
|| '}}, "channel_versions": {{"messages": "1", "turn": "' || n || '"}}, "versions_seen": {{"__input__": {{}},
"agent": {{"messages": "1", "turn": "' || n || '"}}}}, "updated_channels": ["turn"]}}' AS {json}),
CAST('{{"source": "loop", "step": ' || n % {period} / {width} || ', "parents": {{}}}}' AS {json})
FROM rows
"""

BLOBS = """
WITH RECURSIVE numbers(n) AS ({numbers})
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
SELECT {thread}, '', 'messages', '1', {kind}, {blob} FROM numbers WHERE n % {period} < {width}
"""


def thread_of(words: Words) -> str:
    """SQL of the thread that a checkpoint belongs to."""
    number = f"n / {CHECKPOINTS_OF_THREADS} * {THREADS_AT_A_TIME} + n % {THREADS_AT_A_TIME}"
    return f"'thread-' || {words.decimal.format(number)}"


def id_of(words: Words, number: str) -> str:
    """SQL of a checkpoint's id: half a minute lies between two."""
    return f"'1f' || {words.hexadecimal.format(number)} || '-0000-6000-8000-000000000000'"


def statements(dialect: Dialect, count: int, kind: str, blob: str) -> list[str]:
    """SQL that makes the rows; the type and the bytes of their values come as literals."""
    words = WORDS[dialect]
    parts = {
        "numbers": words.numbers.format(count=count),
        "thread": thread_of(words),
        "id": id_of(words, "n"),
        "parent": id_of(words, f"n - {THREADS_AT_A_TIME}"),
        "json": words.json,
        "period": CHECKPOINTS_OF_THREADS,
        "width": THREADS_AT_A_TIME,
        "kind": f"'{kind}'",
        "blob": blob,
    }
    return [CHECKPOINTS.format(**parts), BLOBS.format(**parts), *words.after]


def fill(url: URL, dialect: Dialect, count: int) -> None:
    """Make so many checkpoints, and one value for each thread."""
    kind, value = Serializer().dumps_typed([text(1_000, 1)])
    if dialect == "postgresql":
        with psycopg.connect(dsn_of(url), autocommit=True) as connection:
            for statement in statements(dialect, count, kind, f"'\\x{value.hex()}'::bytea"):
                connection.execute(statement.encode())
    else:
        with closing(sqlite3.connect(file_of(url))) as file, file:
            for statement in statements(dialect, count, kind, f"x'{value.hex()}'"):
                file.execute(statement)


@dataclass(frozen=True)
class Table:
    """A saver on a database of many or few checkpoints."""

    name: str
    saver: SQLAlchemySaver
    times: Times
    middle: str

    async def look(self) -> None:
        """Read a thread in the middle, and the newest threads."""
        for _ in range(5):
            await timed(self.times, self.name, "get_tuple", self.get())
            await timed(self.times, self.name, f"list_threads {LIMIT}", self.list())

    async def get(self) -> None:
        assert self.saver.get_tuple(thread(self.middle)) is not None  # noqa: S101, else it measures nothing

    async def list(self) -> None:
        assert len(self.saver.list_threads(limit=LIMIT)) == LIMIT  # noqa: S101, as above


async def measure(bench: Bench) -> None:
    """Both databases, each with few and with many."""
    many = bench.choose(QUICK_MANY, MANY)
    for dialect in DIALECTS:
        bench.say(f"many, {dialect}")
        with ExitStack() as stack:
            times = Times()
            tables = [opened(bench, stack, dialect, count, times) for count in (FEW, many)]
            bench.say(f"many, {dialect}: filled")
            await in_turns(tables, 2, Table.look)
            times.of.clear()
            await in_turns(tables, bench.choose(10, 40), Table.look)
        for operation in ("get_tuple", f"list_threads {LIMIT}"):
            few, lots = (times.sample(table.name, operation) for table in tables)
            name, case = backend(dialect).name, tables[1].name
            bench.results.figures.append(Figure("many", name, case, operation, lots, few, tables[0].name))


def opened(bench: Bench, stack: ExitStack, dialect: Dialect, count: int, times: Times) -> Table:
    """A database with so many checkpoints, and a saver on it."""
    url = stack.enter_context(bench.databases.new(dialect))
    saver = stack.enter_context(SQLAlchemySaver.from_url(text_of(url, backend(dialect).driver)))
    saver.setup()
    fill(url, dialect, count)
    middle = count // CHECKPOINTS_OF_THREADS * THREADS_AT_A_TIME // 2
    return Table(f"{count:,} checkpoints", saver, times, f"thread-{middle:07}")
