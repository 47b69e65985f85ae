"""The application's Alembic environment; the database is the one that HOST_DATABASE_URL names."""

from __future__ import annotations

import os

from alembic import context
from sqlalchemy import NullPool, create_engine

from cpstore.alembic import include_name
from tests.host.models import Base

engine = create_engine(os.environ["HOST_DATABASE_URL"], poolclass=NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, include_name=include_name())
    with context.begin_transaction():
        context.run_migrations()
