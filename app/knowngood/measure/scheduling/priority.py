"""The order in which to measure: what a cell is worth, what it costs, and the order that follows. docs/scheduling.md
is the rule in words.

Pure, and without chance: the same question has the same order. Nothing is proposed that has a fresh answer.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_classes import whole_class, with_isa_classes
from knowngood.domain.issue import EnvironmentRequest, Issue, environment_request, is_asked_on
from knowngood.domain.issue_selectors import WatchList, is_all, meant_by, names_of, watched_issues
from knowngood.domain.measuring.job import PlannedArm
from knowngood.domain.measuring.planning import (
    ENVIRONMENT_S,
    GUESS_S,
    KnownAttempts,
    PlannedJob,
    PlanRequest,
    is_failing,
    missing_arms,
)
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, CellPlace, Verdict, is_stale, stale_before


class Why(StrEnum):
    """Why a cell is worth measuring, the best reason first."""

    BOUNDARY = "boundary"
    CHANGED = "changed"
    NEW_BUILD = "new_build"
    STALE = "stale"
    UNTRIED = "untried"
    UNKNOWN = "unknown"
    UNANSWERED = "unanswered"


VALUES: Mapping[Why, float] = {
    Why.BOUNDARY: 8,
    Why.CHANGED: 6,
    Why.NEW_BUILD: 4,
    Why.STALE: 3,
    Why.UNTRIED: 2,
    Why.UNKNOWN: 2,
    Why.UNANSWERED: 1,
}
_URGENT = frozenset({Why.BOUNDARY, Why.CHANGED, Why.NEW_BUILD})
_ASIDE = 0.5  # of what was never measured off the line of releases, or with another Python than the default one
_MOST_AGED = 2.0  # a stale cell gains with its age, up to twice its value

REUSED_S = 1.0  # an environment that an earlier job of the same plan has made: 0.5 s to borrow (measured 2026-11)


@dataclass(frozen=True)
class SchedulingState:
    """All that the order depends on.

    `builds` are those known, in release order: intervals are looked for among them. `watched` names the lists that
    watch an issue on a class; `waiting` are cells that are queued or being measured already. `durations` are seconds of
    earlier attempts by (issue, arm, variant); `at_once` arms of a class run side by side (else one).
    """

    issues: tuple[Issue, ...]
    builds: tuple[Build, ...]
    hardware: tuple[str, ...]
    known: KnownAttempts
    now: datetime
    watched: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    waiting: Collection[CellPlace] = ()
    durations: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    environment_s: float = ENVIRONMENT_S
    at_once: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PendingCell:
    """A cell that still needs something: what, why, what that is worth, and what its arms take on one slot."""

    issue: str
    why: Why
    words: str
    value: float
    seconds: float
    arms: tuple[PlannedArm, ...]


@dataclass(frozen=True)
class ProposedJob:
    """A job worth running. `seconds` is its price where it stands in the order: the first job of an environment pays
    for making it. `watchers` are the lists that watch every cell of it; none for a job that nobody watches.
    """

    job: PlannedJob
    due: tuple[PendingCell, ...]
    watchers: tuple[str, ...]
    value: float
    seconds: float

    @property
    def reason(self) -> str:
        """One sentence for people."""
        phrases = [_phrase([cell for cell in self.due if cell.why is why]) for why in Why]
        words = "; ".join(phrase for phrase in phrases if phrase)
        return f"watched by {', '.join(self.watchers)}: {words}" if self.watchers else words


def watched_by(
    lists: Iterable[WatchList], issues: Mapping[str, Issue], hardware: Collection[str]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """By (issue, hardware class): the names of the lists that watch it.

    What a list names and the catalogue no longer has is passed over: a list is older than the catalogue.
    """
    names = names_of(issues)
    watchers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for watch_list in sorted(lists, key=lambda watch_list: watch_list.name):
        watch = replace(
            watch_list.content.watch,
            issues=tuple(text for text in watch_list.content.watch.issues if is_all(text) or meant_by(text, names)),
            components=tuple(
                text for text in watch_list.content.watch.components if text.strip().casefold() in names.components
            ),
            lists=(),
        )
        for issue in watched_issues(watch, issues, names)[0] if not watch.is_empty else ():
            for class_ in hardware:
                if not watch_list.content.hardware or class_ in watch_list.content.hardware:
                    watchers[issue.id, class_].append(watch_list.name)
    return {key: tuple(lists) for key, lists in watchers.items()}


def propose(scheduling_state: SchedulingState, budget_s: float | None = None) -> tuple[ProposedJob, ...]:
    """Jobs in the order to run them: what is watched first, then by value for each minute.

    One job is one environment. Its watched cells are a job of their own, and so are those at a boundary, of a changed
    repro or of a new build, so that they never drag the rest along. With `budget_s` every job that no longer fits is
    left out; the first is always in, however long it takes.
    Guarantees, held by properties in tests: the order depends on nothing but the scene; a cell that comes to be watched
    does not move back; nothing with a fresh answer is in it.
    """
    ranked = sorted(_jobs(scheduling_state), key=_rank)
    chosen: list[ProposedJob] = []
    made: set[EnvironmentRequest] = set()
    spent = 0.0
    for proposal in ranked:
        is_made = proposal.job.request in made
        spared = scheduling_state.environment_s - REUSED_S if is_made else 0.0
        priced = replace(proposal, seconds=round(max(proposal.seconds - spared, REUSED_S), 1))
        if budget_s is not None and chosen and spent + priced.seconds > budget_s:
            continue
        chosen.append(priced)
        made.add(priced.job.request)
        spent += priced.seconds
    return tuple(chosen)


def _rank(proposal: ProposedJob) -> tuple[bool, float, object, str, str]:
    pace = round(proposal.value / proposal.seconds, 9)
    return (
        not proposal.watchers,
        -pace,
        proposal.job.build.build_id,
        proposal.job.hardware,
        proposal.job.request.digest,
    )


_Group = tuple[str, EnvironmentRequest, bool, bool]  # hardware class, environment, watched, urgent


def _jobs(scheduling_state: SchedulingState) -> Iterator[ProposedJob]:
    groups: dict[_Group, list[PendingCell]] = defaultdict(list)
    lists: dict[_Group, set[str]] = defaultdict(set)
    builds: dict[EnvironmentRequest, Build] = {}
    for class_ in with_isa_classes(scheduling_state.hardware):
        news = _new_builds(scheduling_state, class_)
        for issue in scheduling_state.issues:
            watchers = scheduling_state.watched.get((issue.id, class_), ())
            for build, due in _row(scheduling_state, issue, class_, news):
                request = environment_request(issue, build)
                key = (class_, request, bool(watchers), due.why in _URGENT)
                groups[key].append(due)
                lists[key].update(watchers)
                builds[request] = build
    for key, pending in groups.items():
        class_, request, *_ = key
        dues = tuple(sorted(pending, key=lambda cell: (-cell.value, cell.issue)))
        seconds = sum(cell.seconds for cell in dues) / scheduling_state.at_once.get(whole_class(class_), 1)
        job = PlannedJob(builds[request], class_, request, tuple(arm for cell in dues for arm in cell.arms))
        yield ProposedJob(
            job,
            dues,
            tuple(sorted(lists[key])),
            sum(cell.value for cell in dues),
            max(seconds + scheduling_state.environment_s, REUSED_S),
        )


def _row(
    scheduling_state: SchedulingState, issue: Issue, hardware: str, news: Collection[str]
) -> Iterator[tuple[Build, PendingCell]]:
    """The pending cells of one issue on one class, in the order of builds."""
    wanted = PlanRequest(where_affected=True, now=scheduling_state.now)
    missing: dict[str, list[PlannedArm]] = {}
    for build in scheduling_state.builds:
        is_waiting = (issue.id, build.id, hardware) in scheduling_state.waiting
        if not is_waiting and is_asked_on(issue, build, hardware):
            arms = missing_arms(issue, build, hardware, scheduling_state.known, wanted)
            missing |= {build.id: arms} if arms else {}
    halving = _halving(scheduling_state, issue.id, hardware, missing)
    for build in scheduling_state.builds:
        if build.id in missing:
            cell = scheduling_state.known.cells.get((issue.id, build.id, hardware))
            why, value, words = _worth(scheduling_state, issue.id, build, cell, halving, news)
            due = tuple(missing[build.id])
            seconds = sum(scheduling_state.durations.get((arm.issue, arm.arm, arm.variant), GUESS_S) for arm in due)
            yield build, PendingCell(issue.id, why, words, value, seconds, due)


def _halving(scheduling_state: SchedulingState, issue: str, hardware: str, missing: Collection[str]) -> dict[str, str]:
    """By build: the interval that it halves. Of the builds between a pass and a failure it is the middle one of those
    that can be asked.
    """
    own = (build for build in scheduling_state.builds if not build.is_mismatched)
    lines = grouped(own, lambda build: (build.origin, build.python))
    halved: dict[str, str] = {}
    for line in lines.values():
        before: tuple[Build, bool] | None = None
        between: list[Build] = []
        for build in line:
            cell = scheduling_state.known.cells.get((issue, build.id, hardware))
            fails = is_failing(cell.verdict) if cell is not None else None
            if fails is None:
                between += [build] if build.id in missing else []
                continue
            if before is not None and before[1] != fails and between:
                halved[between[len(between) // 2].id] = f"({before[0].build_id.release}, {build.build_id.release}]"
            before, between = (build, fails), []
    return halved


def _worth(
    scheduling_state: SchedulingState,
    issue: str,
    build: Build,
    cell: Cell | None,
    halving: Mapping[str, str],
    news: Collection[str],
) -> tuple[Why, float, str]:
    """The best reason for a cell, what it is worth, and its words."""
    if build.id in halving:
        return Why.BOUNDARY, VALUES[Why.BOUNDARY], f"halves {halving[build.id]} of {issue}"
    if cell is not None and cell.verdict in CONCLUSIVE:
        return _worth_again(scheduling_state, cell, build)
    if cell is not None and cell.superseded and cell.verdict is Verdict.NOT_RUN:
        return Why.CHANGED, VALUES[Why.CHANGED], f"the repro of {issue} changed since it was measured"
    if cell is not None and cell.verdict is not Verdict.NOT_RUN:
        return Why.UNANSWERED, VALUES[Why.UNANSWERED], f"{issue} gave no answer"
    if build.id in news:
        return Why.NEW_BUILD, VALUES[Why.NEW_BUILD], f"{issue} was never measured on this new build"
    share = 1.0 if is_release(build) and build.python == DEFAULT_PYTHON else _ASIDE
    return Why.UNKNOWN, VALUES[Why.UNKNOWN] * share, f"{issue} was never measured here"


def _worth_again(scheduling_state: SchedulingState, cell: Cell, build: Build) -> tuple[Why, float, str]:
    if cell.measured_at is None or not is_stale(cell, build, scheduling_state.now):
        return Why.UNTRIED, VALUES[Why.UNTRIED], f"not all that may help with {cell.issue} was tried"
    age = scheduling_state.now - cell.measured_at
    limit = scheduling_state.now - stale_before(build, scheduling_state.now)
    aged = min(age / limit, _MOST_AGED)
    return Why.STALE, VALUES[Why.STALE] * aged, f"{cell.issue} was measured {age // timedelta(days=1)} days ago"


def _new_builds(scheduling_state: SchedulingState, hardware: str) -> frozenset[str]:
    """Releases of the default Python newer than all that anything was measured on; none before anything was."""
    measured = {build for _, build, class_ in scheduling_state.known.cells if class_ == hardware}
    newest = max((build.build_id for build in scheduling_state.builds if build.id in measured), default=None)
    line = [build for build in scheduling_state.builds if is_release(build) and build.python == DEFAULT_PYTHON]
    return frozenset(build.id for build in line if newest is not None and build.build_id > newest)


def _phrase(due: Sequence[PendingCell]) -> str:
    if not due:
        return ""
    more = f", and {len(due) - 1} more like it" if len(due) > 1 else ""
    return f"{due[0].words}{more}"
