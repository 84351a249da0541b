"""`knowngood bisect ISSUE --from A --to B`: which build broke it or mended it, in as few jobs as that takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from rich.console import Console

from knowngood.cli.exit_codes import Exit
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import BuildNames, minor_python
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue, inapplicable
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
from knowngood.serialization.marks import MARKS
from knowngood.store.engine import Engine, reading
from knowngood.store.queries import load_known_attempts

Measure = Callable[[tuple[PlannedJob, ...]], None]
"""Runs jobs to their end, as `run` does, and stores what came."""

CODES = {
    SearchOutcome.FOUND: Exit.OK,
    SearchOutcome.NOT_MONOTONE: Exit.FINDING,
    SearchOutcome.ENDS_AGREE: Exit.INSUFFICIENT,
    SearchOutcome.CANNOT_SAY: Exit.INSUFFICIENT,
}


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
    """`asked` are the builds that jobs were run for, in that order; `confirmed` those asked again to be sure. `kept`
    are those of them that a trouble of the host kept from running, with its sentence.
    """

    answer: SearchResult
    asked: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    is_stopped: bool = False
    kept: Mapping[str, str] = field(default_factory=dict)

    @property
    def trouble(self) -> str:
        """The trouble of the host that kept the one change from being narrowed at all; empty where none did."""
        if self.answer.kind is not SearchOutcome.FOUND:
            return ""
        ran = {*self.asked} - self.kept.keys()
        if any(point.fails is not None and point.build.id in ran for point in self.answer.search.points[1:-1]):
            return ""
        return next(
            (self.kept[one.build.id] for one in self.answer.changes[0].between if one.build.id in self.kept), ""
        )

    @property
    def code(self) -> Exit:
        return Exit.INSUFFICIENT if self.trouble else CODES[self.answer.kind]


def read_line(builds: Sequence[Build], one: str, other: str, python: str) -> tuple[Build, ...]:
    """The line between two ends, each the name of a build.

    `python` (empty: as the names say) is that of every build of the line. Raises BadRequest and UnknownBuild.
    """
    names, wanted = BuildNames({build.id: build for build in builds}), minor_python(python)
    return line_between(builds, names.find(one, python=wanted), names.find(other, python=wanted))


def choose_hardware(
    asked: str, own: Sequence[str], measured: Sequence[str], issue: Issue, line: Sequence[Build]
) -> str:
    """The class asked for; else the first of this machine's own, then of the measured ones, where the issue can be."""
    if asked:
        return asked
    for class_ in dict.fromkeys((*own, *measured)):
        if any(inapplicable(issue, build, class_) is None for build in line):
            return class_
    reason = inapplicable(issue, line[-1], own[0])
    raise BadRequest(f"{issue.id} exists on no hardware here ({english(reason)}); name a class with --hardware")


def search_of(
    question: BisectQuestion, known: KnownAttempts, now: datetime, *, full: bool, asked: Sequence[str] = ()
) -> Search:
    """The state of the question now; `asked` are the builds that were asked for it already."""
    points = tuple(_point(question, build, known, now, was_asked=build.id in asked) for build in question.line)
    return Search(points, jobs=len(asked), full=full)


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
    """Ask one build after the other until there is an answer. What was stored is never asked again.

    Each build asked is asked as often as a change has to be confirmed, since its environment is what costs. With
    `confirm` stored sides of the change are asked for what they lack, each once; that may turn the answer, and then
    the search goes on.
    """
    asked: list[str] = []
    confirmed: list[str] = []
    while True:
        with reading(engine) as s:
            known = load_known_attempts(s)
        now = clock()
        step = next_step(search_of(question, known, now, full=full, asked=asked))
        if isinstance(step, SearchResult):
            jobs = _confirming(question, step, known, now, done=confirmed) if confirm and question.can_ask else {}
            if not jobs or stop():
                return BisectResult(step, tuple(asked), tuple(confirmed), is_stopped=stop())
            confirmed += jobs
            measure(tuple(job for planned in jobs.values() for job in planned))
        elif stop():
            left = replace(search_of(question, known, now, full=full, asked=asked), is_over=True)
            return BisectResult(answer_of(left), tuple(asked), tuple(confirmed), is_stopped=True)
        else:
            build = question.line[step]
            asked.append(build.id)
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


