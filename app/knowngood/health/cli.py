"""`knowngood void` and `unvoid`: all results of one worker in a span of time, out of the count and back in. `knowngood
hygiene`: where upstream's word and the measurements drift apart.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import click
from rich.text import Text

from knowngood.cli.choice import issues_of
from knowngood.cli.context import opened, operator
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import known_here
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, ISSUES, argument, flag, option, text
from knowngood.cli.output import out, print_json
from knowngood.domain.message import english
from knowngood.domain.verdicts.voids import Clock, Void, VoidSpan
from knowngood.domain.vocabulary import many
from knowngood.health.rules import HEADINGS, Remark, remarks_of
from knowngood.settings import read_settings
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.voids import (
    VoidReport,
    known_worker,
    load_voids,
    unvoid_results,
    void_results,
)
from knowngood.web.parameter_validation import first_moment, last_moment

_SHOWN = 20


_WHY = "The reason, in one line; every attempt and the audit log show it."
_DRY_RUN = flag("--dry-run", help_="Say what would change, and change nothing.")


@command(
    "Void all results of a worker in a span of time: they stay visible and no longer count.",
    text("--machine", "The digest of a machine, as /workers shows it.", "DIGEST"),
    text("--token", "The name or kg_... of the token that results came through."),
    text("--from", "A day (its beginning, UTC) or 2026-11-20T12:00:00Z. Default: the first result.", "TIME", "since"),
    text("--to", "A day (its end, UTC) or a time. Default: now.", "TIME", "until"),
    option(
        "--clock",
        type=click.Choice(("measured", "received")),
        default="measured",
        help="Whether the span means when it was measured (by the worker's clock) or when it was received here.",
    ),
    text("--reason", _WHY),
    _DRY_RUN,
    flag("--list", "list_", help_="Print all voids instead, the newest first."),
    AS_JSON,
    example='void --machine 3f2a --from 2026-11-20 --reason "its clock was wrong" --dry-run',
)
def void(
    *,
    machine: str,
    token: str,
    since: str,
    until: str,
    clock: str,
    reason: str,
    dry_run: bool,
    list_: bool,
    as_json: bool,
) -> None:
    engine = opened(read_settings())
    if list_:
        _list(engine, as_json=as_json)
        return
    now = datetime.now(UTC)
    begins = first_moment(since, "--from", now) if since else None
    ends = last_moment(until, "--to", now) if until else now
    with unit_of_work(engine, dry_run=dry_run) as s:
        span = VoidSpan(*known_worker(s, machine, token), begins, ends, Clock(clock))
        report = void_results(s, span, reason, by=operator(), now=now)
    _tell(report, "would be voided" if dry_run else f"voided, as void {report.void.id}", as_json=as_json)


@command(
    "Let voided results count again: every cell is as it was without the void.",
    argument("id_", "As `knowngood void --list` shows it.", metavar="ID", type=click.IntRange(min=1)),
    option("--reason", required=True, help=_WHY),
    _DRY_RUN,
    AS_JSON,
    example='unvoid 1 --reason "the machine was right"',
)
def unvoid(*, id_: int, reason: str, dry_run: bool, as_json: bool) -> None:
    with unit_of_work(opened(read_settings()), dry_run=dry_run) as s:
        report = unvoid_results(s, id_, reason, by=operator(), now=datetime.now(UTC))
    _tell(report, "would be voided no more" if dry_run else "voided no more", as_json=as_json)


def _tell(report: VoidReport, done: str, *, as_json: bool) -> None:
    news = [change for change in report.changes if change.is_news]
    if as_json:
        changed = [
            {
                "issue": change.issue,
                "build": change.build,
                "hardware": change.hardware,
                "before": before,
                "after": after,
            }
            for change in news
            for before, after in [change.verdicts]
        ]
        numbers = {"attempts": report.attempts, "counted": report.counted, "cells": report.cells}
        click.echo(json.dumps({"void": _fields(report.void), **numbers, "changed": changed}, indent=2))
        return
    click.echo(
        f"{report.attempts} attempts in {report.cells} cells {done}; {report.counted} of them count otherwise now, and "
        f"{len(news)} cells read differently"
    )
    for change in news[:_SHOWN]:
        before, after = change.verdicts
        turned = f"{before} -> {after}" if before is not after else f"{after}, its workarounds read differently"
        click.echo(f"{change.issue} {change.build} {change.hardware}: {turned}")
    if len(news) > _SHOWN:
        click.echo(f"and {len(news) - _SHOWN} more (--json lists all)")


def _list(engine: Engine, *, as_json: bool) -> None:
    with reading(engine) as s:
        voids = load_voids(s)
    if as_json:
        click.echo(json.dumps([_fields(entry) for entry in voids], indent=2))
        return
    if not voids:
        click.echo("nothing was ever voided", err=True)
    for entry in voids:
        click.echo(
            f"{entry.id}  {_in_words(entry.span)}: {entry.reason} ({entry.actor}, {entry.at:%Y-%m-%d %H:%M} UTC)"
        )
        if entry.ended_at is not None:
            click.echo(f"    ended by {entry.ended_by}, {entry.ended_at:%Y-%m-%d %H:%M} UTC: {entry.ended_reason}")


def _in_words(span: VoidSpan) -> str:
    """`machine 3f2a, measured from 2026-11-20 00:00 to 2026-11-21 12:00 UTC`."""
    machine = [f"machine {span.machine}"] if span.machine else []
    token = [f"token kg_{span.token}"] if span.token else []
    begins = f"from {span.since:%Y-%m-%d %H:%M} " if span.since else ""
    return f"{' through '.join([*machine, *token])}, {span.clock} {begins}to {span.until:%Y-%m-%d %H:%M} UTC"


def _fields(entry: Void) -> dict[str, object]:
    span = entry.span
    moments = {"at": entry.at, "ended_at": entry.ended_at, "from": span.since, "to": span.until}
    times = {name: at.isoformat() if at else None for name, at in moments.items()}
    whose = {"id": entry.id, "machine": span.machine, "token": span.token, "clock": span.clock}
    return {**whose, **times, "by": entry.actor, "reason": entry.reason, "ended_reason": entry.ended_reason}


@command(
    "List where upstream and the measurements disagree. Ends with 1 if they do.",
    ISSUES,
    flag("--all", "in_full", help_="Every remark, not only the first of each kind."),
    AS_JSON,
    example="hygiene --issues pytorch-151290",
)
def hygiene(issues: Sequence[str], *, in_full: bool, as_json: bool) -> Exit:
    known = known_here()
    wanted = {issue.id for issue in issues_of(known.issues, issues)}
    remarks = [remark for remark in remarks_of(known) if remark.issue in wanted]
    if as_json:
        print_json([{**vars(remark), "sentence": english(remark.sentence)} for remark in remarks])
    else:
        _print(remarks, in_full=in_full)
    return Exit.FINDING if remarks else Exit.OK


def _print(remarks: Sequence[Remark], *, in_full: bool) -> None:
    """One list for each kind of remark, in the order of `MismatchKind`; not `in_full` the first of each."""
    issues = len({remark.issue for remark in remarks})
    out.print(f"{many(len(remarks), 'remark')} on {many(issues, 'issue')}" if remarks else "nothing to look at")
    for trouble, heading in HEADINGS.items():
        group = [remark for remark in remarks if remark.trouble is trouble]
        out.print(*([f"[bold]{heading}[/] ({len(group)})"] if group else []), end="\n" if group else "")
        for remark in group if in_full else group[:1]:
            where = f" ({remark.hardware})" if remark.hardware else ""
            out.print(Text(f"  {remark.issue}{where}: {english(remark.sentence)}"), soft_wrap=in_full)
    if remarks and not in_full:
        out.print("All of them: --all")
