"""Who measures and what nobody can measure, read from the store: for the page and its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from knowngood.domain.measuring.isolation import Isolation
from knowngood.domain.measuring.worker_stats import ClassWork, HeldJobProgress, Window, Worker, unserved, workers_of
from knowngood.domain.verdicts.known import Known
from knowngood.health.coverage import cells_by_class
from knowngood.store.engine import Session
from knowngood.store.jobs.job_queue import DISPATCHER
from knowngood.store.jobs.workers import load_doing, load_machines, load_queued, load_stays, load_tallies
from knowngood.store.queries import load_lease
from knowngood.web.json_body import Body, IssueUrl, fields_of, read_from, rounded
from knowngood.web.urls import run_address


class GpuBody(Body):
    name: str
    hardware: str
    memory_bytes: int


@fields_of(HeldJobProgress, without={"job", "run", "machine", "is_held"})
class DoingBody(Body):
    """A job that is held. `held` is false where its lease has run out."""

    run_url: Annotated[str, AfterValidator(run_address)] = read_from("run")
    held: bool = read_from("is_held")


@fields_of(ClassWork)
class ClassWorkBody(Body):
    """Within the window. `seconds_per_cell` is null where nothing was measured."""

    seconds: Annotated[float, rounded(1)]
    seconds_per_cell: Annotated[float | None, rounded(1)] = read_from("per_cell_s")


class WorkerBody(Body, json_schema_serialization_defaults_required=True):
    """A machine by its digest: evidence names no hosts. What is null was not recorded, or was pruned.

    `isolation` is how far it shuts repros off from itself. `busy_share` is the part of the window in which at least one
    attempt ran; making environments does not count.
    """

    id: str = read_from("digest")
    last_seen_at: datetime = read_from("last_at")
    cpu: str | None = read_from("machine", "cpu_model", default=None)
    isa: Annotated[str, Field(exclude=True)] = read_from("machine", "isa", default="")
    cores: int | None = read_from("machine", "cores", default=None)
    memory_bytes: int | None = read_from("machine", "memory_bytes", default=None)
    gpus: list[GpuBody] | None = read_from("machine", "gpus", default=None)
    driver: Annotated[str | None, BeforeValidator(lambda driver: driver or None)] = read_from(
        "machine", "driver", default=None
    )
    isolation: Isolation | None = read_from("machine", "isolation", default=None)
    hardware: Annotated[list[str], BeforeValidator(sorted)] = read_from("served")
    origins: list[str]
    arms_done: int = read_from("arms")
    busy_share: Annotated[float, rounded(6)] = read_from("busy")
    classes: list[ClassWorkBody]
    doing: list[DoingBody]


class UnservedBody(Body):
    issue: str = read_from("issue", "id")
    needs: str
    url: IssueUrl = read_from("issue", "id")


@dataclass(frozen=True)
class ClassNeed:
    """`workers` were seen within the window; `missing` of the `applicable` cells of the coverage page are not run."""

    hardware: str
    workers: int
    missing: int
    applicable: int
    queued_jobs: int


@dataclass(frozen=True)
class Workers:
    """Who measures, whoever was seen last first. `held_by_none` are jobs that no machine has begun with."""

    window: Window
    dispatcher_until: Annotated[
        datetime | None, Field(description="Null where no dispatcher is at work: queued jobs wait")
    ]
    workers: tuple[WorkerBody, ...]
    held_by_none: tuple[DoingBody, ...]
    classes: tuple[ClassNeed, ...]
    unserved: Annotated[
        tuple[UnservedBody, ...],
        Field(description="Issues that no worker of the window can measure on any build"),
    ]


def load_workers(session: Session, known: Known, window: Window, now: datetime) -> Workers:
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
    return Workers(
        window=window,
        dispatcher_until=lease.until if lease and lease.until > now else None,
        workers=tuple(WorkerBody.of(worker) for worker in workers),
        held_by_none=tuple(DoingBody.of(job) for job in doing if not job.machine),
        classes=_classes(seen, cells_by_class(known), load_queued(session)),
        unserved=tuple(UnservedBody.of(gap) for gap in unserved(known.issues.values(), known.builds.values(), served)),
    )


def _classes(
    seen: list[Worker], cells: Mapping[str, tuple[int, int]], queued: Mapping[str, int]
) -> tuple[ClassNeed, ...]:
    names = sorted({*cells, *queued, *(hardware for worker in seen for hardware in worker.served)})
    return tuple(
        ClassNeed(
            hardware=name,
            workers=sum(name in worker.served for worker in seen),
            missing=applicable - measured,
            applicable=applicable,
            queued_jobs=queued.get(name, 0),
        )
        for name in names
        for measured, applicable in [cells.get(name, (0, 0))]
    )
