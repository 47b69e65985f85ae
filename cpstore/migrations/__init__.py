"""The migrations of cpstore's tables: what a database has, and the way to the newest revision.

The only room that imports Alembic. All of it works on a database URL, on an application's engine, or on a
connection with an open transaction: then all that is done rolls back with it. Where a database has its tables
is said by `schema` and `prefix`, as in :class:`~cpstore.SQLAlchemySaver`; a `schema_translate_map` of the
engine is followed.
"""

from __future__ import annotations

from cpstore.migrations.health import Finding, aexamine, examine
from cpstore.migrations.scripts import config, head, include_name, scripts
from cpstore.migrations.sql import grants, sql
from cpstore.migrations.status import State, Status
from cpstore.migrations.steps import take_turn
from cpstore.migrations.views import views_sql
from cpstore.migrations.waiting import wait_for
from cpstore.migrations.ways import (
    aadopt,
    acheck,
    acreate_views,
    acurrent,
    adopt,
    adowngrade,
    adrop_views,
    amigrate,
    astamp,
    aupgrade,
    check,
    create_views,
    current,
    downgrade,
    drop_views,
    explain,
    migrate,
    stamp,
    upgrade,
)

__all__ = [
    "Finding",
    "State",
    "Status",
    "aadopt",
    "acheck",
    "acreate_views",
    "acurrent",
    "adopt",
    "adowngrade",
    "adrop_views",
    "aexamine",
    "amigrate",
    "astamp",
    "aupgrade",
    "check",
    "config",
    "create_views",
    "current",
    "downgrade",
    "drop_views",
    "examine",
    "explain",
    "grants",
    "head",
    "include_name",
    "migrate",
    "scripts",
    "sql",
    "stamp",
    "take_turn",
    "upgrade",
    "views_sql",
    "wait_for",
]
