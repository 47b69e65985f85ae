"""Commands that change threads: what they ask, what they say, what they leave, and what they refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from langgraph.checkpoint.base.id import uuid6
from sqlalchemy import create_engine, make_url

from cpstore import SQLAlchemySaver
from cpstore.cli import consent
from tests.commands import refusal, run
from tests.looked_at import THREAD, id_of, put, tell

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ways import Way

ALL = "1 thread, 7 checkpoints, 5 values, 4 writes: 4.5 kB."
EACH = (("delete", THREAD), ("prune", "--all", "--keep", "1"), ("gc",), ("db", "downgrade", "base"))


@pytest.fixture(autouse=True)
def _a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consent, "can_ask", lambda: True)


def counts(url: str) -> dict[str, tuple[int, int, int]]:
    with SQLAlchemySaver.from_url(url) as saver:
        return {one.thread_id: (one.checkpoints, one.blobs, one.writes) for one in saver.storage()}


def strays(url: str) -> None:
    """A value and a write that no checkpoint needs."""
    with SQLAlchemySaver.from_url(url) as saver:
        place = {"thread_id": THREAD, "checkpoint_ns": "", "checkpoint_id": "0"}
        saver.put_writes({"configurable": place}, [("a", 1)], "t")
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type)"
            f" VALUES ('{THREAD}', '', 'left', '1', 'empty')"
        )
    engine.dispose()


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
@pytest.mark.parametrize("command", EACH, ids=lambda command: command[0])
def test_who_does_not_say_yes_keeps_all(told: str, command: tuple[str, ...], answer: str) -> None:
    strays(told)
    before = counts(told)
    found = run(*command, url=told, answer=answer)
    assert (found.code, found.out) == (0, "")
    assert "Go on? [y/N]" in found.err
    assert "Nothing was" in found.err
    assert counts(told) == before


@pytest.mark.parametrize("command", EACH, ids=lambda command: command[0])
def test_where_nobody_can_be_asked_nothing_is_done(
    told: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    strays(told)
    before = counts(told)
    found = run(*command, url=told)
    assert (found.code, found.out) == (1, "")
    assert found.err.splitlines()[-1].startswith("Error: Nobody can be asked here: pass --yes")
    assert counts(told) == before


@pytest.mark.parametrize("command", EACH, ids=lambda command: command[0])
def test_a_dry_run_changes_nothing(told: str, command: tuple[str, ...]) -> None:
    strays(told)
    before = counts(told)
    found = run(*command, "--dry-run", url=told)
    assert (found.code, found.err) == (0, "")
    assert found.out.count("\n") == 1
    assert counts(told) == before


def test_delete(told: str) -> None:
    found = run("delete", THREAD, url=told, answer="y\n")
    assert found.err == f"This deletes {ALL}\nGo on? [y/N]: "
    assert found.out == f"Deleted {ALL}\n"
    assert sorted(counts(told)) == ["\x1b[2Jodd\n", "other"]
    assert "There is no thread" in refusal("delete", "other", THREAD, "--yes", url=told)
    assert "other" in counts(told)
    both = run("delete", "other", "\x1b[2Jodd\n", "--yes", "--json", url=told)
    assert json.loads(both.out) == {
        "dry_run": False, "threads": 2, "checkpoints": 2, "blobs": 0, "writes": 0, "bytes": 583,
    }  # fmt: skip
    assert counts(told) == {}


def test_prune(told: str) -> None:
    planned = run("prune", THREAD, "--keep", "1", "--dry-run", "--json", url=told)
    done = run("prune", THREAD, "--keep", "1", "--yes", "--json", url=told)
    assert json.loads(planned.out) | {"dry_run": False} == json.loads(done.out)
    assert json.loads(done.out)["checkpoints"] == 6
    assert counts(told)[THREAD][0] == 1
    again = run("prune", THREAD, "--keep", "1", url=told)
    assert (again.out, again.err) == ("Deleted 0 threads, 0 checkpoints, 0 values, 0 writes: 0 B.\n", "")


def test_prune_by_age(told: str) -> None:
    with SQLAlchemySaver.from_url(told) as saver:
        young = {"configurable": {"thread_id": "young", "checkpoint_ns": ""}}
        checkpoint = saver.get_tuple({"configurable": {"thread_id": "other"}}).checkpoint  # type: ignore[union-attr]
        saver.put(young, {**checkpoint, "id": str(uuid6())}, {}, {})  # type: ignore[arg-type]
    assert "3 threads" in run("prune", "--all", "--older-than", "2w", "--yes", url=told).out
    assert list(counts(told)) == ["young"]


@pytest.mark.parametrize(
    "arguments",
    [(), ("--keep", "1"), ("--all",), (THREAD,), ("--all", THREAD, "--keep", "1"), ("--all", "--keep", "0"),
     ("--all", "--older-than", "3 days"), ("--all", "--older-than", "-3d")],
)  # fmt: skip
def test_a_prune_that_does_not_say_what(told: str, arguments: tuple[str, ...]) -> None:
    before = counts(told)
    assert run("prune", *arguments, "--yes", url=told).code == 2
    assert counts(told) == before


def test_gc(told: str) -> None:
    strays(told)
    before = run("show", THREAD, url=told)
    assert json.loads(run("gc", "other", "--yes", "--json", url=told).out)["writes"] == 0
    found = json.loads(run("gc", "--yes", "--json", "--vacuum", url=told).out)
    assert (found["checkpoints"], found["blobs"], found["writes"]) == (0, 1, 1)
    assert run("show", THREAD, url=told) == before
    assert json.loads(run("gc", "--yes", "--json", url=told).out)["writes"] == 0


def test_copy(told: str) -> None:
    assert run("copy", THREAD, "whole", url=told).out == "Copied 7 checkpoints of 'trip' to 'whole'.\n"
    found = run("copy", f"{THREAD}@0002", "early", url=told)
    assert found.out == "Copied 2 checkpoints of 'trip' to 'early'.\n"
    assert json.loads(run("show", "early", "--json", url=told).out)["checkpoint_id"] == id_of(2)
    assert "Choose a new thread id" in refusal("copy", THREAD, "early", url=told)
    assert "There is no thread" in refusal("copy", "unknown", "new", url=told)
    assert "has no checkpoint 'x'" in refusal("copy", f"{THREAD}@x", "new", url=told)


@pytest.mark.parametrize("command", ["copy", "delete", "prune", "gc", "import"])
def test_no_file_is_made(command: str, tmp_path: Path) -> None:
    options: dict[str, tuple[str, ...]] = {
        "copy": ("a", "b"),
        "delete": ("a", "--yes"),
        "prune": ("--all", "--keep", "1", "--yes"),
        "gc": ("--yes",),
        "import": (),
    }
    arguments = options[command]
    file = tmp_path / "none.db"
    assert "There is no file" in refusal(command, *arguments, url=f"sqlite:///{file}")
    assert not file.exists()


def test_every_driver(way: Way, database_url: str) -> None:
    sync = "sqlite" if way.dialect == "sqlite" else "postgresql+psycopg"
    with SQLAlchemySaver.from_url(make_url(database_url).set(drivername=sync)) as saver:
        tell(saver)
        put(saver, 20, None, {"a": 1}, thread_id="more")
    assert run("copy", THREAD, "new", url=database_url).code == 0
    assert run("delete", THREAD, "--yes", url=database_url).out == f"Deleted {ALL}\n"
    assert run("gc", "--yes", url=database_url).code == 0
    assert "6 checkpoints" in run("prune", "--all", "--keep", "1", "--yes", url=database_url).out
    assert len(run("threads", "--jsonl", url=database_url).out.splitlines()) == 4
