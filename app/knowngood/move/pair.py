"""One issue on two builds: what became of it, and of each workaround. Upgrade and compare share it.

Gained and lost are said only where both sides are known: measured, or inferred by one and the same rule. What nobody
ran, what contradicts itself, what cannot exist and what cannot be built is never "fixed", and where nothing was known
before nothing is "newly broken". What could not exist before is new, and no loss.
Source: docs/decisions/020-comparisons-and-histories-say-what-was-seen.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, Severity, environment_request
from knowngood.domain.message import Message
from knowngood.domain.verdicts.inference import RULES_OF_CPU, own_reason
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import (
    FAILING_PROSPECTS,
    Prospect,
    has_workaround,
    is_untried,
    ranked,
    remedy_of,
    working,
)
from knowngood.domain.verdicts.verdict import (
    EXCESSES,
    Assurance,
    Cell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    is_silent,
    passes_beyond_luck,
)


class Transition(StrEnum):
    """The change of one issue from one build to another. Most severe first."""

    REGRESSED = "regressed"  # passed; fails, with the issue's signature or differently
    CHANGED_FAILURE = "changed_failure"  # fails on both, not in the same way
    STILL_AFFECTED = "still_affected"  # fails on both in the same way
    APPEARED = "appeared"  # could not exist, or not be built; now it can
    WAS_UNKNOWN = "was_unknown"  # nothing was known; now there is an answer
    NOW_UNKNOWN = "now_unknown"  # there was an answer; now there is none
    STILL_UNKNOWN = "still_unknown"  # no answer on either
    FIXED = "fixed"  # failed, with the issue's signature or differently; passes with proof
    DISAPPEARED = "disappeared"  # cannot exist there, or not be built
    STILL_OK = "still_ok"  # passes on both
    ABSENT = "absent"  # can exist, or be built, on neither


class SideStanding(StrEnum):
    """One side of a pair, as far as a transition goes."""

    PASSES = "passes"
    FAILS = "fails"
    FAILS_DIFFERENTLY = "fails_differently"
    UNKNOWN = "unknown"
    ABSENT = "absent"


def standing_of(cell: Cell | None) -> SideStanding:
    """None is no cell at all: the issue or the hardware class was not there to be asked."""
    return _STANDINGS[cell.verdict] if cell else SideStanding.ABSENT


_STANDINGS: Mapping[Verdict, SideStanding] = {
    Verdict.NOT_AFFECTED: SideStanding.PASSES,
    Verdict.AFFECTED: SideStanding.FAILS,
    Verdict.FLAKY: SideStanding.FAILS,
    Verdict.BIGGER: SideStanding.FAILS,
    Verdict.MORE_WORK: SideStanding.FAILS,
    Verdict.SLOWER: SideStanding.FAILS,
    Verdict.DIFFERENT_FAILURE: SideStanding.FAILS_DIFFERENTLY,
    Verdict.INCONCLUSIVE: SideStanding.UNKNOWN,
    Verdict.NOT_RUN: SideStanding.UNKNOWN,
    Verdict.NOT_APPLICABLE: SideStanding.ABSENT,
    Verdict.NO_BUILD: SideStanding.ABSENT,
}
# Where it is said on both sides, before only, after only; an absence outweighs an unknown.
_SILENT = {
    SideStanding.ABSENT: (Transition.ABSENT, Transition.APPEARED, Transition.DISAPPEARED),
    SideStanding.UNKNOWN: (Transition.STILL_UNKNOWN, Transition.WAS_UNKNOWN, Transition.NOW_UNKNOWN),
}
_FAILS = frozenset({SideStanding.FAILS, SideStanding.FAILS_DIFFERENTLY})


def transition_of(before: Cell | None, after: Cell | None) -> Transition:
    """Say what became of an issue between two cells. Total; staleness changes nothing, because a verdict stands.

    Swapping the two swaps fixed with regressed, appeared with disappeared, now_unknown with was_unknown, and leaves
    the others. An absence outweighs an unknown: where the issue cannot exist there is nothing left to find out.
    A flaky failure is neither gone nor new for as long as the other build's passes may be luck: that is an unknown.
    So is everything between two cells that are inferred by two rules.
    """
    was, now = standing_of(before), standing_of(after)
    rules = {cell.basis.rule for cell in (before, after) if cell is not None and cell.basis is not None}
    if len(rules) > 1:
        return Transition.STILL_UNKNOWN
    for silent, (on_both, before_only, after_only) in _SILENT.items():
        if silent in {was, now}:
            return on_both if was is now else before_only if was is silent else after_only
    if was is SideStanding.PASSES:
        return Transition.STILL_OK if now is SideStanding.PASSES else _unless_luck(after, before, Transition.REGRESSED)
    if now is SideStanding.PASSES:
        return _unless_luck(before, after, Transition.FIXED)
    return Transition.STILL_AFFECTED if _fails_alike(before, after) else Transition.CHANGED_FAILURE


def _unless_luck(failing: Cell | None, passing: Cell | None, transition: Transition) -> Transition:
    """`transition`, unless `failing` is flaky and `passing` may be so too."""
    if failing is None or passing is None or passes_needed(failing, passing) == 0:
        return transition
    return Transition.NOW_UNKNOWN if transition is Transition.FIXED else Transition.WAS_UNKNOWN


def passes_needed(flaky: Cell, passing: Cell) -> int:
    """How many passes in a row there would have to be beside a flaky cell, where there are too few; else 0.

    Of a failure seen in k of n attempts, m passes in a row are luck with the probability (1 - k/n)^m.
    """
    if flaky.verdict is not Verdict.FLAKY:
        return 0
    passed = {finding.variant: finding.n - finding.k for finding in passing.variants}
    variants = [variant for variant in flaky.variants if variant.verdict is Verdict.FLAKY and 0 < variant.k < variant.n]
    short = [
        needed
        for variant in variants
        if (needed := passes_beyond_luck(variant.k / variant.n)) > passed.get(variant.variant, 0)
    ]
    return max(short, default=0 if variants else 1)


def _fails_alike(before: Cell | None, after: Cell | None) -> bool:
    """Whether two failing cells fail in the same way: both with the issue's signature, or both with one other text."""
    if standing_of(before) is not standing_of(after):
        return False
    if before is None or after is None or standing_of(before) is SideStanding.FAILS:
        return True
    return _masked(own_reason(before)) == _masked(own_reason(after))


