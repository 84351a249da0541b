"""`knowngood next`: what is worth measuring now, in which order, why, and what that costs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from shutil import disk_usage
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.opening import opened_with_catalogue, read_settings, root
from app.domain.errors import BadRequest
from app.domain.plan import ENVIRONMENT_S
from app.domain.value import Proposal, Scene, propose, watched_by

if TYPE_CHECKING:
    from app.settings import Settings
    from app.store.session import Engine
    from workers.estimate import Estimate

MINUTES = 60
"""What is planned for where nobody says."""

Names = list[str] | None


def next_(
    minutes: Annotated[float, typer.Option(min=1, help="How long it may take.")] = MINUTES,
    hardware: Annotated[Names, typer.Option("--hardware", help="Classes; this machine's own without.")] = None,
    offline: Annotated[bool, typer.Option(help="Ask no package index: downloads are not told.")] = False,  # noqa: FBT002 - a flag
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Say what to measure next, in order and with reasons; `run --next` does it. docs/scheduling.md tells the rule."""
    settings = read_settings()
    engine = opened_with_catalogue(settings)
    proposals = proposed(engine, settings, _split(hardware) or own_hardware(), minutes)
    estimate = None if offline else _estimated(settings, proposals)
    if as_json:
        import json

        typer.echo(json.dumps(as_body(proposals, estimate), indent=2, ensure_ascii=False))
    else:
        _print(settings, proposals, estimate)


def proposed(
    engine: "Engine", settings: "Settings", hardware: Sequence[str], minutes: float | None
) -> tuple[Proposal, ...]:
    """Jobs in the order to run them, of at most so many minutes. Raises BadRequest for a class that is none."""
    from app.store.reads import load_builds, load_durations, load_issues, load_known_attempts
    from app.store.session import reading
    from app.store.times import load_environment_s
    from app.store.waiting import load_waiting_cells
    from app.store.watch import load_watch_lists

    for class_ in hardware:
        if not class_.startswith(("cpu-", "cuda-sm_")):
            raise BadRequest(f'"{class_}" is no hardware class; write for example cpu-x86_64 or cuda-sm_90')
    with reading(engine) as s:
        issues = load_issues(s)
        scene = Scene(
            issues=issues,
            builds=load_builds(s),
            hardware=tuple(hardware),
            known=load_known_attempts(s),
            now=datetime.now(UTC),
            watched=watched_by(load_watch_lists(s).values(), {one.id: one for one in issues}, hardware),
            waiting=load_waiting_cells(s),
            durations=load_durations(s),
            environment_s=load_environment_s(s) or ENVIRONMENT_S,
            slots=settings.slots,
        )
    return propose(scene, None if minutes is None else minutes * 60)


def own_hardware() -> tuple[str, ...]:
    from workers.machine import describe_machine

    return describe_machine().hardware


def _estimated(settings: "Settings", proposals: Sequence[Proposal]) -> "Estimate":
    from workers.provision import Provisioner

    provisioner = Provisioner(root(settings), limit_bytes=settings.envs_limit)
    return provisioner.estimate([(one.job.build, one.job.request) for one in proposals])


def as_body(proposals: Sequence[Proposal], estimate: "Estimate | None") -> dict[str, Any]:
    jobs = [
        {
            "build": one.job.build.id,
            "hardware": one.job.hardware,
            "packages": list(one.job.request.packages),
            "reason": one.reason,
            "watched_by": list(one.watchers),
            "value": one.value,
            "minutes": round(one.seconds / 60, 2),
            "arms": len(one.job.arms),
            "cells": [{"issue": due.issue, "why": due.why.value, "reason": due.words} for due in one.due],
        }
        for one in proposals
    ]
    body: dict[str, Any] = {"jobs": jobs, "minutes": round(sum(one.seconds for one in proposals) / 60, 1)}
    if estimate is not None:
        body |= {
            "download_bytes": estimate.download_bytes,
            "disk_bytes": estimate.disk_bytes,
            "unknown": list(estimate.unknown),
            "cannot_be_made": {build: trouble.sentence for build, trouble in estimate.troubles.items()},
        }
    return body


def _print(settings: "Settings", proposals: Sequence[Proposal], estimate: "Estimate | None") -> None:
    from app.domain.plan import Price
    from app.terminal import in_words, print_price, to_do_in_words

    if not proposals:
        typer.echo("nothing is due: every cell that can be asked has a fresh answer, or waits in the queue")
        return
    for number, one in enumerate(proposals, 1):
        extra = f" with {', '.join(one.job.request.packages)}" if one.job.request.packages else ""
        cells = f"{len(one.due)} cell{'s' if len(one.due) > 1 else ''}, {in_words(one.seconds)}"
        typer.echo(f"{number:3} {one.job.build.id}{extra} on {one.job.hardware} ({cells})\n    {one.reason}")
    seconds = sum(one.seconds for one in proposals)
    if estimate is None:
        typer.echo(f"{len(proposals)} jobs, about {in_words(seconds)} once their environments are here")
        return
    from rich.console import Console

    arms = sum(len(one.job.arms) for one in proposals)
    free_bytes = disk_usage(root(settings)).free
    typer.echo(to_do_in_words([one.job for one in proposals]))
    print_price(Console(highlight=False), Price(len(proposals), arms, seconds, 0), estimate, free_bytes=free_bytes)


def _split(values: Names) -> tuple[str, ...]:
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())
