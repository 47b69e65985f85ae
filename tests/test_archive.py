"""Archives: nothing is lost on the way, and of one that is damaged nothing is stored."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, make_url

from cpstore import DamagedLineError, Serializer, SQLAlchemySaver, ThreadExistsError, UnknownThreadError
from cpstore.archive import HEAD, Imported, aexport_lines, aimport_lines, export_lines, import_lines
from cpstore.archive.lines import dump, load, row_line, row_of
from tests.commands import refusal, run
from tests.golden.cli import same_as_golden
from tests.looked_at import THREAD, put
from tests.test_transfer import fill, listed, migrated, rows_of
from tests.test_views import put as put_small

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.ways import Dialect

ROOT = Path(__file__).parent.parent


@pytest.fixture
def other_url(request: pytest.FixtureRequest, dialect: Dialect) -> Iterator[str]:
    """A second database, of the other kind."""
    other: Dialect = "postgresql" if dialect == "sqlite" else "sqlite"
    with migrated(request, other, "other") as url:
        yield url


@pytest.fixture
def archive(told: str) -> list[str]:
    with SQLAlchemySaver.from_url(told) as saver:
        return list(export_lines(saver))


def test_a_golden_archive(told: str) -> None:
    found = run("export", THREAD, url=told)
    assert (found.code, found.err) == (0, "")
    # PostgreSQL has keys of JSON in an order of its own.
    lines = [json.dumps(load(line), sort_keys=True) for line in found.out.splitlines()]
    same_as_golden("export.jsonl", "".join(f"{line}\n" for line in lines))


def test_from_database_to_database(told: str, other_url: str, tmp_path: Path) -> None:
    file = tmp_path / "threads.jsonl"
    assert run("export", "-o", str(file), url=told) == (0, "", "")
    assert [each.name for each in tmp_path.glob("threads*")] == ["threads.jsonl"]
    found = run("import", str(file), url=other_url)
    assert found == (0, "Imported 9 checkpoints, 5 values, 4 writes of 3 threads.\n", "")
    with SQLAlchemySaver.from_url(told) as source, SQLAlchemySaver.from_url(other_url) as target:
        assert listed(target) == listed(source)
        assert rows_of(target)[1:] == rows_of(source)[1:]
        back = [load(line) for line in export_lines(target)]
        assert back == [load(line) for line in export_lines(source)]


def test_through_a_pipe(told: str, other_url: str) -> None:
    text = run("export", "other", THREAD, url=told).out
    assert run("import", url=other_url, answer=text).out.endswith("of 2 threads.\n")
    command = [sys.executable, "-c", "from cpstore.cli import main; main()", "import", "--url", other_url]
    process = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    assert process.returncode == 1
    assert "has checkpoints of thread 'other' already" in process.stderr


def test_threads_of_a_transfer(keeper: SQLAlchemySaver, other_url: str) -> None:
    fill(keeper, 5)
    lines = list(export_lines(keeper))
    with SQLAlchemySaver.from_url(other_url) as target:
        import_lines(target, lambda: lines)
        assert listed(target) == listed(keeper)


async def test_through_every_way(saver: SQLAlchemySaver) -> None:
    at = await put_small(saver, "t", step=1)
    await saver.aput_writes(at, [("words", b"\0\xff")], "task")
    lines = [line async for line in aexport_lines(saver)]
    assert lines[0] == HEAD
    assert [load(line)["kind"] for line in lines[1:]] == ["checkpoint", "blob", "write", "end"]
    found = await saver.aget_tuple(at)
    await saver.adelete_thread("t")
    assert await aimport_lines(saver, lambda: lines) == Imported(1, 1, 1, 1)
    assert await saver.aget_tuple(at) == found
    with pytest.raises(ThreadExistsError, match="'t' already"):
        await aimport_lines(saver, lambda: lines)


def test_many_rows(keeper: SQLAlchemySaver, other_url: str) -> None:
    """More than a page of them, and a list that is stored in pieces."""
    keeper.serde = Serializer()
    for number in range(1, 1103):
        put(keeper, number, number - 1 or None, {"items": [number]}, new=["items"] if number % 9 == 0 else [])
    lines = list(export_lines(keeper, ["trip"]))
    assert load(lines[-1])["checkpoints"] == 1102
    with SQLAlchemySaver.from_url(other_url) as target:
        assert import_lines(target, lambda: lines).checkpoints == 1102
        assert list(target.storage()) == list(keeper.storage())


def test_what_is_unknown(told: str) -> None:
    assert "There is no thread" in refusal("export", "unknown", url=told)
    with SQLAlchemySaver.from_url(told) as saver, pytest.raises(UnknownThreadError):
        list(export_lines(saver, ["unknown"]))
    with SQLAlchemySaver.from_url(told) as saver, pytest.raises(TypeError):
        list(export_lines(saver, THREAD))


def test_an_empty_database(dialect_url: str) -> None:
    text = run("export", url=dialect_url).out
    assert text == f"{HEAD}\n"
    assert run("import", url=dialect_url, answer=text).out.endswith(" of 0 threads.\n")


def test_a_failed_export_leaves_no_file(dialect_url: str, tmp_path: Path) -> None:
    file = tmp_path / "threads.jsonl"
    file.write_text("before")
    refusal("export", "unknown", "-o", str(file), url=dialect_url)
    assert file.read_text() == "before"


# Damage

DAMAGES: dict[str, tuple[Any, str]] = {
    "a character": (lambda lines: [*lines[:3], lines[3].replace("id", "ix")], "Line 4 is damaged: its crc32"),
    "half a line": (lambda lines: [*lines[:3], lines[3][:40]], "Line 4 is damaged: it is no JSON"),
    "no object": (lambda lines: [*lines[:3], "[1]"], "Line 4 is no JSON object"),
    "the head": (lambda lines: lines[1:], "Line 1 is no beginning"),
    "another version": (lambda _: ['{"format": "cpstore", "version": 2}'], "Line 1 is no beginning"),
    "the end": (lambda lines: lines[:-1], "ends at line 21, too early"),
    "a lost line": (lambda lines: [*lines[:8], *lines[9:]], "ends a thread that had other rows"),
    "a lost end": (lambda lines: [*lines[:2], *lines[3:]], "Line 3 is of another thread"),
    "nothing": (lambda _: [], "ends at line 0"),
    "another kind": (lambda lines: [*lines[:1], '{"kind": "other"}'], "Line 2 is of no kind"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_a_damaged_archive_nothing_is_stored(archive: list[str], other_url: str, damage: str) -> None:
    change, words = DAMAGES[damage]
    text = "".join(f"{line}\n" for line in change(archive))
    told = refusal_of(text, other_url)
    assert words in told
    assert "Nothing was imported." in told
    with SQLAlchemySaver.from_url(other_url) as target:
        assert list(target.storage()) == []


def refusal_of(text: str, url: str) -> str:
    found = run("import", url=url, answer=text)
    assert (found.code, found.out, found.err.count("\n")) == (1, "", 1)
    return found.err


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("blob", {"blob": "%%%"}, "no base64"),
        ("blob", {"blob": 5}, "no base64"),
        ("blob", {"version": None}, "version is missing"),
        ("write", {"idx": "1"}, "idx is missing"),
        ("write", {"idx": True}, "idx is missing"),
        ("write", {"blob": None}, "blob is missing"),
        ("write", {"channel": "\0"}, "channel has a character"),
        ("checkpoint", {"metadata": None}, "metadata is missing"),
        ("checkpoint", {"thread_id": "\ud800"}, "thread_id has a character"),
    ],
)
def test_rows_that_are_none(archive: list[str], other_url: str, kind: str, change: Any, words: str) -> None:
    position = next(n for n, line in enumerate(archive) if f'"kind": "{kind}"' in line)
    document = load(archive[position]) | change
    lines = [*archive[:position], json.dumps(document), *archive[position + 1 :]]
    told = refusal_of("".join(f"{line}\n" for line in lines), other_url)
    assert f"Line {position + 1} is damaged: " in told
    assert words in told


def test_a_line_that_was_changed_by_purpose(archive: list[str], other_url: str) -> None:
    lines = [re.sub(r', "crc32": "\w+"', "", line).replace('"other"', '"renamed"') for line in archive]
    with SQLAlchemySaver.from_url(other_url) as target:
        import_lines(target, lambda: lines)
        assert "renamed" in [one.thread_id for one in target.list_threads()]


def test_a_thread_that_is_there_stops_all(archive: list[str], other_url: str) -> None:
    with SQLAlchemySaver.from_url(other_url) as target:
        put(target, 1, None, {"a": 1})
        before = list(target.storage())
        with pytest.raises(ThreadExistsError, match="'trip' already"):
            import_lines(target, lambda: archive)
        assert list(target.storage()) == before


def test_documents_that_python_cannot_hold(told: str, other_url: str) -> None:
    document = '{"v": 4, "id": "1", "channel_values": {}, "n": 1.00000000000000000000000000000000001}'
    engine = create_engine(told)
    cast = "::jsonb" if make_url(told).get_backend_name() == "postgresql" else ""
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata)"
            f" VALUES ('exact', '', '1', '{document}'{cast}, '{{}}'{cast})"
        )
    engine.dispose()
    with SQLAlchemySaver.from_url(told) as source, SQLAlchemySaver.from_url(other_url) as target:
        lines = list(export_lines(source, ["exact"]))
        assert "1.00000000000000000000000000000000001" in load(lines[1])["checkpoint_text"]
        import_lines(target, lambda: lines)
        again = list(export_lines(target, ["exact"]))
        assert "1.00000000000000000000000000000000001" in load(again[1])["checkpoint_text"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), JSON), st.binary())
def test_any_row_comes_back(document: dict[str, Any], blob: bytes) -> None:
    row = dict.fromkeys(("thread_id", "checkpoint_ns", "checkpoint_id"), "a")
    checkpoint = row | {
        "parent_checkpoint_id": None,
        "type": None,
        "metadata": "{}",
        "checkpoint": json.dumps(document),
    }
    part, found = row_of(load(row_line("checkpoint", checkpoint)))
    assert part == "checkpoints"
    assert json.loads(found.pop("checkpoint")) == document
    assert found == {name: value for name, value in checkpoint.items() if name != "checkpoint"}
    write = row | {"task_id": "t", "idx": -3, "channel": "c", "type": "x", "blob": blob, "task_path": ""}
    assert row_of(load(row_line("write", write))) == ("writes", write)
    assert base64.b64encode(blob).decode() in row_line("write", write)


@given(st.dictionaries(st.text(), JSON), st.integers(0), st.characters())
def test_a_line_that_changed_is_seen(document: dict[str, Any], position: int, character: str) -> None:
    line = dump(document)
    position %= len(line) - len(', "crc32": "00000000"}')
    changed = line[:position] + character + line[position + 1 :]
    if changed != line:
        with pytest.raises(DamagedLineError):
            load(changed)
