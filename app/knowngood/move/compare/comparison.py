"""Two builds side by side: what became of each issue, and of each workaround.

Gained and lost are said only where both sides are known: measured, or inferred by one and the same rule. What nobody
ran, what contradicts itself, what cannot exist and what cannot be built is never "fixed", and where nothing was known
before nothing is "newly broken". What could not exist before is new, and no loss.
Source: docs/decisions/020-comparisons-and-histories-say-what-was-seen.md.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, environment_request
from knowngood.domain.issue_selectors import SEVERITY_RANK
from knowngood.domain.verdicts.inference import own_reason
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import has_workaround, is_untried
from knowngood.domain.verdicts.verdict import (
    Assurance,
    Cell,
    Verdict,
    WorkaroundVerdict,
    is_silent,
    is_stale,
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


def _unless_luck(failing: Cell | None, passing: Cell | None, told: Transition) -> Transition:
    """`told`, unless `failing` is flaky and `passing` may be so too."""
    if failing is None or passing is None or passes_needed(failing, passing) == 0:
        return told
    return Transition.NOW_UNKNOWN if told is Transition.FIXED else Transition.WAS_UNKNOWN


def passes_needed(flaky: Cell, passing: Cell) -> int:
    """How many passes in a row there would have to be beside a flaky cell, where there are too few; else 0.

    Of a failure seen in k of n attempts, m passes in a row are luck with the probability (1 - k/n)^m.
    """
    if flaky.verdict is not Verdict.FLAKY:
        return 0
    passed = {finding.variant: finding.n - finding.k for finding in passing.variants}
    found = [one for one in flaky.variants if one.verdict is Verdict.FLAKY and 0 < one.k < one.n]
    short = [needed for one in found if (needed := passes_beyond_luck(one.k / one.n)) > passed.get(one.variant, 0)]
    return max(short, default=0 if found else 1)


def _fails_alike(before: Cell | None, after: Cell | None) -> bool:
    """Whether two failing cells fail in the same way: both with the issue's signature, or both with one other text."""
    if standing_of(before) is not standing_of(after):
        return False
    if before is None or after is None or standing_of(before) is SideStanding.FAILS:
        return True
    return _masked(own_reason(before)) == _masked(own_reason(after))


# Addresses, sizes, line numbers and generated names differ between two runs of one failure.
_ACCIDENTAL = re.compile(r"0x[0-9a-fA-F]+|\d+|\b[0-9a-f]{8,}\b")


def _masked(text: str) -> str:
    return _ACCIDENTAL.sub("#", text)


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
        return _where_it_helps(before, helped=helped)
    if not helped:
        return None
    finding = after.workarounds.get(workaround) if after else None
    if finding and (finding.verdict is WorkaroundVerdict.INEFFECTIVE or finding.failed):
        return WorkaroundTurn.STOPPED_WORKING
    if after and after.verdict in {Verdict.NOT_AFFECTED, Verdict.NOT_APPLICABLE} and not after.not_covered:
        return WorkaroundTurn.NO_LONGER_NEEDED
    return WorkaroundTurn.NO_LONGER_VERIFIED


def _where_it_helps(before: Cell | None, *, helped: bool) -> WorkaroundTurn:
    if helped:
        return WorkaroundTurn.STILL_WORKS
    failed = standing_of(before) in _FAILS
    return WorkaroundTurn.NOW_WORKS if failed else WorkaroundTurn.NOW_NEEDED


def _workaround(cell: Cell | None, workaround: str) -> WorkaroundVerdict:
    finding = cell.workarounds.get(workaround) if cell else None
    return finding.verdict if finding else WorkaroundVerdict.UNVERIFIED


def workaround_turns(before: Cell | None, after: Cell | None) -> Mapping[str, WorkaroundTurn]:
    """All that is to be said of the workarounds of one issue, in the order in which the issue lists them."""
    named = dict.fromkeys([*(before.workarounds if before else ()), *(after.workarounds if after else ())])
    turns = {id_: workaround_turn(before, after, id_) for id_ in named}
    return {id_: turn for id_, turn in turns.items() if turn is not None}


