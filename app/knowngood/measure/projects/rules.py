"""The rules for one suite of tests in two environments: sets of failing ids are compared, and what differs is repeated.

Right or silent: "ok" needs tests that pass on both sides, and nothing that newly fails, comes and goes on one side, or
is no longer run.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from packaging.version import Version

from knowngood.domain.measuring.planning import CONFIRMING
from knowngood.domain.verdicts.outcome import Ending
from knowngood.measure.scripts.rules import Run, error_line, likeness

MOST_REPEATED = 200  # ids; of more the whole suite is repeated

# Of pytest: all passed, some failed. 2 to 4 are ends before the end, 5 is that nothing was collected
_FINISHED = (0, 1)
_NONE_COLLECTED = 5


class Outcome(StrEnum):
    """Of one test, mildest first: of several cases with one id the worst counts."""

    SKIPPED = "skipped"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True)
class SuiteRun:
    """One run of the suite, or of `only` these ids. `outcomes` are by id, `texts` the words of those that failed.
    `problem` says why none of it counts (empty: it does).
    """

    end: Run
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    problem: str = ""


Side = Sequence[SuiteRun]
"""The runs in one environment, oldest first; the first one is of the whole suite."""


def problem_of(end: Run, outcomes: Mapping[str, Outcome], *, is_pytest: bool) -> str:
    """Say why a run that ended so tells nothing of its tests; empty where it does."""
    if end.ending is not Ending.EXITED or (end.exit_code or 0) < 0:
        more = f" in {end.seconds:.0f} s; --timeout gives it longer" if end.ending is Ending.TIMED_OUT else ""
        return f"{end.how}, no results written{more}"
    if not outcomes and is_pytest:
        is_none = end.exit_code in {0, _NONE_COLLECTED}
        said = (line for line in end.output.splitlines() if line.startswith("ERROR"))  # pytest's last line says nothing
        return "no test was collected" if is_none else f"{end.how}, no results written ({next(said, end.line)})"
    if Outcome.FAILED not in outcomes.values() and end.fails:
        return f"{end.how} though no test failed"
    if is_pytest and end.exit_code not in _FINISHED:
        return f"{end.how}: pytest stopped before its end"
    return ""


class Change(StrEnum):
    """The class of one id. Those that are said first stand first."""

    NEWLY_FAILING = "newly failing"
    UNSETTLED = "comes and goes on one side"
    GONE = "run on the old side alone"
    NEWLY_PASSING = "newly passing"
    FLAKY = "flaky on both"
    FAILS = "fails on both"
    ADDED = "run on the new side alone"
    SKIPPED = "skipped on both"
    PASSES = "passes on both"


class Answer(StrEnum):
    OK = "ok"
    CANNOT_SAY = "cannot say"
    NOT_YET = "not yet"


def failures(side: Side, id_: str) -> tuple[int, int]:
    """In how many of how many runs it failed."""
    counts = Counter(run.outcomes.get(id_) for run in side if not run.problem)
    return counts[Outcome.FAILED], counts[Outcome.FAILED] + counts[Outcome.PASSED] + counts[Outcome.SKIPPED]


def _outcome(side: Side, id_: str) -> Outcome | Change | None:
    """The one thing that all runs say of an id, None where none runs it; UNSETTLED where they differ."""
    said = {run.outcomes[id_] for run in side if id_ in run.outcomes and not run.problem}
    return Change.UNSETTLED if len(said) > 1 else next(iter(said), None)


def _function(id_: str) -> str:
    """The test without its parameters."""
    return id_.partition("[")[0]


@dataclass(frozen=True)
class Comparison:
    """A suite with the old torch (`base`) and with the new one (`target`)."""

    base: Side
    target: Side

    @property
    def problems(self) -> tuple[str, str]:
        """The reason why each side does not count; empty where it does."""
        base, target = (side[0].problem if side else "not run" for side in (self.base, self.target))
        return base, target

    @cached_property
    def changes(self) -> dict[str, Change]:
        """The class of each id, in the order of the suite. Tests of a file that newly cannot be collected are not
        named: the file is.
        """
        if any(self.problems):
            return {}
        found = {id_: self._change(id_) for side in (self.base, self.target) for id_ in side[0].outcomes}
        broken = {id_ for id_, change in found.items() if change is Change.NEWLY_FAILING}
        return {
            id_: change
            for id_, change in found.items()
            if change is not Change.GONE or id_.partition("::")[0] not in broken
        }

    def _change(self, id_: str) -> Change:
        was, is_now = _outcome(self.base, id_), _outcome(self.target, id_)
        if Change.UNSETTLED in {was, is_now}:
            return Change.FLAKY if was is is_now else Change.UNSETTLED
        if is_now is Outcome.FAILED:
            return Change.FAILS if was is Outcome.FAILED else Change.NEWLY_FAILING
        if is_now is not Outcome.PASSED:
            return Change.SKIPPED if was in {None, Outcome.SKIPPED} else Change.GONE
        return _NOW_PASSING.get(was, Change.ADDED)

    def ids(self, *changes: Change) -> tuple[str, ...]:
        return tuple(id_ for id_, change in self.changes.items() if change in changes)

    @property
    def to_repeat(self) -> tuple[str, ...]:
        """The ids whose outcomes differ, as long as a side has too few runs of them."""
        differing = self.ids(Change.NEWLY_FAILING, Change.NEWLY_PASSING, Change.UNSETTLED)
        return tuple(id_ for id_ in differing if any(is_short(side, id_) for side in (self.base, self.target)))

    @property
    def unsure(self) -> tuple[str, ...]:
        """Ids that keep the answer from being ok though none of them newly fails. None of them is a test that passes as
        often with other parameters: some draw theirs at random.
        """
        spare = Counter(_function(id_) for id_ in self.ids(Change.ADDED) if _outcome(self.base, id_) is None)
        gone = [id_ for id_ in self.ids(Change.GONE) if _outcome(self.base, id_) is Outcome.PASSED]
        counts = Counter(_function(id_) for id_ in gone if _outcome(self.target, id_) is None)
        drawn = {function for function, count in counts.items() if count <= spare[function]}
        left = (id_ for id_ in gone if _function(id_) not in drawn or _outcome(self.target, id_) is not None)
        return (*self.ids(Change.UNSETTLED), *left)

    @property
    def otherwise(self) -> tuple[str, ...]:
        """Of the ids that fail on both sides, those whose words differ."""
        return tuple(
            id_
            for id_ in self.ids(Change.FAILS)
            if len({likeness(error_line(words_of(side, id_).splitlines())) for side in (self.base, self.target)}) > 1
        )

    @property
    def answer(self) -> Answer:
        """A new failure counts once it was repeated; one that never could be is unsure."""
        new = self.ids(Change.NEWLY_FAILING)
        if any(failures(self.target, id_)[1] > 1 for id_ in new):
            return Answer.NOT_YET
        is_sure = not new and not self.unsure and not any(self.problems)
        return Answer.OK if is_sure and self.ids(Change.PASSES) else Answer.CANNOT_SAY


_NOW_PASSING: Mapping[Outcome | Change | None, Change] = {
    Outcome.PASSED: Change.PASSES,
    Outcome.FAILED: Change.NEWLY_PASSING,
}


def is_short(side: Side, id_: str) -> bool:
    """Whether an id is still to be run CONFIRMING times besides the whole suite. A run that asked for it counts even
    where it found none, as of a file that is collected well.
    """
    return sum(not run.problem and (not run.only or id_ in run.only) for run in side) <= CONFIRMING


def words_of(side: Side, id_: str) -> str:
    """The words of its last failure."""
    return next((run.texts[id_] for run in reversed(side) if id_ in run.texts), "")


# -- what moves with torch ---------------------------------------------------------------------------------------------

COUPLED = frozenset({"torchvision", "torchaudio", "torchtext", "torchcodec", "torchao"})
"""Made for one release of torch each, whether or not their metadata says so."""
BROUGHT = re.compile(r"(?:nvidia|cuda)-.*|pytorch-triton|triton")
"""Names of what torch asks for itself, most of it exactly."""

_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*?)(?:\[[^\]]*\])?\s?[=<>~!]=?=?\d")


def moved_requirements(pins: Mapping[str, str], torch: str, freed: frozenset[str]) -> list[str]:
    """Requirements for a resolver: all as pinned but torch, what torch brings along, and those that are `freed`: these
    only ever go the way of torch, lest a resolver flee to an ancient version that asks for nothing.
    """
    way = ">=" if Version(torch) >= Version(pins["torch"]) else "<="
    kept = {name: pin for name, pin in pins.items() if name != "torch" and not BROUGHT.fullmatch(name)}
    return [f"{name}{way if name in freed else '=='}{pin}" for name, pin in kept.items()]


def conflicting(pins: Mapping[str, str], words: str) -> frozenset[str]:
    """The pinned packages that a resolver names in its refusal, besides torch."""
    named = {name.lower().replace("_", "-") for name in _NAMED.findall(words)}
    return frozenset(named & pins.keys() - {"torch"})


def moves(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[list[str], int]:
    """The difference between two environments besides torch, in words; and how many of CUDA's own packages."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    own = [name for name in names if re.match("(?:nvidia|cuda)-", name)]
    shown = [name for name in names if name not in own and name != "torch"]
    return [f"{name} {before.get(name, 'none')} -> {after.get(name, 'none')}" for name in shown], len(own)
