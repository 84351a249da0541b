"""Every table, as SQLAlchemy Core. A change here needs a migration: `alembic check` is a test.

Columns named `doc` hold the JSON of one domain value as text: SQL never looks inside, reads decode many of them in one
call, and text is the same on SQLite and PostgreSQL (where JSON columns refuse the NUL characters that logs contain).
Evidence (attempts, logs, locks, environments, machines) points to each other by digest without foreign keys: a bundle
may leave a log out, and attempts of issues that this catalogue does not know are kept.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from knowngood.domain.verdicts.voids import Clock, NoteKind
from knowngood.store import unreadable
from knowngood.store.records import ArmState, JobState

REVISIONS = (
    "f19d3c5a7b20",
    "102a5e28119e",
    "7c1e4b9a20d3",
    "3d90b6c2f415",
    "8e52d1f07ac4",
    "a51c7e60d8b2",
    "c94b1d27fe30",
    "d3f07a915c62",
    "7b2e90c4d815",
    "a4c81e60b7d2",
    "5f0d83a9c1e6",
)
"""All migrations, the newest last. Alembic, which knows them too, takes 0.2 s to import; a test compares."""

RULES_IN_META = "rules"
"""The name, in the table `meta`, of the version of the rules that cells were derived by."""

# Conditions of partial indexes stand here for SQLite alone, and in migrations for both: a word for PostgreSQL loads its
# dialect, a twentieth of what a command over a local store takes.
metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class UtcDateTime(sa.types.TypeDecorator[datetime]):
    """Aware UTC in and out. SQLite has no zones: there the text is UTC without saying so."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - its signature
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time in the store needs its zone; {value.isoformat()} has none")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002, ANN401 - its signature
        if value is None:
            return None
        aware: datetime = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return aware


class Json(sa.types.TypeDecorator[Any]):
    """A column of an object, or a list where `kind` is that. Anything else is logged, and reads as an empty one."""

    impl = sa.JSON
    cache_ok = True

    def __init__(self, kind: type[dict[str, Any]] | type[list[Any]] = dict) -> None:
        super().__init__()
        self.kind = kind

    def coerce_compared_value(self, op: Any, value: Any) -> Any:  # noqa: ANN401 - its signature
        return self.impl_instance.coerce_compared_value(op, value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        decode = super().result_processor(dialect, coltype) or (lambda value: value)

        def process(value: Any) -> Any:  # noqa: ANN401 - whatever is stored
            try:
                decoded = decode(value)
            except ValueError:
                decoded = value
            if isinstance(decoded, self.kind) or value is None:
                return decoded
            unreadable.tell("JSON", f"{value!s:.80}")
            return self.kind()

        return process


def _one_of(column: str, *words: str) -> sa.CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=column)


meta = sa.Table(
    "meta",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)

issues = sa.Table(
    "issues",
    metadata,
    sa.Column("id", sa.String(100), primary_key=True),
    sa.Column("revision", sa.String(32), nullable=False),
    sa.Column("is_present", sa.Boolean, nullable=False),
    sa.Column("doc", sa.Text, nullable=False),
    # What upstream's API said of its threads since the row was written; empty: nobody asked.
    sa.Column("looks", sa.Text, nullable=False, server_default=sa.text("''")),
)

issue_revisions = sa.Table(
    "issue_revisions",
    metadata,
    sa.Column("issue", sa.ForeignKey("issues.id"), primary_key=True),
    sa.Column("revision", sa.String(32), primary_key=True),
    sa.Column("seen_at", UtcDateTime, nullable=False),
    sa.Column("doc", sa.Text, nullable=False),
)

