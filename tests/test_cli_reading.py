"""Commands that read: what they print, of threads with any name, on both databases, through each driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import DBAPIError

from cpstore import SQLAlchemySaver, engines
from tests.commands import refusal, run
from tests.golden.cli import same_as_golden
from tests.looked_at import SUBGRAPH, THREAD, id_of, put, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from tests.ways import Way

ROOT = Path(__file__).parent.parent
CALLS: dict[str, tuple[str, ...]] = {
    "threads": ("threads",),
    "threads.page": ("threads", "--limit", "1", "--order", "thread_id", "--filter", '{"step": 2}'),
    "history": ("history", THREAD),
    "history.ns": ("history", THREAD, "--ns", SUBGRAPH, "--limit", "1"),
    "show": ("show", THREAD),
    "show.interrupt": ("show", f"{THREAD}@-1", "--channel", "city"),
    "show.subgraph": ("show", f"{THREAD}@0004", "--ns", SUBGRAPH),
    "diff": ("diff", THREAD),
    "diff.two": ("diff", THREAD, id_of(2), "@-1"),
    "writes": ("writes", THREAD),
    "writes.of": ("writes", THREAD, id_of(5)),
    "tree": ("tree", THREAD),
    "tree.ns": ("tree", THREAD, "--ns", ""),
    "stats": ("stats",),
    "stats.one": ("stats", THREAD, "--by", "channel"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_outputs(told: str, name: str, form: str) -> None:
    options = () if form == "text" else (f"--{form}",)
    found = run(*CALLS[name], *options, url=told)
    assert found.code == 0
    same_as_golden(f"{name}.{form}" if name != "tree" or form != "json" else "tree.json", found.out)
    assert "\x1b" not in found.out + found.err
    if form == "json":
        json.loads(found.out)
    if form == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in found.out.splitlines())


@pytest.mark.parametrize("drawing", ["text", "mermaid", "dot", "svg", "json"])
def test_drawings(told: str, drawing: str) -> None:
    found = run("tree", THREAD, "--format", drawing, url=told)
    assert (found.code, found.err) == (0, "")
    same_as_golden(f"tree.{drawing}", found.out)


def test_pages_of_threads(told: str) -> None:
    first = run("threads", "--limit", "2", "--jsonl", url=told)
    assert [json.loads(line)["thread_id"] for line in first.out.splitlines()] == ["\x1b[2Jodd\n", "other"]
    cursor = first.err.removeprefix("There may be more: --after ").strip().strip("'")
    rest = run("threads", "--after", cursor, "--jsonl", url=told)
    assert [json.loads(line)["thread_id"] for line in rest.out.splitlines()] == [THREAD]
    assert rest.err == ""


def test_nothing_is_no_error(dialect_url: str) -> None:
    assert run("threads", "--json", url=dialect_url).out == "[]\n"
    assert run("threads", "--jsonl", url=dialect_url).out == ""
    assert json.loads(run("stats", "--json", url=dialect_url).out)["threads"] == []
    assert run("stats", url=dialect_url).code == 0


def test_ids_in_part(told: str) -> None:
    def shown(asked: str) -> str:
        checkpoint: str = json.loads(run("show", f"{THREAD}@{asked}", "--json", url=told).out)[
            "checkpoint_id"
        ]
        return checkpoint

    assert shown("1f0a0000-0005") == id_of(5)
    assert shown("00000005") == id_of(5)
    assert shown("") == shown("-0") == id_of(7)
    assert shown("-3") == id_of(1)
    assert "5 checkpoints begin or end with '1f0a', such as" in refusal("show", f"{THREAD}@1f0a", url=told)
    for asked in ("x", "-4", "-99", id_of(3)):
        assert f"has no checkpoint '{asked}'. `cpstore history trip`" in refusal(
            "show", f"{THREAD}@{asked}", url=told
        )


def test_a_thread_whose_name_has_an_at(dialect_url: str) -> None:
    with SQLAlchemySaver.from_url(dialect_url) as saver:
        put(saver, 1, None, {"a": 1}, thread_id="ann@example.com")
        put(saver, 2, None, {"a": 2}, thread_id="ann")
    mail = "ann@example.com"
    for text, thread_id in ((mail, mail), (f"{mail}@0001", mail), ("ann@0002", "ann")):
        found = run("show", text, "--json", url=dialect_url)
        assert json.loads(found.out)["thread_id"] == thread_id


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "unknown"), "There is no thread 'unknown'. `cpstore threads` lists"),
        (("show", "unknown@1"), "There is no thread 'unknown'."),
        (("history", "unknown"), "There is no thread"),
        (("tree", "unknown"), "There is no thread"),
        (("diff", "unknown", "1", "2"), "There is no thread"),
        (("writes", "unknown", "1"), "There is no thread"),
        (("stats", "unknown"), "There is no thread"),
        (("show", THREAD, "--ns", "no:1"), "has no checkpoint in namespace 'no:1'"),
        (("diff", THREAD, "-4x"), "has no checkpoint '-4x'"),
        (("diff", THREAD, "0001"), "has no parent to be compared with"),
        (("threads", "--after", "x"), "cursor"),
        (("threads", "--filter", "[1]"), "--filter takes a JSON object"),
        (("threads", "--limit", "-1"), "limit must be"),
        (("history", THREAD, "--limit", "-1"), "limit must be"),
        (("show", "nul\0"), "thread_id"),
        (("threads", "--schema", "s" * 64), "A schema has a name"),
    ],
)
def test_refusals(told: str, arguments: tuple[str, ...], words: str) -> None:
    if "-4x" in arguments:
        arguments = (*arguments[:-1], "--", arguments[-1])
    assert words in refusal(*arguments, url=told)


@pytest.mark.parametrize(
    "command", ["threads", "history", "show", "diff", "tree", "writes", "stats", "export"]
)
def test_a_database_without_tables(command: str, empty_dialect_url: str) -> None:
    url = make_url(empty_dialect_url)
    arguments = () if command in ("threads", "stats", "export") else ("thread",)
    if url.get_backend_name() == "sqlite":
        assert "There is no file" in refusal(command, *arguments, url=empty_dialect_url)
        assert not Path(str(url.database)).exists()
        Path(str(url.database)).touch()
    assert "cpstore db upgrade" in refusal(command, *arguments, url=empty_dialect_url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://user:secret@host/name", "speaks SQLite"),
        ("no url", "no database URL"),
        ("postgresql://user:secret@127.0.0.1:1/name", "refused"),
        ("postgresql+asyncpg://user:secret@127.0.0.1:1/name", "127.0.0.1"),
    ],
)
def test_wrong_urls(url: str, words: str) -> None:
    told = refusal("threads", url=url)
    assert words in told
    assert "secret" not in told


def test_a_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install 'cpstore[postgres]'" in refusal("threads", url="postgresql://user@host/name")
    assert "pip install 'cpstore[asyncpg]'" in refusal("threads", url="postgresql+asyncpg://user@host/name")


def test_two_forms_exclude_each_other(told: str) -> None:
    assert run("threads", "--json", "--jsonl", url=told).code == 2


# Drivers, and databases that can only be read


def test_every_driver(way: Way, database_url: str) -> None:
    with SQLAlchemySaver.from_url(str(make_url(database_url).set(drivername=sync_driver(way)))) as saver:
        tell(saver)
    for name in ("threads", "history", "show", "diff", "writes", "tree", "stats"):
        assert run(*CALLS[name], url=database_url).out == (ROOT / f"tests/golden/cli/{name}.text").read_text()


def sync_driver(way: Way) -> str:
    return "sqlite" if way.dialect == "sqlite" else "postgresql+psycopg"


async def test_a_whole_session_only_reads(way: Way, database_url: str) -> None:
    made = engines.read_only(database_url, whole_session=True)
    columns = "thread_id, checkpoint_ns, channel, version, type"
    statement = f"INSERT INTO checkpoint_blobs ({columns}) VALUES ('t', '', 'c', '1', 'x')"
    if made.asynchronous is not None:
        asynchronous = made.asynchronous.execution_options(isolation_level="AUTOCOMMIT")
        async with asynchronous.connect() as connection:
            with pytest.raises(DBAPIError, match=r"read.?only"):
                await connection.exec_driver_sql(statement)
        await made.asynchronous.dispose()
    if made.sync is not None:
        sync = made.sync.execution_options(isolation_level="AUTOCOMMIT")
        with sync.connect() as other, pytest.raises(DBAPIError, match=r"read.?only"):
            other.exec_driver_sql(statement)
        made.sync.dispose()


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_options_of_the_url_stay(told: str) -> None:
    url = make_url(told).update_query_dict({"options": "-c application_name=mine"})
    made = engines.read_only(url, whole_session=True)
    assert made.sync is not None
    with made.sync.connect() as connection:
        asked = "SELECT current_setting('application_name'), current_setting('transaction_read_only')"
        assert tuple(connection.exec_driver_sql(asked).one()) == ("mine", "on")
    made.sync.dispose()


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_behind_a_pooler_each_transaction_only_reads(told: str) -> None:
    made = engines.read_only(told, pooler=True, whole_session=True)
    assert made.sync is not None
    with made.sync.execution_options(isolation_level="READ COMMITTED").connect() as connection:
        names = ("default_transaction_read_only", "transaction_read_only")
        asked = ", ".join(f"current_setting('{name}')" for name in names)
        assert tuple(connection.exec_driver_sql(f"SELECT {asked}").one()) == ("off", "on")
    made.sync.dispose()
    assert run("threads", "--pooler", url=told).code == 0


@pytest.fixture
def reader(told: str, dialect: str) -> Iterator[str]:
    """A URL by which nobody could write: a role without rights, or a file without them."""
    url = make_url(told)
    if dialect == "sqlite":
        yield f"sqlite:///file:{url.database}?mode=ro&uri=true"
        return
    engine: Engine = create_engine(told)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE ROLE reader_of_tests LOGIN")
        connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_of_tests")
    yield url.set(username="reader_of_tests").render_as_string(hide_password=False)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP OWNED BY reader_of_tests")
        connection.exec_driver_sql("DROP ROLE reader_of_tests")
    engine.dispose()


@pytest.mark.parametrize("name", ["threads", "history", "show", "diff", "writes", "tree", "stats"])
def test_who_may_only_read(reader: str, name: str) -> None:
    assert run(*CALLS[name], url=reader).out == (ROOT / f"tests/golden/cli/{name}.text").read_text()


# The shell around


def shell(url: str, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -c 'from cpstore.cli import main; main()'"
    given = {**os.environ, "CPSTORE_DATABASE_URL": url, "PYTHONPATH": str(ROOT), **environment}
    command = ["bash", "-c", f'set -o pipefail; cpstore() {{ {program} "$@"; }}; {script}']
    return subprocess.run(command, env=given, capture_output=True, text=True, cwd=ROOT, check=False)


def test_a_reader_that_wants_no_more(dialect_url: str) -> None:
    with SQLAlchemySaver.from_url(dialect_url) as saver:
        for number in range(1, 1200):
            put(saver, number, number - 1 or None, {"a": 1}, step=number)
    found = shell(dialect_url, "cpstore history --jsonl trip | head -n 1")
    assert found.stdout.count("\n") == 1
    assert found.stderr == ""


def test_an_encoding_that_lacks_characters(told: str) -> None:
    found = shell(told, "cpstore tree trip", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert found.returncode == 0
    assert found.stdout.startswith("\\u25cf step -1 input")


def on_terminal(url: str, *arguments: str, program: str = "", **environment: str) -> str:
    reader, terminal = os.openpty()
    command = [sys.executable, "-c", f"{program}\nfrom cpstore.cli import main; main()", *arguments]
    given = {
        **os.environ,
        "CPSTORE_DATABASE_URL": url,
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm",
        **environment,
    }
    given.pop("NO_COLOR", None) if "NO_COLOR" not in environment else None
    with subprocess.Popen(command, cwd=ROOT, env=given, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        try:
            while part := os.read(reader, 1 << 16):
                shown += part
        except OSError:  # the terminal is closed
            pass
    os.close(reader)
    assert process.returncode == 0
    return shown.decode()


WITHOUT_RICH = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "rich" else found(name, *rest)
sys.modules["rich"] = None
"""


