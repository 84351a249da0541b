"""`knowngood void` and `unvoid`: all results of one worker in a span of time, out of the count and back in."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from knowngood.app.cli.context import opened, operator, read_settings
from knowngood.app.domain.verdicts.voids import Clock, Void, VoidSpan

if TYPE_CHECKING:
    from knowngood.app.store.engine import Engine
    from knowngood.app.store.evidence.voids import VoidReport

_SHOWN = 20

Reason = Annotated[str, typer.Option(help="Why, in one line: it stands beside every attempt and in the audit log.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


def void(  # noqa: PLR0913 - a command has as many arguments as it has options
    machine: Annotated[str, typer.Option(help="The digest of a machine, as /workers shows it.")] = "",
    token: Annotated[str, typer.Option(help="The name or kg_... of the token that results came through.")] = "",
    since: Annotated[
        str, typer.Option("--from", help="A day (its beginning, UTC) or 2026-11-20T12:00:00Z; without: ever.")
    ] = "",
    until: Annotated[str, typer.Option("--to", help="A day (its end, UTC) or a time; without: now.")] = "",
    clock: Annotated[
        Clock, typer.Option(help="When it was measured, as the worker says, or when it was received here.")
    ] = Clock.MEASURED,
    reason: Reason = "",
    *,
    dry_run: DryRun = False,
    list_: Annotated[bool, typer.Option("--list", help="Print all voids instead, the newest first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Keep all results of a worker in a span of time from counting. They stay visible; every cell follows at once."""
    from knowngood.app.store.engine import unit_of_work
    from knowngood.app.store.evidence.voids import known_worker, void_results
    from knowngood.app.web.datetime_parameters import first_moment, last_moment

    engine = opened(read_settings())
    if list_:
        _list(engine, as_json=as_json)
        return
    now = datetime.now(UTC)
    begins = first_moment(since, "--from", now) if since else None
    ends = last_moment(until, "--to", now) if until else now
    with unit_of_work(engine, dry_run=dry_run) as s:
        span = VoidSpan(*known_worker(s, machine, token), begins, ends, clock)
        report = void_results(s, span, reason, by=operator(), now=now)
    _tell(report, "would be voided" if dry_run else f"voided, as void {report.void.id}", as_json=as_json)


def unvoid(
    id_: Annotated[int, typer.Argument(metavar="ID", min=1, help="As `knowngood void --list` shows it.")],
    reason: Reason,
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Let what was voided count again: every cell is then as it would be had it never been said."""
    from knowngood.app.store.engine import unit_of_work
    from knowngood.app.store.evidence.voids import unvoid_results

    with unit_of_work(opened(read_settings()), dry_run=dry_run) as s:
        report = unvoid_results(s, id_, reason, by=operator(), now=datetime.now(UTC))
    _tell(report, "would be voided no more" if dry_run else "voided no more", as_json=as_json)


def _tell(report: "VoidReport", done: str, *, as_json: bool) -> None:
    news = [one for one in report.changes if one.is_news]
    if as_json:
        changed = [
            {"issue": one.issue, "build": one.build, "hardware": one.hardware, "before": before, "after": after}
            for one in news
            for before, after in [one.verdicts]
        ]
        numbers = {"attempts": report.attempts, "counted": report.counted, "cells": report.cells}
        typer.echo(json.dumps({"void": _fields(report.void), **numbers, "changed": changed}, indent=2))
        return
    typer.echo(
        f"{report.attempts} attempts in {report.cells} cells {done}; {report.counted} of them count otherwise now, and "
        f"{len(news)} cells read differently"
    )
    for one in news[:_SHOWN]:
        before, after = one.verdicts
        turned = f"{before} -> {after}" if before is not after else f"{after}, its workarounds read differently"
        typer.echo(f"{one.issue} {one.build} {one.hardware}: {turned}")
    if len(news) > _SHOWN:
        typer.echo(f"and {len(news) - _SHOWN} more (--json lists all)")


def _list(engine: "Engine", *, as_json: bool) -> None:
    from knowngood.app.store.engine import reading
    from knowngood.app.store.evidence.voids import load_voids

    with reading(engine) as s:
        found = load_voids(s)
    if as_json:
        typer.echo(json.dumps([_fields(one) for one in found], indent=2))
        return
    if not found:
        typer.echo("nothing was ever voided", err=True)
    for one in found:
        typer.echo(f"{one.id}  {_whose(one)}, {_when(one)}: {one.reason} ({one.actor}, {one.at:%Y-%m-%d %H:%M} UTC)")
        if one.ended_at is not None:
            typer.echo(f"    ended by {one.ended_by}, {one.ended_at:%Y-%m-%d %H:%M} UTC: {one.ended_reason}")


def _whose(one: Void) -> str:
    machine = [f"machine {one.span.machine}"] if one.span.machine else []
    token = [f"token kg_{one.span.token}"] if one.span.token else []
    return " through ".join([*machine, *token])


def _when(one: Void) -> str:
    begins = f"from {one.span.since:%Y-%m-%d %H:%M} " if one.span.since else ""
    return f"{one.span.clock} {begins}to {one.span.until:%Y-%m-%d %H:%M} UTC"


def _fields(one: Void) -> dict[str, object]:
    span = one.span
    told = {"at": one.at, "ended_at": one.ended_at, "from": span.since, "to": span.until}
    times = {name: at.isoformat() if at else None for name, at in told.items()}
    whose = {"id": one.id, "machine": span.machine, "token": span.token, "clock": span.clock}
    return {**whose, **times, "by": one.actor, "reason": one.reason, "ended_reason": one.ended_reason}