def print_found(console: Console, question: BisectQuestion, found: BisectResult) -> None:
    """One line for each build, then the answer in sentences."""
    console.print(f"{question.issue.id} on {question.hardware}, {len(question.line)} builds", markup=False)
    for point in found.answer.search.points:
        console.print(
            f"  {point.label:<14} {MARKS[point.cell.verdict].word:<18} {_how(point, found)}".rstrip(), markup=False
        )
    if found.trouble:
        console.print(
            f"not narrowed, for nothing in between could be run: {found.trouble}", markup=False, soft_wrap=True
        )
    for sentence in sentences(found.answer):
        console.print(sentence, markup=False, soft_wrap=True)
    console.print(_effort(found), markup=False, soft_wrap=True)
    if found.is_stopped:
        console.print("stopped: the same question goes on from here", markup=False)


def _how(point: Point, found: BisectResult) -> str:
    if point.build.id in found.kept and point.fails is None:
        return "could not be run"
    if point.build.id in found.asked:
        return "measured now"
    if point.build.id in found.confirmed:
        return "known, confirmed now"
    if point.fails is not None:
        return "known, old" if point.is_stale else "known"
    return "" if point.is_open else english(point.cell.reason)


def _effort(found: BisectResult) -> str:
    search = found.answer.search
    known = sum(1 for point in search.points if point.fails is not None and point.build.id not in found.asked)
    ran = f"{len(found.asked)} of at most {search.most_jobs} jobs run"
    sure = f", {len(found.confirmed)} more to confirm" if found.confirmed else ""
    return f"{ran}{sure}; {known} answers were known and not asked again"


def as_json(question: BisectQuestion, found: BisectResult) -> dict[str, Any]:
    answer, search = found.answer, found.answer.search
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
                "asked": point.build.id in found.asked,
                "can_be_asked": point.is_open,
            }
            for point in search.points
        ],
        "jobs": len(found.asked),
        "most_jobs": search.most_jobs,
        "confirming_jobs": len(found.confirmed),
        "stopped": found.is_stopped,
        "kept_from_running": dict(found.kept),
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


@dataclass(frozen=True)
class Outlook:
    """The state before anything is run, and what would be done first; `jobs` is that first one."""

    search: Search
    step: int | SearchResult
    jobs: tuple[PlannedJob, ...] = ()

    @property
    def first(self) -> str | None:
        return self.search.points[self.step].build.id if isinstance(self.step, int) else None


def outlook(question: BisectQuestion, known: KnownAttempts, now: datetime, *, full: bool) -> Outlook:
    search = search_of(question, known, now, full=full)
    step = next_step(search)
    if isinstance(step, SearchResult):
        return Outlook(search, step)
    return Outlook(search, step, jobs_for(question, question.line[step], known, now, baseline=CONFIRMING))


def print_outlook(console: Console, question: BisectQuestion, outlook: Outlook) -> None:
    """The state of the search, and what would be run first."""
    told = sum(1 for point in outlook.search.points if point.is_settled)
    where = f"{question.issue.id} on {question.hardware}"
    console.print(f"{where}: {len(question.line)} builds, {told} of which are known", markup=False, soft_wrap=True)
    if isinstance(outlook.step, SearchResult):
        console.print("nothing would be run; what is known says:", markup=False)
        for sentence in sentences(outlook.step):
            console.print(sentence, markup=False, soft_wrap=True)
        return
    most = f"at most {outlook.search.most_jobs} jobs"
    console.print(
        f"{most}, the first on {outlook.first}; each answer decides on the next", markup=False, soft_wrap=True
    )


def outlook_as_json(question: BisectQuestion, outlook: Outlook) -> dict[str, Any]:
    """As `as_json`, of what is known so far; where a job would be run there is no answer yet."""
    known = as_json(question, BisectResult(answer_of(outlook.search)))
    if outlook.first is None:
        return {**known, "next": None}
    return {**known, "answer": None, "sentences": [], "boundary": None, "next": outlook.first}
