"""How a PostgreSQL database fares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, column, func, select, table
from sqlalchemy.dialects.postgresql import dialect

from cpstore.dialects.health import Finding, Health

__all__ = ["RIGHTS", "PostgreSQLHealth", "is_whole", "quoted"]

RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE",
    "SELECT, INSERT, DELETE",
    "SELECT, INSERT, UPDATE, DELETE",
    "SELECT",
)
"""What an application does with checkpoints, blobs, writes, and the version table."""

_OLDEST = 130000
_DURABLE = ("fsync", "full_page_writes", "synchronous_commit")


class PostgreSQLHealth(Health):
    """Asks PostgreSQL's own functions and catalogues."""

    def settings(self, connection: Connection) -> Iterator[Finding]:
        """Look at the version, the encoding, and the settings that a crash depends on."""
        version, number = _setting(connection, "server_version"), _setting(connection, "server_version_num")
        old = "cpstore needs PostgreSQL 13 or newer." if int(number) < _OLDEST else None
        yield Finding("PostgreSQL", version, old)
        replica = connection.execute(select(func.pg_is_in_recovery())).scalar_one()
        yield Finding("replica", "yes" if replica else "no")
        encoding = _setting(connection, "server_encoding")
        other = None if encoding == "UTF8" else "Texts that the encoding lacks are refused: use UTF8."
        yield Finding("encoding", encoding, other)
        for name in _DURABLE:
            value = _setting(connection, name)
            lost = "A crash may lose what was saved: turn it on." if value == "off" else None
            yield Finding(name, value, lost)

    def relations(self, connection: Connection) -> Iterator[Finding]:
        """Look at sizes with indexes, and whether each index is there and whole."""
        for each in self.tables:
            place = func.to_regclass(quoted(each.name, each.schema))
            size = connection.execute(select(func.pg_total_relation_size(place))).scalar()
            if size is not None:
                yield Finding(f"table {each.name}", f"{size} bytes")
            for index in sorted(each.indexes, key=lambda one: str(one.name)):
                whole = connection.execute(is_whole(quoted(index.name, each.schema))).scalar()
                missing = "It is missing, or half built: run `cpstore db upgrade`, or build it by hand."
                value = {None: "missing", False: "half built", True: "whole"}[whole]
                yield Finding(f"index {index.name}", value, None if whole else missing)

    def rights(self, connection: Connection, version_table: str) -> Iterator[Finding]:
        """Look at the rights of the role on each table."""
        role = str(connection.execute(select(func.current_user())).scalar_one())
        yield Finding("role", role)
        schema = self.tables.checkpoints.schema
        names = [*(each.name for each in self.tables), version_table]
        for name, needed in zip(names, RIGHTS, strict=True):
            place = func.to_regclass(quoted(name, schema))
            asked = [func.has_table_privilege(place, right) for right in needed.split(", ")]
            found = zip(needed.split(", "), connection.execute(select(*asked)).one(), strict=True)
            lacking = [right for right, is_there in found if not is_there]
            told = f"To save checkpoints it needs {', '.join(lacking)}: see `cpstore db grants --role …`."
            yield Finding(f"rights on {name}", needed, told if lacking else None)


def _setting(connection: Connection, name: str) -> str:
    return str(connection.execute(select(func.current_setting(name))).scalar_one())


def quoted(name: Any, schema: str | None = None) -> str:
    """Give a name as SQL has it."""
    database: Any = dialect
    quote = database().identifier_preparer.quote
    return str(quote(name)) if schema is None else f"{quote(schema)}.{quote(name)}"


def is_whole(name: str) -> Any:
    """Give the select that tells whether an index can be used; nothing if there is none."""
    indexes = table("pg_index", column("indisvalid"), column("indexrelid"))
    return select(indexes.c.indisvalid).where(indexes.c.indexrelid == func.to_regclass(name))