def test_rich_on_a_terminal_and_its_absence(told: str) -> None:
    rich = on_terminal(told, "history", THREAD, COLUMNS="200")
    assert "\x1b[1m" in rich
    colourless = on_terminal(told, "history", THREAD, COLUMNS="200", NO_COLOR="1")
    assert "\x1b" not in colourless
    plain = on_terminal(told, "history", THREAD, program=WITHOUT_RICH).replace("\r\n", "\n")
    assert plain == (ROOT / "tests/golden/cli/history.text").read_text()
    for shown in (rich, colourless):
        assert id_of(7) in shown


def test_no_escape_of_a_name_reaches_a_terminal(told: str) -> None:
    for arguments in (("threads",), ("show", "\x1b[2Jodd\n"), ("tree", "\x1b[2Jodd\n"), ("stats",)):
        shown = on_terminal(told, *arguments, COLUMNS="200", NO_COLOR="1")
        assert "\x1b[2J" not in shown
        assert "\x1b[31m" not in shown


def test_progress_is_for_terminals(told: str) -> None:
    assert "\r1 threads" in on_terminal(told, "stats", "--json")
    assert run("stats", "--json", url=told).err == ""


def test_a_long_line_is_cut_unless_all_of_it_is_asked_for(dialect_url: str) -> None:
    with SQLAlchemySaver.from_url(dialect_url) as saver:
        put(saver, 1, None, {"text": "x" * 1000, "items": list(range(100))})
        put(saver, 2, 1, {"text": "y" * 1000, "items": list(range(200))})
    for command in ("show", "diff"):
        short = run(command, THREAD, url=dialect_url).out
        assert "more lines: --full" in short
        assert max(map(len, short.splitlines())) < 220
        full = run(command, THREAD, "--full", url=dialect_url).out
        assert "y" * 1000 in full
        assert "--full" not in full


def values_of(document: dict[str, Any]) -> Any:
    return document["values"]


def test_no_code_of_the_application_is_needed(dialect_url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "import dataclasses\n@dataclasses.dataclass\nclass Order:\n    number: int\n"
    )
    program = (
        "from cpstore import SQLAlchemySaver; import shop; from tests.looked_at import put; import os\n"
        "with SQLAlchemySaver.from_url(os.environ['URL']) as saver:\n"
        "    put(saver, 1, None, {'order': shop.Order(7)})\n"
    )
    path = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "URL": dialect_url}
    subprocess.run([sys.executable, "-c", program], env={**os.environ, **path}, check=True)
    found = json.loads(run("show", THREAD, "--json", url=dialect_url).out)
    assert values_of(found) == {"order": {"$type": "shop.Order", "number": 7}}
