"""Two indexes on checkpoints: by run, and by time over all threads.

Revision: 0002, after 0001
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import conv

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

INDEXES = ("checkpoints_run_id_idx", "checkpoints_checkpoint_id_idx")
"""What may have been built beforehand, while the tables were in use."""


def upgrade() -> None:
    context = op.get_context()
    names, there = context.opts["names"], _there()
    on_postgresql = context.dialect.name == "postgresql"
    run_id = "(metadata ->> 'run_id')" if on_postgresql else "json_extract(metadata, '$.run_id')"
    columns: list[list[Any]] = [[sa.text(run_id)], ["checkpoint_id", "thread_id", "checkpoint_ns"]]
    for name, indexed in zip(INDEXES, columns, strict=True):
        if names.of(name) not in there:
            op.create_index(conv(names.of(name)), names.of("checkpoints"), indexed, schema=names.schema)


def downgrade() -> None:
    names = op.get_context().opts["names"]
    for name in INDEXES[::-1]:
        op.drop_index(names.of(name), table_name=names.of("checkpoints"), schema=names.schema)


def _there() -> set[str | None]:
    """Looked up rather than said by IF NOT EXISTS, which locks writers out before it looks."""
    context, names = op.get_context(), op.get_context().opts["names"]
    if context.as_sql:
        return set()
    if context.dialect.name == "postgresql":
        found = sa.inspect(op.get_bind()).get_indexes(names.of("checkpoints"), schema=names.schema)
        return {index["name"] for index in found}
    # SQLAlchemy does not see SQLite's indexes on expressions.
    quote = context.dialect.identifier_preparer.quote
    schema = "" if names.schema is None else f"{quote(names.schema)}."
    listed = op.get_bind().exec_driver_sql(f"PRAGMA {schema}index_list({quote(names.of('checkpoints'))})")
    return {row[1] for row in listed}
