"""`knowngood bisect ISSUE --from A --to B`: which build broke it or mended it, in as few jobs as that takes."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import click
from rich.console import Console

from knowngood.cli.context import opened_with_catalogue, pick_issues
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, SIZES, argument, flag, option, text
from knowngood.cli.output import err, out, print_json
from knowngood.cli.signals import stoppable
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import BuildNames, minor_python
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue, inapplicable
from knowngood.domain.issue_selectors import find_issue
from knowngood.domain.measuring.planning import CONFIRMING, KnownAttempts, PlannedJob, PlanRequest, plan_jobs
from knowngood.domain.message import english
from knowngood.domain.verdicts.inference import Claims
from knowngood.domain.verdicts.verdict import CONCLUSIVE, is_stale
from knowngood.measure.bisection.search import (
    ChangePoint,
    Point,
    Search,
    SearchOutcome,
    SearchResult,
    answer_of,
    line_between,
    needed_attempts,
    next_step,
    sentences,
)
from knowngood.measure.jobs import Work, is_led, own_hardware, run_planned
from knowngood.measure.scheduling.cli import price_as_json, tell_price
from knowngood.serialization.marks import MARKS
from knowngood.settings import read_settings
from knowngood.store.engine import Engine, reading
from knowngood.store.queries import load_builds, load_hardware, load_known_attempts, load_troubles
from knowngood_workers.dispatch.dispatcher import utc_now

Measure = Callable[[tuple[PlannedJob, ...]], None]
"""Runs jobs to their end, as `run` does, and stores what came."""

CODES = {
    SearchOutcome.FOUND: Exit.OK,
    SearchOutcome.NOT_MONOTONE: Exit.FINDING,
    SearchOutcome.ENDS_AGREE: Exit.INSUFFICIENT,
    SearchOutcome.CANNOT_SAY: Exit.INSUFFICIENT,
}


@command(
    "Find the build that broke or fixed an issue, in few jobs. Ends with 1 if there is more than one change, with 3 if "
    "there is nothing to find.",
    argument("issue", "The issue's id."),
    option(
        "--from",
        "from_",
        required=True,
        metavar="BUILD",
        help="One end: a build's id, or a version of torch such as 2.4.1.",
    ),
    option("--to", required=True, metavar="BUILD", help="The other end, on the same line of builds."),
    text("--hardware", "One hardware class. Default: the first where the issue can exist.", "CLASS"),
    text("--python", "The Python of all builds on the line, such as 3.12.", "VERSION"),
    flag("--full", help_="Measure every build that is not known, instead of bisecting."),
    flag("--confirm", help_="Measure both sides of the change again, as often as it takes to confirm it."),
    flag("--dry-run", help_="Print what is known and which job would be first."),
    SIZES,
    AS_JSON,
    example="bisect pytorch-151290 --from 2.4.1 --to 2.7.0 --dry-run",
)
def bisect(
    *,
    issue: str,
    from_: str,
    to: str,
    hardware: str,
    python: str,
    full: bool,
    confirm: bool,
    dry_run: bool,
    sizes: bool,
    as_json: bool,
) -> Exit:
    settings = read_settings()
    engine = opened_with_catalogue(settings)
    row = find_issue(issue, {entry.id: entry for entry in pick_issues(engine, ())})
    if row.is_timed:
        raise BadRequest(f"{row.id} is told by time, which no run measures; on each build: knowngood costs")
    with reading(engine) as s:
        builds, measured = load_builds(s), load_hardware(s)
    line = read_line(builds, from_, to, python)
    own = own_hardware()
    class_ = choose_hardware(hardware, own, measured, row, line)
    question = BisectQuestion(row, line, class_, can_ask=class_ in own or is_led(engine))
    work = Work(settings)
    if dry_run:
        with reading(engine) as s:
            state, jobs = outlook(question, load_known_attempts(s), utc_now(), full=full)
        if as_json:
            price = {"price": price_as_json(engine, work, jobs, asks=sizes)} if jobs else {}
            print_json({**outlook_as_body(question, state, jobs), **price})
            return Exit.OK
        print_outlook(out, question, state, jobs)
        if jobs:
            out.print("the first of them:")
            tell_price(engine, work, jobs, asks=sizes)
        return Exit.OK
    if not question.can_ask:
        err.print(f"nobody here serves {class_}: only what is stored is looked at", markup=False)

    def measure(planned: tuple[PlannedJob, ...]) -> None:
        with suppress(click.exceptions.Exit):  # stopped: what came until then is told
            run_planned(engine, work, planned, {"issues": [row.id], "by": "bisect"}, stop)

    with stoppable() as stop:
        result = search(engine, question, measure, stop, clock=utc_now, full=full, confirm=confirm)
    with reading(engine) as s:
        troubles = {build: trouble.sentence for build, trouble in load_troubles(s, work.runs) if trouble}
    result = replace(result, troubles=troubles)
    if as_json:
        print_json(as_body(question, result))
    else:
        print_result(out, question, result)
    return result.code


@dataclass(frozen=True)
class BisectQuestion:
    """`line` holds all known builds from one end to the other, oldest first. Without `can_ask` only what is stored is
    looked at: no worker here serves the hardware class.
    """

    issue: Issue
    line: tuple[Build, ...]
    hardware: str
    can_ask: bool = True


@dataclass(frozen=True)
class BisectResult:
    """`asked_builds` are the builds that jobs were run for, in that order; `confirmed` are those that were run again to
    be sure. `troubles` holds, for each build that the host could not run, the sentence that says why.
    """

    answer: SearchResult
    asked_builds: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    is_stopped: bool = False
    troubles: Mapping[str, str] = field(default_factory=dict)

    @property
    def trouble(self) -> str:
        """The host's trouble that kept the one change from being narrowed at all; empty where there was none."""
        if self.answer.kind is not SearchOutcome.FOUND:
            return ""
        ran = {*self.asked_builds} - self.troubles.keys()
        if any(point.fails is not None and point.build.id in ran for point in self.answer.search.points[1:-1]):
            return ""
        return next(
            (
                self.troubles[point.build.id]
                for point in self.answer.changes[0].between
                if point.build.id in self.troubles
            ),
            "",
        )

    @property
    def code(self) -> Exit:
        return Exit.INSUFFICIENT if self.trouble else CODES[self.answer.kind]


