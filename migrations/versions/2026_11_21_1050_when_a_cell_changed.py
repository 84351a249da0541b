"""When a cell changed

The generation of the store that each cell was written in. Cells from before have 0: whoever knows none reads them all.
"""

import sqlalchemy as sa
from alembic import op

revision = "7c1e4b9a20d3"
down_revision = "102a5e28119e"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("cells", schema=None) as batch_op:
        batch_op.add_column(sa.Column("changed", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_index(op.f("ix_cells_changed"), "cells", ["changed"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_cells_changed"), table_name="cells")
    with op.batch_alter_table("cells", schema=None) as batch_op:
        batch_op.drop_column("changed")
