"""For the `env.py` of an application whose database has cpstore's tables beside its own.

With one of these two, the application's autogenerate sees neither our tables nor our version table::

    context.configure(…, include_name=cpstore.alembic.include_name())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cpstore.models import models_of
from cpstore.names import Names, names_of

__all__ = ["include_name", "include_object"]

IncludeName = Callable[[Any, Any, Any], bool]
IncludeObject = Callable[[Any, Any, Any, bool, Any], bool]

_OFFICIAL = "checkpoint_migrations"
"""What langgraph-checkpoint-postgres leaves beside tables that were adopted."""


def include_name(
    *, schema: str | None = None, prefix: str = "", also: IncludeName | None = None
) -> IncludeName:
    """Give an `include_name` that leaves out what is cpstore's.

    Args:
        schema: The schema of cpstore's tables, as the saver was given it.
        prefix: The prefix of their names, as the saver was given it.
        also: The application's own `include_name`; it is asked about everything else.
    """
    names = names_of(schema, prefix)
    ours = _ours(names)

    def included(name: Any, kind: Any, parents: Any) -> bool:
        if kind == "table" and name in ours and parents.get("schema_name") == names.schema:
            return False
        return also is None or also(name, kind, parents)

    return included


def include_object(
    *, schema: str | None = None, prefix: str = "", also: IncludeObject | None = None
) -> IncludeObject:
    """Give an `include_object` that leaves out what is cpstore's.

    Args:
        schema: The schema of cpstore's tables, as the saver was given it.
        prefix: The prefix of their names, as the saver was given it.
        also: The application's own `include_object`; it is asked about everything else.
    """
    names = names_of(schema, prefix)
    ours = _ours(names)

    def included(item: Any, name: Any, kind: Any, reflected: bool, compare_to: Any) -> bool:
        if kind == "table" and name in ours and item.schema == names.schema:
            return False
        return also is None or also(item, name, kind, reflected, compare_to)

    return included


def _ours(names: Names) -> set[str]:
    official = set() if names.prefix else {_OFFICIAL}
    return {table.name for table in models_of(names).tables} | {names.version_table} | official
