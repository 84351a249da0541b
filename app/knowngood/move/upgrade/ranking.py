"""Which build to move to: candidates ranked for what a team watches, each with what is gained, lost, new and not known.

The build one is on is the first row, held to the same standard. The ranking is a written rule (RANKING_WORDS) and a
sort key that says the same. What holds of it, by properties:
- An issue that fails on a candidate never makes it better: its key stays or gets worse, and where the issue fails and
  is not known on no other candidate, its place does too. That is why "enough measured" counts no failures: they would
  make the evidence look more complete.
- What is not known is never gained: an answer that is lost never makes a candidate better, and a pass that is lost on
  either side never makes a recommendation. That is why what fails there and is not known before counts against a
  candidate, though it is no loss.
- What can exist neither where one is nor there changes nothing.
- Watched names, cells and builds in another order change nothing.
Source: docs/decisions/019-an-upgrade-is-recommended-on-what-passes.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from packaging.version import Version

from knowngood.domain.builds.architectures import driver_objection
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import find_build
from knowngood.domain.builds.packages import concerns
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import (
    Issue,
    parse_capability,
)
from knowngood.domain.issue_selectors import SEVERITY_RANK
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import Message
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.paired_time import TimedCost
from knowngood.domain.verdicts.status import Prospect
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.move.compare.comparison import RANKS
from knowngood.move.pair import IssuePair, pair_of
from knowngood.move.upgrade.candidates import (
    LEAST,
    Candidate,
    Rating,
    Tally,
    UpgradeQuestion,
    doubtful_of,
    missing_of,
    untried_of,
    weight,
)
from knowngood.move.upgrade.constraints import Constraints, companions_of, violations
from knowngood.move.upgrade.reasons import FindOut, UpgradeDecision, decide, find_out_on, reason_of, unmeasured_gpu
from knowngood.serialization.message_field import MessageField


@dataclass(frozen=True)
class LeftOut:
    """A newer build that breaks a constraint, and how."""

    build: str
    reasons: tuple[MessageField, ...]


@dataclass(frozen=True)
class UpgradeAdvice:
    """The answer. `base` is the build one is on, as a candidate like the others; `candidates` stand best first. Of all
    `newer` builds, in the order of releases, the others are `left_out`. `why` are the parts of one sentence, or one of
    its own. `find_out` is what a "cannot say" would take. `beside` says how many of the answers are the CPU's, which do
    not count here, and what turns outside of what is watched. `costs` are those of `Known`.
    """

    base: Candidate
    watched: tuple[Issue, ...]
    constraints: Constraints
    enough: float
    hardware: tuple[str, ...]
    decision: UpgradeDecision
    why: tuple[Message, ...]
    find_out: tuple[FindOut, ...]
    candidates: tuple[Candidate, ...]
    newer: tuple[Build, ...]
    left_out: tuple[LeftOut, ...]
    as_of: datetime
    notes: tuple[Message, ...] = ()
    beside: tuple[Message, ...] = ()
    costs: Mapping[str, Mapping[str, TimedCost]] = field(default_factory=dict)

    @property
    def start(self) -> Build:
        """The build one is on."""
        return self.base.build

    @property
    def packages_here(self) -> Mapping[str, str]:
        """The packages of the environment with their versions: as stated, or as they go with the build one is on."""
        return {**self.base.packages, **{name: own for name, own in self.constraints.packages.items() if own}}

    @property
    def failing(self) -> tuple[str, ...]:
        """The watched issues that fail where one is."""
        return tuple(sorted(item.issue.id for item in self.base.items if item.fails))

    @property
    def best(self) -> Candidate | None:
        """The one that is recommended."""
        return next((candidate for candidate in self.candidates if candidate.rating is Rating.RECOMMENDED), None)

    def chosen(self, named: str) -> Candidate | None:
        """The candidate that is named, else the recommended one. Raises UnknownBuild."""
        if not named:
            return self.best
        candidates = {candidate.build.id: candidate for candidate in self.candidates}
        return candidates[find_build(named, {id_: candidate.build for id_, candidate in candidates.items()}).id]

    @property
    def compared(self) -> tuple[Candidate, ...]:
        """The build one is on, then the candidates of which anything is known."""
        return (self.base, *(candidate for candidate in self.candidates if candidate.answered_by))

    @property
    def unmeasured(self) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate in self.candidates if not candidate.answered_by)


RANKING_WORDS = (
    "enough is measured there; of those where it is not, the one with fewer not known",
    "less is lost without a workaround known to help, or may be lost: it fails there, and was not known before",
    "more is gained than newly needs a workaround, and at least one gain rests on two runs on both sides",
    "more is gained, less what newly needs a workaround",
    "less fails there without a workaround known to help",
    "fewer not known",
    "less needs a workaround",
    "more is gained than lost outside of what is watched",
    "the newer release",
    "the wheel of the default index",
    "the later name",
)
"""The rule that decides between two candidates: the first of these in which they differ. More and less are compared by
weight (WEIGHING_WORDS). The last four settle ties.
"""


def rank_key(candidate: Candidate, enough: float) -> tuple[int, ...]:
    """The part of RANKING_WORDS that what is watched decides, the lower the better."""
    unknown = candidate.counts[Tally.NOT_KNOWN]
    return (
        0 if candidate.assurance >= enough else unknown,
        weight(candidate.unremedied),
        0 if candidate.gain > 0 and candidate.is_confirmed else 1,
        -candidate.gain,
        weight(candidate.of(Tally.FAILS)),
        unknown,
        weight(candidate.of(Tally.NEEDS_WORKAROUND)),
    )


def advise(question: UpgradeQuestion, known: Known) -> UpgradeAdvice:
    """Rank every newer build of the catalogue for what is watched; from a wheel, every newer wheel. Total; no build is
    dropped without a word.

    Which classes count: those that are named; else each issue counts on the classes where it was ever measured, and
    where it counts on two the more severe one does. On a GPU that nobody measured nothing is recommended: a list that
    was read in a wheel rules it out, and is no pass.
    """
    start, constraints = question.start, question.constraints
    there = known.builds.values() if start.python else known.every_wheel
    # Of the same torch another CUDA variant or Triton counts as newer, another Python does not.
    newer = sorted(
        (build for build in there if build.build_id.apart_from_python > start.build_id.apart_from_python),
        key=lambda build: build.build_id,
    )
    broken = {build.id: tuple(violations(build, constraints, start, known.wheels)) for build in newer}
    eligible = [build for build in newer if not broken[build.id]]
    places = _places(question, known)
    base = replace(_candidate(start, places, question, known), rating=Rating.HERE)
    base = replace(base, why=reason_of(base, None, base))
    ranked = _ranked([_candidate(build, places, question, known) for build in eligible], question, known)
    unmeasured = [
        class_ for class_ in constraints.hardware if parse_capability(class_) and class_ not in known.hardware
    ]
    judged = _judged(ranked, base, question, is_open=bool(unmeasured))
    decision, why, find_out = decide(judged, base, newer, question.enough)
    if unmeasured:
        decision, find_out = UpgradeDecision.CANNOT_SAY, tuple(map(find_out_on, judged[:1]))
        why = tuple(unmeasured_gpu(class_, constraints.names.get(class_, class_), known) for class_ in unmeasured)
    objection = driver_objection(start, constraints.driver)
    if decision is not UpgradeDecision.GO and objection:
        decision = UpgradeDecision.CANNOT_SAY
        why = (Message("start_does_not_run", start=start.in_words, said=objection), *why)
    best = next((candidate for candidate in judged if candidate.rating is Rating.RECOMMENDED), base)
    return UpgradeAdvice(
        base=base,
        watched=question.watched,
        constraints=constraints,
        enough=question.enough,
        hardware=tuple(dict.fromkeys(class_ for class_, _ in places)),
        decision=decision,
        why=why,
        find_out=tuple(step for step in find_out if step.commands),
        candidates=judged,
        newer=tuple(newer),
        left_out=tuple(LeftOut(build.id, broken[build.id]) for build in newer if broken[build.id]),
        as_of=known.as_of,
        notes=question.notes,
        beside=(*_on_cpu_alone(best, known), *_turned_outside(best, question, known)),
        costs=known.costs,
    )


def _on_cpu_alone(candidate: Candidate, known: Known) -> Iterator[Message]:
    """The price of a rule that is off: nothing is known of these on the GPU that is asked about."""
    claims, unknown = known.claims, candidate.of(Tally.NOT_KNOWN)
    cells = [item.after for item in unknown if claims.answer_of_cpu(item.issue, candidate.build, item.after.hardware)]
    if not cells or claims.carries_to_gpus:
        return
    yield Message(
        "on_cpu_alone",
        build=candidate.build.in_words,
        m=candidate.applicable,
        n=len(cells),
        agreed=claims.device_agreement.part,
        compared=claims.device_agreement.whole,
    )


def _turned_outside(candidate: Candidate, question: UpgradeQuestion, known: Known) -> Iterator[Message]:
    outside = _outside(candidate.build, question, known)
    gained, lost = outside.counts[Tally.GAINED], outside.counts[Tally.LOST]
    if gained or lost:
        yield Message("turned_outside", gained=gained, lost=lost, n=outside.applicable)


def _outside(build: Build, question: UpgradeQuestion, known: Known) -> Candidate:
    """The build by all issues that are not watched and concern the environment."""
    watched, packages = {issue.id for issue in question.watched}, question.constraints.packages
    others = tuple(
        issue
        for issue in known.issues.values()
        if issue.id not in watched and not issue.is_smoke and concerns(issue, packages, named=False)
    )
    unwatched = replace(question, watched=others)
    return _candidate(build, _places(unwatched, known), unwatched, known)


_Places = Sequence[tuple[str, Sequence[Issue]]]


def _places(question: UpgradeQuestion, known: Known) -> _Places:
    """The classes that count, each with the issues that are asked for there."""
    named = question.constraints.hardware
    classes = named or known.hardware or (CPU_CLASS,)
    by_class = {
        class_: [issue for issue in question.watched if named or known.was_measured(issue.id, class_)]
        for class_ in classes
    }
    nowhere = [
        issue
        for issue in question.watched
        if not (named or any(known.was_measured(issue.id, class_) for class_ in classes))
    ]
    return [(class_, [*issues, *nowhere]) for class_, issues in by_class.items() if issues or nowhere]


def _candidate(build: Build, places: _Places, question: UpgradeQuestion, known: Known) -> Candidate:
    items: dict[str, IssuePair] = {}
    for class_, issues in places:
        for issue in issues:
            pair = pair_of(issue, question.start, build, class_, known)
            held = items.get(pair.issue.id)
            if held is None or _weight(pair) < _weight(held):
                items[pair.issue.id] = pair
    ordered = tuple(
        sorted(
            (item for item in items.values() if {item.before.verdict, item.after.verdict} != _NOWHERE),
            key=_most_severe_first,
        )
    )
    return Candidate(
        build=build,
        items=ordered,
        missing=missing_of(build, ordered, question),
        doubtful=doubtful_of(ordered, question, known),
        untried=untried_of(build, ordered, question),
        packages={
            companion.package: companion.release
            for companion in companions_of(build, question.constraints, question.start)
            if companion.release
        },
        age=known.age(build),
    )


_NOWHERE = {Verdict.NOT_APPLICABLE}


_GRAVITY = {prospect: rank for rank, prospect in enumerate(Prospect)}


def _weight(item: IssuePair) -> tuple[bool, int, int, str]:
    return (not item.may_be_lost, _GRAVITY[item.prospect], RANKS[item.group], item.after.hardware)


def _most_severe_first(item: IssuePair) -> tuple[bool, int, bool, int, str]:
    return (
        not item.may_be_lost,
        _GRAVITY[item.prospect],
        not item.is_silent,
        -SEVERITY_RANK[item.issue.severity],
        item.issue.id,
    )


def _ranked(candidates: Sequence[Candidate], question: UpgradeQuestion, known: Known) -> list[Candidate]:
    """Best first, by RANKING_WORDS. What is not watched is looked at only where there is a tie: that takes long."""
    alike = grouped(candidates, lambda candidate: rank_key(candidate, question.enough))
    ties = {key: len(group) > 1 for key, group in alike.items()}
    return [
        candidate
        for key in sorted(alike)
        for candidate in sorted(
            alike[key], key=lambda candidate: ties[key] and _tie(candidate.build, question, known), reverse=True
        )
    ]


def _tie(build: Build, question: UpgradeQuestion, known: Known) -> tuple[int, Version, bool, str]:
    outside = _outside(build, question, known)
    turned = weight(outside.of(Tally.GAINED)) - weight(outside.of(Tally.LOST))
    return (turned, Version(build.build_id.release), is_release(build), build.id)


def _judged(
    ranked: Sequence[Candidate], base: Candidate, question: UpgradeQuestion, *, is_open: bool
) -> tuple[Candidate, ...]:
    """Give each candidate its rating and reason; of the good ones that are not too new the first is recommended,
    because nothing that follows is better. Where all `is_open` none is good.
    """
    rated = [
        replace(candidate, rating=Rating.NOT_ENOUGH if is_open else _rating(candidate, base, question.enough))
        for candidate in ranked
    ]
    good = [candidate for candidate in rated if candidate.rating is Rating.ALSO_GOOD]
    settled = [candidate for candidate in (*good, base) if candidate.is_settled]
    # To these a settled one is preferred: one that does not fail, severely and silently, what passes there.
    new = [
        candidate
        for candidate in good
        if not candidate.is_settled and any(not candidate.passes_gravely(other) for other in settled)
    ]
    best = next((candidate for candidate in good if candidate not in new), None)
    ratings = (
        (
            candidate,
            Rating.TOO_NEW if candidate in new else Rating.RECOMMENDED if candidate is best else candidate.rating,
        )
        for candidate in rated
    )
    rated = [replace(candidate, rating=rating) for candidate, rating in ratings]
    return tuple(replace(candidate, why=reason_of(candidate, best, base)) for candidate in rated)


def _rating(candidate: Candidate, base: Candidate, enough: float) -> Rating:
    if base.coverage < LEAST or candidate.assurance < enough or not candidate.applicable:
        return Rating.NOT_ENOUGH
    if candidate.lost_for_good:
        return Rating.LOSES
    if candidate.hope <= 0:
        return Rating.NO_GAIN
    if candidate.unremedied or candidate.gain <= 0:
        return Rating.MAY_LOSE
    return Rating.ALSO_GOOD if candidate.is_confirmed else Rating.NOT_CONFIRMED