# Addresses, sizes, line numbers and generated names differ between two runs of one failure.
_ACCIDENTAL = re.compile(r"0x[0-9a-fA-F]+|\d+|\b[0-9a-f]{8,}\b")


def _masked(reason: Message) -> str:
    return _ACCIDENTAL.sub("#", repr(reason))


class Group(StrEnum):
    """The group of a pair by what a reader does with it, in the order in which it is told.

    Each pair is in one group, so that the counts of a comparison add up.
    """

    NEWLY_BROKEN = "newly_broken"  # lost: passed, and fails
    FIXED = "fixed"  # gained: failed, and passes with proof
    NEW = "new"  # fails; before it could not exist, or not be built
    NOT_KNOWN_BEFORE = "not_known_before"  # has an answer; before nothing certain was known
    NOT_KNOWN_NOW = "not_known_now"  # no answer there, or passes that may be luck
    FAILS_OTHERWISE = "fails_otherwise"
    BIGGER = "bigger"  # right there, and takes more memory than it must, newly or as before
    MORE_WORK = "more_work"  # right there, and takes more compilations, kernels or copies than it must
    SLOWER = "slower"  # right there, and takes longer than it must
    GONE = "gone"  # cannot exist there, or not be built: no fix
    PASSES_NEW = "passes_new"  # passes; before it could not exist, or not be built
    STILL_FAILS = "still_fails"
    STILL_PASSES = "still_passes"
    NOWHERE = "nowhere"


