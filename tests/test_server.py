"""The checkpointer of LangGraph Server: what the environment says, and what the server's loader asks for.

`tests.prove_server` runs the server itself.
"""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from sqlalchemy import Pool, event

from cpstore import ConfigurationError, NotMigratedError
from cpstore.server import Settings, checkpointer
from tests.applications import THREAD, checkpoint, of

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = "CPSTORE_DATABASE_URL"
SECRET = "sqlite:///secret.db"  # noqa: S105 - what must not be shown


# The environment


def test_the_url_is_enough() -> None:
    assert Settings.from_environment({URL: " sqlite:///chat.db "}) == Settings("sqlite:///chat.db", True, {})


@pytest.mark.parametrize("environment", [{}, {URL: ""}, {URL: " "}])
def test_a_missing_url_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=f"{URL} is not set"):
        Settings.from_environment(environment)


@pytest.mark.parametrize("word", ["off", "0", "false", "no", "OFF", " False "])
def test_setup_can_be_left_to_others(word: str) -> None:
    assert Settings.from_environment({URL: SECRET, "CPSTORE_SETUP": word}).setup is False


@pytest.mark.parametrize("word", ["on", "1", "true", "yes", "Yes"])
def test_setup_can_be_asked_for(word: str) -> None:
    assert Settings.from_environment({URL: SECRET, "CPSTORE_SETUP": word}).setup is True


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CPSTORE_SETUP", "secret"),
        ("CPSTORE_ENGINE_OPTIONS", "secret"),
        ("CPSTORE_ENGINE_OPTIONS", '{"secret":'),
        ("CPSTORE_ENGINE_OPTIONS", '["secret"]'),
    ],
)
def test_what_a_variable_may_not_say_is_refused_and_not_shown(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name) as caught:
        Settings.from_environment({URL: SECRET, name: value})
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_settings_show_no_secret() -> None:
    made = Settings.from_environment(
        {URL: SECRET, "CPSTORE_ENGINE_OPTIONS": '{"connect_args": {"k": "secret"}}'}
    )
    assert "secret" not in repr(made)
    assert made.options == {"connect_args": {"k": "secret"}}


def test_engine_options_reach_the_engine(tmp_path: Any) -> None:
    options = '{"pool_size": 3, "max_overflow": 0, "echo": false}'
    made = Settings.from_environment({URL: f"sqlite:///{tmp_path}/x.db", "CPSTORE_ENGINE_OPTIONS": options})
    assert made.options == {"pool_size": 3, "max_overflow": 0, "echo": False}
    made.saver().close()
    with pytest.raises(TypeError, match="no_such_option"):
        Settings(made.url, options={"no_such_option": 1}).saver()


# The server


@pytest.fixture
def connections() -> Iterator[list[int]]:
    """How many connections are open, of all pools that are made meanwhile."""
    counted = [0]

    def opened(*_: Any) -> None:
        counted[0] += 1

    def closed(*_: Any) -> None:
        counted[0] -= 1

    listeners = [("connect", opened), ("close", closed), ("close_detached", closed)]
    for name, listener in listeners:
        event.listen(Pool, name, listener)
    yield counted
    for name, listener in listeners:
        event.remove(Pool, name, listener)


async def test_it_opens_migrates_and_closes(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, connections: list[int]
) -> None:
    monkeypatch.setenv(URL, empty_database_url)
    for expected in (None, THREAD):
        async with checkpointer() as saver:
            assert (await saver.aget_tuple(THREAD) is None) == (expected is None)
            await saver.aput(THREAD, checkpoint(words=["a"]), {}, {"words": "1"})
            assert connections[0] > 0
        assert connections == [0]


async def test_it_closes_after_a_failure_too(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, connections: list[int]
) -> None:
    monkeypatch.setenv(URL, empty_database_url)
    monkeypatch.setenv("CPSTORE_SETUP", "off")
    with pytest.raises(NotMigratedError):
        async with checkpointer() as saver:
            await saver.aget_tuple(THREAD)
    assert connections == [0]


async def test_each_event_loop_has_its_own(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server enters it once in each thread that has an event loop."""
    monkeypatch.setenv(URL, empty_database_url)
    together = threading.Barrier(3, timeout=60)

    async def serve(number: int) -> int:
        async with checkpointer() as saver:
            await saver.aput(of(number), checkpoint(), {}, {})
            await asyncio.to_thread(together.wait)
            return len([found async for found in saver.alist(None)])

    serving = (asyncio.to_thread(asyncio.run, serve(number)) for number in range(3))
    assert await asyncio.gather(*serving) == [3, 3, 3]


async def test_it_is_what_the_loader_asks_for(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A callable without arguments, whose result is entered, and gives a saver with its own async methods."""
    monkeypatch.setenv(URL, empty_database_url)
    assert inspect.signature(checkpointer).parameters == {}
    context = checkpointer()
    assert hasattr(context, "__aenter__")
    required = ["aput", "aput_writes", "aget_tuple", "alist"]
    extended = ["adelete_thread", "adelete_for_runs", "acopy_thread", "aprune"]
    async with context as saver:
        assert isinstance(saver, BaseCheckpointSaver)
        for name in required + extended:
            assert getattr(type(saver), name) is not getattr(BaseCheckpointSaver, name)


def test_the_import_needs_nothing_of_the_server() -> None:
    program = (
        "import sys; sys.modules['langgraph_api'] = None; import cpstore.server;"
        "loaded = {'psycopg', 'asyncpg', 'aiosqlite', 'alembic'} & set(sys.modules);"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
