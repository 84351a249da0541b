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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import find_build
from knowngood.domain.builds.packages import coming_along, concerns
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_names import article_of
from knowngood.domain.issue import (
    BASELINE,
    CONTROL,
    Issue,
    environment_request,
    parse_capability,
    variants_of,
)
from knowngood.domain.issue_selectors import SEVERITY_RANK
from knowngood.domain.measuring.job import PlannedArm
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.measuring.planning import ENVIRONMENT_S, PlannedJob, price_of
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import Prospect, untried
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.move.pair import CONFIRMED, Group, IssuePair, pair_of
from knowngood.move.upgrade.candidates import (
    Candidate,
    Message,
    Missing,
    Rating,
    Tally,
    weight,
)
from knowngood.move.upgrade.constraints import Constraints, violations

LEAST = 0.5
"""The share of what is watched that must have an answer on a build before anything is said of it."""

ENOUGH = 0.8
"""The share of what does not fail on a candidate that must be known to pass before it is recommended; whoever asks may
name another, of LEAST or more.
"""


@dataclass(frozen=True)
class LeftOut:
    """A newer build that breaks a constraint, and how."""

    build: str
    reasons: tuple[str, ...]


class UpgradeDecision(StrEnum):
    GO = "go"
    STAY = "stay"
    CANNOT_SAY = "cannot_say"


@dataclass(frozen=True)
class UpgradeQuestion:
    """`start` is the build one is on, `watched` the issues by id. `enough` is the assurance that is asked for (LEAST to
    1).

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
class FindOut:
    """Measurements that are needed before more can be said, as they are typed; `what` names it with its price."""

    what: Message
    commands: tuple[str, ...]


@dataclass(frozen=True)
class UpgradeAdvice:
    """The answer. `base` is the build one is on, as a candidate like the others; `candidates` stand best first. Of all
    `newer` builds, in the order of releases, the others are `left_out`. `why` are the parts of one sentence, or one of
    its own. `find_out` is what a "cannot say" would take. `beside` says how many of the answers are the CPU's, which do
    not count here, and what turns outside of what is watched.
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
    notes: tuple[str, ...] = ()
    beside: tuple[Message, ...] = ()

    @property
    def start(self) -> Build:
        """The build one is on."""
        return self.base.build

    @property
    def failing(self) -> tuple[str, ...]:
        """The watched issues that fail where one is."""
        return tuple(sorted(item.issue.id for item in self.base.items if item.fails))

    @property
    def best(self) -> Candidate | None:
        """The one that is recommended."""
        return next((one for one in self.candidates if one.rating is Rating.RECOMMENDED), None)

    def chosen(self, named: str) -> Candidate | None:
        """The candidate that is named, else the recommended one. Raises UnknownBuild."""
        if not named:
            return self.best
        candidates = {one.build.id: one for one in self.candidates}
        return candidates[find_build(named, {id_: one.build for id_, one in candidates.items()}).id]

    @property
    def compared(self) -> tuple[Candidate, ...]:
        """The build one is on, then the candidates of which anything is known."""
        return (self.base, *(one for one in self.candidates if one.answered_by))

    @property
    def unmeasured(self) -> tuple[Candidate, ...]:
        return tuple(one for one in self.candidates if not one.answered_by)


