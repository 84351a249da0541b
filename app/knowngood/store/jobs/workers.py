"""The machines that measured, and those that do now, by what they have left in jobs and attempts."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from knowngood.domain.grouping import grouped
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.measuring.worker_stats import AttemptStay, HeldJobProgress, MachineTally
from knowngood.domain.verdicts.verdict import CellPlace
from knowngood.serialization import codec
from knowngood.store import unreadable
from knowngood.store.engine import Session
from knowngood.store.evidence.cells import touch
from knowngood.store.records import ArmState, JobState
from knowngood.store.statements import counted, insert_or
from knowngood.store.tables import arms, attempts, issues, jobs, leases, machine_tallies, machines


def load_tallies(s: Session) -> tuple[MachineTally, ...]:
    """Attempts whose machine nobody recorded are left out."""
    rows = s.execute(sa.select(machine_tallies)).all()
    return tuple(
        MachineTally(
            machine,
            hardware,
            sum(row.attempts for row in some),
            max(row.last_at for row in some),
            tuple(sorted(row.origin for row in some)),
        )
        for (machine, hardware), some in sorted(grouped(rows, lambda row: (row.machine, row.hardware)).items())
    )


def load_machines(s: Session) -> dict[str, Machine]:
    """Every machine that is still described here, by its digest."""
    rows = s.execute(sa.select(machines.c.digest, machines.c.doc))
    return {machine.digest: machine for machine in unreadable.readable("machines", rows, codec.MACHINE.validate_json)}


def load_stays(s: Session, since: datetime) -> tuple[AttemptStay, ...]:
    """Attempts at issues that the catalogue has or had which ended since then, on machines that are known."""
    a, t = attempts.c, machine_tallies.c
    query = sa.select(a.machine, a.hardware, a.issue, a.build, a.started_at, a.finished_at)
    # By what is tallied: an index leads to the newest of each, none to the newest of all.
    same = sa.and_(a.machine == t.machine, a.hardware == t.hardware, a.origin == t.origin)
    lately = query.join_from(machine_tallies, attempts, same).where(t.last_at >= since, a.finished_at >= since)
    return tuple(AttemptStay(*row) for row in s.execute(lately.where(a.issue.in_(sa.select(issues.c.id)))))


def load_doing(s: Session, now: datetime) -> tuple[HeldJobProgress, ...]:
    """The jobs that are held, in the order in which they were queued."""
    held = s.execute(
        sa.select(jobs).where(jobs.c.state == JobState.LEASED).order_by(jobs.c.queued_at, jobs.c.position, jobs.c.id)
    ).all()
    if not held:
        return ()
    of_held = sa.select(arms.c.job, arms.c.issue, arms.c.arm, arms.c.state).where(arms.c.job.in_([j.id for j in held]))
    rows = s.execute(of_held.order_by(arms.c.job, arms.c.position))
    of_job = defaultdict[str, list[Any]](list, grouped(rows, lambda row: row.job))
    return tuple(
        HeldJobProgress(
            job=job.id,
            run=job.run,
            machine=job.machine,
            build=job.build,
            hardware=job.hardware,
            arms=tuple(f"{arm.issue} {arm.arm}" for arm in of_job[job.id] if arm.state == ArmState.RUNNING),
            done=sum(arm.state == ArmState.DONE for arm in of_job[job.id]),
            total=len(of_job[job.id]),
            is_held=job.lease_until is not None and job.lease_until > now,
        )
        for job in held
    )


def load_queued(s: Session) -> dict[str, int]:
    """The number of waiting jobs, by hardware class."""
    return dict(sorted(counted(s, jobs.c.hardware, which=jobs.c.state == JobState.QUEUED)))


def load_waiting_cells(s: Session) -> frozenset[CellPlace]:
    """The cells of every arm without a result in a job that has not ended, so that nobody plans them a second time."""
    query = (
        sa.select(arms.c.issue, jobs.c.build, jobs.c.hardware)
        .distinct()
        .join(jobs, jobs.c.id == arms.c.job)
        .where(jobs.c.state.in_([JobState.QUEUED, JobState.LEASED]), arms.c.state != ArmState.DONE)
    )
    return frozenset((issue, build, hardware) for issue, build, hardware in s.execute(query))


# Which hardware classes have a worker: the dispatcher's word for it, kept among the leases since it runs out alike.


_PREFIX = "class "


def offer_classes(s: Session, classes: Collection[str], holder: str, now: datetime, lease_s: float) -> None:
    """Say that `holder` has workers of these classes for another `lease_s` seconds. A class that is not said any more
    stays as it was: it then tells when a worker of it was last there.
    """
    if not classes:
        return
    if any(load_offers(s).get(class_, now) <= now for class_ in classes):
        touch(s)
    until = now + timedelta(seconds=lease_s)
    rows = [{"name": f"{_PREFIX}{class_}", "holder": holder, "until": until} for class_ in sorted(classes)]
    insert = insert_or(s, leases).values(rows)
    s.execute(insert.on_conflict_do_update(index_elements=[leases.c.name], set_={"holder": holder, "until": until}))


def load_offers(s: Session) -> dict[str, datetime]:
    """Until when each class has, or had, a worker."""
    rows = s.execute(sa.select(leases.c.name, leases.c.until).where(leases.c.name.startswith(_PREFIX)))
    return {row.name.removeprefix(_PREFIX): row.until for row in rows}