def read_line(builds: Sequence[Build], start: str, end: str, python: str) -> tuple[Build, ...]:
    """The line between two ends, each the name of a build.

    `python` (empty: as the names say) is that of every build of the line. Raises BadRequest and UnknownBuild.
    """
    names, wanted = BuildNames({build.id: build for build in builds}), minor_python(python)
    return line_between(builds, names.find(start, python=wanted), names.find(end, python=wanted))


def choose_hardware(
    wanted: str, own: Sequence[str], measured: Sequence[str], issue: Issue, line: Sequence[Build]
) -> str:
    """The class asked for; else the first of this machine's own, then of the measured ones, where the issue can be."""
    if wanted:
        return wanted
    for class_ in dict.fromkeys((*own, *measured)):
        if any(inapplicable(issue, build, class_) is None for build in line):
            return class_
    reason = inapplicable(issue, line[-1], own[0])
    raise BadRequest(f"{issue.id} exists on no hardware here ({english(reason)}); name a class with --hardware")


def search_of(
    question: BisectQuestion, known: KnownAttempts, now: datetime, *, full: bool, asked_builds: Sequence[str] = ()
) -> Search:
    """The state of the question now; `asked_builds` were asked for it already."""
    points = tuple(_point(question, build, known, now, was_asked=build.id in asked_builds) for build in question.line)
    return Search(points, jobs=len(asked_builds), full=full)


