"""A database of langgraph-checkpoint-postgres is a source as it is: it is not adopted, and only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command
from sqlalchemy import inspect

from cpstore import SQLAlchemySaver
from cpstore.transfer import Transferred, atransfer, transfer
from tests.conftest import text_of
from tests.graphs import chat_graph, ledger_graph, new_thread
from tests.locales import locale_database
from tests.postgres import connected
from tests.test_collation import MIXED
from tests.test_transfer import place, set_batches
from tests.test_transfer_sqlite_saver import (
    assert_same,
    put,
    run_chat,
    run_guarded,
    run_harvest,
    run_inn,
    run_nested,
    run_walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import URL

    from tests.postgres import Server


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    set_batches(monkeypatch, 3, 2, 4000)


@pytest.fixture
def source(postgres_server: Server) -> Iterator[URL]:
    """An empty database that sorts as a locale does, as those of many applications do."""
    with locale_database(postgres_server) as made:
        yield made.url


@pytest.fixture
def official(source: URL) -> Iterator[PostgresSaver]:
    with PostgresSaver.from_conn_string(text_of(source.set(drivername="postgresql"))) as saver:
        saver.setup()
        yield saver


@pytest.fixture
def target(dialect_url: str) -> Iterator[SQLAlchemySaver]:
    with SQLAlchemySaver.from_url(dialect_url) as saver:
        yield saver


@pytest.mark.parametrize(
    "run", [run_chat, run_nested, run_walk, run_guarded, run_harvest, run_inn], ids=lambda run: run.__name__
)
def test_graphs(
    official: PostgresSaver, source: URL, target: SQLAlchemySaver, run: Callable[[Any], None]
) -> None:
    with connected(source) as connection:
        before = set(inspect(connection).get_table_names())
    run(official)
    done = transfer(source, target)
    assert_same(official, target)
    assert transfer(source, target) == Transferred(threads=done.threads)
    with connected(source) as connection:
        assert set(inspect(connection).get_table_names()) == before


def test_ids_that_its_locale_sorts_in_another_way(
    official: PostgresSaver, source: URL, target: SQLAlchemySaver
) -> None:
    for thread in MIXED:
        for name in MIXED:
            config = put(official, place(thread, name), {name: [name]}, {name: name}, id=name)
            official.put_writes(config, [(name, name)] * 2, name, name)
    done = transfer(source, target)
    assert (done.threads, done.checkpoints) == (len(MIXED), len(MIXED) ** 2)
    assert (done.blobs, done.writes) == (len(MIXED) ** 2, 2 * len(MIXED) ** 2)
    assert_same(official, target)
    assert transfer(source, target) == Transferred(threads=len(MIXED))


async def test_delta_channels_and_asyncpg(
    official: PostgresSaver, source: URL, saver: SQLAlchemySaver
) -> None:
    config = new_thread()
    compiled = ledger_graph().compile(checkpointer=official)
    compiled.invoke({"pages": 7}, config)
    expected = [(found.config, found.values) for found in compiled.get_state_history(config)]
    await atransfer(source.set(drivername="postgresql+asyncpg"), saver)
    moved = ledger_graph().compile(checkpointer=saver)
    assert [(found.config, found.values) async for found in moved.aget_state_history(config)] == expected


def test_an_interrupted_run_goes_on_in_the_target(
    official: PostgresSaver, source: URL, target: SQLAlchemySaver
) -> None:
    config = new_thread()
    chat_graph().compile(checkpointer=official).invoke({"messages": [("user", "hi")]}, config)
    transfer(source, target)
    done = chat_graph().compile(checkpointer=target).invoke(Command(resume="yes"), config)
    assert [message.content for message in done["messages"]] == ["hi", "May I book?", "human says yes"]
