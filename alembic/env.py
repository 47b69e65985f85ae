"""Alembic's environment for cpstore's tables.

Three ways lead here: `cpstore.migrations` hands over a connection; `alembic upgrade head` in the repository
takes the URL from `-x url=…`, else from CPSTORE_DATABASE_URL, else from the config's `sqlalchemy.url`; with
`--sql` the URL only chooses the database that SQL is written for.
"""

from __future__ import annotations

import asyncio
import os
import warnings

from alembic import context
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import engines, migrations
from cpstore.models import Base

# SQLite cannot tell what an index on an expression holds, so `alembic check` leaves ours out there.
warnings.filterwarnings("ignore", ".*expression-based index '?checkpoints_run_id_idx")


def url() -> str:
    given = context.get_x_argument(as_dictionary=True).get("url")
    found = (
        given or os.environ.get("CPSTORE_DATABASE_URL") or context.config.get_alembic_option("sqlalchemy.url")
    )
    if not found:
        raise SystemExit("Which database? Pass -x url=sqlite:///chat.db, or set CPSTORE_DATABASE_URL.")
    return found


def run(connection: Connection | None, **options: object) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        version_table=migrations.VERSION_TABLE,
        include_name=migrations.include_name,
        **options,  # type: ignore[arg-type]
    )
    with context.begin_transaction():
        context.run_migrations()


def run_in_turn(connection: Connection) -> None:
    migrations.take_turn(connection)
    run(connection)


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
elif (handed_over := context.config.attributes.get("connection")) is not None:
    run(handed_over)
else:
    run_online()
