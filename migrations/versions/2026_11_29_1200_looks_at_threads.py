"""Looks at threads

What upstream's API says of an issue's threads, beside what its row says: the row stays as it was written.
"""

import sqlalchemy as sa
from alembic import op

revision = "5f0d83a9c1e6"
down_revision = "a4c81e60b7d2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("issues", sa.Column("looks", sa.Text(), nullable=False, server_default=sa.text("''")))


def downgrade() -> None:
    # Not in a batch: that drops the table on SQLite, which other tables refer to.
    op.drop_column("issues", "looks")
