"""Who measures, as JSON."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from knowngood.domain.measuring.isolation import Isolation
from knowngood.domain.measuring.worker_stats import Window, Worker
from knowngood.health.fleet.service import ClassNeed, Working
from knowngood.web.json_body import Body, IssueUrl, read_from, rounded
from knowngood.web.urls import run_address


class GpuBody(Body):
    name: str
    hardware: str
    memory_bytes: int


class DoingBody(Body):
    """A job that is held. `held` is false where its lease has run out."""

    run_url: Annotated[str, AfterValidator(run_address)] = read_from("run")
    build: str
    hardware: str
    arms: list[str]
    done: int
    total: int
    held: bool = read_from("is_held")


class ClassWorkBody(Body):
    """Within the window. `seconds_per_cell` is null where nothing was measured."""

    hardware: str
    arms: int
    cells: int
    seconds: Annotated[float, rounded(1)]
    seconds_per_cell: Annotated[float | None, rounded(1)] = read_from("per_cell_s")


class WorkerBody(Body):
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


class UnservedBody(Body):
    issue: str = read_from("issue", "id")
    needs: str
    url: IssueUrl = read_from("issue", "id")


class WorkersBody(Body):
    window: Window
    dispatcher_until: datetime | None = Field(description="Null where no dispatcher is at work: queued jobs wait")
    workers: list[WorkerBody]
    held_by_none: list[DoingBody]
    classes: list[ClassNeed]
    unserved: list[UnservedBody] = Field(description="Issues that no worker of the window can measure on any build")


def workers_body(found: Working, window: Window) -> WorkersBody:
    return WorkersBody(
        window=window,
        dispatcher_until=found.lease.until if found.lease else None,
        workers=[_worker(one) for one in found.workers],
        held_by_none=[DoingBody.of(one) for one in found.idle],
        classes=list(found.classes),
        unserved=[UnservedBody.of(one) for one in found.unserved],
    )


def _worker(worker: Worker) -> WorkerBody:
    machine = worker.machine
    return WorkerBody(
        id=worker.digest,
        last_seen_at=worker.last_at,
        cpu=machine.cpu_model if machine else None,
        cores=machine.cores if machine else None,
        memory_bytes=machine.memory_bytes if machine else None,
        gpus=[GpuBody.of(gpu) for gpu in machine.gpus] if machine else None,
        driver=(machine.driver or None) if machine else None,
        isolation=machine.isolation if machine else None,
        hardware=sorted(worker.served),
        origins=list(worker.origins),
        arms_done=worker.arms,
        busy_share=round(worker.busy, 6),
        classes=[ClassWorkBody.of(one) for one in worker.classes],
        doing=[DoingBody.of(one) for one in worker.doing],
    )
