"""Voided results

What the server says of a result (when and through which token it came in, and what keeps it from counting), who
voided which results and why, and the indexes by which a long history and a long queue are asked as quickly as short
ones.
"""

import sqlalchemy as sa
from alembic import op

revision = "8e52d1f07ac4"
down_revision = "3d90b6c2f415"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "voids",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("machine", sa.String(length=32), nullable=False),
        sa.Column("token", sa.String(length=16), nullable=False),
        sa.Column("clock", sa.String(length=16), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_by", sa.String(length=100), nullable=False),
        sa.Column("ended_reason", sa.Text(), nullable=False),
        sa.CheckConstraint("clock IN ('measured', 'received')", name=op.f("ck_voids_clock")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_voids")),
        sqlite_autoincrement=True,
    )
    # Columns are added in place, without copying the table: it may hold millions of rows.
    op.add_column("attempts", sa.Column("received_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("attempts", sa.Column("token", sa.String(length=16), nullable=False, server_default=sa.text("''")))
    op.add_column("attempts", sa.Column("void", sa.BigInteger(), nullable=True))
    op.create_index(op.f("ix_attempts_issue_finished_at"), "attempts", ["issue", "finished_at"], unique=False)
    by_machine = ["machine", "hardware", "origin", "finished_at"]
    op.create_index("ix_attempts_by_machine", "attempts", by_machine, unique=False)
    op.drop_index(op.f("ix_attempts_machine"), table_name="attempts")
    _create_partial("ix_attempts_token", "attempts", ["token"], "token <> ''")
    _create_partial("ix_attempts_void", "attempts", ["void"], "void IS NOT NULL")
    op.add_column("events", sa.Column("issue", sa.String(length=100), nullable=False, server_default=sa.text("''")))
    issue = "data ->> 'issue'" if op.get_bind().dialect.name == "postgresql" else "json_extract(data, '$.issue')"
    op.execute(f"UPDATE events SET issue = {issue} WHERE kind = 'cell_changed'")  # noqa: S608 - one of two above
    op.create_index(op.f("ix_events_kind_id"), "events", ["kind", "id"], unique=False)
    _create_partial("ix_events_issue", "events", ["issue", "id"], "issue <> ''")
    _create_partial("ix_jobs_waiting", "jobs", ["hardware", "queued_at", "position", "id"], "state = 'queued'")


def _create_partial(name: str, table: str, columns: list[str], where: str) -> None:
    text = sa.text(where)
    op.create_index(name, table, columns, unique=False, sqlite_where=text, postgresql_where=text)


def downgrade() -> None:
    """What was voided counts again once it is derived anew (`knowngood reclassify`): before this there are no voids."""
    op.drop_index("ix_jobs_waiting", table_name="jobs")
    op.drop_index("ix_events_issue", table_name="events")
    op.drop_index(op.f("ix_events_kind_id"), table_name="events")
    with op.batch_alter_table("events", schema=None, table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_column("issue")
    op.create_index(op.f("ix_attempts_machine"), "attempts", ["machine"], unique=False)
    op.drop_index("ix_attempts_by_machine", table_name="attempts")
    op.drop_index("ix_attempts_void", table_name="attempts")
    op.drop_index("ix_attempts_token", table_name="attempts")
    op.drop_index(op.f("ix_attempts_issue_finished_at"), table_name="attempts")
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_column("void")
        batch_op.drop_column("token")
        batch_op.drop_column("received_at")
    op.drop_table("voids")
