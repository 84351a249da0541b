"""${message}

A migration changes tables only, runs both ways, and comes with its test. On SQLite a table is rebuilt inside
`with op.batch_alter_table(...)`; write `op.create_index` outside of it.
"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