@dataclass(frozen=True)
class IssuePair:
    """One issue on both builds. `builds` are those that are compared. `old` says of either side whether its evidence is
    stale.
    """

    issue: Issue
    before: Cell
    after: Cell
    builds: tuple[Build, Build]
    transition: Transition
    old: tuple[bool, bool] = (False, False)

    @property
    def packages(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The packages that the issue installs beside torch on either side."""
        before, after = self.builds
        return environment_request(self.issue, before).packages, environment_request(self.issue, after).packages

    @cached_property
    def turns(self) -> Mapping[str, WorkaroundTurn]:
        return workaround_turns(self.before, self.after)

    @cached_property
    def group(self) -> "Group":
        return _group(self)

    @property
    def is_silent(self) -> bool:
        """Whether it gives wrong numbers without an error: on the build behind, else on the one before, else at all."""
        return is_silent(self.issue, self.before if self.after.silent is None else self.after)

    @property
    def has_workaround(self) -> bool:
        return has_workaround(self.after)

    @property
    def is_untried(self) -> bool:
        """Whether it fails after, and a workaround that may help was not tried there."""
        return is_untried(self.after)

    @property
    def sides(self) -> tuple[Cell, ...]:
        """The cells that can have an answer: what cannot exist, or not be built, needs none."""
        return tuple(cell for cell in (self.before, self.after) if standing_of(cell) is not SideStanding.ABSENT)

    @property
    def assurance(self) -> Assurance:
        """That of the weaker side."""
        return max((cell.assurance for cell in self.sides), key=list(Assurance).index, default=Assurance.NOT_KNOWN)

    @property
    def runs(self) -> int:
        """How many attempts each of its sides rests on at least; 0 where one has no answer."""
        return min((cell.runs for cell in self.sides), default=0)


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


def _group(pair: IssuePair) -> Group:
    group = _GROUPS.get(pair.transition)
    if group is not None:
        return group
    now = standing_of(pair.after)
    if now in _FAILS:
        return Group.NEW
    return Group.PASSES_NEW if now is SideStanding.PASSES else Group.NOT_KNOWN_NOW


PAIRING_WORDS = (
    "One issue on one hardware class stands on both sides, each with what is claimed of that very build: what was "
    "measured on it; else what one written rule infers, which is marked; else nothing. Newly broken and fixed are said "
    'only where both sides are known. What was not run before is "not known before", and what could not exist before '
    "is new: neither is a loss. Only a proven pass where something failed is a fix: never what was not run, cannot be "
    "said, does not apply or cannot be built. A flaky failure counts as gone, or as new, only where the passes beside "
    "it are too many to be luck. A build with another Triton than its own is a build of its own. What an issue "
    "installs beside torch follows each build, and the row names it where it differs. Old evidence counts, and is "
    "marked."
)


@dataclass(frozen=True)
class Comparison:
    """`pairs` stand in the order of groups, the most severe of each first."""

    before: Build
    after: Build
    hardware: str
    pairs: tuple[IssuePair, ...]

    def of(self, group: Group) -> tuple[IssuePair, ...]:
        return tuple(pair for pair in self.pairs if pair.group is group)

    @property
    def counts(self) -> Mapping[Transition, int]:
        """Every transition, with the zeros."""
        found = Counter(pair.transition for pair in self.pairs)
        return {transition: found[transition] for transition in Transition}

    @property
    def is_blind(self) -> bool:
        """Whether there is no issue of which both builds say anything: then nothing was compared."""
        silent = {SideStanding.UNKNOWN, SideStanding.ABSENT}
        return all({standing_of(pair.before), standing_of(pair.after)} & silent for pair in self.pairs)


def compare(
    issues: Iterable[Issue], before: Build, after: Build, hardware: str, known: Known, *, now: datetime | None = None
) -> Comparison:
    """Pair what is claimed of each issue on two builds. Without `now` nothing is called old."""
    pairs = [pair_of(IssuePair, issue, before, after, hardware, known) for issue in issues]
    if now is not None:
        pairs = [
            replace(one, old=(is_stale(one.before, before, now), is_stale(one.after, after, now))) for one in pairs
        ]
    return Comparison(before, after, hardware, tuple(sorted(pairs, key=most_severe_first)))


def most_severe_first(pair: IssuePair) -> tuple[int, bool, bool, bool, int, str]:
    """Sorts by group; of one group what fails comes first, then wrong numbers without an error, then what has no
    workaround, then severity.
    """
    return (
        _RANKS[pair.group],
        standing_of(pair.after) not in _FAILS,
        not pair.is_silent,
        pair.has_workaround,
        -SEVERITY_RANK[pair.issue.severity],
        pair.issue.id,
    )


_RANKS = {group: rank for rank, group in enumerate(Group)}


_PairT = TypeVar("_PairT", bound=IssuePair)


def pair_of(kind: type[_PairT], issue: Issue, before: Build, after: Build, hardware: str, known: Known) -> _PairT:
    """Pair the claims about one issue on two builds."""
    cells = known.cell(issue, before, hardware), known.cell(issue, after, hardware)
    return kind(issue, *cells, builds=(before, after), transition=transition_of(*cells))


# For one, for several, and, where nothing is worth a word too, for none.
COUNTED_WORDS = {
    Group.NEWLY_BROKEN: ("{n} newly broken", "{n} newly broken", "none newly broken"),
    Group.FIXED: ("{n} fixed", "{n} fixed", "none fixed"),
    Group.NEW: ("{n} fails in new features", "{n} fail in new features", ""),
    Group.NOT_KNOWN_BEFORE: ("{n} not known before", "{n} not known before", ""),
    Group.NOT_KNOWN_NOW: ("{n} not known there", "{n} not known there", ""),
    Group.FAILS_OTHERWISE: ("{n} fails in another way", "{n} fail in another way", ""),
    Group.STILL_FAILS: ("{n} still fails", "{n} still fail", ""),
}
QUIET_WORDS = ("({n} gives wrong numbers without an error)", "({n} give wrong numbers without an error)", "")
OLD_WORDS = ("({n} by old evidence)", "({n} by old evidence)", "")
HELPED_WORDS = ("({n} has a workaround)", "({n} have a workaround)", "")
UNTRIED_WORDS = ("({n} has a workaround not tried there)", "({n} have a workaround not tried there)", "")

_REMARKS: Mapping[Group, tuple[tuple[tuple[str, str, str], Callable[[IssuePair], bool]], ...]] = {
    Group.FIXED: ((OLD_WORDS, lambda pair: any(pair.old)),),
    Group.NEWLY_BROKEN: (
        (QUIET_WORDS, lambda pair: pair.is_silent),
        (HELPED_WORDS, lambda pair: pair.has_workaround),
        (UNTRIED_WORDS, lambda pair: pair.is_untried),
    ),
    Group.STILL_FAILS: (
        (HELPED_WORDS, lambda pair: pair.has_workaround),
        (UNTRIED_WORDS, lambda pair: pair.is_untried),
    ),
}


def phrases(comparison: Comparison) -> tuple[tuple[str, int], ...]:
    """The answer in parts: words with a place for a number, `{n}`, and that number. Nothing is said of what is none,
    but for the two that decide: what is fixed, and what is newly broken.
    """
    said: list[tuple[str, int]] = []
    for group, forms in COUNTED_WORDS.items():
        pairs = comparison.of(group)
        said += _phrase(forms, len(pairs))
        for remark, holds in _REMARKS.get(group, ()):
            said += _phrase(remark, sum(1 for pair in pairs if holds(pair)))
    return tuple(said)


def _phrase(forms: tuple[str, str, str], n: int) -> list[tuple[str, int]]:
    one, several, none = forms
    words = several if n > 1 else one if n else none
    return [(words, n)] if words else []


def sentence(comparison: Comparison) -> str:
    """The answer in one sentence: the first line of every form a comparison is told in."""
    before, after = comparison.before.id, comparison.after.id
    if before == after:
        return f"Both are {before}: nothing can differ"
    told = joined([words.format(n=n) for words, n in phrases(comparison)])
    return f"From {before} to {after} on {comparison.hardware}: {told}"


def joined(parts: Sequence[str], comma: str = ", ") -> str:
    """With commas, but for what stands in brackets behind its word: in ours, or in full-width ones. Brackets that
    follow each other are one.
    """
    text = parts[0]
    for part in parts[1:]:
        if part[0] in _OPENING and text[-1] in _CLOSING:
            text = text[:-1] + comma + part[1:]
        else:
            text += _OPENING.get(part[0], comma) + part
    return text


_OPENING = {"(": " ", "\uff08": ""}
_CLOSING = ")\uff09"
