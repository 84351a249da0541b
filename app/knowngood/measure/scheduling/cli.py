"""`knowngood next`: what is worth measuring now, in which order, why, and what that costs.

The price of jobs is the one that every command prints before it runs them: at once from what is known here, then with
what the index says.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import click
from rich.console import Console

from knowngood.cli.console import in_words, print_price, print_sizes, to_do_in_words
from knowngood.cli.context import opened_with_catalogue, root
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, MINUTES, flag, names, option
from knowngood.cli.output import err, out, print_json
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import EnvironmentRequest
from knowngood.domain.measuring.planning import ENVIRONMENT_S, PlannedJob, Price, price_of
from knowngood.domain.vocabulary import many
from knowngood.gate.renderers.common import wrapped
from knowngood.measure.jobs import Work, tell_timed
from knowngood.measure.scheduling.priority import ProposedJob, SchedulingState, propose, watched_by
from knowngood.settings import Settings, read_settings
from knowngood.store.engine import Engine, reading
from knowngood.store.jobs.durations import load_environment_s, load_locks
from knowngood.store.jobs.workers import load_waiting_cells
from knowngood.store.knowledge.model import Recorded
from knowngood.store.knowledge.snapshot import recorded_with_shipped
from knowngood.store.queries import load_builds, load_durations, load_issues, load_known_attempts
from knowngood.store.watch_lists import load_watch_lists
from knowngood_workers.agent.agent import arms_at_once
from knowngood_workers.host.machine_info import describe_machine
from knowngood_workers.provision.download_estimate import Estimate
from knowngood_workers.provision.provisioner import Provisioner
from knowngood_workers.provision.resolver import Lock, read_lock


@command(
    "Say what to measure next, in order and with reasons; `run --next` does it.",
    option("--minutes", type=MINUTES, default=60, help="How many minutes it may take."),
    names("--hardware", "Hardware classes. Default: those of this machine."),
    flag("--all", "in_full", help_="Print every job, not only the first six."),
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
            at_once=arms_at_once(describe_machine(), settings.slots),
        )
    tell_timed(issues)
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


_SHOWN = 6


def _print(proposals: Sequence[ProposedJob], most: int | None) -> None:
    seconds = sum(proposal.seconds for proposal in proposals)
    click.echo(f"{many(len(proposals), 'job')} worth running next, {in_words(seconds)}: knowngood run --next")
    for number, proposal in enumerate(proposals[:most], 1):
        cells = f"{len(proposal.due)} cell{'s' if len(proposal.due) > 1 else ''}, {in_words(proposal.seconds)}"
        click.echo(f"{number:3} {proposal.job.request.name} on {proposal.job.hardware} ({cells})")
        click.echo("\n".join(wrapped(proposal.reason, "    ", "    ")))
    if proposals[most:] and most:
        click.echo(f"{len(proposals) - most} more: --all")


SIZES_S = 20.0
"""How long the package index is asked. What it says is kept: the next time goes on from there."""


def appraise(
    engine: Engine,
    work: Work,
    planned: Sequence[PlannedJob],
    on_asked: Callable[[int, int], None] = lambda _at, _of: None,
    on_price: Callable[[Price, Estimate], None] = lambda _price, _here: None,
    *,
    asks: bool,
) -> tuple[Price, Estimate]:
    """Appraise by what is known here, which `on_price` gets at once; then, if that leaves sizes open and it `asks`,
    with what the index says. No wheel is fetched.
    """
    settings = work.settings
    with reading(engine) as s:
        known = recorded_with_shipped(Recorded(load_durations(s), load_environment_s(s)))
        stored = _readable(load_locks(s, load_issues(s), load_builds(s)))
    provisioner = Provisioner(
        root(settings), limit_bytes=settings.envs_limit, environ=work.environ, adopted=work.adopted
    )
    pairs = [(job.build, job.request) for job in planned]
    estimate = provisioner.estimate(pairs, stored)
    environment_s = known.environment_s or ENVIRONMENT_S
    price = price_of(
        planned,
        known.durations,
        at_once=arms_at_once(describe_machine(), settings.slots),
        environment_s=environment_s,
        ready=estimate.ready,
    )
    on_price(price, estimate)
    if asks and estimate.is_open:
        troubles = provisioner.look_up(pairs, stored, seconds=SIZES_S, on_asked=on_asked)
        estimate = provisioner.estimate(pairs, stored, troubles)
    return price, estimate


def _readable(texts: Mapping[EnvironmentRequest, str]) -> dict[EnvironmentRequest, Lock]:
    locks = {}
    for request, text in texts.items():
        with suppress(ValueError, KeyError):  # the list of what a machine had already
            locks[request] = read_lock(text)
    return locks


def tell_price(
    engine: Engine,
    work: Work,
    planned: Sequence[PlannedJob],
    console: Console = out,
    *,
    asks: bool = True,
    as_json: bool = False,
) -> None:
    """Print what the jobs would cost: the time at once, and the sizes when the index was asked for those not known."""
    if as_json:
        print_json(price_as_json(engine, work, planned, asks=asks))
        return
    if not planned:
        console.print("nothing to run: every cell asked for has its answer (--force runs it again)")
        return
    console.print(to_do_in_words(planned), highlight=False)
    with _asking() as on_asked:
        price, estimate = appraise(engine, work, planned, on_asked, partial(print_price, console), asks=asks)
    if estimate.ready < price.environments:
        print_sizes(console, estimate)


def price_as_json(engine: Engine, work: Work, planned: Sequence[PlannedJob], *, asks: bool) -> dict[str, Any]:
    price, estimate = appraise(engine, work, planned, asks=asks)
    return {**vars(price), **sizes_as_json(estimate)}


@contextmanager
def _asking() -> Iterator[Callable[[int, int], None]]:
    """A function that tells how far the index was asked: a line that goes away, or in a log one that stays."""
    status = err.status("")

    def tell(at: int, of: int) -> None:
        status.update(f"asking the package index for what is not known here: {at} of {many(of, 'environment')}")
        if at == of:
            status.stop()
        elif not at and err.is_terminal:
            status.start()
        elif not at:
            err.print(f"asking the package index about {many(of, 'environment')}, for at most {in_words(SIZES_S)}")

    try:
        yield tell
    finally:
        status.stop()


def sizes_as_json(estimate: Estimate) -> dict[str, Any]:
    return {
        "ready": estimate.ready,
        "download_bytes": estimate.download_bytes,
        "guessed_bytes": estimate.guessed_bytes,
        "disk_bytes": estimate.disk_bytes,
        "free_bytes": estimate.space.free_bytes,
        "fit": estimate.fit.value,
        "unknown": list(estimate.unknown),
        "unresolved": estimate.unresolved,
        "cannot_be_made": {name: trouble.sentence for name, trouble in estimate.troubles.items()},
    }
