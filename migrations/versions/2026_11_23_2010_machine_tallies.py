"""Tallies of machines

How many attempts each machine made and when the last ended, so that nobody counts them; and an index that holds all
that is told of what machines did lately, so that no row of an attempt is read for it.
"""

import sqlalchemy as sa
from alembic import op

revision = "d3f07a915c62"
down_revision = "c94b1d27fe30"
branch_labels = None
depends_on = None

_INDEX = "ix_attempts_by_machine"
_BEFORE = ["machine", "hardware", "origin", "finished_at"]


def upgrade() -> None:
    op.create_table(
        "machine_tallies",
        sa.Column("machine", sa.String(length=32), nullable=False),
        sa.Column("hardware", sa.String(length=40), nullable=False),
        sa.Column("origin", sa.String(length=100), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("machine", "hardware", "origin", name=op.f("pk_machine_tallies")),
    )
    op.execute(
        "INSERT INTO machine_tallies (machine, hardware, origin, attempts, last_at) "
        "SELECT machine, hardware, origin, count(*), max(finished_at) FROM attempts "
        "WHERE machine <> '' GROUP BY machine, hardware, origin"
    )
    op.drop_index(_INDEX, table_name="attempts")
    op.create_index(_INDEX, "attempts", [*_BEFORE, "started_at", "issue", "build"], unique=False)


def downgrade() -> None:
    op.drop_index(_INDEX, table_name="attempts")
    op.create_index(_INDEX, "attempts", _BEFORE, unique=False)
    op.drop_table("machine_tallies")
