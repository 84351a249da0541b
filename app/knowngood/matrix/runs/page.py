"""`/runs`: what was asked to be measured, newest first. `/runs/{id}`: what a run does now, what is left, and what its
results are; live where the reader allows scripts.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter, Response

from knowngood.matrix.lookups import find_run
from knowngood.store.engine import Session
from knowngood.store.jobs.durations import load_time_left
from knowngood.store.queries import EventRow, load_events, load_last_event, load_runs
from knowngood.web.html.i18n import duration, size
from knowngood.web.request_context import Context, RequestContext

router = APIRouter(include_in_schema=False)

_SHOWN_RUNS = 100
_SHOWN_EVENTS = 12
_SINCE_EVENTS = 200  # enough to find what each running job does now

PHASE_WORDS = {
    "resolve": "choosing packages",
    "sync": "installing packages",
    "compile": "compiling their Python files",
    "probe": "trying the environment",
    "wait": "waiting",
}


@router.get("/runs")
def runs(context: Context) -> Response:
    def load(session: Session) -> dict[str, Any]:
        rows = load_runs(session, _SHOWN_RUNS)
        return {"runs": rows, "is_cut": len(rows) == _SHOWN_RUNS, "asked": partial(_request_words, context)}

    return context.answer(load, partial(context.page, "runs.html"))


@router.get("/runs/{run}")
def run(context: Context, run: str) -> Response:
    """`left_s` is a guess (None before the first arm has ended), `doing` what the job of an id does, and
    `last_event` where the live stream goes on from.
    """

    def load(session: Session) -> dict[str, Any]:
        row = find_run(session, run)
        last = load_last_event(session)
        recent = load_events(session, max(0, last - _SINCE_EVENTS), row.id, _SINCE_EVENTS)
        return {
            "run": row,
            "asked": partial(_request_words, context),
            "left_s": load_time_left(session, row, context.now),
            "doing": {str(event.data.get("job")): _doing(context, event) for event in recent},
            "results": [event for event in reversed(recent) if event.kind == "arm_finished"][:_SHOWN_EVENTS],
            "issues": context.known(session).issues,
            "last_event": last,
        }

    return context.answer(load, partial(context.page, "run.html"))


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
    detail = context.say(", ").join(part for part in (str(data.get("detail") or ""), amount) if part)
    return context.say(": ").join(part for part in (context.say(PHASE_WORDS.get(phase, phase)), detail) if part)


def _request_words(context: RequestContext, request: Mapping[str, object]) -> str:
    """`torch-2.7.1+cu126 · 12 issues · knowngood run`: the request in words; lists longer than three are counted."""
    stated = {name: value for name, value in request.items() if value not in (None, [], "", False)}
    return " · ".join(_in_words(context, name, value) for name, value in stated.items())


_COUNTED_WORDS = {"builds": "{n} builds", "issues": "{n} issues", "cells": "cells drawn: {n}"}


def _in_words(context: RequestContext, name: str, value: object) -> str:
    if name == "by":
        return f"knowngood {value}"
    listed = [str(item) for item in value] if isinstance(value, list | tuple) else []
    if 0 < len(listed) <= 3:  # noqa: PLR2004 - three fit a line
        return ", ".join(listed)
    if name in _COUNTED_WORDS:
        return context.say(_COUNTED_WORDS[name], n=len(listed) or value)
    return name if value is True else f"{name} {value}"
