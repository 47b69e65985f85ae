"""When a conversation began, and what its turns cost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "a2"
down_revision = "a1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("conversations") as table:
        table.add_column(
            sa.Column("created", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False)
        )
    op.create_table(
        "turns",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name=op.f("fk_turns_conversation_id_conversations")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turns")),
    )


def downgrade() -> None:
    op.drop_table("turns")
    with op.batch_alter_table("conversations") as table:
        table.drop_column("created")
