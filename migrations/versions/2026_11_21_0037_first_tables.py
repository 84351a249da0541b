"""First tables

Catalogue (issues, builds), queue (runs, jobs, arms, leases), evidence (attempts, logs, locks, environments, machines,
imports), what is derived of it (cells), and what happened (events).
"""

import sqlalchemy as sa
from alembic import op

revision = "f19d3c5a7b20"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("job", sa.String(length=64), nullable=False),
        sa.Column("issue", sa.String(length=100), nullable=False),
        sa.Column("build", sa.String(length=100), nullable=False),
        sa.Column("hardware", sa.String(length=40), nullable=False),
        sa.Column("arm", sa.String(length=100), nullable=False),
        sa.Column("variant", sa.String(length=100), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("binding", sa.String(length=32), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("log_digest", sa.String(length=32), nullable=False),
        sa.Column("lock_digest", sa.String(length=32), nullable=False),
        sa.Column("machine", sa.String(length=32), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("origin", sa.String(length=100), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("counts_as", sa.String(length=20), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_attempts_issue_build_hardware_finished_at"),
            ["issue", "build", "hardware", "finished_at"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_attempts_lock_digest"), ["lock_digest"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempts_log_digest"), ["log_digest"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempts_machine"), ["machine"], unique=False)

    op.create_table(
        "builds",
        sa.Column("id", sa.String(length=100), nullable=False),
        sa.Column("is_present", sa.Boolean(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_builds")),
    )
    op.create_table(
        "environments",
        sa.Column("lock_digest", sa.String(length=32), nullable=False),
        sa.Column("packages", sa.JSON(), nullable=False),
        sa.Column("imported", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("lock_digest", name=op.f("pk_environments")),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_events_at"), ["at"], unique=False)
        batch_op.create_index(batch_op.f("ix_events_run"), ["run"], unique=False)

    op.create_table(
        "imports",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("origin", sa.String(length=100), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_imports")),
    )
    op.create_table(
        "issues",
        sa.Column("id", sa.String(length=100), nullable=False),
        sa.Column("revision", sa.String(length=32), nullable=False),
        sa.Column("is_present", sa.Boolean(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_issues")),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("holder", sa.String(length=100), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "locks",
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("zlib", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_locks")),
    )
    op.create_table(
        "logs",
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("zlib", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_logs")),
    )
    op.create_table(
        "machines",
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_machines")),
    )
    op.create_table(
        "meta",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_meta")),
    )
    # The one row that every write locks and counts up; no other row is ever made by a migration.
    op.execute("INSERT INTO meta (name, value) VALUES ('generation', 0)")
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_runs_created_at"), ["created_at"], unique=False)

    op.create_table(
        "cells",
        sa.Column("issue", sa.String(length=100), nullable=False),
        sa.Column("build", sa.String(length=100), nullable=False),
        sa.Column("hardware", sa.String(length=40), nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=False),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("doc", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["build"], ["builds.id"], name=op.f("fk_cells_build_builds")),
        sa.ForeignKeyConstraint(["issue"], ["issues.id"], name=op.f("fk_cells_issue_issues")),
        sa.PrimaryKeyConstraint("issue", "build", "hardware", name=op.f("pk_cells")),
    )
    with op.batch_alter_table("cells", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_cells_measured_at"), ["measured_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_cells_verdict"), ["verdict"], unique=False)

    op.create_table(
        "issue_revisions",
        sa.Column("issue", sa.String(length=100), nullable=False),
        sa.Column("revision", sa.String(length=32), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["issue"], ["issues.id"], name=op.f("fk_issue_revisions_issue_issues")),
        sa.PrimaryKeyConstraint("issue", "revision", name=op.f("pk_issue_revisions")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("build", sa.String(length=100), nullable=False),
        sa.Column("hardware", sa.String(length=40), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("try_no", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(length=100), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("machine", sa.String(length=32), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "state IN ('queued', 'leased', 'done', 'poisoned', 'cancelled')", name=op.f("ck_jobs_state")
        ),
        sa.ForeignKeyConstraint(["build"], ["builds.id"], name=op.f("fk_jobs_build_builds")),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name=op.f("fk_jobs_run_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_jobs_run"), ["run"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_jobs_state_queued_at_position"), ["state", "queued_at", "position"], unique=False
        )

    op.create_table(
        "arms",
        sa.Column("attempt", sa.String(length=32), nullable=False),
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("issue", sa.String(length=100), nullable=False),
        sa.Column("revision", sa.String(length=32), nullable=False),
        sa.Column("arm", sa.String(length=100), nullable=False),
        sa.Column("variant", sa.String(length=100), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("binding", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.CheckConstraint("state IN ('planned', 'running', 'done')", name=op.f("ck_arms_state")),
        sa.ForeignKeyConstraint(
            ["issue", "revision"],
            ["issue_revisions.issue", "issue_revisions.revision"],
            name=op.f("fk_arms_issue_revision_issue_revisions"),
        ),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name=op.f("fk_arms_job_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("attempt", name=op.f("pk_arms")),
        sa.UniqueConstraint(
            "job", "issue", "arm", "variant", "ordinal", name=op.f("uq_arms_job_issue_arm_variant_ordinal")
        ),
    )
    with op.batch_alter_table("arms", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_arms_issue_arm"), ["issue", "arm"], unique=False)
        batch_op.create_index(batch_op.f("ix_arms_job_position"), ["job", "position"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("arms", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_arms_job_position"))
        batch_op.drop_index(batch_op.f("ix_arms_issue_arm"))

    op.drop_table("arms")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_jobs_state_queued_at_position"))
        batch_op.drop_index(batch_op.f("ix_jobs_run"))

    op.drop_table("jobs")
    op.drop_table("issue_revisions")
    with op.batch_alter_table("cells", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_cells_verdict"))
        batch_op.drop_index(batch_op.f("ix_cells_measured_at"))

    op.drop_table("cells")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_runs_created_at"))

    op.drop_table("runs")
    op.drop_table("meta")
    op.drop_table("machines")
    op.drop_table("logs")
    op.drop_table("locks")
    op.drop_table("leases")
    op.drop_table("issues")
    op.drop_table("imports")
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_events_run"))
        batch_op.drop_index(batch_op.f("ix_events_at"))

    op.drop_table("events")
    op.drop_table("environments")
    op.drop_table("builds")
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attempts_machine"))
        batch_op.drop_index(batch_op.f("ix_attempts_log_digest"))
        batch_op.drop_index(batch_op.f("ix_attempts_lock_digest"))
        batch_op.drop_index(batch_op.f("ix_attempts_issue_build_hardware_finished_at"))

    op.drop_table("attempts")
