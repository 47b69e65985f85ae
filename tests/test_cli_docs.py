"""docs/cli.md: each command has its entry with its options, and the outputs there are true.

`CPSTORE_GOLDEN=write` writes the outputs anew, except those that leave something out (`…`).
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from cpstore import SQLAlchemySaver
from cpstore.cli import main
from tests.commands import run
from tests.looked_at import tell

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EVERYWHERE = {"--url", "--schema", "--prefix", "--pooler", "--help", "--json", "--jsonl"}
COMMON = {"--url", "--schema", "--prefix"}


def commands(group: click.Group = main, path: str = "cpstore") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


NAMES = dict(commands())


def entries() -> dict[str, str]:
    """The text below each heading of a command."""
    parts = re.split(r"^### (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_each_command_has_an_entry_and_each_entry_a_command() -> None:
    documented = [re.match(r"cpstore( [a-z]+)+", head)[0] for head in entries()]  # type: ignore[index]
    assert sorted(documented) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_tells_each_option_and_has_an_example(name: str) -> None:
    (text,) = (text for head, text in entries().items() if re.match(rf"{name}(?! ?[a-z])", head))
    options = [
        option for each in NAMES[name].params if isinstance(each, click.Option) for option in each.opts
    ]
    missing = [
        option
        for option in options
        if option.startswith("--") and option not in EVERYWHERE and option not in text
    ]
    assert missing in ([], ["--output"], ["--from-schema", "--from-prefix", "--to-schema", "--to-prefix"])
    assert re.search(r"^\$? ?cpstore ", text, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_each_command_says_where(name: str) -> None:
    options = {option for each in NAMES[name].params for option in each.opts}
    if name not in ("cpstore transfer", "cpstore db grants", "cpstore db adopt"):
        assert options >= COMMON


@pytest.mark.parametrize("name", NAMES)
def test_help_is_there(name: str) -> None:
    told = run(*name.split()[1:], "--help")
    assert told.code == 0
    assert NAMES[name].help


READS = "threads history show diff tree writes stats|db current|db check|db wait|db doctor"


@pytest.mark.parametrize("name", [*READS.split("|")[0].split(), *READS.split("|")[1:]])
def test_each_read_has_both_forms(name: str) -> None:
    options = {option for each in NAMES[f"cpstore {name}"].params for option in each.opts}
    assert {"--json", "--jsonl"} <= options


@pytest.mark.parametrize("name", ["delete", "prune", "gc", "db downgrade"])
def test_what_destroys_can_be_tried(name: str) -> None:
    options = {option for each in NAMES[f"cpstore {name}"].params for option in each.opts}
    assert {"--dry-run", "--yes"} <= options


def test_the_outputs_are_true(sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chat.db").write_bytes(sqlite_template.read_bytes())
    monkeypatch.setenv("CPSTORE_DATABASE_URL", "sqlite:///chat.db")
    with SQLAlchemySaver.from_url("sqlite:///chat.db") as saver:
        tell(saver)
        saver.delete_thread("\x1b[2Jodd\n")
    page = PAGE.read_text(encoding="utf-8")
    true = BLOCK.sub(lambda block: f"```console\n{_ran(block[1])}```", page)
    if os.environ.get("CPSTORE_GOLDEN") == "write":
        PAGE.write_text(true, encoding="utf-8")
    assert true == PAGE.read_text(encoding="utf-8")


def _ran(block: str) -> str:
    """A block with the outputs of its commands; or as it is, if it leaves lines out and is true."""
    calls = re.findall(r"^\$ cpstore (.*)$", block, re.MULTILINE)
    outputs = [CliRunner().invoke(main, shlex.split(call)).output for call in calls]
    told = "".join(f"$ cpstore {call}\n{output}" for call, output in zip(calls, outputs, strict=True))
    pattern = re.escape(block).replace(re.escape("…\n"), "(?:.*\n)*")
    return block if "\n…\n" in block and re.fullmatch(pattern, told) else told
