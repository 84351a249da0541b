"""Two builds side by side: the pairs of all issues in the order in which they are shown, counted, in one sentence."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import find_build_or_wheel
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_names import measured_classes
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import SEVERITY_RANK, find_issues
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import NOTHING, Message, aside, joined
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import is_stale
from knowngood.gate.request import BadField, about
from knowngood.move.pair import Group, IssuePair, SideStanding, Transition, pair_of, standing_of

PAIRING_WORDS = (
    "Each row is one issue on one hardware class. Each side is what is known of exactly that build: what was "
    "measured on it, otherwise what one written rule infers (marked), otherwise nothing. Newly broken and fixed "
    'need both sides to be known. What was not run before is "not known before", and what could not exist before '
    "is new: neither is a loss. Only a proven pass after a failure is a fix, never a cell that was not run, "
    "cannot say, does not apply or cannot be built. A flaky failure counts as gone, or as new, only if the passes "
    "on the other side are too many to be luck. A build with another Triton than its own is a separate build. The "
    "packages that an issue installs with torch follow each build, and the row names them where they differ. Old "
    "evidence counts, and is marked."
)


@dataclass(frozen=True)
class CompareRequest:
    """Two builds by their ids or versions of torch, and which issues on which class. What is left out means all of it,
    and the CPU class.
    """

    hardware: str = ""
    issues: tuple[str, ...] = ()
    component: str = ""
    q: str = ""
    a: str = ""
    b: str = ""

    @property
    def is_filtered(self) -> bool:
        return bool(self.issues or self.component or self.q)

    @property
    def narrowing(self) -> Mapping[str, str]:
        """All but the builds, as an address has it."""
        named = {"hardware": self.hardware, "issues": ",".join(self.issues), "component": self.component, "q": self.q}
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True)
class Comparison:
    """`pairs` stand in the order of groups, the most severe of each first."""

    before: Build
    after: Build
    hardware: str
    pairs: tuple[IssuePair, ...]

    @cached_property
    def groups(self) -> Mapping[Group, Sequence[IssuePair]]:
        """The pairs of each group; none is empty."""
        return grouped(self.pairs, lambda pair: pair.group)

    def of(self, group: Group) -> Sequence[IssuePair]:
        return self.groups.get(group, ())

    @property
    def counts(self) -> Mapping[Transition, int]:
        """Every transition, with the zeros."""
        counts = Counter(pair.transition for pair in self.pairs)
        return {transition: counts[transition] for transition in Transition}

    @property
    def is_blind(self) -> bool:
        """Whether there is no issue of which both builds say anything: then nothing was compared."""
        silent = {SideStanding.UNKNOWN, SideStanding.ABSENT}
        return all({standing_of(pair.before), standing_of(pair.after)} & silent for pair in self.pairs)


def compare(
    issues: Iterable[Issue], before: Build, after: Build, hardware: str, known: Known, *, now: datetime | None = None
) -> Comparison:
    """Pair what is claimed of each issue on two builds. Without `now` nothing is called old."""
    pairs = [pair_of(issue, before, after, hardware, known) for issue in issues]
    if now is not None:
        pairs = [
            replace(pair, old=(is_stale(pair.before, before, now), is_stale(pair.after, after, now))) for pair in pairs
        ]
    return Comparison(before, after, hardware, tuple(sorted(pairs, key=most_severe_first)))


def read_comparison(request: CompareRequest, known: Known, now: datetime) -> Comparison:
    """Compare the builds that are asked for, on the class and for the issues that are named: a query, and a component,
    are for who asks in HTTP. Raises BadField, and BadRequest for a class that nobody measured.
    """
    before, after = _asked_side("a", request.a, known), _asked_side("b", request.b, known)
    with about("issues"):
        issues = find_issues(request.issues, known.issues) if request.issues else tuple(known.issues.values())
    usual = CPU_CLASS if CPU_CLASS in known.hardware or not known.hardware else known.hardware[0]
    (hardware,) = measured_classes([request.hardware or usual], known.hardware)
    return compare(issues, before, after, hardware, known, now=now)


def _asked_side(field: str, name: str, known: Known) -> Build:
    try:
        return find_build_or_wheel(name, known.builds)
    except UnknownBuild as error:
        raise BadField(field, error.problem, error.nearest) from None


def most_severe_first(pair: IssuePair) -> tuple[int, bool, bool, bool, int, str]:
    """Sorts by group; of one group what fails comes first, then wrong numbers without an error, then what has no
    workaround, then severity.
    """
    return (
        RANKS[pair.group],
        not pair.fails,
        not pair.is_silent,
        pair.has_workaround,
        -SEVERITY_RANK[pair.issue.severity],
        pair.issue.id,
    )


RANKS = {group: rank for rank, group in enumerate(Group)}


_Forms = tuple[str, str, str]
"""Keys of a message for one, for several, and, where nothing is worth a word too, for none."""

_COUNTED: Mapping[Group, _Forms] = {
    Group.NEWLY_BROKEN: ("newly_broken", "newly_broken", "none_newly_broken"),
    Group.FIXED: ("fixed", "fixed", "none_fixed"),
    Group.NEW: ("fails_in_new", "fail_in_new", ""),
    Group.NOT_KNOWN_BEFORE: ("not_known_before", "not_known_before", ""),
    Group.NOT_KNOWN_NOW: ("not_known_there", "not_known_there", ""),
    Group.FAILS_OTHERWISE: ("fails_otherwise", "fail_otherwise", ""),
    Group.BIGGER: ("is_bigger_there", "are_bigger_there", ""),
    Group.MORE_WORK: ("is_more_work_there", "are_more_work_there", ""),
    Group.SLOWER: ("is_slower_there", "are_slower_there", ""),
    Group.STILL_FAILS: ("still_fails", "still_fail", ""),
}
_Remark = tuple[_Forms, Callable[[IssuePair], bool]]
_HELPED: _Remark = (("has_workaround", "have_workaround", ""), lambda pair: pair.has_workaround)
_UNTRIED: _Remark = (("has_untried", "have_untried", ""), lambda pair: pair.is_untried)
_NEWLY: _Remark = (("is_newly", "are_newly", ""), lambda pair: pair.transition is Transition.REGRESSED)
_REMARKS: Mapping[Group, Sequence[_Remark]] = {
    Group.FIXED: ((("by_old_evidence", "by_old_evidence", ""), lambda pair: any(pair.old)),),
    Group.NEWLY_BROKEN: ((("is_silent", "are_silent", ""), lambda pair: pair.is_silent), _HELPED, _UNTRIED),
    Group.STILL_FAILS: (_HELPED, _UNTRIED),
    Group.BIGGER: (_NEWLY,),
    Group.MORE_WORK: (_NEWLY,),
    Group.SLOWER: (_NEWLY,),
}


def _counted(forms: _Forms, n: int) -> Message:
    single, several, none = forms
    key = several if n > 1 else single if n else none
    return Message(key, n=n) if key else NOTHING


def _counts(comparison: Comparison) -> Iterator[Message]:
    for group, forms in _COUNTED.items():
        pairs = comparison.of(group)
        remarks = [_counted(words, sum(map(holds, pairs))) for words, holds in _REMARKS.get(group, ())]
        nonzero = [remark for remark in remarks if remark]
        if count := _counted(forms, len(pairs)):
            yield aside(count, [joined("then", nonzero)] if nonzero else [])


def outcome(comparison: Comparison) -> Message:
    """The answer in parts. Leave out counts of zero, but for the two that decide: what is fixed, and what is
    newly broken.
    """
    return joined("then", _counts(comparison))


def sentence(comparison: Comparison) -> Message:
    """The answer in one sentence: the first line of every form of a comparison."""
    before, after = comparison.before.in_words, comparison.after.in_words
    if comparison.before == comparison.after:
        return Message("both_are", build=before)
    return Message("from_to", before=before, after=after, hardware=comparison.hardware, said=outcome(comparison))
