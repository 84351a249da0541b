"""The state of the installation: one reading for whoever watches it. Its cost grows with what waits and with the cells,
never with the history: attempts are counted as they come in (`counters`) and are not looked at here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from knowngood.domain.grouping import grouped
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.verdicts.verdict import Verdict, stale_before
from knowngood.serialization import codec
from knowngood.store import counters, unreadable
from knowngood.store.engine import Session
from knowngood.store.jobs.job_queue import DISPATCHER
from knowngood.store.queries import load_builds, load_generation, load_lease
from knowngood.store.records import ArmState, JobState, Lease
from knowngood.store.statements import counted
from knowngood.store.tables import arms, cells, imports, jobs, machines, runs

QUANTILES = (0.5, 0.9, 1.0)

_ACTIVE = (JobState.QUEUED, JobState.LEASED)


@dataclass(frozen=True)
class Gauges:
    """`jobs` are those that wait or are held, by (hardware class, state), and those that were given up (poisoned);
    `arms` wait in them or run, by hardware class. `cell_ages` are seconds by quantile; without measured cells there are
    none. `attempts` counts by (outcome, cause), `arm_seconds` by hardware class, since this store began to count.
    `ingested` are the attempts that came in bundles. `seen` are the machines that worked for this store's dispatcher,
    by digest: when last, and what they are (None: their description was pruned). `lease` is the dispatcher's, as it
    stands in the store, also where it has run out.
    """

    at: datetime
    generation: int
    jobs: Mapping[tuple[str, JobState], int]
    oldest_queued_at: datetime | None
    arms: Mapping[str, int]
    runs: int
    cells: Mapping[tuple[str, Verdict], int]
    stale: int
    cell_ages: Mapping[float, float]
    lease: Lease | None
    imports: int
    ingested: int
    last_import_at: datetime | None
    seen: Mapping[str, tuple[datetime, Machine | None]]
    attempts: Mapping[tuple[str, str], int]
    arm_seconds: Mapping[str, float]
    losses: int
    provisioned: int
    provision_s: float


def load_gauges(s: Session, now: datetime) -> Gauges:
    numbers = counters.load_counters(s)
    imported = s.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(imports.c.attempts), 0), sa.func.max(imports.c.at))
    ).one()
    return Gauges(
        at=now,
        generation=load_generation(s),
        jobs=_jobs(s),
        oldest_queued_at=s.execute(
            sa.select(sa.func.min(jobs.c.queued_at)).where(jobs.c.state == JobState.QUEUED)
        ).scalar_one(),
        arms=_arms(s),
        runs=s.execute(sa.select(sa.func.count()).where(runs.c.finished_at.is_(None))).scalar_one(),
        cells={(class_, Verdict(verdict)): n for class_, verdict, n in counted(s, cells.c.hardware, cells.c.verdict)},
        stale=_stale(s, now),
        cell_ages=_cell_ages(s, now),
        lease=load_lease(s, DISPATCHER),
        imports=imported[0],
        ingested=int(imported[1]),
        last_import_at=imported[2],
        seen=_seen(s, numbers.get(counters.SEEN, {}), now),
        attempts={(key[0], (*key, "")[1]): n for key, n in numbers.get(counters.ATTEMPTS, {}).items()},
        arm_seconds={key[0]: ms / 1000 for key, ms in numbers.get(counters.ARM_MS, {}).items()},
        losses=numbers.get(counters.LOSSES, {}).get((), 0),
        provisioned=numbers.get(counters.PROVISIONED, {}).get((), 0),
        provision_s=numbers.get(counters.PROVISION_MS, {}).get((), 0) / 1000,
    )


def _jobs(s: Session) -> dict[tuple[str, JobState], int]:
    which = jobs.c.state.in_([*_ACTIVE, JobState.POISONED])
    return {
        (hardware, JobState(state)): n for hardware, state, n in counted(s, jobs.c.hardware, jobs.c.state, which=which)
    }


def _arms(s: Session) -> dict[str, int]:
    query = (
        sa.select(jobs.c.hardware, sa.func.count())
        .join(arms, arms.c.job == jobs.c.id)
        .where(jobs.c.state.in_(_ACTIVE), arms.c.state != ArmState.DONE)
    )
    return dict(s.execute(query.group_by(jobs.c.hardware)).all())


def _stale(s: Session, now: datetime) -> int:
    """Count stale cells. Builds that grow stale at one age share a condition; there are two such ages, of nightlies and
    releases.
    """
    of_limit = grouped(load_builds(s), lambda build: stale_before(build, now))
    limits = [
        sa.and_(cells.c.measured_at < limit, cells.c.build.in_([build.id for build in builds]))
        for limit, builds in of_limit.items()
    ]
    return s.execute(sa.select(sa.func.count()).select_from(cells).where(sa.or_(sa.false(), *limits))).scalar_one()


def _cell_ages(s: Session, now: datetime) -> dict[float, float]:
    """The ages of cells, read by the index over times: the k-th newest of n, without reading the others' texts."""
    measured = cells.c.measured_at.is_not(None)
    n = s.execute(sa.select(sa.func.count(cells.c.measured_at)).where(measured)).scalar_one()
    if not n:
        return {}
    newest_first = sa.select(cells.c.measured_at).where(measured).order_by(cells.c.measured_at.desc()).limit(1)
    at = {share: s.execute(newest_first.offset(int((n - 1) * share))).scalar_one() for share in QUANTILES}
    return {share: max(0.0, (now - moment).total_seconds()) for share, moment in at.items() if moment}


def _seen(s: Session, at: Mapping[tuple[str, ...], int], now: datetime) -> dict[str, tuple[datetime, Machine | None]]:
    digests = sorted(key[0] for key in at)
    query = sa.select(machines.c.digest, machines.c.doc).where(machines.c.digest.in_(digests))
    rows = s.execute(query)
    known = {machine.digest: machine for machine in unreadable.readable("machines", rows, codec.MACHINE.validate_json)}
    return {digest: (datetime.fromtimestamp(at[digest,], now.tzinfo), known.get(digest)) for digest in digests}
