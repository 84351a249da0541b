"""Newest attempts

An index that leads to the newest attempt of each arm, so that what an arm takes is told without reading every attempt.
"""

import sqlalchemy as sa
from alembic import op

revision = "7b2e90c4d815"
down_revision = "d3f07a915c62"
branch_labels = None
depends_on = None

_INDEX = "ix_attempts_newest"
_RAN = sa.text("counts_as <> 'env_error'")


def upgrade() -> None:
    columns = ["issue", "arm", "variant", "finished_at"]
    op.create_index(_INDEX, "attempts", columns, unique=False, sqlite_where=_RAN, postgresql_where=_RAN)


def downgrade() -> None:
    op.drop_index(_INDEX, table_name="attempts", sqlite_where=_RAN, postgresql_where=_RAN)
