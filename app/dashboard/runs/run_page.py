"""`/runs/{id}`: what a run is doing now, what is left, and what it found. Live where the reader allows scripts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Response

from knowngood.app.dashboard.lookups import find_run
from knowngood.app.dashboard.runs.runs_page import RunLine, run_line
from knowngood.app.dashboard.runs.time_left import load_time_left
from knowngood.app.domain.verdicts.outcome import Outcome
from knowngood.app.domain.vocabulary import OUTCOMES, StatusLabel
from knowngood.app.store.engine import Session
from knowngood.app.store.queries import EventRow, JobRow, JobState, RunRow, load_events, load_last_event
from knowngood.app.web.html.i18n import duration, size
from knowngood.app.web.request_context import Context, RequestContext
from knowngood.app.web.urls import API, attempt_address, build_address, cell_address

router = APIRouter(include_in_schema=False)

_SHOWN_EVENTS = 12
_SINCE_EVENTS = 200  # enough to find what each running job does now

JOB_WORDS = {
    JobState.QUEUED: "waiting",
    JobState.LEASED: "running",
    JobState.DONE: "done",
    JobState.POISONED: "given up",
    JobState.CANCELLED: "cancelled",
}


@dataclass(frozen=True)
class JobLine:
    """`doing` says what it does now (empty unless it runs)."""

    job: JobRow
    word: str
    address: str
    doing: str
    took_s: float | None


@dataclass(frozen=True)
class EventLine:
    """One result as it came in."""

    at: datetime
    sign: str
    word: str
    what: str
    address: str
    cell_address: str


@dataclass(frozen=True)
class RunPage:
    """`left_s` is a guess (time_left.py); None before the first arm has ended."""

    line: RunLine
    run: RunRow
    is_over: bool
    share: int
    left_s: float | None
    jobs: tuple[JobLine, ...]
    results: tuple[EventLine, ...]
    live_address: str
    json_address: str


@router.get("/runs/{run}")
def run(context: Context, run: str) -> Response:
    def load(session: Session) -> tuple[RunRow, tuple[EventRow, ...], int, float | None]:
        found = find_run(session, run)
        last = load_last_event(session)
        recent = load_events(session, max(0, last - _SINCE_EVENTS), found.id, _SINCE_EVENTS)
        return found, recent, last, load_time_left(session, found, context.now)

    return context.answer(load, lambda found: context.page("run.html", run_page(context, *found)))


def run_page(
    context: RequestContext, found: RunRow, recent: tuple[EventRow, ...], last: int, left_s: float | None
) -> RunPage:
    """`recent` are this run's newest events, oldest first; `last` is where the live stream goes on from."""
    line = run_line(context, found)
    is_over = found.finished_at is not None
    doing = {str(event.data.get("job")): _doing(event) for event in recent}
    results = [_result(context, event) for event in reversed(recent) if event.kind == "arm_finished"]
    return RunPage(
        line=line,
        run=found,
        is_over=is_over,
        share=100 * found.arms_done // found.arms_total if found.arms_total else 100,
        left_s=left_s,
        jobs=tuple(_job(context, job, doing.get(job.id, "")) for job in found.jobs),
        results=tuple(results[:_SHOWN_EVENTS]),
        live_address="" if is_over else f"{API}/events?run={found.id}&after={last}",
        json_address=f"{API}{line.address}",
    )


def _job(context: RequestContext, job: JobRow, doing: str) -> JobLine:
    ended = job.finished_at or context.now
    return JobLine(
        job=job,
        word=context.say(JOB_WORDS[job.state]),
        address=build_address(job.build, job.hardware),
        doing=doing if job.state is JobState.LEASED else "",
        took_s=max(0.0, (ended - job.started_at).total_seconds()) if job.started_at else None,
    )


def _doing(event: EventRow) -> str:
    """The state of an event's job from then on."""
    data = event.data
    match event.kind:
        case "provisioning":
            return _provisioning(data)
        case "arm_started":
            return f"running {data['issue']} {data['arm']}"
        case "environment_ready":
            return f"environment ready after {duration(float(str(data['seconds'])))}"
        case _:
            return ""


def _provisioning(data: Mapping[str, object]) -> str:
    done, total = int(str(data.get("done_bytes", 0))), int(str(data.get("total_bytes", 0)))
    amount = f", {size(done)} of {size(total)}" if total else ""
    detail = f": {data['detail']}" if data.get("detail") else ""
    return f"environment, {data['phase']}{detail}{amount}"


def _result(context: RequestContext, event: EventRow) -> EventLine:
    data = {name: str(value) for name, value in event.data.items()}
    outcome = Outcome(data["outcome"]) if data.get("outcome", "None") != "None" else None
    variant = "" if data["variant"] == "default" else f" ({data['variant']})"
    return EventLine(
        at=event.at,
        sign=OUTCOMES[outcome].label if outcome else StatusLabel.NOT_RUN,
        word=context.say(OUTCOMES[outcome].word) if outcome else context.say("superseded"),
        what=f"{data['issue']} {data['arm']}{variant} on {data['build']}",
        address=attempt_address(data["attempt"]),
        cell_address=cell_address(data["issue"], data["build"], data["hardware"]),
    )
