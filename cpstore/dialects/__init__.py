"""The databases that cpstore speaks. Besides the models, the only place that names one."""

from __future__ import annotations

from functools import cache

from cpstore.dialects.at_once import BYTES
from cpstore.dialects.base import Dialect, Mode, Step
from cpstore.dialects.health import Finding
from cpstore.dialects.postgresql import PostgreSQL
from cpstore.dialects.sqlite import SQLite
from cpstore.dialects.views import CreateView, DropView, View, views_of
from cpstore.errors import UnsupportedDatabaseError
from cpstore.models import Tables

__all__ = [
    "BYTES",
    "CreateView",
    "Dialect",
    "DropView",
    "Finding",
    "Mode",
    "PostgreSQL",
    "Step",
    "View",
    "dialect_for",
    "views_of",
]

_DIALECTS: dict[str, type[Dialect]] = {kind.name: kind for kind in (PostgreSQL, SQLite)}


@cache
def dialect_for(name: str, tables: Tables) -> Dialect:
    """Give the dialect for SQLAlchemy's name of one, such as `sqlite` or `postgresql`.

    It is made once for the same tables, so that all savers on them share their built statements.

    Raises:
        UnsupportedDatabaseError: It is another one.
    """
    if name not in _DIALECTS:
        raise UnsupportedDatabaseError
    return _DIALECTS[name](tables)