_GROUPS = {
    Transition.REGRESSED: Group.NEWLY_BROKEN,
    Transition.FIXED: Group.FIXED,
    Transition.WAS_UNKNOWN: Group.NOT_KNOWN_BEFORE,
    Transition.NOW_UNKNOWN: Group.NOT_KNOWN_NOW,
    Transition.STILL_UNKNOWN: Group.NOT_KNOWN_NOW,
    Transition.CHANGED_FAILURE: Group.FAILS_OTHERWISE,
    Transition.DISAPPEARED: Group.GONE,
    Transition.STILL_AFFECTED: Group.STILL_FAILS,
    Transition.STILL_OK: Group.STILL_PASSES,
    Transition.ABSENT: Group.NOWHERE,
}
_APPEARED = {
    SideStanding.FAILS: Group.NEW,
    SideStanding.FAILS_DIFFERENTLY: Group.NEW,
    SideStanding.PASSES: Group.PASSES_NEW,
}


_UNKNOWNS = frozenset({Transition.NOW_UNKNOWN, Transition.STILL_UNKNOWN})


class WorkaroundTurn(StrEnum):
    """The change of one workaround from one build to another. Those that ask for something to be done stand first."""

    STOPPED_WORKING = "stopped_working"  # helped there; here the issue fails in spite of it
    HARMFUL = "harmful"  # breaks what passes here, or turns a loud failure into silent wrong numbers
    NOW_NEEDED = "now_needed"  # no failure known there; here it helps
    NO_LONGER_VERIFIED = "no_longer_verified"  # helped there; nobody can say here, and it is not known to be needless
    NO_LONGER_NEEDED = "no_longer_needed"  # helped there; here the issue passes without it, or cannot exist
    NOW_WORKS = "now_works"  # helps here, and was not known to where the issue failed before
    STILL_WORKS = "still_works"  # helps on both


def workaround_turn(before: Cell | None, after: Cell | None, workaround: str) -> WorkaroundTurn | None:
    """Say what became of a workaround between two cells of its issue; None where nothing is to be said.

    On a build that passes workarounds are often not tried at all: that the issue passes there with proof is enough to
    call one needless. That the issue cannot be built there is not.
    Source: docs/decisions/013-a-workaround-counts-over-the-variants-that-fail.md.
    """
    had, has = _workaround(before, workaround), _workaround(after, workaround)
    if has is WorkaroundVerdict.HARMFUL:
        return WorkaroundTurn.HARMFUL
    helped = had is WorkaroundVerdict.EFFECTIVE
    if has is WorkaroundVerdict.EFFECTIVE:
        not_before = WorkaroundTurn.NOW_WORKS if standing_of(before) in _FAILS else WorkaroundTurn.NOW_NEEDED
        return WorkaroundTurn.STILL_WORKS if helped else not_before
    if not helped:
        return None
    finding = after.workarounds.get(workaround) if after else None
    if finding and (finding.verdict is WorkaroundVerdict.INEFFECTIVE or finding.failed):
        return WorkaroundTurn.STOPPED_WORKING
    if after and after.verdict in {Verdict.NOT_AFFECTED, Verdict.NOT_APPLICABLE} and not after.not_covered:
        return WorkaroundTurn.NO_LONGER_NEEDED
    return WorkaroundTurn.NO_LONGER_VERIFIED


def _workaround(cell: Cell | None, workaround: str) -> WorkaroundVerdict:
    finding = cell.workarounds.get(workaround) if cell else None
    return finding.verdict if finding else WorkaroundVerdict.UNVERIFIED


CONFIRMED = 2
"""Runs on both sides from which on a gain may be the ground of a recommendation.

Source: docs/decisions/019-an-upgrade-is-recommended-on-what-passes.md.
"""