def _point(question: BisectQuestion, build: Build, known: KnownAttempts, now: datetime, *, was_asked: bool) -> Point:
    cell = Claims({}, {}, known.cells, infers=False).of(question.issue, build, question.hardware)
    is_old = is_stale(cell, build, now)
    may_ask = question.can_ask and not was_asked and (is_old or cell.verdict not in CONCLUSIVE)
    is_open = may_ask and bool(jobs_for(question, build, known, now, baseline=1))
    return Point(build, cell, is_open=is_open, is_stale=is_old)


def jobs_for(
    question: BisectQuestion, build: Build, known: KnownAttempts, now: datetime, *, baseline: int
) -> tuple[PlannedJob, ...]:
    """The one job that asks this build: its control once, its baseline `baseline` times; none where `run` asks none."""
    wanted = PlanRequest(baseline=baseline, workarounds=False, now=now)
    return plan_jobs([question.issue], [build], [question.hardware], known, wanted)


def search(
    engine: Engine,
    question: BisectQuestion,
    measure: Measure,
    stop: Callable[[], bool],
    *,
    clock: Callable[[], datetime],
    full: bool = False,
    confirm: bool = False,
) -> BisectResult:
    """Ask one build after the other until there is an answer. What is stored is never asked again.

    A build is run as often as confirming a change takes, since its environment is what costs. With `confirm`, stored
    sides of the change are run for what they lack, each once; that may turn the answer, and then the search goes on.
    """
    asked_builds: list[str] = []
    confirmed: list[str] = []
    while True:
        with reading(engine) as s:
            known = load_known_attempts(s)
        now = clock()
        step = next_step(search_of(question, known, now, full=full, asked_builds=asked_builds))
        if isinstance(step, SearchResult):
            jobs = _confirming(question, step, known, now, done=confirmed) if confirm and question.can_ask else {}
            if not jobs or stop():
                return BisectResult(step, tuple(asked_builds), tuple(confirmed), is_stopped=stop())
            confirmed += jobs
            measure(tuple(job for planned in jobs.values() for job in planned))
        elif stop():
            left = replace(search_of(question, known, now, full=full, asked_builds=asked_builds), is_over=True)
            return BisectResult(answer_of(left), tuple(asked_builds), tuple(confirmed), is_stopped=True)
        else:
            build = question.line[step]
            asked_builds.append(build.id)
            measure(jobs_for(question, build, known, now, baseline=CONFIRMING))


def _confirming(
    question: BisectQuestion, answer: SearchResult, known: KnownAttempts, now: datetime, *, done: Sequence[str]
) -> dict[str, tuple[PlannedJob, ...]]:
    """By build: the jobs that the sides of the one change still need."""
    if answer.kind is not SearchOutcome.FOUND or not answer.changes[0].missing:
        return {}
    change = answer.changes[0]
    wanted = needed_attempts(change)
    sides = [point.build for point in (change.before, change.after) if point.build.id not in done]
    planned = {build.id: jobs_for(question, build, known, now, baseline=wanted) for build in sides}
    return {build: jobs for build, jobs in planned.items() if jobs}


# -- told --------------------------------------------------------------------------------------------------------------


def print_result(console: Console, question: BisectQuestion, result: BisectResult) -> None:
    """One line for each build, then the answer in sentences."""
    console.print(f"{question.issue.id} on {question.hardware}, {len(question.line)} builds", markup=False)
    for point in result.answer.search.points:
        console.print(
            f"  {point.build.label:<14} {MARKS[point.cell.verdict].word:<18} {_how(point, result)}".rstrip(),
            markup=False,
        )
    if result.trouble:
        console.print(
            f"not narrowed, for nothing in between could be run: {result.trouble}", markup=False, soft_wrap=True
        )
    console.print("\n".join((*sentences(result.answer), _effort(result))), markup=False, soft_wrap=True)
    if result.is_stopped:
        console.print("stopped: the same question goes on from here", markup=False)


