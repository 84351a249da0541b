"""Where a bug came and went along the line of releases, in honest intervals.

An interval joins two builds of one hardware class that were measured, with no pass and no fail between them:
`fixed after 2.6.0, by 2.7.1 (2.7.0 not run)` says that 2.6.0 still failed and 2.7.1 passed, and names every release of
the catalogue in between, with what it says instead. Only what was measured counts: a cell that is inferred begins and
ends no interval.

The line is of the releases of the default index, each with its own Triton. A release answers with any Python; where two
of its Pythons contradict each other it says nothing, and is named as such.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import groupby

from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import grouped
from knowngood.domain.message import Message, aside, clauses
from knowngood.domain.verdicts.verdict import EXCESSES, FAILING, Verdict
from knowngood.domain.vocabulary import ANSWERS

_PASSES = Verdict.NOT_AFFECTED
_FAILS = Message(f"it_{Verdict.AFFECTED}")


class Answer(StrEnum):
    """A release's answer on an issue and a hardware class: that it fails or passes, or why it says neither."""

    FAILS = "fails"
    PASSES = "passes"
    PYTHONS_DISAGREE = "pythons_disagree"
    FAILS_DIFFERENTLY = "different_failure"
    CANNOT_SAY = "inconclusive"
    NO_BUILD = "no_build"
    NOT_RUN = "not_run"
    NOT_APPLICABLE = "not_applicable"


# The first that any of its Pythons has stands for a release on which none passes or fails.
_SILENT = {
    Verdict.DIFFERENT_FAILURE: Answer.FAILS_DIFFERENTLY,
    Verdict.INCONCLUSIVE: Answer.CANNOT_SAY,
    Verdict.NO_BUILD: Answer.NO_BUILD,
    Verdict.NOT_RUN: Answer.NOT_RUN,
    Verdict.NOT_APPLICABLE: Answer.NOT_APPLICABLE,
}
_ANSWERED = frozenset({Answer.FAILS, Answer.PASSES})
_MEASURED_IN_VAIN = frozenset({Answer.PYTHONS_DISAGREE, Answer.FAILS_DIFFERENTLY, Answer.CANNOT_SAY})

_NAMED = 3


@dataclass(frozen=True)
class Release:
    """One release of the catalogue: `2.6.0`, and what it says."""

    name: str
    answer: Answer
    released: date | None = None

    @property
    def fails(self) -> bool | None:
        """Whether the release fails; None where it gives no answer."""
        return self.answer is Answer.FAILS if self.answer in _ANSWERED else None


@dataclass(frozen=True)
class FailingSpan:
    """A run of failing releases; `good_before` and `good_after` are the nearest measured passes (None: none).

    The others are releases that neither pass nor fail: `before` and `after` those inside `broke_in` and `fixed_in`
    (where there is no such interval, all that are older, or newer), `within` those between the first and the last that
    fail. `does` is the clause of what they do: all of them fail, or all take more of something.
    """

    first_bad: str
    last_bad: str
    good_before: str | None
    good_after: str | None
    before: tuple[Release, ...] = ()
    within: tuple[Release, ...] = ()
    after: tuple[Release, ...] = ()
    does: Message = _FAILS

    @property
    def broke_in(self) -> str | None:
        return f"({self.good_before}, {self.first_bad}]" if self.good_before else None

    @property
    def fixed_in(self) -> str | None:
        return f"({self.last_bad}, {self.good_after}]" if self.good_after else None

    @cached_property
    def begins(self) -> Version:
        """`first_bad`, to be compared."""
        return Version(self.first_bad)

    @cached_property
    def comes_back(self) -> Message:
        """The clause about it beside an older fix."""
        return Message("later_it", said=self.sentence)

    @cached_property
    def fix_in_words(self) -> Message | None:
        """`fixed in 2.9.0`; `fixed after 2.8.0, by 2.9.1 (2.9.0 not run)`; None where nothing newer passes."""
        if self.good_after is None:
            return None
        between = Message("fixed_between", after=self.last_bad, by=self.good_after)
        return aside(between, in_words(self.after)) if self.after else Message("fixed_in", release=self.good_after)

    @cached_property
    def sentence(self) -> Message:
        """`fails up to 2.8.0, fixed after 2.8.0, by 2.9.1 (2.9.0 not run)`.

        What is not known stands behind each part. Inside a run of failures that is the other verdicts and the number of
        releases that were not run: listing their names between failures would only be long.
        """
        fixed = self.fix_in_words
        others = in_words([release for release in self.within if release.answer is not Answer.NOT_RUN])
        unrun = sum(1 for release in self.within if release.answer is Answer.NOT_RUN)
        if self.broke_in and (self.before or not fixed):
            later = [Message("later_not_run", n=unrun)] if unrun else []
            newer = [Message("newer_unknown", release=self.last_bad)] if self.after and not fixed else []
            key = "broke_between" if self.before else "fails_since"
            since = Message(key, after=self.good_before or "", by=self.first_bad, does=self.does)
            fails = aside(since, in_words(self.before), others, later, newer)
        else:
            older = [Message("older_unknown")] if self.before else []
            inside = [Message("inside_not_run", n=unrun)] if unrun else []
            fails = aside(self._where(), older, others, inside)
        return Message("then", first=fails, rest=fixed) if fixed else fails

    def _where(self) -> Message:
        in_ = "fails_in" if self.first_bad == self.last_bad else "fails_in_many"
        key = in_ if self.broke_in or self.before else "fails_up_to"
        return Message(key, first=self.first_bad, last=self.last_bad, does=self.does)


