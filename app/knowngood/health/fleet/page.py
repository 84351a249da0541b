"""`/workers`: who measures, how busy it is, what a cell costs there, what it does now, and what nobody can measure."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.domain.measuring.job import LOCAL
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.measuring.worker_stats import HeldJobProgress, Unserved, Window, Worker
from knowngood.health.fleet.service import ClassNeed, Working, load_working
from knowngood.store.queries import load_last_event
from knowngood.web.html.grid import Choice
from knowngood.web.html.i18n import size
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API

router = APIRouter(include_in_schema=False)

WINDOW_WORDS = {Window.DAY: "24 hours", Window.WEEK: "7 days", Window.MONTH: "30 days"}


@dataclass(frozen=True)
class WorkerLine:
    """`cpu`, `gpus` and `isolation` are empty where its description was pruned; `origins` are bundles that told so."""

    worker: Worker
    name: str
    cpu: str
    gpus: tuple[str, ...]
    isolation: str
    is_described: bool
    origins: str
    busy: str


@dataclass(frozen=True)
class WorkersPage:
    """`seen` of the workers did something in the window. `dispatcher_until` is None where none is at work;
    `live_address` is empty where nothing moves.
    """

    lines: tuple[WorkerLine, ...]
    seen: int
    queued: int
    dispatcher_until: datetime | None
    idle: tuple[HeldJobProgress, ...]
    classes: tuple[ClassNeed, ...]
    unserved: tuple[Unserved, ...]
    windows: tuple[Choice, ...]
    window: str
    live_address: str
    json_address: str


@router.get("/workers")
def workers(context: Context, window: Annotated[Window, Query()] = Window.WEEK) -> Response:
    return context.answer(
        lambda session: (
            load_working(session, context.known(session), window, context.now),
            load_last_event(session),
        ),
        lambda found: context.page("workers.html", workers_page(context, found[0], window, found[1])),
    )


def workers_page(context: RequestContext, found: Working, window: Window, last: int) -> WorkersPage:
    """`last` is where the live stream goes on from."""
    since = context.now - window.span
    is_moving = (
        any(one.doing for one in found.workers) or bool(found.idle) or any(one.queued_jobs for one in found.classes)
    )
    return WorkersPage(
        lines=tuple(_worker(context, one) for one in found.workers),
        seen=sum(one.last_at >= since for one in found.workers),
        queued=sum(one.queued_jobs for one in found.classes),
        dispatcher_until=found.lease.until if found.lease else None,
        idle=found.idle,
        classes=found.classes,
        unserved=found.unserved,
        windows=tuple(
            Choice(context.say(words), f"/workers?window={one}", one is window) for one, words in WINDOW_WORDS.items()
        ),
        window=context.say(WINDOW_WORDS[window]),
        live_address=f"{API}/events?after={last}" if is_moving else "",
        json_address=f"{API}/workers?window={window}",
    )


def _worker(context: RequestContext, worker: Worker) -> WorkerLine:
    machine = worker.machine
    isa = {"avx512": "AVX-512", "avx2": "AVX2"}
    cpu = (
        [
            machine.cpu_model,
            context.say("{n} cores", n=machine.cores),
            isa.get(machine.isa, ""),
            size(machine.memory_bytes),
        ]
        if machine
        else []
    )
    return WorkerLine(
        worker=worker,
        name=worker.digest[:8],
        cpu=", ".join(part for part in cpu if part),
        gpus=_gpus(machine) if machine else (),
        isolation=machine.isolation if machine else "",
        is_described=machine is not None,
        origins=", ".join(f'"{origin}"' for origin in worker.origins if origin != LOCAL),
        busy=percent(worker.busy),
    )


def _gpus(machine: Machine) -> tuple[str, ...]:
    """Alike ones in one line: `4 x NVIDIA H200, 150.8 GB, cuda-sm_90`."""
    counts = Counter(f"{gpu.name}, {size(gpu.memory_bytes)}, {gpu.hardware}" for gpu in machine.gpus)
    return tuple(f"{n} x {words}" if n > 1 else words for words, n in counts.items())


def percent(share: float) -> str:
    """`0 %` only where it was nothing at all, and never 100 where there was a gap."""
    if 0 < share < 0.01:  # noqa: PLR2004 - a hundredth
        return "< 1 %"
    return f"{int(share * 100)} %"
