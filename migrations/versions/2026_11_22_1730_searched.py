"""What looking for signatures came to

It is kept beside the attempt, so that no page looks for one in a stranger's text. Cells are derived anew once, which
fills it in.
"""

import sqlalchemy as sa
from alembic import op

revision = "c94b1d27fe30"
down_revision = "a51c7e60d8b2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("attempts", sa.Column("searched", sa.Text(), nullable=True))


def downgrade() -> None:
    op.execute("UPDATE meta SET value = 2 WHERE name = 'rules'")
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_column("searched")