@dataclass(frozen=True)
class History:
    """`measured` counts releases with an answer (pass or fail); `sentence` is for people. `releases` are those of the
    catalogue, oldest first, without those at either end to which the issue does not apply.
    """

    spans: tuple[FailingSpan, ...]
    measured: int
    sentence: Message
    releases: tuple[Release, ...] = ()

    @property
    def last_turn(self) -> str | None:
        """The newest release at which it came or went; None where no turn is known."""
        turns = [
            turn
            for span in self.spans
            for turn in (span.first_bad if span.good_before else None, span.good_after)
            if turn is not None
        ]
        return max(turns, key=Version, default=None)

    def __hash__(self) -> int:
        """Hash what differs most: rows of a page are cached by their histories."""
        return hash(self.sentence)

    def fails_on(self, release: Version) -> bool | None:
        """Whether the intervals, read as people read them, say that a release fails; None inside an interval, or of
        nothing.

        A run of failures that nothing ends goes on; where nothing failed, everything passes.
        """
        for span in self.spans:
            if span.good_before and release < Version(span.first_bad):
                return False if release <= Version(span.good_before) else None
            if span.good_after is None or release <= Version(span.last_bad):
                return True
            if release < Version(span.good_after):
                return None
        return False if self.measured else None


@dataclass(frozen=True)
class Fix:
    """The oldest later release that passes, as measured. `last_bad` is the newest before it that fails; the releases
    `inside`, between these two, neither pass nor fail.
    """

    build: Build
    last_bad: str
    inside: tuple[Release, ...] = ()

    @property
    def interval(self) -> str:
        """Where it was mended: `(2.5.1, 2.6.0]`."""
        return f"({self.last_bad}, {self.build.build_id.release}]"

    @property
    def in_words(self) -> Message:
        """`(2.5.1, 2.7.0] (2.6.0 not run)`."""
        return aside(Message("names", names=self.interval), in_words(self.inside))


def is_release(build: Build) -> bool:
    """True for the plain releases of the default index, with whatever Python: one torch, its own Triton."""
    return build.origin == "default" and not build.is_mismatched


def history_of(cells: Collection[tuple[Build, Verdict]]) -> History:
    """Read one issue's verdicts on one hardware class: of every build of the catalogue, those that nobody measured as
    NOT_RUN or NOT_APPLICABLE. In any order; builds off the line are ignored.

    Anything but a pass or a fail says nothing: it widens an interval, is named in it, and never ends one.
    """
    builds, verdicts = zip(*cells, strict=True) if cells else ((), ())
    return _history(builds, verdicts)


def releases_of(builds: Iterable[Build]) -> tuple[tuple[Build, ...], ...]:
    """The line of releases, oldest first; the Pythons of one release together."""
    every = tuple(builds)
    return tuple(tuple(every[at] for at in places) for _, places in _line(every))


def first_fix(
    releases: Sequence[tuple[Build, ...]], failing: Build, verdict_of: Callable[[Build], Verdict]
) -> Fix | None:
    """Where one issue that fails on `failing` passes again, on the same hardware class; None where that is not known.

    `releases` are as `releases_of` gives them. Of the Pythons of that release it is the one of `failing` if it passes,
    else the first that does.
    """
    last_bad, inside = failing.build_id.release, list[Release]()
    later = bisect_right(releases, failing.build_id.public_version, key=lambda group: group[0].build_id.public_version)
    for builds in releases[later:]:
        verdicts = {build: verdict_of(build) for build in builds}
        release = _release(builds, verdicts.values())
        if release.fails is False:
            passing = [build for build, verdict in verdicts.items() if verdict is _PASSES]
            alike = next((build for build in passing if build.python == failing.python), passing[0])
            return Fix(alike, last_bad, tuple(inside))
        if release.fails:
            last_bad, inside = release.name, []
        else:
            inside.append(release)
    return None