@dataclass(frozen=True)
class InstalledPackages:
    """Packages that the issue installs beside torch on either build."""

    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class IssuePair:
    """One issue on one hardware class of both `builds`. `old` says of either side whether its evidence is stale."""

    issue: Issue
    before: Cell
    after: Cell
    builds: tuple[Build, Build]
    old: tuple[bool, bool] = (False, False)

    @cached_property
    def transition(self) -> Transition:
        return transition_of(self.before, self.after)

    @cached_property
    def group(self) -> Group:
        """The group by what a reader does with the issue."""
        if self.after.verdict in EXCESSES and self.transition not in _UNKNOWNS:
            return Group(self.after.verdict)
        return _GROUPS.get(self.transition) or _APPEARED.get(standing_of(self.after), Group.NOT_KNOWN_NOW)

    @cached_property
    def turns(self) -> Mapping[str, WorkaroundTurn]:
        """The change of each workaround, in the order in which the issue lists them."""
        named = dict.fromkeys([*self.before.workarounds, *self.after.workarounds])
        turns = ((id_, workaround_turn(self.before, self.after, id_)) for id_ in named)
        return {id_: turn for id_, turn in turns if turn is not None}

    @property
    def packages(self) -> InstalledPackages:
        before, after = (environment_request(self.issue, build).packages for build in self.builds)
        return InstalledPackages(before, after)

    @property
    def is_silent(self) -> bool:
        """Whether it gives wrong numbers without an error: on the build behind, else on the one before, else at all."""
        return is_silent(self.issue, self.before if self.after.silent is None else self.after)

    @property
    def is_grave(self) -> bool:
        return self.is_silent and self.issue.severity in {Severity.HIGH, Severity.CRITICAL}

    @property
    def has_workaround(self) -> bool:
        return has_workaround(self.after)

    @property
    def is_untried(self) -> bool:
        """Whether it fails after, and a workaround that may help has no answer there."""
        return is_untried(self.after)

    @property
    def workarounds(self) -> tuple[str, ...]:
        """Ids of those that help after, the recommended one first."""
        helping = working(self.after)
        return tuple(workaround.id for workaround, _ in ranked(self.issue, self.after) if workaround.id in helping)

    @property
    def helps(self) -> WorkaroundFinding | None:
        """The finding of the first of these."""
        return next((self.after.workarounds[id_] for id_ in self.workarounds), None)

    @property
    def sides(self) -> tuple[Cell, ...]:
        """The cells that can have an answer: what cannot exist, or not be built, needs none."""
        return tuple(cell for cell in (self.before, self.after) if standing_of(cell) is not SideStanding.ABSENT)

    @property
    def assurance(self) -> Assurance:
        """The assurance of the weaker side."""
        return max((cell.assurance for cell in self.sides), key=list(Assurance).index, default=Assurance.NOT_KNOWN)

    @property
    def runs(self) -> int:
        """How many attempts each of its sides rests on at least; 0 where one has no answer."""
        return min((cell.runs for cell in self.sides), default=0)

    @property
    def is_confirmed(self) -> bool:
        return self.runs >= CONFIRMED

    @cached_property
    def prospect(self) -> Prospect:
        """The prospect of somebody who moves."""
        return remedy_of(self.after)

    @property
    def fails(self) -> bool:
        return self.prospect in FAILING_PROSPECTS

    @property
    def may_be_lost(self) -> bool:
        """Whether it passed and fails after, or fails after and nothing is known of it before."""
        return self.fails and self.group in {Group.NEWLY_BROKEN, Group.NOT_KNOWN_BEFORE}

    @property
    def is_of_cpu(self) -> bool:
        """Whether the answer after is the CPU's."""
        return self.after.basis is not None and self.after.basis.rule in RULES_OF_CPU


def pair_of(issue: Issue, before: Build, after: Build, hardware: str, known: Known) -> IssuePair:
    """Pair the claims about one issue on two builds."""
    return IssuePair(issue, known.cell(issue, before, hardware), known.cell(issue, after, hardware), (before, after))
