"""The three tables: checkpoints, blobs and writes, as langgraph-checkpoint-postgres has them.

Revision: 0001, the first. A database of that package is adopted at this revision.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import conv

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

VIEWS = ("cpstore_threads", "cpstore_checkpoints")


def _text() -> sa.Text:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _json() -> sa.Text:
    return sa.Text().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    names = op.get_context().opts["names"]
    op.create_table(
        names.of("checkpoints"),
        sa.Column("thread_id", _text(), nullable=False),
        sa.Column("checkpoint_ns", _text(), server_default="", nullable=False),
        sa.Column("checkpoint_id", _text(), nullable=False),
        sa.Column("parent_checkpoint_id", _text()),
        sa.Column("type", _text()),
        sa.Column("checkpoint", _json(), nullable=False),
        sa.Column("metadata", _json(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint(
            "thread_id", "checkpoint_ns", "checkpoint_id", name=conv(names.of("checkpoints_pkey"))
        ),
        schema=names.schema,
    )
    op.create_table(
        names.of("checkpoint_blobs"),
        sa.Column("thread_id", _text(), nullable=False),
        sa.Column("checkpoint_ns", _text(), server_default="", nullable=False),
        sa.Column("channel", _text(), nullable=False),
        sa.Column("version", _text(), nullable=False),
        sa.Column("type", _text(), nullable=False),
        sa.Column("blob", sa.LargeBinary()),
        sa.PrimaryKeyConstraint(
            "thread_id",
            "checkpoint_ns",
            "channel",
            "version",
            name=conv(names.of("checkpoint_blobs_pkey")),
        ),
        schema=names.schema,
    )
    op.create_table(
        names.of("checkpoint_writes"),
        sa.Column("thread_id", _text(), nullable=False),
        sa.Column("checkpoint_ns", _text(), server_default="", nullable=False),
        sa.Column("checkpoint_id", _text(), nullable=False),
        sa.Column("task_id", _text(), nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("channel", _text(), nullable=False),
        sa.Column("type", _text()),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.Column("task_path", _text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint(
            "thread_id",
            "checkpoint_ns",
            "checkpoint_id",
            "task_id",
            "idx",
            name=conv(names.of("checkpoint_writes_pkey")),
        ),
        schema=names.schema,
    )


def downgrade() -> None:
    names = op.get_context().opts["names"]
    _drop_views(names)
    for table in ("checkpoint_writes", "checkpoint_blobs", "checkpoints"):
        op.drop_table(names.of(table), schema=names.schema)


def _drop_views(names: Any) -> None:
    """The views that `cpstore db views` makes read the tables: PostgreSQL drops no table before them."""
    context = op.get_context()
    there = None if context.as_sql else sa.inspect(op.get_bind()).get_view_names(schema=names.schema)
    quote = context.dialect.identifier_preparer.quote
    schema = "" if names.schema is None else f"{quote(names.schema)}."
    for view in map(names.of, VIEWS):
        if there is None or view in there:
            op.execute(f"DROP VIEW IF EXISTS {schema}{quote(view)}")
