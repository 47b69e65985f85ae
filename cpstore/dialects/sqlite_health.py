"""How an SQLite database fares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Integer, Select, cast, column, func, select, table
from sqlalchemy.exc import DBAPIError

from cpstore.dialects.health import Finding, Health

__all__ = ["SQLiteHealth"]

_OLDEST = (3, 35)
_MEMORY = "in memory"


class SQLiteHealth(Health):
    """Asks SQLite's pragmas and catalogues."""

    def settings(self, connection: Connection) -> Iterator[Finding]:
        """Look at the version, the journal, and the size of the file."""
        version = str(connection.execute(select(func.sqlite_version())).scalar_one())
        old = tuple(map(int, version.split(".")[:2])) < _OLDEST
        yield Finding("SQLite", version, "cpstore needs SQLite 3.35 or newer." if old else None)
        journal = str(_pragma(connection, "journal_mode"))
        slow = (
            "Readers and writers wait for each other: `PRAGMA journal_mode = WAL` once, or open the file with"
            " a saver made from a URL."
        )
        yield Finding("journal_mode", journal, None if journal in ("wal", "memory") else slow)
        page = int(_pragma(connection, "page_size"))
        yield Finding("size", f"{page * int(_pragma(connection, 'page_count'))} bytes")
        yield Finding("free space in it", f"{page * int(_pragma(connection, 'freelist_count'))} bytes")

    def relations(self, connection: Connection) -> Iterator[Finding]:
        """Look at the sizes of the tables, where SQLite was built to tell, and at the indexes."""
        catalogue = table("sqlite_master", column("name"), schema=self.tables.checkpoints.schema)
        there = set(connection.execute(select(catalogue.c.name)).scalars())
        for each in self.tables:
            if each.name in there:
                yield Finding(f"table {each.name}", _size(connection, each.name))
            for index in sorted(each.indexes, key=lambda one: str(one.name)):
                told = "It is missing: run `cpstore db upgrade`, or build it by hand."
                is_there = index.name in there
                value = "whole" if is_there else "missing"
                yield Finding(f"index {index.name}", value, None if is_there else told)

    def rights(self, connection: Connection, version_table: str) -> Iterator[Finding]:
        """Look at whether the file may be written, and its folder, where the log is."""
        listed = connection.exec_driver_sql("PRAGMA database_list").all()
        file = next((row[2] for row in listed if row[1] == "main"), "") or _MEMORY
        writable = file == _MEMORY or all(os.access(one, os.W_OK) for one in (file, os.path.dirname(file)))
        told = "Nothing can be saved: make the file and its folder writable for this user."
        yield Finding("file", file, None if writable else told)


def _pragma(connection: Connection, name: str) -> Any:
    return connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()


def _size(connection: Connection, name: str) -> str:
    pages = table("dbstat", column("name"), column("pgsize", Integer()))
    try:
        size = connection.execute(_sum(pages).where(pages.c.name == name)).scalar_one()
    except DBAPIError:  # SQLite was built without it
        return "there"
    return f"{size} bytes"


def _sum(pages: Any) -> Select[Any]:
    return select(cast(func.coalesce(func.sum(pages.c.pgsize), 0), Integer()))
