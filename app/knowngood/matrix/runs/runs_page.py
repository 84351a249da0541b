"""`/runs`: what was asked to be measured, newest first."""

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Response

from knowngood.store.queries import RunRow, RunState, load_runs
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API

router = APIRouter(include_in_schema=False)

_SHOWN = 100

STATE_WORDS = {
    RunState.QUEUED: "waiting",
    RunState.RUNNING: "running",
    RunState.CANCELLING: "stopping",
    RunState.CANCELLED: "cancelled",
    RunState.DONE: "done",
}


@dataclass(frozen=True)
class RunLine:
    """`asked` says in a few words what was asked for; `problems` counts jobs that left arms undone."""

    run: RunRow
    word: str
    asked: str
    problems: int
    took_s: float


@dataclass(frozen=True)
class RunsPage:
    lines: tuple[RunLine, ...]
    shown: int
    json_address: str


@router.get("/runs")
def runs(context: Context) -> Response:
    return context.answer(
        lambda session: load_runs(session, _SHOWN),
        lambda found: context.page(
            "runs.html", RunsPage(tuple(run_line(context, run) for run in found), _SHOWN, f"{API}/runs")
        ),
    )


def run_line(context: RequestContext, run: RunRow) -> RunLine:
    return RunLine(
        run=run,
        word=context.say(STATE_WORDS[run.state]),
        asked=_asked(context, run.request),
        problems=sum(1 for job in run.jobs if job.problem),
        took_s=max(0.0, ((run.finished_at or context.now) - run.created_at).total_seconds()),
    )


def _asked(context: RequestContext, request: Mapping[str, object]) -> str:
    """`torch-2.7.1+cu126 · 12 issues · knowngood run`: lists longer than three are counted."""
    said = {name: value for name, value in request.items() if value not in (None, [], "", False)}
    return " · ".join(_in_words(context, name, value) for name, value in said.items())


_COUNTED_WORDS = {"builds": "{n} builds", "issues": "{n} issues", "cells": "cells drawn: {n}"}


def _in_words(context: RequestContext, name: str, value: object) -> str:
    if name == "by":
        return f"knowngood {value}"
    listed = [str(one) for one in value] if isinstance(value, list | tuple) else []
    if 0 < len(listed) <= 3:  # noqa: PLR2004 - three fit a line
        return ", ".join(listed)
    if name in _COUNTED_WORDS:
        return context.say(_COUNTED_WORDS[name], n=len(listed) or value)
    return name if value is True else f"{name} {value}"
