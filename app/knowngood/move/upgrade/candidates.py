"""Candidates: what each watched issue does on a build that one may move to, and what all of them say of that build.

Everything that is counted of a build is counted here, once: sentences, tables and documents read `Candidate.counts`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from math import ceil

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.release_age import ReleaseAge
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import (
    BASELINE,
    CONTROL,
    Issue,
    Severity,
    environment_request,
    variants_of,
)
from knowngood.domain.measuring.job import PlannedArm
from knowngood.domain.measuring.planning import ENVIRONMENT_S, PlannedJob, price_of
from knowngood.domain.message import NOTHING, Message
from knowngood.domain.verdicts.inference import PYTHON_RULE, RULES_OF_CPU
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import Prospect, untried
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.move.pair import CONFIRMED, Group, IssuePair
from knowngood.move.upgrade.constraints import Constraints

LEAST = 0.5
"""The share of what is watched that must have an answer on a build before the advice says anything of it."""


ENOUGH = 0.8
"""The share of what does not fail on a candidate that must be known to pass before it is recommended; a reader may name
another, of LEAST or more.
"""


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
    notes: tuple[Message, ...] = ()


_POINTS = {Severity.LOW: 1, Severity.MEDIUM: 2, Severity.HIGH: 4, Severity.CRITICAL: 8}

WEIGHING_WORDS = (
    "An issue weighs 1 (low severity), 2 (medium), 4 (high) or 8 (critical), and twice that where it gives wrong "
    "numbers without an error."
)


def weight_of(issue: Issue) -> int:
    """The weight of an issue when candidates are ranked: as WEIGHING_WORDS say."""
    return _POINTS[issue.severity] * (2 if issue.silent else 1)


class Tally(StrEnum):
    """The counts of a candidate. The first eight take each watched issue once; the others say what turned."""

    PASSES = "passes"
    NEEDS_WORKAROUND = "needs_workaround"
    FAILS = "fails"
    BIGGER = "bigger"
    MORE_WORK = "more_work"
    SLOWER = "slower"
    NOT_KNOWN = "not_known"
    DOES_NOT_APPLY = "does_not_apply"
    GAINED = "gained"  # failed, and passes there
    LOST = "lost"  # passed, and fails there
    LOST_WITH_WORKAROUND = "lost_with_workaround"  # of these, those for which one was measured to help there
    UNTRIED = "untried"  # of those that fail, those for which one that may help has no answer there
    NEW = "new"  # fails there, and could not exist before: no loss
    NOT_KNOWN_BEFORE = "not_known_before"  # fails there, and nothing is known of it before: no loss either


_COUNTED: Mapping[Tally, Callable[[IssuePair], bool]] = {
    Tally.PASSES: lambda item: item.prospect is Prospect.PASSES,
    Tally.NEEDS_WORKAROUND: lambda item: item.prospect is Prospect.NEEDS_WORKAROUND,
    Tally.FAILS: lambda item: item.prospect is Prospect.FAILS,
    Tally.BIGGER: lambda item: item.prospect is Prospect.BIGGER,
    Tally.MORE_WORK: lambda item: item.prospect is Prospect.MORE_WORK,
    Tally.SLOWER: lambda item: item.prospect is Prospect.SLOWER,
    Tally.NOT_KNOWN: lambda item: item.prospect is Prospect.NOT_KNOWN,
    Tally.DOES_NOT_APPLY: lambda item: item.prospect is Prospect.DOES_NOT_APPLY,
    Tally.GAINED: lambda item: item.group is Group.FIXED,
    Tally.LOST: lambda item: item.group is Group.NEWLY_BROKEN,
    Tally.LOST_WITH_WORKAROUND: lambda item: item.group is Group.NEWLY_BROKEN and item.has_workaround,
    Tally.UNTRIED: lambda item: item.is_untried,
    Tally.NEW: lambda item: item.group is Group.NEW,
    Tally.NOT_KNOWN_BEFORE: lambda item: item.group is Group.NOT_KNOWN_BEFORE and item.fails,
}


@dataclass(frozen=True)
class Missing:
    """The issues to run before more can be said: `to_run` were never run there, `to_ask_again` gave no answer, `closed`
    cannot be run. `seconds` is an estimate of the commands' time, one arm after another; `guessed` of its `arms` were
    never timed.
    """

    to_run: tuple[str, ...]
    to_ask_again: tuple[str, ...]
    closed: tuple[str, ...]
    arms: int
    guessed: int
    seconds: float
    commands: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.to_run) + len(self.to_ask_again)

    @property
    def minutes(self) -> int:
        """Whole minutes, rounded up: an estimate, to be written with "about"."""
        return ceil(self.seconds / 60)


class Rating(StrEnum):
    """The rating of a build as a whole. Of those that are good the first is recommended."""

    HERE = "here"  # the build one is on
    RECOMMENDED = "recommended"
    ALSO_GOOD = "also_good"
    TOO_NEW = "too_new"  # good by what is measured, and too new to be preferred to a settled one
    NOT_CONFIRMED = "not_confirmed"  # each of its gains rests on a single run
    MAY_LOSE = "may_lose"  # something fails there of which nothing is known before, or with workarounds not verified
    NO_GAIN = "no_gain"
    LOSES = "loses"  # something that passed fails there without a workaround
    NOT_ENOUGH = "not_enough_measured"  # there, or where one is


@dataclass(frozen=True)
class Candidate:
    """A build beside the one that one is on, which may be itself. `items` stand most severe first, one for each watched
    issue that can exist on one of the two. `missing` are those without an answer there, `untried` losses whose
    workarounds were not run there, `doubtful` gains that rest on a single run on either side. `packages` are those of
    the environment that are made for one torch, each with the release that goes with the build's.
    Without an `age` nobody knows when its release came out. `why` says what its rating rests on.
    """

    build: Build
    items: tuple[IssuePair, ...]
    missing: Missing
    doubtful: Missing
    untried: Missing
    packages: Mapping[str, str]
    age: ReleaseAge | None
    rating: Rating = Rating.NOT_ENOUGH
    why: Message = NOTHING

    def of(self, tally: Tally) -> tuple[IssuePair, ...]:
        return tuple(filter(_COUNTED[tally], self.items))

    @cached_property
    def counts(self) -> Mapping[Tally, int]:
        """Every tally, with the zeros."""
        return {tally: len(self.of(tally)) for tally in Tally}

    @cached_property
    def _there(self) -> tuple[IssuePair, ...]:
        return tuple(item for item in self.items if item.prospect is not Prospect.DOES_NOT_APPLY)

    @property
    def applicable(self) -> int:
        return len(self._there)

    @cached_property
    def answered_by(self) -> Mapping[str, int]:
        """How many of the answers there are measured (the empty text), and how many each rule infers."""
        known = (item.after for item in self._there if item.prospect is not Prospect.NOT_KNOWN)
        return Counter(cell.basis.rule if cell.basis else "" for cell in known)

    @property
    def measured(self) -> int:
        """How many were run on the very class that is asked for, with whatever Python."""
        return self.answered_by[""] + self.from_python

    @property
    def from_python(self) -> int:
        """How many of `measured` were run with another Python."""
        return self.answered_by[PYTHON_RULE]

    @property
    def from_cpu(self) -> int:
        """The answers that are no part of `measured`, because they were run on the CPU."""
        return sum(self.answered_by[rule] for rule in RULES_OF_CPU)

    @property
    def coverage(self) -> float:
        """The share of the applicable issues that have an answer, or of those without an answer of the CPU's, whichever
        is less; 0 where none can exist there. Answers of the CPU say how the build does, and not how well it is
        measured on a GPU.
        """
        own = [item for item in self._there if not item.is_of_cpu]
        return min(_coverage(self._there), _coverage(own) if own else 1.0)

    @property
    def assurance(self) -> float:
        """The share of the issues that do not fail there that is known to pass; as in `coverage`, the lesser of the
        share of those without an answer of the CPU's and of all.

        It is never above `coverage`, and no failure changes it. 1 where nothing is left open.
        """
        return min(_assurance(self.items), _assurance([item for item in self.items if not item.is_of_cpu]))

    @property
    def hope(self) -> int:
        """The weight of what is gained, less that of what is lost with a workaround, or may have one: at best it gains
        this.
        """
        lost = (item for item in self.of(Tally.LOST) if item.has_workaround or item.is_untried)
        return weight(self.of(Tally.GAINED)) - weight(lost)

    @property
    def gain(self) -> int:
        """The weight of what is gained, less what fails there with a workaround and may have passed before: at worst it
        gains this.
        """
        return weight(self.of(Tally.GAINED)) - weight(
            item for item in self.items if item.may_be_lost and item.has_workaround
        )

    @property
    def unremedied(self) -> tuple[IssuePair, ...]:
        """The items that fail there without a workaround known to help, and passed before, or may have."""
        return tuple(item for item in self.items if item.may_be_lost and not item.has_workaround)

    @property
    def is_settled(self) -> bool:
        return self.age is not None and self.age.settled

    def passes_gravely(self, other: "Candidate") -> bool:
        """Whether an issue passes here that is severe and silent and fails on the other."""
        failing = {item.issue.id for item in other.items if item.fails and item.is_grave}
        return any(item.issue.id in failing for item in self.of(Tally.PASSES))

    @property
    def lost_for_good(self) -> tuple[IssuePair, ...]:
        """The items that passed before, and fail there with whatever was to be tried."""
        return tuple(item for item in self.of(Tally.LOST) if not item.has_workaround and not item.is_untried)

    @property
    def is_confirmed(self) -> bool:
        """Whether at least one gain rests on more than a single run on both sides."""
        return any(item.is_confirmed for item in self.of(Tally.GAINED))


def _open(items: Iterable[IssuePair]) -> list[IssuePair]:
    """The items without an answer, less those that time tells: no run measures these, and they hold back no release."""
    return [item for item in items if item.prospect is Prospect.NOT_KNOWN and not item.issue.is_timed]


def _coverage(items: Sequence[IssuePair]) -> float:
    known = sum(1 for item in items if item.prospect is not Prospect.NOT_KNOWN)
    return known / (known + len(_open(items))) if known else 0.0


def _assurance(items: Sequence[IssuePair]) -> float:
    passing, unknown = sum(1 for item in items if item.prospect is Prospect.PASSES), len(_open(items))
    return passing / (passing + unknown) if unknown else 1.0


def weight(items: Iterable[IssuePair]) -> int:
    return sum(weight_of(item.issue) for item in items)


def missing_of(build: Build, items: Iterable[IssuePair], question: UpgradeQuestion) -> Missing:
    """The items without an answer on `build` that a run could give."""
    open_ = grouped(_open(items), lambda item: item.after.verdict)
    to_run, again, closed = (
        open_.get(verdict, []) for verdict in (Verdict.NOT_RUN, Verdict.INCONCLUSIVE, Verdict.NO_BUILD)
    )
    jobs = [_job(item.issue, build, item.after.hardware, (CONTROL, BASELINE)) for item in (*to_run, *again)]
    return _measurement(jobs, question, to_run, again, closed)


def untried_of(build: Build, items: Iterable[IssuePair], question: UpgradeQuestion) -> Missing:
    """The losses for which a workaround was not run there; of an inferred one it is run where its ground was."""
    lost = [item for item in items if item.group is Group.NEWLY_BROKEN and item.is_untried]
    jobs = [_job(item.issue, build, _ground(item.after)[1], untried(item.after)) for item in lost]
    return _measurement(jobs, question, lost)


def doubtful_of(items: Iterable[IssuePair], question: UpgradeQuestion, known: Known) -> Missing:
    """One more run of the baseline for each side that rests on a single one; of an inferred side, of its ground."""
    gained = [item for item in items if item.group is Group.FIXED and not (item.is_confirmed or item.issue.is_timed)]
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
    """The jobs as they are typed, with their price, one after another: `run --where-affected` begins with these."""
    by_environment = grouped(jobs, lambda job: (job.hardware, job.request)).values()
    together = [replace(alike[0], arms=tuple(arm for job in alike for arm in job.arms)) for alike in by_environment]
    price = price_of(together, question.durations, at_once={}, environment_s=question.environment_s)
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
