"""Commands as a shell runs them: their exit code, what they print, what they say beside it."""

from __future__ import annotations

from typing import NamedTuple

from click.testing import CliRunner

from cpstore.cli import main


class Told(NamedTuple):
    """What a command told."""

    code: int
    out: str
    err: str


def run(
    *arguments: str, url: str | None = None, answer: str | bytes | None = None, **environment: str
) -> Told:
    """Run a command on a database; `answer` is its stdin."""
    given = {} if url is None else {"CPSTORE_DATABASE_URL": url}
    result = CliRunner().invoke(main, arguments, env=given | environment, input=answer)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Told(result.exit_code, result.stdout, result.stderr)


def refusal(*arguments: str, url: str | None = None, **environment: str) -> str:
    """The one line that a command refuses with."""
    told = run(*arguments, url=url, **environment)
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith("Error: ")
    assert told.err.count("\n") == 1
    return told.err
