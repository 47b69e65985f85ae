"""Add the golden databases of the newest revision."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, create_engine, inspect, text

from cpstore import SQLAlchemySaver, migrations
from tests import postgres
from tests.tour import put

FOLDER = Path(__file__).parent
ROOT: Any = {"configurable": {"thread_id": "golden", "checkpoint_ns": ""}}


async def fill(saver: SQLAlchemySaver) -> None:
    """Three checkpoints in a row, writes, and a namespace."""
    at = ROOT
    for step in range(3):
        at = await put(saver, at, step, "word")
        await saver.aput_writes(at, [("log", [step]), ("__error__", "e")], f"task {step}", "path")
    await put(saver, {"configurable": {"thread_id": "golden", "checkpoint_ns": "node:1"}}, 0, "inner")


def make_sqlite(revision: str, target: Path) -> None:
    """Make the file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "golden.db"
        engine = create_engine(f"sqlite:///{path}")
        migrations.upgrade(engine, revision)
        asyncio.run(fill(SQLAlchemySaver(engine)))
        engine.dispose()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        shutil.copyfile(path, target)


def make_postgresql(revision: str, target: Path) -> None:
    """Make the script: the tables as the migration's own SQL has them, and the rows."""
    with postgres.server() as server, postgres.temporary_database(server.url) as url:
        engine = create_engine(url)
        migrations.upgrade(engine, revision)
        asyncio.run(fill(SQLAlchemySaver(engine)))
        with engine.connect() as connection:
            rows = "\n".join(statements(connection))
        engine.dispose()
    target.write_text(f"{migrations.sql('postgresql://', revision)}\n{rows}\n")


def statements(connection: Connection) -> list[str]:
    """An INSERT for each row, written by the server."""
    made = []
    for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
        columns = [column["name"] for column in inspect(connection).get_columns(table)]
        values = " || ', ' || ".join(f"quote_nullable({column})" for column in columns)
        query = f"SELECT 'INSERT INTO {table} VALUES (' || {values} || ');' FROM {table} ORDER BY 1"
        made += list(connection.execute(text(query)).scalars())
    return made


if __name__ == "__main__":
    revision_ = sys.argv[1] if len(sys.argv) > 1 else migrations.head()
    for name, make in (("sqlite", make_sqlite), ("postgresql.sql", make_postgresql)):
        file = FOLDER / f"{revision_}.{name}"
        if not file.exists():
            make(revision_, file)