@lru_cache(maxsize=16_384)  # a page of the matrix asks this of every row, and few rows change between two pages
def _history(builds: tuple[Build, ...], verdicts: tuple[Verdict, ...]) -> History:
    line = [_release([builds[at] for at in places], [verdicts[at] for at in places]) for _, places in _line(builds)]
    releases = _where_it_applies(line)
    exceeded = [verdict for verdict in EXCESSES if verdict in verdicts]
    does = _FAILS if Verdict.AFFECTED in verdicts or not exceeded else Message(f"it_{exceeded[0]}")
    spans = tuple(_spans(releases, does))
    measured = sum(1 for release in releases if release.fails is not None)
    return History(spans, measured, _sentence(spans, releases, does), releases)


@lru_cache(maxsize=1024)  # the rows of a matrix ask for the same few lines, and versions are slow to compare
def _line(builds: tuple[Build, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The releases among `builds`, oldest first, and at which places of it their Pythons stand."""
    releases = (at for at, build in enumerate(builds) if is_release(build))
    places = grouped(sorted(releases, key=lambda at: builds[at].build_id), lambda at: builds[at].torch)
    return tuple((builds[place[0]].build_id.release, tuple(place)) for place in places.values())


def _release(builds: Sequence[Build], verdicts: Iterable[Verdict]) -> Release:
    """`builds` differ in Python alone."""
    return Release(builds[0].build_id.release, _answer(set(verdicts)), builds[0].released)


def _answer(verdicts: set[Verdict]) -> Answer:
    """The answer of all Pythons of one release together."""
    fails, passes = not FAILING.isdisjoint(verdicts), _PASSES in verdicts
    if fails or passes:
        return Answer.PYTHONS_DISAGREE if fails and passes else Answer.FAILS if fails else Answer.PASSES
    return next((answer for verdict, answer in _SILENT.items() if verdict in verdicts), Answer.NOT_RUN)


def _where_it_applies(line: Sequence[Release]) -> tuple[Release, ...]:
    places = [at for at, release in enumerate(line) if release.answer is not Answer.NOT_APPLICABLE]
    return tuple(line[places[0] : places[-1] + 1]) if places else ()


def _spans(releases: Sequence[Release], does: Message) -> Iterator[FailingSpan]:
    answered = [at for at, release in enumerate(releases) if release.fails is not None]
    runs = [(fails, list(places)) for fails, places in groupby(answered, key=lambda at: releases[at].fails)]
    for at, (fails, places) in enumerate(runs):
        if fails:
            first, last = places[0], places[-1]
            before = runs[at - 1][1][-1] if at > 0 else -1
            after = runs[at + 1][1][0] if at + 1 < len(runs) else len(releases)
            yield FailingSpan(
                first_bad=releases[first].name,
                last_bad=releases[last].name,
                good_before=releases[before].name if before >= 0 else None,
                good_after=releases[after].name if after < len(releases) else None,
                before=tuple(releases[before + 1 : first]),
                within=tuple(release for release in releases[first:last] if release.fails is None),
                after=tuple(releases[last + 1 : after]),
                does=does,
            )


def _sentence(spans: Sequence[FailingSpan], releases: Sequence[Release], does: Message) -> Message:
    answered = [release for release in releases if release.fails is not None]
    vain = [release for release in releases if release.answer in _MEASURED_IN_VAIN]
    if not answered:
        return _no_answer_reason(vain)
    if not spans:
        return _on_all("passes", answered, vain, does)
    if all(release.fails for release in answered):
        return _on_all("fails", answered, vain, does)
    return clauses(span.sentence for span in spans)


def _no_answer_reason(vain: Sequence[Release]) -> Message:
    split = sum(1 for release in vain if release.answer is Answer.PYTHONS_DISAGREE)
    if split:
        return Message("pythons_disagree", n=split)
    different = sum(1 for release in vain if release.answer is Answer.FAILS_DIFFERENTLY)
    return Message("fails_differently", n=different) if different else Message("no_answer_yet")


def _on_all(key: str, answered: Sequence[Release], vain: Sequence[Release], does: Message) -> Message:
    which, what = "all" if len(answered) > 1 else "one", "answered" if vain else "measured"
    return aside(
        Message(f"{key}_on_{which}_{what}", n=len(answered), release=answered[0].name, does=does), in_words(vain)
    )


def in_words(silent: Collection[Release]) -> list[Message]:
    """`2.9.0 fails differently; 2.5.0, 2.5.1, 2.6.0 and 4 more not run`: releases that neither pass nor fail."""
    by_answer = {answer: [release.name for release in silent if release.answer == answer] for answer in ANSWERS}
    return [
        Message(
            "releases", names=listed(names), clause=Message(f"{'releases' if len(names) > 1 else 'release'}_{answer}")
        )
        for answer, names in by_answer.items()
        if names
    ]


def listed(names: Sequence[str]) -> Message:
    """Three and a count where there are more."""
    if len(names) <= _NAMED:
        return Message("names", names=tuple(names))
    return Message("and_more", names=tuple(names[:_NAMED]), n=len(names) - _NAMED)