def _how(point: Point, result: BisectResult) -> str:
    if point.build.id in result.troubles and point.fails is None:
        return "could not be run"
    if point.build.id in result.asked_builds:
        return "measured now"
    if point.build.id in result.confirmed:
        return "known, confirmed now"
    if point.fails is not None:
        return "known, old" if point.is_stale else "known"
    return "" if point.is_open else english(point.cell.reason)


def _effort(result: BisectResult) -> str:
    search = result.answer.search
    known = sum(1 for point in search.points if point.fails is not None and point.build.id not in result.asked_builds)
    ran = f"{len(result.asked_builds)} of at most {search.most_jobs} jobs run"
    sure = f", {len(result.confirmed)} more to confirm" if result.confirmed else ""
    return f"{ran}{sure}; {known} answers were known and not asked again"


def as_body(question: BisectQuestion, result: BisectResult) -> dict[str, Any]:
    answer, search = result.answer, result.answer.search
    return {
        "issue": question.issue.id,
        "hardware": question.hardware,
        "from": question.line[0].id,
        "to": question.line[-1].id,
        "answer": answer.kind.value,
        "sentences": list(sentences(answer)),
        "boundary": _change(answer.changes[0]) if answer.kind is SearchOutcome.FOUND else None,
        "changes": [_change(change) for change in answer.changes],
        "points": [
            {
                "build": point.build.id,
                "verdict": point.cell.verdict.value,
                "reason": english(point.cell.reason),
                "stale": point.is_stale,
                "attempts": point.attempts,
                "asked": point.build.id in result.asked_builds,
                "can_be_asked": point.is_open,
            }
            for point in search.points
        ],
        "jobs": len(result.asked_builds),
        "most_jobs": search.most_jobs,
        "confirming_jobs": len(result.confirmed),
        "stopped": result.is_stopped,
        "kept_from_running": dict(result.troubles),
    }


def _change(change: ChangePoint) -> Mapping[str, object]:
    return {
        "kind": "broke" if change.breaks else "fixed",
        "interval": change.interval,
        "before": change.before.build.id,
        "after": change.after.build.id,
        "between": [point.build.id for point in change.between],
        "confirmed": not change.missing,
        "missing": change.missing,
    }


def outlook(
    question: BisectQuestion, known: KnownAttempts, now: datetime, *, full: bool
) -> tuple[Search, tuple[PlannedJob, ...]]:
    """The state before anything is run, and the job that would be the first; none where what is known answers."""
    search = search_of(question, known, now, full=full)
    step = next_step(search)
    if isinstance(step, SearchResult):
        return search, ()
    return search, jobs_for(question, question.line[step], known, now, baseline=CONFIRMING)


def print_outlook(console: Console, question: BisectQuestion, search: Search, jobs: Sequence[PlannedJob]) -> None:
    """The state of the search, and what would be run first."""
    settled = sum(1 for point in search.points if point.is_settled)
    where = f"{question.issue.id} on {question.hardware}"
    console.print(f"{where}: {len(question.line)} builds, {settled} of which are known", markup=False, soft_wrap=True)
    told = ["nothing would be run; what is known says:", *sentences(answer_of(search))]
    if jobs:
        first = jobs[0].build.id
        told = [f"at most {search.most_jobs} jobs, the first on {first}; each answer decides on the next"]
    console.print("\n".join(told), markup=False, soft_wrap=True)


def outlook_as_body(question: BisectQuestion, search: Search, jobs: Sequence[PlannedJob]) -> dict[str, Any]:
    """As `as_body`, of what is known so far; where a job would be run there is no answer yet."""
    unknown: dict[str, Any] = {"answer": None, "sentences": [], "boundary": None} if jobs else {}
    body = as_body(question, BisectResult(answer_of(search)))
    return {**body, **unknown, "next": jobs[0].build.id if jobs else None}
