"""The application's Alembic environment; the database is the one that HOST_DATABASE_URL names."""

from __future__ import annotations

import os
from typing import Any

from alembic import context
from sqlalchemy import NullPool, create_engine

from cpstore import migrations
from tests.host.models import Base


def include_name(name: str | None, kind: str, parents: Any) -> bool:
    """Let autogenerate see the application's own tables only.

    TO FILL IN: `cpstore.alembic.include_name(...)`. Until then it is said here by hand.
    """
    ours = migrations.include_name(name, kind, parents) or name == migrations.VERSION_TABLE
    return kind != "table" or not ours


engine = create_engine(os.environ["HOST_DATABASE_URL"], poolclass=NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, include_name=include_name)
    with context.begin_transaction():
        context.run_migrations()
