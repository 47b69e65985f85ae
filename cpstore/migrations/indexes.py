"""Indexes for tables that are in use: built beforehand, without a transaction, while writers go on.

The script that adds an index then finds it there. Where a database cannot do that, the script builds it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, MetaData
from sqlalchemy.pool import QueuePool

from cpstore.migrations.scripts import revisions_after
from cpstore.migrations.status import State, placed, status_of
from cpstore.migrations.steps import speak
from cpstore.models import models_of
from cpstore.names import Names

__all__ = ["build", "gives_two", "wanted"]


def gives_two(pool: object) -> bool:
    """Tell whether a pool can give two connections: one holds the turn while the other one builds."""
    return not isinstance(pool, QueuePool) or pool._max_overflow < 0 or pool.size() + pool._max_overflow > 1


def wanted(connection: Connection, names: Names) -> bool:
    """Tell whether a database has tables in use and would get an index on them."""
    if not speak(connection.dialect.name, names).builds_indexes_online:
        return False
    status = status_of(connection, names)
    return status.state is State.BEHIND and any(_names_of(status.revision))


def build(connection: Connection, names: Names) -> None:
    """Build what the scripts to come would build, one after the other, on a connection in autocommit."""
    names = placed(connection, names)
    table = models_of(names).tables.checkpoints.to_metadata(MetaData())
    indexes = {str(index.name): index for index in table.indexes}
    for name in _names_of(status_of(connection, names).revision):
        speak(connection.dialect.name, names).build_index(connection, indexes[names.of(name)])


def _names_of(revision: str | None) -> Iterator[str]:
    for script in revisions_after(revision):
        yield from getattr(script.module, "INDEXES", ())