RANKING_WORDS = (
    "enough is measured there; of those where it is not, the one with fewer not known",
    "less is lost without a workaround known to help, or may be: what fails there and is not known before",
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
"""The rule that decides between two candidates: the first of these in which they differ. More and less are told by
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
        (one for one in there if one.build_id.apart_from_python > start.build_id.apart_from_python),
        key=lambda one: one.build_id,
    )
    broken = {one.id: violations(one, constraints, start, known.wheels) for one in newer}
    eligible = [one for one in newer if not broken[one.id]]
    places = _places(question, known)
    base = replace(_candidate(start, places, question, known), rating=Rating.HERE)
    base = replace(base, why=_reason(base, None, base))
    ranked = _ranked([_candidate(one, places, question, known) for one in eligible], question, known)
    unmeasured = [one for one in constraints.hardware if parse_capability(one) and one not in known.hardware]
    judged = _judged(ranked, base, question, is_open=bool(unmeasured))
    decision, why, find_out = _decide(judged, base, newer, question.enough)
    if unmeasured:
        decision, find_out = UpgradeDecision.CANNOT_SAY, tuple(map(_find_out, judged[:1]))
        why = tuple(_unmeasured(one, constraints.names.get(one, one), known) for one in unmeasured)
    best = next((one for one in judged if one.rating is Rating.RECOMMENDED), base)
    return UpgradeAdvice(
        base=base,
        watched=question.watched,
        constraints=constraints,
        enough=question.enough,
        hardware=tuple(dict.fromkeys(class_ for class_, _ in places)),
        decision=decision,
        why=why,
        find_out=tuple(one for one in find_out if one.commands),
        candidates=judged,
        newer=tuple(newer),
        left_out=tuple(LeftOut(one.id, broken[one.id]) for one in newer if broken[one.id]),
        as_of=known.as_of,
        notes=question.notes,
        beside=(*_on_cpu_alone(best, known), *_turned_outside(best, question, known)),
    )


def _on_cpu_alone(one: Candidate, known: Known) -> Iterator[Message]:
    """The price of a rule that is off: nothing is known of these on the GPU that is asked about."""
    claims, unknown = known.claims, one.of(Tally.NOT_KNOWN)
    cells = [item.after for item in unknown if claims.answer_of_cpu(item.issue, one.build, item.after.hardware)]
    if not cells or claims.carries_to_gpus:
        return
    yield Message(
        "On {build}, {n} of the {m} issues have only been measured on the CPU, which does not count for a GPU until "
        "the two are known to agree (so far {agreed} of {compared} pairs do).",
        build=one.build.id,
        m=one.applicable,
        n=len(cells),
        agreed=claims.device_agreement.part,
        compared=claims.device_agreement.whole,
    )


def _turned_outside(one: Candidate, question: UpgradeQuestion, known: Known) -> Iterator[Message]:
    found = _outside(one.build, question, known)
    gained, lost = found.counts[Tally.GAINED], found.counts[Tally.LOST]
    if gained or lost:
        yield Message(
            "Outside of what you watch ({n}): {gained} gained, {lost} lost.",
            gained=gained,
            lost=lost,
            n=found.applicable,
        )


def _outside(build: Build, question: UpgradeQuestion, known: Known) -> Candidate:
    """The build by all issues that are not watched and concern the environment."""
    watched, packages = {one.id for one in question.watched}, dict.fromkeys(question.constraints.packages, "")
    others = tuple(
        one
        for one in known.issues.values()
        if one.id not in watched and not one.is_smoke and concerns(one, packages, named=False)
    )
    asked = replace(question, watched=others)
    return _candidate(build, _places(asked, known), asked, known)


_Places = Sequence[tuple[str, Sequence[Issue]]]


def _places(question: UpgradeQuestion, known: Known) -> _Places:
    """The classes that count, each with the issues that are asked for there."""
    named = question.constraints.hardware
    classes = named or known.hardware or (CPU_CLASS,)
    asked = {
        class_: [one for one in question.watched if named or known.was_measured(one.id, class_)] for class_ in classes
    }
    nowhere = [one for one in question.watched if not any(one in issues for issues in asked.values())]
    return [(class_, [*issues, *nowhere]) for class_, issues in asked.items() if issues or nowhere]


def _candidate(build: Build, places: _Places, question: UpgradeQuestion, known: Known) -> Candidate:
    items: dict[str, IssuePair] = {}
    for class_, issues in places:
        for issue in issues:
            found = pair_of(issue, question.start, build, class_, known)
            held = items.get(found.issue.id)
            if held is None or _weight(found) < _weight(held):
                items[found.issue.id] = found
    ordered = tuple(
        sorted(
            (item for item in items.values() if {item.before.verdict, item.after.verdict} != _NOWHERE),
            key=_most_severe_first,
        )
    )
    return Candidate(
        build=build,
        items=ordered,
        missing=_missing(build, ordered, question),
        doubtful=_doubtful(ordered, question, known),
        untried=_untried(build, ordered, question),
        packages=coming_along(build, question.constraints.packages),
        age=known.age(build),
    )


_NOWHERE = {Verdict.NOT_APPLICABLE}
_GRAVITY = {prospect: rank for rank, prospect in enumerate(Prospect)}
_GROUPS = {group: rank for rank, group in enumerate(Group)}


def _weight(item: IssuePair) -> tuple[bool, int, int, str]:
    return (not item.may_be_lost, _GRAVITY[item.prospect], _GROUPS[item.group], item.after.hardware)


def _most_severe_first(item: IssuePair) -> tuple[bool, int, bool, int, str]:
    return (
        not item.may_be_lost,
        _GRAVITY[item.prospect],
        not item.is_silent,
        -SEVERITY_RANK[item.issue.severity],
        item.issue.id,
    )


def _missing(build: Build, items: Iterable[IssuePair], question: UpgradeQuestion) -> Missing:
    open_ = grouped((item for item in items if item.prospect is Prospect.NOT_KNOWN), lambda item: item.after.verdict)
    to_run, again, closed = (open_.get(one, []) for one in (Verdict.NOT_RUN, Verdict.INCONCLUSIVE, Verdict.NO_BUILD))
    jobs = [_job(one.issue, build, one.after.hardware, (CONTROL, BASELINE)) for one in (*to_run, *again)]
    return _measurement(jobs, question, to_run, again, closed)


def _untried(build: Build, items: Iterable[IssuePair], question: UpgradeQuestion) -> Missing:
    """The losses for which a workaround was not run there; of an inferred one it is run where its ground was."""
    lost = [item for item in items if item.group is Group.NEWLY_BROKEN and item.is_untried]
    jobs = [_job(item.issue, build, _ground(item.after)[1], untried(item.after)) for item in lost]
    return _measurement(jobs, question, lost)


def _doubtful(items: Iterable[IssuePair], question: UpgradeQuestion, known: Known) -> Missing:
    """One more run of the baseline for each side that rests on a single one; of an inferred side, of its ground."""
    gained = [item for item in items if item.group is Group.FIXED and not item.is_confirmed]
    sides = [(item.issue, cell) for item in gained for cell in (item.before, item.after) if cell.runs < CONFIRMED]
    jobs = [_job(issue, known.builds[_ground(cell)[0]], _ground(cell)[1], (BASELINE,)) for issue, cell in sides]
    return _measurement(jobs, question, gained, how="--confirm")


def _measurement(
    jobs: Sequence[PlannedJob],
    question: UpgradeQuestion,
    to_run: Iterable[IssuePair],
    again: Iterable[IssuePair] = (),
    closed: Iterable[IssuePair] = (),
    how: str = "--where-affected",
) -> Missing:
    """What the jobs take, one after another: what `run --where-affected` begins with."""
    by_environment = grouped(jobs, lambda job: (job.hardware, job.request)).values()
    together = [replace(alike[0], arms=tuple(arm for job in alike for arm in job.arms)) for alike in by_environment]
    price = price_of(together, question.durations, slots=1, environment_s=question.environment_s)
    builds = dict.fromkeys(job.build.id for job in sorted(jobs, key=lambda job: job.build.build_id))
    classes = sorted({job.hardware for job in jobs})
    commands = tuple(
        f"knowngood run --builds {','.join(builds)} --issues {','.join(ids)} --hardware {','.join(classes)} {flags}"
        for ids, flags in ((_ids(to_run), how), (_ids(again), f"{how} --force"))
        if ids
    )
    return Missing(_ids(to_run), _ids(again), _ids(closed), price.arms, price.guessed, price.seconds, commands)


def _ground(cell: Cell) -> tuple[str, str]:
    return (cell.basis.build, cell.basis.hardware) if cell.basis else (cell.build, cell.hardware)


def _ids(items: Iterable[IssuePair]) -> tuple[str, ...]:
    return tuple(sorted(item.issue.id for item in items))


def _job(issue: Issue, build: Build, hardware: str, arms: Sequence[str]) -> PlannedJob:
    """These arms with every variant."""
    planned = (PlannedArm(issue.id, arm, variant.id, 1, "") for arm in arms for variant in variants_of(issue, arm))
    return PlannedJob(build, hardware, environment_request(issue, build), tuple(planned))


def _ranked(candidates: Sequence[Candidate], question: UpgradeQuestion, known: Known) -> list[Candidate]:
    """Best first, by RANKING_WORDS. What is not watched is looked at only where there is a tie: that takes long."""
    alike = grouped(candidates, lambda one: rank_key(one, question.enough))
    ties = {key: len(group) > 1 for key, group in alike.items()}
    return [
        one
        for key in sorted(alike)
        for one in sorted(alike[key], key=lambda one: ties[key] and _tie(one.build, question, known), reverse=True)
    ]


def _tie(build: Build, question: UpgradeQuestion, known: Known) -> tuple[int, Version, bool, str]:
    outside = _outside(build, question, known)
    turned = weight(outside.of(Tally.GAINED)) - weight(outside.of(Tally.LOST))
    return (turned, Version(build.build_id.release), is_release(build), build.id)


def _judged(
    ranked: Sequence[Candidate], base: Candidate, question: UpgradeQuestion, *, is_open: bool
) -> tuple[Candidate, ...]:
    """With rating and reason; of the good ones that are not too new the first is recommended, because nothing that
    follows is better. Where all `is_open` none is good.
    """
    rated = [
        replace(one, rating=Rating.NOT_ENOUGH if is_open else _rating(one, base, question.enough)) for one in ranked
    ]
    good = [one for one in rated if one.rating is Rating.ALSO_GOOD]
    settled = [one for one in (*good, base) if one.is_settled]
    # To these a settled one is preferred: one that does not fail, severely and silently, what passes there.
    new = [one for one in good if not one.is_settled and any(not one.passes_gravely(other) for other in settled)]
    best = next((one for one in good if one not in new), None)
    told = ((one, Rating.TOO_NEW if one in new else Rating.RECOMMENDED if one is best else one.rating) for one in rated)
    rated = [replace(one, rating=rating) for one, rating in told]
    return tuple(replace(one, why=_reason(one, best, base)) for one in rated)


def _rating(one: Candidate, base: Candidate, enough: float) -> Rating:
    if base.coverage < LEAST or one.assurance < enough or not one.applicable:
        return Rating.NOT_ENOUGH
    if one.lost_for_good:
        return Rating.LOSES
    if one.hope <= 0:
        return Rating.NO_GAIN
    if one.unremedied or one.gain <= 0:
        return Rating.MAY_LOSE
    return Rating.ALSO_GOOD if one.is_confirmed else Rating.NOT_CONFIRMED


def _reason(one: Candidate, best: Candidate | None, base: Candidate) -> Message:
    gained = one.counts[Tally.GAINED]
    match one.rating:
        case Rating.HERE:
            return _here(one)
        case Rating.RECOMMENDED:
            confirmed = sum(1 for item in one.of(Tally.GAINED) if item.is_confirmed)
            return Message(
                "of the {n} gained, on two runs or more on both sides: {confirmed}", n=gained, confirmed=confirmed
            )
        case Rating.ALSO_GOOD:
            return _behind(one, best or one)
        case Rating.TOO_NEW:
            return _too_new(one)
        case Rating.NOT_CONFIRMED:
            return Message(
                "{n} gained, each on a single run (to confirm: about {minutes} min)",
                n=gained,
                minutes=one.doubtful.minutes,
            )
        case Rating.MAY_LOSE:
            return _may_lose(one)
        case Rating.NO_GAIN:
            return _no_gain(gained, one.counts[Tally.LOST])
        case Rating.LOSES:
            return _loses(one)
        case Rating.NOT_ENOUGH:
            return _open(one, base)


def _may_lose(one: Candidate) -> Message:
    if one.untried.count:
        return Message("{n} lost, workaround not tried there", n=one.untried.count)
    return Message("{n} fail there that are not known before", n=one.counts[Tally.NOT_KNOWN_BEFORE])


def _no_gain(gained: int, lost: int) -> Message:
    if not gained:
        return Message("gains nothing")
    return Message("the {n} gained weigh no more than the {m} lost, which need a workaround", n=gained, m=lost)


def _here(base: Candidate) -> Message:
    if base.coverage >= LEAST or not base.missing.count:
        return Message("where you are")
    return Message(
        "where you are; too little to compare: run {n} (about {minutes} min)",
        n=base.missing.count,
        minutes=base.missing.minutes,
    )


def _behind(one: Candidate, best: Candidate) -> Message:
    """The first thing of those with a number in which it stands behind the one that is recommended."""
    for tally, words in _BEHIND_WORDS.items():
        n, m = one.counts[tally], best.counts[tally]
        if n != m:
            return Message(words, n=n, m=m, best=best.build.id)
    return Message(
        "as good: {best} is preferred as the newer release, or the wheel of the default index", best=best.build.id
    )


_BEHIND_WORDS = {
    Tally.GAINED: "also good: {n} gained, {m} on {best}",
    Tally.LOST: "also good: {n} lost with a workaround, {m} on {best}",
    Tally.FAILS: "also good: {n} fail without a workaround known to help, {m} on {best}",
    Tally.NOT_KNOWN: "also good: {n} not known, {m} on {best}",
    Tally.NEEDS_WORKAROUND: "also good: {n} need a workaround, {m} on {best}",
}


def _too_new(one: Candidate) -> Message:
    age = one.age
    if age is None:
        return Message(_UNDATED_WORDS, best=one.build.id, n=one.counts[Tally.GAINED])
    return Message(
        _TOO_NEW_WORDS,
        best=one.build.id,
        n=one.counts[Tally.GAINED],
        reported=age.reported,
        minor=age.minor,
        days=age.days,
        read=age.read or "?",
    )


_UNDATED_WORDS = "{best} gains {n}, but the day of its release is not known, and so not whether it is too new to judge."
_TOO_NEW_WORDS = (
    "{best} gains {n}, but is too new to judge: {minor} is {days} days old, and {reported} issues were reported since "
    "(upstream was read on {read})."
)


def _loses(one: Candidate) -> Message:
    lost = one.lost_for_good
    silent = sum(1 for item in lost if item.is_silent)
    if silent:
        return Message(
            "{n} lost without a workaround, {silent} of them with wrong numbers and no error",
            n=len(lost),
            silent=silent,
        )
    return Message("{n} lost without a workaround", n=len(lost))


def _open(one: Candidate, base: Candidate) -> Message:
    if not one.applicable:
        return Message("nothing that you watch can exist there")
    if not one.counts[Tally.NOT_KNOWN]:
        return Message("nothing to compare with: {start} is hardly measured", start=base.build.id)
    if not one.missing.count:
        return Message("not enough measured: {n} have no answer", n=one.counts[Tally.NOT_KNOWN])
    return Message(
        "not enough measured: {n} have no answer (run {count}: about {minutes} min)",
        n=one.counts[Tally.NOT_KNOWN],
        count=one.missing.count,
        minutes=one.missing.minutes,
    )


_Answer = tuple[UpgradeDecision, tuple[Message, ...], tuple[FindOut, ...]]


def _decide(judged: Sequence[Candidate], base: Candidate, newer: Sequence[Build], enough: float) -> _Answer:
    """The answer, its reasons, and what it takes to say more."""
    best = next((one for one in judged if one.rating is Rating.RECOMMENDED), None)
    if best is not None:
        return UpgradeDecision.GO, tuple(_praise(best)), ()
    new = next((one for one in judged if one.rating is Rating.TOO_NEW), None)
    if new is not None:
        return UpgradeDecision.CANNOT_SAY, (new.why,), ()
    start = base.build.id
    if not newer:
        return _stay(Message("No newer build is in the catalogue."))
    if not judged:
        return _stay(Message("Each of the {n} newer builds breaks a constraint.", n=len(newer)))
    first = judged[0]
    if base.coverage < LEAST:
        lacking = (base, first) if first.assurance < enough else (base,)
        why = (*_hardly_measured(base), *_in_its_place(base, judged, enough))
        return UpgradeDecision.CANNOT_SAY, why, tuple(map(_find_out, lacking))
    if not any(item.fails for item in base.items):
        return _stay(Message("Nothing that you watch fails on {start}.", start=start))
    return _without_a_good_one(judged, base)


def _unmeasured(hardware: str, name: str, known: Known) -> Message:
    """Of a GPU on which nothing was measured: what the wheels' lists say."""
    found = known.serving(hardware)
    torch = found[-1].torch if found else ""
    return Message(_UNMEASURED_WORDS[article_of(name)][bool(found)], name=name, torch=torch)


_UNMEASURED_WORDS = {
    "a": (
        "Nothing was measured on a {name}, and no tested wheel is known to hold code for it.",
        "Nothing was measured on a {name}; the newest tested wheel that holds code for it is {torch}.",
    ),
    "an": (
        "Nothing was measured on an {name}, and no tested wheel is known to hold code for it.",
        "Nothing was measured on an {name}; the newest tested wheel that holds code for it is {torch}.",
    ),
    "": (
        "Nothing was measured on {name}, and no tested wheel is known to hold code for it.",
        "Nothing was measured on {name}; the newest tested wheel that holds code for it is {torch}.",
    ),
}


def _stay(why: Message) -> _Answer:
    return UpgradeDecision.STAY, (why,), ()


def _find_out(one: Candidate) -> FindOut:
    said = Message(
        "On {build} without an answer: {n} (about {minutes} min)",
        build=one.build.id,
        n=one.missing.count,
        minutes=one.missing.minutes,
    )
    return FindOut(said, one.missing.commands)


def _hardly_measured(base: Candidate) -> Iterator[Message]:
    start, missing = base.build.id, base.missing
    if not base.applicable:
        yield Message("Nothing that you watch can exist on {start}.", start=start)
        return
    yield Message(
        _HARDLY_WORDS[base.from_cpu > 0],
        start=start,
        measured=base.measured,
        applicable=base.applicable,
        n=base.from_cpu,
    )
    if missing.count:
        yield Message("To compare, run {n} there (about {minutes} min).", n=missing.count, minutes=missing.minutes)


def _in_its_place(base: Candidate, judged: Sequence[Candidate], enough: float) -> Iterator[Message]:
    """Whoever starts from a build that is hardly measured may mean a patch of it that is, and can land somewhere."""
    patch = next((one for one in judged if one.build.minor == base.build.minor and one.coverage >= LEAST), None)
    if patch is not None:
        yield Message("{build} is measured: name it if that is what you have.", build=patch.build.id)
    settled = [one for one in judged if one.is_settled and one.assurance >= enough and one.applicable]
    if settled:
        clean = min(settled, key=lambda one: (weight(one.of(Tally.FAILS)), weight(one.of(Tally.NEEDS_WORKAROUND))))
        yield Message(
            "What you gain is not known; the cleanest settled one to land on is {build}: {n} fail there without a "
            "workaround, and {m} with one.",
            build=clean.build.id,
            n=clean.counts[Tally.FAILS],
            m=clean.counts[Tally.NEEDS_WORKAROUND],
        )


_HARDLY_WORDS = (
    "{start} is hardly measured: {measured} of {applicable} have an answer there.",
    (
        "{start} is hardly measured: {measured} of {applicable} were run on what is asked for, and {n} more have an "
        "answer of the CPU."
    ),
)


def _praise(best: Candidate) -> Iterator[Message]:
    counts = best.counts
    if best.age and not best.is_settled:
        yield Message("Too new to judge ({n} issues reported since its release)", n=best.age.reported)
    yield Message("{n} gained", n=counts[Tally.GAINED])
    if counts[Tally.LOST]:
        yield Message(_LOST_WORDS[counts[Tally.LOST] > 1], n=counts[Tally.LOST])
    else:
        yield Message("none lost")
    for tally, (one, several) in _ALSO_WORDS.items():
        if counts[tally]:
            yield Message(several if counts[tally] > 1 else one, n=counts[tally])


_LOST_WORDS = ("{n} lost (it has a workaround)", "{n} lost (each has a workaround)")

_ALSO_WORDS = {
    Tally.NEW: ("{n} fails in new features", "{n} fail in new features"),
    Tally.NOT_KNOWN_BEFORE: ("{n} not known before", "{n} not known before"),
    Tally.NOT_KNOWN: ("{n} not known there", "{n} not known there"),
}


def _without_a_good_one(judged: Sequence[Candidate], base: Candidate) -> _Answer:
    """To stay is said only where no measured candidate could turn out to be good."""
    hopeful = next((one for one in judged if one.rating in {Rating.MAY_LOSE, Rating.NOT_CONFIRMED}), None)
    if hopeful is not None:
        return UpgradeDecision.CANNOT_SAY, (_hopeful(hopeful),), (_what_it_takes(hopeful, base),)
    first = judged[0]
    gained, best = first.counts[Tally.GAINED], first.build.id
    match first.rating:
        case Rating.NOT_ENOUGH if not first.applicable:
            said = Message("Nothing that you watch can exist on {start}.", start=best)
            return UpgradeDecision.CANNOT_SAY, (said,), ()
        case Rating.NOT_ENOUGH:
            said = Message(
                "No newer build is measured enough: most is known of {best}, {measured} of {applicable}.",
                best=best,
                measured=first.measured,
                applicable=first.applicable,
            )
            return UpgradeDecision.CANNOT_SAY, (said,), (_find_out(first),)
        case Rating.LOSES:
            return _stay(
                Message(
                    "Every newer build with enough measured loses something without a workaround: the best, {best}, "
                    "gains {n} and loses {m} so.",
                    best=best,
                    n=gained,
                    m=len(first.lost_for_good),
                )
            )
        case _ if gained:
            return _stay(
                Message(
                    "On no newer build with enough measured does what is gained outweigh what newly needs a "
                    "workaround: on the best, {best}, {n} are gained and {m} lost, each with a workaround.",
                    best=best,
                    n=gained,
                    m=first.counts[Tally.LOST],
                )
            )
        case _:
            return _stay(Message("No newer build with enough measured gains anything: the best is {best}.", best=best))


def _hopeful(one: Candidate) -> Message:
    gained = one.counts[Tally.GAINED]
    if one.rating is Rating.NOT_CONFIRMED:
        return Message("{best} gains {n}, but each of them rests on a single run.", best=one.build.id, n=gained)
    if one.untried.count:
        return Message(
            "{best} gains {n}, but {m} are lost, and their workarounds were not tried there.",
            best=one.build.id,
            n=gained,
            m=one.untried.count,
        )
    return Message(
        "{best} gains {n}, but {m} fail there that are not known before: each may be a loss.",
        best=one.build.id,
        n=gained,
        m=one.counts[Tally.NOT_KNOWN_BEFORE],
    )


def _what_it_takes(one: Candidate, base: Candidate) -> FindOut:
    if one.rating is Rating.MAY_LOSE and one.untried.count:
        missing, build = one.untried, one.build.id
        said = Message(
            "On {build} workarounds not tried: of {n} (about {minutes} min)",
            build=build,
            n=missing.count,
            minutes=missing.minutes,
        )
        return FindOut(said, missing.commands)
    if one.rating is Rating.MAY_LOSE:
        return _find_out(base)
    doubtful = one.doubtful
    said = Message("To confirm {n} on both sides (about {minutes} min)", n=doubtful.count, minutes=doubtful.minutes)
    return FindOut(said, doubtful.commands)
