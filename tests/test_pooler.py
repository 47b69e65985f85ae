"""Behind a transaction pooler: each transaction may run in another session, so none may need one."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from cpstore import SQLAlchemySaver, engines
from cpstore.cli import main
from tests import pooler, postgres
from tests.cluster import lent_directory
from tests.ways import WAYS, SyncDoor, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions
    from sqlalchemy import URL

CLIENTS = 8
ROUNDS = 8  # psycopg prepares what it executes for the sixth time
NO_SUCH_STATEMENT = "26000"

STATE = """
SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors),
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
       current_setting('lock_timeout'), current_setting('transaction_isolation'),
       current_setting('search_path')
"""


@pytest.fixture(params=[way for way in WAYS if way.dialect == "postgresql"], ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    """Each driver that may have a pooler before its server."""
    chosen: Way = request.param
    return chosen


@contextmanager
def pooled(pgbouncer: pooler.Program, server: postgres.Server, size: int) -> Iterator[URL]:
    """An empty database behind a pooler with so many sessions."""
    with postgres.temporary_database(server.url) as url, pooler.running(pgbouncer, url, size) as address:
        yield address


def saver_on(way: Way, url: URL, **options: Any) -> SQLAlchemySaver:
    """A saver with engines of its own, whose async methods lead through this way."""
    kind = SyncDoor if way.sync else SQLAlchemySaver
    return kind.from_url(way.url(url), **options)


async def live(saver: SQLAlchemySaver, thread_id: str, rounds: int = ROUNDS) -> None:
    """Use every operation, several times, with values for the arrays of PostgreSQL too."""
    config: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    await saver.adelete_thread(thread_id)
    for number in range(rounds):
        versions: ChannelVersions = {
            f"channel {n}": saver.get_next_version(None, None) for n in range(1 + 20 * (number % 2))
        }
        values = {channel: [thread_id, number] for channel in versions}
        made: Any = {**empty_checkpoint(), "v": 4, "channel_values": values, "channel_versions": versions}
        stored = await saver.aput(config, made, {"step": number}, versions)
        await saver.aput_writes(stored, [("channel 0", number)] * (1 + 20 * (number % 2)), "task")
        found = await saver.aget_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"] == values
        assert len([each async for each in saver.alist(config, filter={"step": number})]) == 1
        await saver.acopy_thread(thread_id, f"{thread_id} copied")
        await saver.aprune([thread_id])
        await saver.adelete_thread(f"{thread_id} copied")
        await saver.adelete_for_runs(["unknown"])
        await saver.aget_delta_channel_history(config=stored, channels=["channel 0"])


async def test_many_clients_share_few_sessions(
    way: Way, pgbouncer: pooler.Program, postgres_server: postgres.Server
) -> None:
    with pooled(pgbouncer, postgres_server, size=2) as url:
        savers = [saver_on(way, url, pooler=True) for _ in range(CLIENTS)]
        try:
            await asyncio.gather(*(saver.asetup() for saver in savers))
            if way.sync:
                lives = (asyncio.to_thread(asyncio.run, live(s, str(n))) for n, s in enumerate(savers))
            else:
                lives = (live(saver, str(number)) for number, saver in enumerate(savers))
            await asyncio.gather(*lives)
            assert {found.config["configurable"]["thread_id"] async for found in savers[0].alist(None)} == {
                str(number) for number in range(CLIENTS)
            }
        finally:
            await asyncio.gather(*(saver.aclose() for saver in savers))


async def test_nothing_is_left_in_a_session(
    way: Way, pgbouncer: pooler.Program, postgres_server: postgres.Server
) -> None:
    with pooled(pgbouncer, postgres_server, size=1) as url:
        session = postgres.ask(url, "SELECT pg_backend_pid()")
        before = state_of(url)
        async with saver_on(way, url, pooler=True) as saver:
            await saver.asetup()
            await live(saver, "thread")
            assert state_of(url) == before
        assert postgres.ask(url, "SELECT pg_backend_pid()") == session


def state_of(url: URL) -> list[Any]:
    with postgres.connected(url) as connection:
        return list(connection.exec_driver_sql(STATE).one())


async def test_the_option_is_what_a_new_session_needs(
    way: Way, pgbouncer: pooler.Program, postgres_server: postgres.Server
) -> None:
    """A pooler renews its sessions; a statement that was prepared in one of them is unknown to the next."""
    with pooled(pgbouncer, postgres_server, size=1) as url:
        async with saver_on(way, url, pooler=True) as saver, saver_on(way, url) as unaware:
            await saver.asetup()
            await live(saver, "thread")
            await live(unaware, "other thread")
            pooler.order(url, "RECONNECT")
            await live(saver, "thread")
            with pytest.raises(DBAPIError) as caught:
                await live(unaware, "other thread")
    assert getattr(caught.value.orig, "sqlstate", None) == NO_SUCH_STATEMENT


async def test_a_pooler_that_cuts_its_clients_off_ends_no_call(
    way: Way, pgbouncer: pooler.Program, postgres_server: postgres.Server
) -> None:
    with pooled(pgbouncer, postgres_server, size=1) as url:
        async with saver_on(way, url, pooler=True) as saver:
            await saver.asetup()
            await live(saver, "thread", rounds=1)
            pooler.order(url, f"KILL {url.database}")
            pooler.order(url, f"RESUME {url.database}")
            await live(saver, "thread", rounds=1)


def test_the_command_line_migrates_behind_a_pooler(
    way: Way, pgbouncer: pooler.Program, postgres_server: postgres.Server
) -> None:
    with pooled(pgbouncer, postgres_server, size=1) as url:
        text = way.url(url).render_as_string(hide_password=False)
        for _ in range(2):
            done = CliRunner().invoke(main, ["db", "upgrade", "--url", text])
            assert (done.exit_code, "(newest)" in done.output) == (0, True), done.output
        assert state_of(url)[0] == 0


# Where a pooler comes from


def test_no_pooler_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_folder: Path) -> pooler.Program | None:
        raise OSError("no network")

    monkeypatch.setattr(pooler, "PROVIDERS", (lambda folder: None, broken))
    with pytest.raises(pooler.NoPoolerError, match="apt-get install pgbouncer") as caught, pooler.program():
        pass
    assert "broken failed: no network" in str(caught.value)


BROKEN = """#!/bin/sh
test "$1" = --version && echo PgBouncer 1.25.0 && exit
echo I was given; cat "$1"; exit 1
"""


def test_a_pooler_that_cannot_start_says_why() -> None:
    with lent_directory(None) as folder:
        found = pooler.Program("path", folder / "pgbouncer")
        found.path.write_text(BROKEN)
        found.path.chmod(0o755)
        with (
            pytest.raises(pooler.NoPoolerError, match="I was given") as caught,
            pooler.running(found, make_url("postgresql+psycopg://me:it's@host/name"), 3),
        ):
            pass
    for line in ("password='it''s'", "max_prepared_statements = 0", "default_pool_size = 3"):
        assert line in str(caught.value)


# What the option is, without a pooler


def connect_args(monkeypatch: pytest.MonkeyPatch, url: str, **options: Any) -> dict[str, Any]:
    """What an engine's driver is told beside the URL."""
    given: dict[str, Any] = {}

    def create(url: Any, **options: Any) -> Any:
        given.update(options["connect_args"])
        return create_engine(url, **options)

    name = "create_engine" if make_url(url).drivername == "postgresql" else "create_async_engine"
    create_engine: Callable[..., Any] = getattr(engines, name)
    monkeypatch.setattr(engines, name, create)
    monkeypatch.setattr(engines, "find_spec", lambda name: None)  # no psycopg beside asyncpg
    engines.from_url(url, **options)
    return given


def test_the_callers_own_arguments_win(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"prepare_threshold": 3, "connect_timeout": 2}
    url = "postgresql://host/name"
    with monkeypatch.context() as patched:
        assert connect_args(patched, url) == {"autocommit": True, "prepare_threshold": 0}
    with monkeypatch.context() as patched:
        assert connect_args(patched, url, pooler=True) == {"autocommit": True, "prepare_threshold": None}
    with monkeypatch.context() as patched:
        assert connect_args(patched, url, pooler=True, connect_args=own) == {"autocommit": True, **own}


def test_asyncpg_is_told_all_that_it_and_sqlalchemy_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    url, own = "postgresql+asyncpg://host/name", {"timeout": 5}
    given = connect_args(monkeypatch, url, pooler=True, connect_args=own)
    name = given.pop("prepared_statement_name_func")
    assert name() == ""
    assert given == {"statement_cache_size": 0, "prepared_statement_cache_size": 0, "timeout": 5}


def test_the_option_means_nothing_to_sqlite() -> None:
    with SQLAlchemySaver.from_url("sqlite://", pooler=True) as saver:
        saver.setup()
