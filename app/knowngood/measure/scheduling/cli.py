"""`knowngood next`: what is worth measuring now, in which order, why, and what that costs."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from knowngood.cli.catalogue import opened_with_catalogue
from knowngood.cli.console import in_words
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, MINUTES, flag, names, option
from knowngood.domain.errors import BadRequest
from knowngood.domain.measuring.planning import ENVIRONMENT_S
from knowngood.domain.vocabulary import many
from knowngood.measure.jobs import Work
from knowngood.measure.scheduling.pricing import appraise, sizes_as_json, tell_price
from knowngood.measure.scheduling.priority import ProposedJob, SchedulingState, propose, watched_by
from knowngood.settings import Settings, read_settings
from knowngood.store.engine import Engine, reading
from knowngood.store.jobs.durations import load_environment_s
from knowngood.store.jobs.workers import load_waiting_cells
from knowngood.store.queries import load_builds, load_durations, load_issues, load_known_attempts
from knowngood.store.watch_lists import load_watch_lists
from knowngood_workers.host.machine_info import describe_machine


@command(
    "Say what to measure next, in order and with reasons; `run --next` does it.",
    option("--minutes", type=MINUTES, default=60, help="How many minutes it may take."),
    names("--hardware", "Hardware classes. Default: those of this machine."),
    flag("--all", "in_full", help_="Print every job, not only the first eight."),
    flag("--offline", help_="Do not ask the package index for sizes."),
    AS_JSON,
    example="next --minutes 30",
)
def next_command(*, minutes: float, hardware: Sequence[str], in_full: bool, offline: bool, as_json: bool) -> None:
    settings = read_settings()
    engine = opened_with_catalogue(settings)
    proposals = proposed(engine, settings, hardware or describe_machine().hardware, minutes)
    planned = [proposal.job for proposal in proposals]
    if as_json:
        _, estimate = appraise(engine, Work(settings), planned, asks=not offline)
        click.echo(json.dumps(as_body(proposals) | sizes_as_json(estimate), indent=2, ensure_ascii=False))
    elif not proposals:
        click.echo("nothing is due: every cell that can be asked has a fresh answer, or waits in the queue")
    else:
        _print(proposals, None if in_full else _SHOWN)
        tell_price(engine, Work(settings), planned, asks=not offline)


def proposed(
    engine: Engine, settings: Settings, hardware: Sequence[str], minutes: float | None
) -> tuple[ProposedJob, ...]:
    """Jobs in the order to run them, of at most so many minutes. Raises BadRequest for a class that is none."""
    for class_ in hardware:
        if not class_.startswith(("cpu-", "cuda-sm_")):
            raise BadRequest(f'"{class_}" is no hardware class; write for example cpu-x86_64 or cuda-sm_90')
    with reading(engine) as s:
        issues = load_issues(s)
        scheduling_state = SchedulingState(
            issues=issues,
            builds=load_builds(s),
            hardware=tuple(hardware),
            known=load_known_attempts(s),
            now=datetime.now(UTC),
            watched=watched_by(load_watch_lists(s).values(), {issue.id: issue for issue in issues}, hardware),
            waiting=load_waiting_cells(s),
            durations=load_durations(s),
            environment_s=load_environment_s(s) or ENVIRONMENT_S,
            slots=settings.slots,
        )
    return propose(scheduling_state, None if minutes is None else minutes * 60)


def as_body(proposals: Sequence[ProposedJob]) -> dict[str, Any]:
    jobs = [
        {
            "build": proposal.job.build.id,
            "hardware": proposal.job.hardware,
            "packages": list(proposal.job.request.packages),
            "reason": proposal.reason,
            "watched_by": list(proposal.watchers),
            "value": proposal.value,
            "minutes": round(proposal.seconds / 60, 2),
            "arms": len(proposal.job.arms),
            "cells": [{"issue": due.issue, "why": due.why.value, "reason": due.words} for due in proposal.due],
        }
        for proposal in proposals
    ]
    return {"jobs": jobs, "minutes": round(sum(proposal.seconds for proposal in proposals) / 60, 1)}


_SHOWN = 8


def _print(proposals: Sequence[ProposedJob], most: int | None) -> None:
    seconds = sum(proposal.seconds for proposal in proposals)
    click.echo(f"{many(len(proposals), 'job')} worth running next, {in_words(seconds)}: knowngood run --next")
    for number, proposal in enumerate(proposals[:most], 1):
        cells = f"{len(proposal.due)} cell{'s' if len(proposal.due) > 1 else ''}, {in_words(proposal.seconds)}"
        click.echo(
            f"{number:3} {proposal.job.request.name} on {proposal.job.hardware} ({cells})\n    {proposal.reason}"
        )
    if proposals[most:] and most:
        click.echo(f"{len(proposals) - most} more: --all")
