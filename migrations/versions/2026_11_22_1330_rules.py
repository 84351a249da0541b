"""The rules that stored verdicts were derived by

A store of an older release holds verdicts of its rules; whoever opens it next derives them anew.
"""

from alembic import op

revision = "a51c7e60d8b2"
down_revision = "8e52d1f07ac4"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # An empty store holds nothing that older rules made.
    op.execute(
        "INSERT INTO meta (name, value) SELECT 'rules', CASE WHEN EXISTS (SELECT 1 FROM cells) THEN 1 ELSE 2 END"
    )


def downgrade() -> None:
    """Verdicts of these rules stay until `knowngood reclassify` of the older release."""
    op.execute("DELETE FROM meta WHERE name = 'rules'")
