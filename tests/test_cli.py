"""The command line, on both databases and through every driver."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from cpstore import migrations
from cpstore.cli import main


def run(*arguments: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments, env=environment)
    return result.exit_code, result.output


def test_upgrade_and_current(empty_database_url: str) -> None:
    assert run("db", "current", "--url", empty_database_url) == (
        0,
        f"not migrated (newest is {migrations.head()})\n",
    )
    newest = f"{migrations.head()} (newest)\n"
    assert run("db", "upgrade", "--url", empty_database_url) == (0, newest)
    assert run("db", "upgrade", CPSTORE_DATABASE_URL=empty_database_url) == (0, newest)
    assert run("db", "current", "--url", empty_database_url) == (0, newest)


@pytest.mark.parametrize("url", ["mysql://user:secret@host/name", "not a url"])
def test_errors_are_one_line_without_passwords(url: str) -> None:
    code, output = run("db", "upgrade", "--url", url)
    assert code == 1
    assert output.startswith("Error: ")
    assert output.count("\n") == 1
    assert "secret" not in output


def test_a_missing_url_is_a_usage_error() -> None:
    code, output = run("db", "upgrade", CPSTORE_DATABASE_URL="")
    assert code == 2
    assert "CPSTORE_DATABASE_URL" in output
