"""`/runs/{id}`: what a run is doing now, what is left, and what it found. Live where the reader allows scripts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Response

from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.vocabulary import OUTCOMES, StatusLabel
from knowngood.matrix.lookups import find_run
from knowngood.matrix.runs.runs_page import RunLine, run_line
from knowngood.matrix.runs.time_left import load_time_left
from knowngood.store.engine import Session
from knowngood.store.queries import EventRow, JobRow, JobState, RunRow, load_events, load_last_event
from knowngood.web.html.i18n import duration, size
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, attempt_address, cell_address, run_address

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

PHASE_WORDS = {
    "resolve": "choosing packages",
    "sync": "installing packages",
    "compile": "compiling their Python files",
    "probe": "trying the environment",
    "wait": "waiting",
}


@dataclass(frozen=True)
class JobLine:
    """`doing` says what it does now (empty unless it runs)."""

    job: JobRow
    word: str
    doing: str
    took_s: float | None


@dataclass(frozen=True)
class EventLine:
    """One result as it came in. `what` names the issue, the arm and the build."""

    at: datetime
    sign: str
    word: str
    title: str
    what: str
    address: str
    cell_address: str


@dataclass(frozen=True)
class RunPage:
    """`left_s` is a guess (time_left.py); None before the first arm has ended."""

    line: RunLine
    share: int
    left_s: float | None
    jobs: tuple[JobLine, ...]
    results: tuple[EventLine, ...]
    live_address: str
    json_address: str


@router.get("/runs/{run}")
def run(context: Context, run: str) -> Response:
    def load(session: Session) -> tuple[RunRow, tuple[EventRow, ...], int, float | None, Mapping[str, Issue]]:
        found = find_run(session, run)
        last = load_last_event(session)
        recent = load_events(session, max(0, last - _SINCE_EVENTS), found.id, _SINCE_EVENTS)
        left_s = load_time_left(session, found, context.now)
        return found, recent, last, left_s, context.known(session).issues

    return context.answer(load, lambda found: context.page("run.html", run_page(context, *found)))


def run_page(
    context: RequestContext,
    found: RunRow,
    recent: tuple[EventRow, ...],
    last: int,
    left_s: float | None,
    issues: Mapping[str, Issue],
) -> RunPage:
    """`recent` are this run's newest events, oldest first; `last` is where the live stream goes on from."""
    doing = {str(event.data.get("job")): _doing(context, event) for event in recent}
    finished = [event for event in reversed(recent) if event.kind == "arm_finished"]
    return RunPage(
        line=run_line(context, found),
        share=100 * found.arms_done // found.arms_total if found.arms_total else 100,
        left_s=left_s,
        jobs=tuple(_job(context, job, doing.get(job.id, "")) for job in found.jobs),
        results=tuple(_result(context, event, issues) for event in finished[:_SHOWN_EVENTS]),
        live_address="" if found.finished_at else f"{API}/events?run={found.id}&after={last}",
        json_address=f"{API}{run_address(found.id)}",
    )


def _job(context: RequestContext, job: JobRow, doing: str) -> JobLine:
    ended = job.finished_at or context.now
    begun = "" if job.arms_done else context.say("making the environment")
    return JobLine(
        job=job,
        word=context.say(JOB_WORDS[job.state]),
        doing=(doing or begun) if job.state is JobState.LEASED else "",
        took_s=max(0.0, (ended - job.started_at).total_seconds()) if job.started_at else None,
    )


def _doing(context: RequestContext, event: EventRow) -> str:
    """The state of an event's job from then on."""
    data = event.data
    match event.kind:
        case "provisioning":
            return _provisioning(context, data)
        case "arm_started":
            return f"{data['issue']} {data['arm']}"
        case "environment_ready":
            return context.say("environment ready after {time}", time=duration(float(str(data["seconds"]))))
        case _:
            return ""


def _provisioning(context: RequestContext, data: Mapping[str, object]) -> str:
    """`installing packages: torch, 1.4 GB of 3.1 GB`. The detail is the agent's own."""
    done, total = int(str(data.get("done_bytes", 0))), int(str(data.get("total_bytes", 0)))
    amount = context.say("{done} of {all}", done=size(done), all=size(total)) if total else ""
    phase = str(data["phase"])
    told = context.say(", ").join(part for part in (str(data.get("detail") or ""), amount) if part)
    return context.say(": ").join(part for part in (context.say(PHASE_WORDS.get(phase, phase)), told) if part)


def _result(context: RequestContext, event: EventRow, issues: Mapping[str, Issue]) -> EventLine:
    data = {name: str(value) for name, value in event.data.items()}
    outcome = Outcome(data["outcome"]) if data.get("outcome", "None") != "None" else None
    variant = "" if data["variant"] == "default" else f" ({data['variant']})"
    issue = issues.get(data["issue"])
    return EventLine(
        at=event.at,
        sign=OUTCOMES[outcome].label if outcome else StatusLabel.NOT_RUN,
        word=context.say(OUTCOMES[outcome].word) if outcome else context.say("superseded"),
        title=context.title_of(issue) if issue else data["issue"],
        what=f"{data['issue']} · {data['arm']}{variant} · {data['build']}",
        address=attempt_address(data["attempt"]),
        cell_address=cell_address(data["issue"], data["build"], data["hardware"]),
    )
