"""Which build to move to: candidates ranked for what a team watches, each with what it fixes, breaks and leaves open.

The ranking is a written rule (RANKING_WORDS) and a sort key that says the same. What holds of it, by properties:
- An issue that fails on a candidate never makes it better: its key stays or gets worse, and where the issue fails and
  is unknown on no other candidate, its place does too. That is why "enough measured" counts no failures: they would
  make the evidence look more complete.
- What is not known is never fixed: an answer that is lost never makes a candidate better.
- Watched names, cells and builds in another order change nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from packaging.version import Version

from app.domain.build import Build
from app.domain.compare import Comparison, Group, compare
from app.domain.constraints import Constraints, violations
from app.domain.history import is_release
from app.domain.issue import (
    BASELINE,
    CONTROL,
    EnvironmentRequest,
    Issue,
    Severity,
    environment_request,
    variants_of,
)
from app.domain.known import Known
from app.domain.machine import CPU_CLASS
from app.domain.plan import ENVIRONMENT_S, PlannedArm, PlannedJob, Price, price_of
from app.domain.prospects import Candidate, Item, Missing, Prospect, Rating, Said, percent, prospect_of
from app.domain.verdict import Verdict

ENOUGH = 0.8
"""The share of what does not fail there that must be known to pass before a build is recommended; whoever asks may
name another.
"""


@dataclass(frozen=True)
class LeftOut:
    """A newer build that breaks a constraint, and how."""

    build: Build
    reasons: tuple[str, ...]


class Decision(StrEnum):
    GO = "go"
    STAY = "stay"
    CANNOT_SAY = "cannot_say"


@dataclass(frozen=True)
class Question:
    """`start` is the build one is on, `watched` the issues by id. `enough` is the assurance that is asked for (0 to 1).

    `durations` are seconds of earlier attempts by (issue, arm, variant), `environment_s` those it takes to make an
    environment. `notes` say what was assumed to come to this question.
    """

    start: Build
    watched: tuple[Issue, ...]
    constraints: Constraints = field(default_factory=Constraints)
    enough: float = ENOUGH
    durations: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    environment_s: float = ENVIRONMENT_S
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Advice:
    """The answer. `candidates` stand best first; `left_out` in the order of releases. `failing` are the watched issues
    that fail on `start`; `unmeasured` what of them nobody measured there, with its price. `why` are the
    parts of one sentence, or one of its own.
    """

    start: Build
    watched: tuple[Issue, ...]
    constraints: Constraints
    enough: float
    hardware: tuple[str, ...]
    decision: Decision
    why: tuple[Said, ...]
    failing: tuple[str, ...]
    unmeasured: Missing
    candidates: tuple[Candidate, ...]
    left_out: tuple[LeftOut, ...]
    as_of: datetime
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> Candidate | None:
        """The one that is recommended."""
        first = self.candidates[0] if self.candidates else None
        return first if first and first.rating is Rating.RECOMMENDED else None


RANKING_WORDS = (
    "enough is measured there; of those where it is not, the one with fewer unknown",
    "fewer silent wrong results newly broken",
    "fewer newly broken",
    "more gained: what is fixed, less what newly needs a workaround",
    "fewer that still fail without a cure",
    "fewer unknown",
    "fewer that need a workaround",
    "the newer release",
    "the wheel of the default index",
    "the later name",
)
"""What decides between two candidates: the first of these in which they differ. The last three settle ties."""


def rank_key(candidate: Candidate, enough: float) -> tuple[int, ...]:
    """The part of RANKING_WORDS that what is watched decides, the lower the better."""
    counts = candidate.counts
    is_enough = candidate.assurance >= enough
    return (
        0 if is_enough else counts[Prospect.UNKNOWN],
        candidate.silently_broken,
        counts[Prospect.NEWLY_BROKEN],
        -candidate.gain,
        counts[Prospect.STILL_AFFECTED],
        counts[Prospect.UNKNOWN],
        counts[Prospect.NEEDS_WORKAROUND],
    )


def advise(question: Question, known: Known) -> Advice:
    """Rank every newer build of the catalogue for what is watched. Total; no build is dropped without a word.

    Which classes count: those that are named; else each issue counts on the classes where it was ever measured, and
    where it is told twice the graver prospect counts.
    """
    start, constraints = question.start, question.constraints
    newer = sorted((one for one in known.builds.values() if _is_newer(one, start)), key=lambda one: one.build_id)
    broken = {one.id: violations(one, constraints, start) for one in newer}
    eligible = [one for one in newer if not broken[one.id]]
    places = _places(question, known)
    ranked = _ranked([_candidate(one, places, question, known) for one in eligible], question.enough)
    own = _candidate(start, places, question, known)
    failing = tuple(sorted(item.issue.id for item in own.items if item.after.verdict in _FAILS))
    judged = tuple(_judged(ranked, question))
    decision, why = _decide(judged, own, failing, newer)
    return Advice(
        start=start,
        watched=question.watched,
        constraints=constraints,
        enough=question.enough,
        hardware=tuple(dict.fromkeys(class_ for class_, _ in places)),
        decision=decision,
        why=why,
        failing=failing,
        unmeasured=own.missing,
        candidates=judged,
        left_out=tuple(LeftOut(one, broken[one.id]) for one in newer if broken[one.id]),
        as_of=known.as_of,
        notes=question.notes,
    )


_FAILS = frozenset({Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE})


def _is_newer(build: Build, start: Build) -> bool:
    """A later torch; of the same torch another CUDA variant or Triton counts, another Python does not."""
    one, other = build.build_id, start.build_id
    return one.apart_from_python > other.apart_from_python


_Places = Sequence[tuple[str, Sequence[Issue]]]


def _places(question: Question, known: Known) -> _Places:
    """The classes that count, each with the issues that are asked for there."""
    named = question.constraints.hardware
    classes = named or known.hardware or (CPU_CLASS,)
    asked = {
        class_: [one for one in question.watched if named or known.was_measured(one.id, class_)] for class_ in classes
    }
    nowhere = [one for one in question.watched if not any(one in issues for issues in asked.values())]
    return [(class_, [*issues, *nowhere]) for class_, issues in asked.items() if issues or nowhere]


def _candidate(build: Build, places: _Places, question: Question, known: Known) -> Candidate:
    items: dict[str, Item] = {}
    for class_, issues in places:
        for pair in _compared(build, class_, issues, question, known).pairs:
            found = Item(pair, prospect_of(pair))
            held = items.get(found.issue.id)
            if held is None or _weight(found) < _weight(held):
                items[found.issue.id] = found
    ordered = tuple(sorted(items.values(), key=_gravest_first))
    return Candidate(build, ordered, _missing(build, ordered, question))


_GRAVITY = {prospect: rank for rank, prospect in enumerate(Prospect)}
_SEVERITY = {severity: rank for rank, severity in enumerate(Severity)}


def _weight(item: Item) -> tuple[int, str]:
    return (_GRAVITY[item.prospect], item.after.hardware)


def _gravest_first(item: Item) -> tuple[int, bool, int, str]:
    return (_GRAVITY[item.prospect], not item.issue.silent, -_SEVERITY[item.issue.severity], item.issue.id)


def _compared(build: Build, class_: str, issues: Sequence[Issue], question: Question, known: Known) -> Comparison:
    return compare(issues, question.start, build, class_, known)


def _missing(build: Build, items: Iterable[Item], question: Question) -> Missing:
    open_ = [item for item in items if item.prospect is Prospect.UNKNOWN]
    to_run = [item for item in open_ if item.after.verdict is Verdict.NOT_RUN]
    again = [item for item in open_ if item.after.verdict is Verdict.INCONCLUSIVE]
    return Missing(
        to_run=_ids(to_run),
        to_ask_again=_ids(again),
        closed=_ids(item for item in open_ if item.after.verdict is Verdict.NO_BUILD),
        hardware=tuple(sorted({item.after.hardware for item in (*to_run, *again)})),
        price=_price(build, [*to_run, *again], question),
    )


def _ids(items: Iterable[Item]) -> tuple[str, ...]:
    return tuple(sorted(item.issue.id for item in items))


def _price(build: Build, items: Iterable[Item], question: Question) -> Price:
    """Of the control and the baseline of each, one after another: what `run --where-affected` begins with."""
    jobs: dict[tuple[str, EnvironmentRequest], list[PlannedArm]] = {}
    for item in items:
        arms = [
            PlannedArm(item.issue.id, arm, variant.id, 1, "")
            for arm in (CONTROL, BASELINE)
            for variant in variants_of(item.issue, arm)
        ]
        jobs.setdefault((item.after.hardware, environment_request(item.issue, build)), []).extend(arms)
    planned = [PlannedJob(build, class_, request, tuple(arms)) for (class_, request), arms in jobs.items()]
    return price_of(planned, question.durations, slots=1, environment_s=question.environment_s)


def _ranked(candidates: Sequence[Candidate], enough: float) -> list[Candidate]:
    """Best first, by RANKING_WORDS."""
    by_tie = sorted(candidates, key=_tie, reverse=True)
    return sorted(by_tie, key=lambda one: rank_key(one, enough))


def _tie(candidate: Candidate) -> tuple[Version, bool, str]:
    build = candidate.build
    return (Version(build.build_id.release), is_release(build), build.id)


def _judged(ranked: Sequence[Candidate], question: Question) -> Iterator[Candidate]:
    """With rating and reason; only the first can be recommended, because nothing that follows is better."""
    for place, one in enumerate(ranked):
        rating = _rating(one, question.enough, is_first=place == 0)
        yield replace(one, rating=rating, why=_reason(one, rating, ranked[0], question))


def _rating(one: Candidate, enough: float, *, is_first: bool) -> Rating:
    if one.assurance < enough:
        return Rating.NOT_ENOUGH
    if one.counts[Prospect.NEWLY_BROKEN]:
        return Rating.BREAKS
    if one.gain <= 0:
        return Rating.NO_GAIN
    return Rating.RECOMMENDED if is_first else Rating.ALSO_GOOD


def _reason(one: Candidate, rating: Rating, first: Candidate, question: Question) -> Said:
    match rating:
        case Rating.RECOMMENDED:
            return Said("fixes {fixed} and breaks none of what you watch", fixed=one.counts[Prospect.FIXED])
        case Rating.ALSO_GOOD:
            return _behind(one, first)
        case Rating.NO_GAIN:
            return _gains_nothing(one, question.start)
        case Rating.BREAKS:
            return _breaks(one)
        case Rating.NOT_ENOUGH:
            return _open(one)


def _gains_nothing(one: Candidate, start: Build) -> Said:
    fixed = one.counts[Prospect.FIXED]
    if not fixed:
        return Said("fixes nothing that fails on {start}", start=start.id)
    return Said("fixes {fixed}, and {n} newly need a workaround", fixed=fixed, n=one.newly_cured)


def _breaks(one: Candidate) -> Said:
    broken = one.of(Prospect.NEWLY_BROKEN)
    silent = [item.issue.id for item in broken if item.is_silently_broken]
    if silent:
        return Said("newly broken: {n}, silent wrong numbers in {issues}", n=len(broken), issues=listed(silent))
    return Said("newly broken: {n}, {issues}", n=len(broken), issues=listed([item.issue.id for item in broken]))


def _open(one: Candidate) -> Said:
    unknown = one.counts[Prospect.UNKNOWN]
    quiet = unknown + one.counts[Prospect.FIXED] + one.counts[Prospect.PASSES]
    counts: dict[str, object] = {"unknown": unknown, "quiet": quiet}
    if not one.missing.count:
        return Said("not enough measured: of {quiet} that do not fail there, {unknown} have no answer", **counts)
    return Said(
        "not enough measured: of {quiet} that do not fail there, {unknown} have no answer "
        "(run {n}: about {minutes} min)",
        n=one.missing.count,
        minutes=one.missing.minutes,
        **counts,
    )


_BEHIND_WORDS = {
    Prospect.STILL_AFFECTED: "also good: {n} still fail without a cure, {m} on {first}",
    Prospect.UNKNOWN: "also good: {n} unknown, {m} on {first}",
    Prospect.NEEDS_WORKAROUND: "also good: {n} need a workaround, {m} on {first}",
}


def _behind(one: Candidate, first: Candidate) -> Said:
    """The first thing in which it stands behind the one that is recommended."""
    if one.gain != first.gain:
        return Said("also good: gains {n}, {first} gains {m}", n=one.gain, m=first.gain, first=first.build.id)
    for prospect, words in _BEHIND_WORDS.items():
        n, m = one.counts[prospect], first.counts[prospect]
        if n != m:
            return Said(words, n=n, m=m, first=first.build.id)
    return Said(
        "as good: {first} is preferred as the newer release, or the wheel of the default index", first=first.build.id
    )


def listed(ids: Sequence[str]) -> str:
    return ", ".join(ids) if len(ids) <= _NAMED else f"{', '.join(ids[:_NAMED])} +{len(ids) - _NAMED}"


_NAMED = 3


def _decide(
    ranked: Sequence[Candidate], own: Candidate, failing: Sequence[str], newer: Sequence[Build]
) -> tuple[Decision, tuple[Said, ...]]:
    """The answer and its reasons, the most telling first."""
    start = own.build.id
    if not own.answered:
        return Decision.CANNOT_SAY, (Said("Nothing that you watch has an answer on {start}.", start=start),)
    if ranked and ranked[0].rating is Rating.RECOMMENDED:
        return Decision.GO, tuple(_praise(ranked[0], failing))
    return Decision.STAY, (_stay(ranked, start, failing, newer),)


def _praise(best: Candidate, failing: Sequence[str]) -> Iterator[Said]:
    counts = best.counts
    fixed, watched = counts[Prospect.FIXED], len(failing)
    if watched == 1:
        yield Said("Fixes the one issue of yours that fails")
    else:
        yield Said("Fixes {fixed} of your {failing} failing issues", fixed=fixed, failing=watched)
    yield Said("breaks none")
    for prospect, words in _ALSO_WORDS.items():
        if counts[prospect]:
            yield Said(words[counts[prospect] > 1], n=counts[prospect])
        if prospect is Prospect.NEEDS_WORKAROUND and best.newly_cured:
            yield Said("{n} of them newly", n=best.newly_cured)
    gone = sum(1 for item in best.items if item.pair.group is Group.GONE)
    if gone:
        yield Said("{n} cannot exist there", n=gone)


_ALSO_WORDS = {
    Prospect.STILL_AFFECTED: ("{n} still fails", "{n} still fail"),
    Prospect.NEEDS_WORKAROUND: ("{n} needs a workaround", "{n} need a workaround"),
    Prospect.UNKNOWN: ("{n} unknown", "{n} unknown"),
}


def _stay(ranked: Sequence[Candidate], start: str, failing: Sequence[str], newer: Sequence[Build]) -> Said:
    if not newer:
        return Said("No newer build is in the catalogue.")
    if not ranked:
        return Said("Each of the {n} newer builds breaks a constraint.", n=len(newer))
    if not failing:
        return Said("Nothing that you watch fails on {start}.", start=start)
    first = ranked[0]
    match first.rating:
        case Rating.NOT_ENOUGH:
            return _nearly(first)
        case Rating.BREAKS:
            return Said(
                "Every newer build with enough measured breaks something: the best, {best}, fixes {fixed} and newly "
                "breaks {broken} ({issues}).",
                best=first.build.id,
                fixed=first.counts[Prospect.FIXED],
                broken=first.counts[Prospect.NEWLY_BROKEN],
                issues=listed([item.issue.id for item in first.of(Prospect.NEWLY_BROKEN)]),
            )
        case _:
            return Said(
                "No newer build with enough measured fixes more than it newly needs workarounds for: on the best, "
                "{best}, {fixed} are fixed and {n} newly need one.",
                best=first.build.id,
                fixed=first.counts[Prospect.FIXED],
                n=first.newly_cured,
            )


def _nearly(first: Candidate) -> Said:
    return Said(
        "No newer build is measured enough: most is known of {build}, where {percent} % of your list has an answer.",
        build=first.build.id,
        percent=percent(first.coverage),
    )
