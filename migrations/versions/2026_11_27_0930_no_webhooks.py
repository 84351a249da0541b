"""No webhooks

Webhooks are gone. Their addresses are written to the log, so that whoever ran them can say what to follow instead.
"""

import logging

import sqlalchemy as sa
from alembic import op

revision = "a4c81e60b7d2"
down_revision = "7b2e90c4d815"
branch_labels = None
depends_on = None


def upgrade() -> None:
    hooks = sa.table("webhooks", sa.column("id"), sa.column("url"), sa.column("watch"), sa.column("ended_at"))
    for hook in op.get_bind().execute(sa.select(hooks).where(hooks.c.ended_at.is_(None)).order_by(hooks.c.id)):
        logging.getLogger(__name__).warning(
            "webhooks are gone; this address is sent nothing more",
            extra={"id": hook.id, "url": hook.url, "watch": hook.watch or "all issues"},
        )
    op.drop_table("delivery_tries")
    op.drop_index(op.f("ix_deliveries_state_next_at"), table_name="deliveries")
    op.drop_table("deliveries")
    op.drop_table("webhooks")


def downgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(length=20), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.String(length=100), nullable=False),
        sa.Column("watch", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=100), nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended", sa.String(length=100), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("webhook", sa.String(length=20), nullable=False),
        sa.Column("cause", sa.String(length=100), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'delivered', 'failed')", name=op.f("ck_deliveries_state")),
        sa.ForeignKeyConstraint(
            ["webhook"], ["webhooks.id"], name=op.f("fk_deliveries_webhook_webhooks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("webhook", "cause", name=op.f("uq_deliveries_webhook_cause")),
    )
    op.create_index(op.f("ix_deliveries_state_next_at"), "deliveries", ["state", "next_at"], unique=False)
    op.create_table(
        "delivery_tries",
        sa.Column("delivery", sa.String(length=40), nullable=False),
        sa.Column("try_no", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("said", sa.String(length=300), nullable=False),
        sa.Column("took_s", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["delivery"], ["deliveries.id"], name=op.f("fk_delivery_tries_delivery_deliveries"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("delivery", "try_no", name=op.f("pk_delivery_tries")),
    )
