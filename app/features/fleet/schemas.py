"""Who measures, as JSON."""

from datetime import datetime

from pydantic import BaseModel, Field

from knowngood.app.domain.measuring.isolation import Isolation
from knowngood.app.domain.measuring.worker_stats import HeldJobProgress, Window, Worker
from knowngood.app.features.fleet.service import Working
from knowngood.app.web.urls import issue_address, run_address


class GpuBody(BaseModel):
    name: str
    hardware: str
    memory_bytes: int


class DoingBody(BaseModel):
    """A job that is held. `held` is false where its lease has run out."""

    run_url: str
    build: str
    hardware: str
    arms: list[str]
    done: int
    total: int
    held: bool


class ClassWorkBody(BaseModel):
    """Within the window. `seconds_per_cell` is null where nothing was measured."""

    hardware: str
    arms: int
    cells: int
    seconds: float
    seconds_per_cell: float | None


class WorkerBody(BaseModel):
    """A machine by its digest: evidence names no hosts. What is null was not recorded, or was pruned.

    `isolation` is how far it shuts repros off from itself. `busy_share` is the part of the window in which at least one
    attempt ran; making environments does not count.
    """

    id: str
    last_seen_at: datetime
    cpu: str | None
    cores: int | None
    memory_bytes: int | None
    gpus: list[GpuBody] | None
    driver: str | None
    isolation: Isolation | None
    hardware: list[str]
    origins: list[str]
    arms_done: int
    busy_share: float
    classes: list[ClassWorkBody]
    doing: list[DoingBody]


class ClassNeedBody(BaseModel):
    """`workers` were seen within the window; `missing` of the `applicable` cells of the coverage page are not run."""

    hardware: str
    workers: int
    missing: int
    applicable: int
    queued_jobs: int


class UnservedBody(BaseModel):
    issue: str
    needs: str
    url: str


class WorkersBody(BaseModel):
    window: Window
    dispatcher_until: datetime | None = Field(description="Null where no dispatcher is at work: queued jobs wait")
    workers: list[WorkerBody]
    held_by_none: list[DoingBody]
    classes: list[ClassNeedBody]
    unserved: list[UnservedBody] = Field(description="Issues that no worker of the window can measure on any build")


def workers_body(found: Working, window: Window) -> WorkersBody:
    return WorkersBody(
        window=window,
        dispatcher_until=found.lease.until if found.lease else None,
        workers=[_worker(one) for one in found.workers],
        held_by_none=[_doing(one) for one in found.idle],
        classes=[
            ClassNeedBody(
                hardware=one.hardware,
                workers=one.workers,
                missing=one.missing,
                applicable=one.applicable,
                queued_jobs=one.queued,
            )
            for one in found.classes
        ],
        unserved=[
            UnservedBody(issue=one.issue.id, needs=one.needs, url=issue_address(one.issue.id)) for one in found.unserved
        ],
    )


def _worker(worker: Worker) -> WorkerBody:
    machine = worker.machine
    return WorkerBody(
        id=worker.digest,
        last_seen_at=worker.last_at,
        cpu=machine.cpu_model if machine else None,
        cores=machine.cores if machine else None,
        memory_bytes=machine.memory_bytes if machine else None,
        gpus=[GpuBody(name=one.name, hardware=one.hardware, memory_bytes=one.memory_bytes) for one in machine.gpus]
        if machine
        else None,
        driver=(machine.driver or None) if machine else None,
        isolation=machine.isolation if machine else None,
        hardware=sorted(worker.served),
        origins=list(worker.origins),
        arms_done=worker.arms,
        busy_share=round(worker.busy, 6),
        classes=[
            ClassWorkBody(
                hardware=one.hardware,
                arms=one.arms,
                cells=one.cells,
                seconds=round(one.seconds, 1),
                seconds_per_cell=None if one.per_cell_s is None else round(one.per_cell_s, 1),
            )
            for one in worker.classes
        ],
        doing=[_doing(one) for one in worker.doing],
    )


def _doing(one: HeldJobProgress) -> DoingBody:
    return DoingBody(
        run_url=run_address(one.run),
        build=one.build,
        hardware=one.hardware,
        arms=list(one.arms),
        done=one.done,
        total=one.total,
        held=one.is_held,
    )
