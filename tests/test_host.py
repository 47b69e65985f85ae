"""The application of `tests.host`, from its migrations to its endpoints, end to end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import NullPool, create_engine, inspect, make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.cluster import DRIVER
from tests.conftest import connections_in_use, dispose
from tests.host import async_app, sync_app
from tests.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import URL

    from tests.ways import Way

ROOT = Path(__file__).parent.parent

OWN = ("conversations", "turns")
OURS = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


def beside(url: str) -> URL:
    """The same database with a sync driver, for whoever is not the application."""
    named = make_url(url)
    return named.set(drivername="sqlite" if named.get_backend_name() == "sqlite" else DRIVER)


def alembic(url: str, *arguments: str) -> str:
    """Run the application's own Alembic as its developers do."""
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "-c", "tests/host/alembic.ini", *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOST_DATABASE_URL": beside(url).render_as_string(hide_password=False),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counted(url: str) -> dict[str, int]:
    """The rows of all tables."""
    engine = create_engine(beside(url), poolclass=NullPool)
    with engine.connect() as connection:
        return {
            table: connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
            for table in OWN + OURS
        }


@pytest.fixture(params=[way for way in WAYS if way.name != "sqlite-threads"], ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    """Each engine that an application has; its endpoints are sync or async as the engine is."""
    chosen: Way = request.param
    return chosen


@asynccontextmanager
async def serving(way: Way, url: str) -> AsyncIterator[httpx.AsyncClient]:
    """The running application."""
    named = make_url(url)
    if way.dialect == "sqlite":
        named = named.update_query_dict({"timeout": "30"})  # so long a writer waits for another
    engine = way.engine(named)
    app = async_app.create_app(engine) if isinstance(engine, AsyncEngine) else sync_app.create_app(engine)
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://host") as client,
    ):
        yield client
    assert await connections_in_use(engine) == 0
    await dispose(engine)


async def told(client: httpx.AsyncClient, method: str, path: str, **options: Any) -> Any:
    """What the application answers to a request that it fulfils."""
    answer = await client.request(method, path, **options)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def begin(client: httpx.AsyncClient, name: str, owner: str = "ann") -> None:
    await told(client, "POST", "/conversations", json={"id": name, "owner": owner, "title": name})


async def ask(client: httpx.AsyncClient, name: str, text: str) -> str:
    answer = await told(client, "POST", f"/conversations/{name}/messages", json={"text": text})
    return str(answer["text"])


async def test_the_application_from_end_to_end(way: Way, empty_database_url: str) -> None:
    alembic(empty_database_url, "upgrade", "head")
    async with serving(way, empty_database_url) as client:
        await begin(client, "first")
        await begin(client, "second", owner="bob")
        assert await ask(client, "first", "how are you") == "1: you are how"
        assert await ask(client, "second", "hello") == "1: hello"
        assert await ask(client, "first", "thank you") == "2: you thank"
        assert await told(client, "GET", "/conversations?owner=ann") == ["first"]
        steps = await told(client, "GET", "/conversations/first/history")
        assert [step["step"] for step in steps] == [4, 3, 2, 1, 0, -1]
        assert steps[0]["messages"] == ["how are you", "1: you are how", "thank you", "2: you thank"]
    async with serving(way, empty_database_url) as client:  # after a restart
        assert await ask(client, "first", "again") == "3: again"


async def test_a_conversation_goes_with_its_thread(way: Way, empty_database_url: str) -> None:
    alembic(empty_database_url, "upgrade", "head")
    async with serving(way, empty_database_url) as client:
        await begin(client, "kept")
        await ask(client, "kept", "hello")
        before = counted(empty_database_url)
        await begin(client, "gone")
        await ask(client, "gone", "hello")
        await told(client, "DELETE", "/conversations/gone")
        assert counted(empty_database_url) == before
        assert await told(client, "GET", "/conversations/gone/history") == []
        assert (await client.request("DELETE", "/conversations/gone")).status_code == 404
        assert await ask(client, "kept", "hello") == "2: hello"


async def test_many_users_at_once(way: Way, empty_database_url: str) -> None:
    alembic(empty_database_url, "upgrade", "head")
    async with serving(way, empty_database_url) as client:

        async def talk(number: int) -> list[str]:
            await begin(client, str(number))
            return [await ask(client, str(number), f"question {turn}") for turn in range(3)]

        answers = await asyncio.gather(*(talk(number) for number in range(8)))
    assert answers == [["1: 0 question", "2: 1 question", "3: 2 question"]] * 8
    assert {table: counted(empty_database_url)[table] for table in OWN} == {"conversations": 8, "turns": 24}


async def test_two_histories_in_one_database(way: Way, empty_database_url: str) -> None:
    """The application's autogenerate has nothing to say of our tables; its downgrade leaves them alone."""
    alembic(empty_database_url, "upgrade", "head")
    async with serving(way, empty_database_url) as client:
        await begin(client, "kept")
        await ask(client, "kept", "hello")
    assert "No new upgrade operations" in alembic(empty_database_url, "check")
    alembic(empty_database_url, "downgrade", "base")
    engine = create_engine(beside(empty_database_url), poolclass=NullPool)
    tables = set(inspect(engine).get_table_names())
    assert tables == {*OURS, "alembic_version", "cpstore_alembic_version"}
    alembic(empty_database_url, "upgrade", "head")
    async with serving(way, empty_database_url) as client:
        await begin(client, "kept")
        assert await ask(client, "kept", "again") == "2: again"
