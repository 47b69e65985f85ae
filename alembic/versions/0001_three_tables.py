"""The three tables: checkpoints, blobs and writes.

Revision: 0001, the first
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import conv

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _text() -> sa.Text:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _json() -> sa.Text:
    return sa.Text().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("thread_id", _text(), nullable=False),
        sa.Column("checkpoint_ns", _text(), server_default="", nullable=False),
        sa.Column("checkpoint_id", _text(), nullable=False),
        sa.Column("parent_checkpoint_id", _text()),
        sa.Column("type", _text()),
        sa.Column("checkpoint", _json(), nullable=False),
        sa.Column("metadata", _json(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("thread_id", "checkpoint_ns", "checkpoint_id", name=conv("checkpoints_pkey")),
    )
    op.create_table(
        "checkpoint_blobs",
        sa.Column("thread_id", _text(), nullable=False),
        sa.Column("checkpoint_ns", _text(), server_default="", nullable=False),
        sa.Column("channel", _text(), nullable=False),
        sa.Column("version", _text(), nullable=False),
        sa.Column("type", _text(), nullable=False),
        sa.Column("blob", sa.LargeBinary()),
        sa.PrimaryKeyConstraint(
            "thread_id", "checkpoint_ns", "channel", "version", name=conv("checkpoint_blobs_pkey")
        ),
    )
    op.create_table(
        "checkpoint_writes",
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
            name=conv("checkpoint_writes_pkey"),
        ),
    )
    on_postgresql = op.get_context().dialect.name == "postgresql"
    run_id = "(metadata ->> 'run_id')" if on_postgresql else "json_extract(metadata, '$.run_id')"
    op.create_index(conv("checkpoints_run_id_idx"), "checkpoints", [sa.text(run_id)])
    op.create_index(
        conv("checkpoints_checkpoint_id_idx"), "checkpoints", ["checkpoint_id", "thread_id", "checkpoint_ns"]
    )


def downgrade() -> None:
    op.drop_index("checkpoints_checkpoint_id_idx", table_name="checkpoints")
    op.drop_index("checkpoints_run_id_idx", table_name="checkpoints")
    op.drop_table("checkpoint_writes")
    op.drop_table("checkpoint_blobs")
    op.drop_table("checkpoints")
