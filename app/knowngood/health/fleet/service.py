"""Who measures and what nobody can measure, read from the store: for the page and its twin."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from knowngood.domain.measuring.worker_stats import HeldJobProgress, Unserved, Window, Worker, unserved, workers_of
from knowngood.domain.verdicts.known import Known
from knowngood.health.coverage.service import cells_by_class
from knowngood.store.engine import Session
from knowngood.store.jobs.job_queue import DISPATCHER
from knowngood.store.jobs.workers import load_doing, load_machines, load_queued, load_stays, load_tallies
from knowngood.store.queries import Lease, load_lease


@dataclass(frozen=True)
class ClassNeed:
    """`workers` were seen within the window; `missing` of the `applicable` cells of the coverage page are not run."""

    hardware: str
    workers: int
    missing: int
    applicable: int
    queued_jobs: int


@dataclass(frozen=True)
class Working:
    """`idle` are jobs that are held and that no machine has begun with. `lease` is the dispatcher's."""

    workers: tuple[Worker, ...]
    idle: tuple[HeldJobProgress, ...]
    lease: Lease | None
    classes: tuple[ClassNeed, ...]
    unserved: tuple[Unserved, ...]


def load_working(session: Session, known: Known, window: Window, now: datetime) -> Working:
    since = now - window.span
    doing = load_doing(session, now)
    workers = workers_of(
        load_tallies(session),
        {digest: machine.brief for digest, machine in load_machines(session).items()},
        load_stays(session, since),
        doing,
        since=since,
        now=now,
    )
    seen = [worker for worker in workers if worker.last_at >= since]
    lease = load_lease(session, DISPATCHER)
    served = {hardware for worker in seen for hardware in worker.served}
    counts = cells_by_class(known)
    missing = {hardware: (one.applicable - one.measured, one.applicable) for hardware, one in counts.items()}
    return Working(
        workers=workers,
        idle=tuple(one for one in doing if not one.machine),
        lease=lease if lease and lease.until > now else None,
        classes=_classes(seen, missing, load_queued(session)),
        unserved=unserved(known.issues.values(), known.builds.values(), served),
    )


def _classes(
    seen: list[Worker], missing: Mapping[str, tuple[int, int]], queued: Mapping[str, int]
) -> tuple[ClassNeed, ...]:
    names = sorted({*missing, *queued, *(hardware for worker in seen for hardware in worker.served)})
    return tuple(
        ClassNeed(name, sum(name in worker.served for worker in seen), *missing.get(name, (0, 0)), queued.get(name, 0))
        for name in names
    )
