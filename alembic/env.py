"""Alembic's environment for cpstore's tables.

Three ways lead here: `cpstore.migrations` hands over a connection; `alembic upgrade head` in the repository
takes the URL from `-x url=…`, else from CPSTORE_DATABASE_URL, else from the config's `sqlalchemy.url`, and
where the tables are from `-x schema=…` and `-x prefix=…`; with `--sql` the URL only chooses the database that
SQL is written for.
"""

from __future__ import annotations

import asyncio
import os
import warnings

from alembic import context
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import engines, migrations
from cpstore.dialects import dialect_for
from cpstore.models import models_of
from cpstore.names import Names, names_of

# SQLite cannot tell what an index on an expression holds, so `alembic check` leaves ours out there.
warnings.filterwarnings("ignore", ".*expression-based index '?.*checkpoints_run_id_idx")


GIVEN = context.config.attributes
X = context.get_x_argument(as_dictionary=True)
NAMES: Names = GIVEN.get("names") or names_of(X.get("schema"), X.get("prefix", ""))


def url() -> str:
    found = (
        GIVEN.get("url")
        or X.get("url")
        or os.environ.get("CPSTORE_DATABASE_URL")
        or context.config.get_alembic_option("sqlalchemy.url")
    )
    if not found:
        raise SystemExit("Which database? Pass -x url=sqlite:///chat.db, or set CPSTORE_DATABASE_URL.")
    return str(found)


def run(connection: Connection | None, **options: object) -> None:
    context.configure(
        connection=connection,
        target_metadata=models_of(NAMES).tables.checkpoints.metadata,
        version_table=NAMES.version_table,
        version_table_schema=NAMES.schema,
        include_schemas=NAMES.schema is not None,
        include_name=migrations.include_name(NAMES),
        names=NAMES,
        **options,  # type: ignore[arg-type]
    )
    with context.begin_transaction():
        context.run_migrations()


def run_in_turn(connection: Connection) -> None:
    migrations.take_turn(connection, NAMES)
    dialect_for(connection.dialect.name, models_of(NAMES).tables).make_schema(connection)
    before = migrations.views.there(connection, NAMES)
    run(connection)
    migrations.views.restore_on(connection, NAMES, before)


async def run_async(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.run_sync(run_in_turn)
    await engine.dispose()


def run_online() -> None:
    sync, asynchronous = engines.from_url(url(), pooler=True)
    if sync is not None:
        with sync.begin() as connection:
            run_in_turn(connection)
        sync.dispose()
    elif asynchronous is not None:
        asyncio.run(run_async(asynchronous))


if context.is_offline_mode():
    run(None, url=engines.normalise(url()), literal_binds=True)
elif (handed_over := GIVEN.get("connection")) is not None:
    run(handed_over)
else:
    run_online()
