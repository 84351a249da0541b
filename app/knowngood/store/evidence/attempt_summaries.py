"""Attempts at a glance: what can be told of many of them without reading their logs or judging them anew."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.workaround_cost import Timed
from knowngood.serialization import codec
from knowngood.serialization.lock_keys import InstalledEnvironment
from knowngood.store import unreadable
from knowngood.store.engine import Session
from knowngood.store.statements import is_of
from knowngood.store.tables import attempts, builds, environments

TIMED = 50
"""Of so many attempts the cost of a cell's workarounds is taken."""

FORKED = "forked"
"""The word in an attempt's sandbox for a process forked from a parent that had imported torch."""


@dataclass(frozen=True)
class AttemptSummary:
    """One attempt as a line of history. `outcome` is None where it does not count; `seconds` is its wall time."""

    id: str
    build: str
    hardware: str
    arm: str
    variant: str
    ordinal: int
    outcome: Outcome | None
    is_voided: bool
    seconds: float
    finished_at: datetime


def load_glances(s: Session, issue: str, limit: int) -> tuple[AttemptSummary, ...]:
    """The newest attempts of an issue, on builds of the catalogue."""
    a = attempts.c
    named = (a.id, a.build, a.hardware, a.arm, a.variant, a.ordinal)
    columns = (*named, a.counts_as, a.void, a.started_at, a.finished_at)
    known = sa.and_(builds.c.id == a.build, builds.c.is_present)
    query = sa.select(*columns).join(builds, known).where(a.issue == issue).order_by(a.finished_at.desc(), a.id)
    return tuple(
        AttemptSummary(
            id=row.id,
            build=row.build,
            hardware=row.hardware,
            arm=row.arm,
            variant=row.variant,
            ordinal=row.ordinal,
            outcome=Outcome(row.counts_as) if row.counts_as else None,
            is_voided=row.void is not None,
            seconds=(row.finished_at - row.started_at).total_seconds(),
            finished_at=row.finished_at,
        )
        for row in s.execute(query.limit(limit))
    )


def load_timed(s: Session, issue: str, build: str, hardware: str) -> tuple[Timed, ...]:
    """The newest passes of one cell that count, with what they took: a median wants no more of a long history."""
    a = attempts.c
    query = sa.select(a.id, a.arm, a.variant, a.machine, a.lock_digest, a.record).where(
        *is_of((issue, build, hardware), attempts), a.counts_as == Outcome.PASS.value
    )
    newest = query.order_by(a.finished_at.desc(), a.id).limit(TIMED)
    return tuple(unreadable.readable("attempts", ((row.id, row) for row in s.execute(newest)), _timed))


def _timed(row: Any) -> Timed:  # noqa: ANN401 - a row of the driver
    record = codec.RECORD.validate_json(row.record)
    is_forked = FORKED in record.sandbox
    return Timed(row.arm, row.variant, row.machine, row.lock_digest, is_forked, record.own_s, record.peak_bytes)


def load_installed(s: Session, of: Collection[str]) -> InstalledEnvironment | None:
    """The environment that most of these attempts ran in. None where none of them is known, or none had one.

    Of all attempts of a build it would be asked 76 ms long of 4,843 (2026-11-21): no index leads from a build to them.
    """
    used = s.execute(
        sa.select(attempts.c.lock_digest).where(attempts.c.id.in_(sorted(of)), attempts.c.lock_digest != "")
    )
    counted = Counter(used.scalars())
    most = min(counted, key=lambda digest: (-counted[digest], digest), default="")
    query = sa.select(environments.c.imported, environments.c.packages).where(environments.c.lock_digest == most)
    row = s.execute(query).one_or_none()
    return InstalledEnvironment(most, row.packages, row.imported) if row else None