builds = sa.Table(
    "builds",
    metadata,
    sa.Column("id", sa.String(100), primary_key=True),
    sa.Column("is_present", sa.Boolean, nullable=False),
    sa.Column("doc", sa.Text, nullable=False),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("created_at", UtcDateTime, nullable=False, index=True),
    sa.Column("cancelled_at", UtcDateTime),
    sa.Column("finished_at", UtcDateTime),
    sa.Column("request", Json(), nullable=False),
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("run", sa.ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("queued_at", UtcDateTime, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("build", sa.ForeignKey("builds.id"), nullable=False),
    sa.Column("hardware", sa.String(40), nullable=False),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("try_no", sa.Integer, nullable=False),
    sa.Column("losses", sa.Integer, nullable=False),
    sa.Column("holder", sa.String(100), nullable=False),
    sa.Column("lease_until", UtcDateTime),
    sa.Column("machine", sa.String(32), nullable=False),
    sa.Column("started_at", UtcDateTime),
    sa.Column("finished_at", UtcDateTime),
    sa.Column("problem", sa.Text, nullable=False),
    _one_of("state", *JobState),
    sa.Index(None, "state", "queued_at", "position"),
    # What a claim looks through: of each hardware class, what waits longest.
    sa.Index(
        "ix_jobs_waiting",
        "hardware",
        "queued_at",
        "position",
        "id",
        sqlite_where=sa.text("state = 'queued'"),
    ),
)

arms = sa.Table(
    "arms",
    metadata,
    sa.Column("attempt", sa.String(32), primary_key=True),
    sa.Column("job", sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("issue", sa.String(100), nullable=False),
    sa.Column("revision", sa.String(32), nullable=False),
    sa.Column("arm", sa.String(100), nullable=False),
    sa.Column("variant", sa.String(100), nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("binding", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("losses", sa.Integer, nullable=False),
    sa.UniqueConstraint("job", "issue", "arm", "variant", "ordinal"),
    sa.ForeignKeyConstraint(["issue", "revision"], ["issue_revisions.issue", "issue_revisions.revision"]),
    _one_of("state", *ArmState),
    sa.Index(None, "job", "position"),
    sa.Index(None, "issue", "arm"),
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("job", sa.String(64), nullable=False),
    sa.Column("issue", sa.String(100), nullable=False),
    sa.Column("build", sa.String(100), nullable=False),
    sa.Column("hardware", sa.String(40), nullable=False),
    sa.Column("arm", sa.String(100), nullable=False),
    sa.Column("variant", sa.String(100), nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("binding", sa.String(32), nullable=False),
    sa.Column("record", sa.Text, nullable=False),
    sa.Column("log_digest", sa.String(32), nullable=False, index=True),
    sa.Column("lock_digest", sa.String(32), nullable=False, index=True),
    sa.Column("machine", sa.String(32), nullable=False),
    sa.Column("started_at", UtcDateTime, nullable=False),
    sa.Column("finished_at", UtcDateTime, nullable=False),
    sa.Column("origin", sa.String(100), nullable=False),
    sa.Column("labels", Json(), nullable=False),
    # What this server says of it, which no bundle can: when it came in (NULL: before that was kept), through which
    # token (empty: made here, or brought at the command line), and the void that keeps it from counting.
    sa.Column("received_at", UtcDateTime),
    sa.Column("token", sa.String(16), nullable=False, server_default=sa.text("''")),
    sa.Column("void", sa.BigInteger),
    # Derived, like cells: the outcome it counts as now; NULL where it is superseded, voided or its issue is unknown.
    sa.Column("counts_as", sa.String(20)),
    # The JSON of what looking for its issue's signature came to (NULL: nobody had to), so that pages look for none.
    sa.Column("searched", sa.Text),
    sa.Index(None, "issue", "build", "hardware", "finished_at"),
    # The newest of an issue, on whatever build, are shown on its page.
    sa.Index(None, "issue", "finished_at"),
    # The newest of an arm, on whatever build, says how long it takes.
    sa.Index(
        "ix_attempts_newest",
        *("issue", "arm", "variant", "finished_at"),
        sqlite_where=sa.text("counts_as <> 'env_error'"),
    ),
    # All that is told of machines, so that no row is read for it.
    sa.Index("ix_attempts_by_machine", "machine", "hardware", "origin", "finished_at", "started_at", "issue", "build"),
    sa.Index("ix_attempts_token", "token", sqlite_where=sa.text("token <> ''")),
    sa.Index(
        "ix_attempts_void",
        "void",
        sqlite_where=sa.text("void IS NOT NULL"),
    ),
)

# Attempts by who made them, as `machine_tallies` of the evidence keeps them.
machine_tallies = sa.Table(
    "machine_tallies",
    metadata,
    sa.Column("machine", sa.String(32), primary_key=True),
    sa.Column("hardware", sa.String(40), primary_key=True),
    sa.Column("origin", sa.String(100), primary_key=True),
    sa.Column("attempts", sa.BigInteger, nullable=False),
    sa.Column("last_at", UtcDateTime, nullable=False),
)

# One row for each time that somebody said: nothing of this worker from then to then counts. Rows are never removed.
voids = sa.Table(
    "voids",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("machine", sa.String(32), nullable=False),
    sa.Column("token", sa.String(16), nullable=False),
    sa.Column("clock", sa.String(16), nullable=False),
    sa.Column("since", UtcDateTime),
    sa.Column("until", UtcDateTime, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("actor", sa.String(100), nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("ended_by", sa.String(100), nullable=False),
    sa.Column("ended_reason", sa.Text, nullable=False),
    _one_of("clock", *Clock),
    sqlite_autoincrement=True,
)

cells = sa.Table(
    "cells",
    metadata,
    sa.Column("issue", sa.ForeignKey("issues.id"), primary_key=True),
    sa.Column("build", sa.ForeignKey("builds.id"), primary_key=True),
    sa.Column("hardware", sa.String(40), primary_key=True),
    sa.Column("verdict", sa.String(20), nullable=False, index=True),
    sa.Column("measured_at", UtcDateTime, index=True),
    # The generation it was written in: what came after a known one is read without looking through all.
    sa.Column("changed", sa.BigInteger, nullable=False, server_default="0", index=True),
    sa.Column("doc", sa.Text, nullable=False),
)

logs = sa.Table(
    "logs",
    metadata,
    sa.Column("digest", sa.String(32), primary_key=True),
    sa.Column("zlib", sa.LargeBinary, nullable=False),
)

locks = sa.Table(
    "locks",
    metadata,
    sa.Column("digest", sa.String(32), primary_key=True),
    sa.Column("zlib", sa.LargeBinary, nullable=False),
)

environments = sa.Table(
    "environments",
    metadata,
    sa.Column("lock_digest", sa.String(32), primary_key=True),
    sa.Column("packages", Json(), nullable=False),
    sa.Column("imported", Json(), nullable=False),
)

machines = sa.Table(
    "machines",
    metadata,
    sa.Column("digest", sa.String(32), primary_key=True),
    sa.Column("doc", sa.Text, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("at", UtcDateTime, nullable=False, index=True),
    sa.Column("run", sa.String(32), nullable=False, index=True),
    sa.Column("kind", sa.String(40), nullable=False),
    # Of a change of a cell; empty for all else. What is told of one issue is found without looking through all.
    sa.Column("issue", sa.String(100), nullable=False, server_default=sa.text("''")),
    sa.Column("data", Json(), nullable=False),
    sa.Index(None, "kind", "id"),
    sa.Index(
        "ix_events_issue",
        "issue",
        "id",
        sqlite_where=sa.text("issue <> ''"),
    ),
    # Without AUTOINCREMENT SQLite gives the ids of pruned events out again, and a reader of "all after 7" misses some.
    sqlite_autoincrement=True,
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("holder", sa.String(100), nullable=False),
    sa.Column("until", UtcDateTime, nullable=False),
)

imports = sa.Table(
    "imports",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("origin", sa.String(100), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("name", sa.String(100), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("scopes", Json(list), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime),
    sa.Column("revoked_at", UtcDateTime),
    sa.Column("last_used_at", UtcDateTime),
    # A name is one holder at a time: it is what evidence, watch lists and the audit log know them by.
    sa.Index(
        "uq_tokens_name_in_force",
        "name",
        unique=True,
        sqlite_where=sa.text("revoked_at IS NULL"),
    ),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("token", sa.ForeignKey("tokens.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("actor", sa.String(100), nullable=False),
    # No foreign key: what was done stands, whatever becomes of the token that did it.
    sa.Column("token", sa.String(16), nullable=False),
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("subject", sa.String(300), nullable=False),
    sa.Column("data", Json(), nullable=False),
    sqlite_autoincrement=True,
)

watch_lists = sa.Table(
    "watch_lists",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("owner", sa.String(100), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("is_present", sa.Boolean, nullable=False),
)

# Versions are never changed or removed: what a gate was asked with can be looked up. `doc` is empty where it went.
watch_list_versions = sa.Table(
    "watch_list_versions",
    metadata,
    sa.Column("name", sa.ForeignKey("watch_lists.name"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("actor", sa.String(100), nullable=False),
    sa.Column("doc", sa.Text, nullable=False),
)

notes = sa.Table(
    "notes",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("issue", sa.String(100), nullable=False),
    sa.Column("build", sa.String(100), nullable=False),
    sa.Column("hardware", sa.String(40), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("actor", sa.String(100), nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    _one_of("kind", *NoteKind),
    sa.Index(None, "issue", "build", "hardware"),
    sqlite_autoincrement=True,
)
