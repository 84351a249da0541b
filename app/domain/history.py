"""Where a bug came and went along the line of releases, in honest intervals.

An interval names the two builds that were measured: `fixed in (2.6.0, 2.7.1]` says that 2.6.0 still failed, 2.7.1
passed, and nothing between them was measured. Builds with a foreign Triton are not on the line. A release answers with
any Python; where two of its Pythons contradict each other it says nothing.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.domain.build import Build
from app.domain.verdict import Verdict

FAILING = frozenset({Verdict.AFFECTED, Verdict.FLAKY})
_PASSES = Verdict.NOT_AFFECTED


@dataclass(frozen=True)
class Span:
    """A run of failing releases; `good_before` and `good_after` are the nearest measured passes (None: none)."""

    first_bad: str
    last_bad: str
    good_before: str | None
    good_after: str | None

    @property
    def broke_in(self) -> str | None:
        return f"({self.good_before}, {self.first_bad}]" if self.good_before else None

    @property
    def fixed_in(self) -> str | None:
        return f"({self.last_bad}, {self.good_after}]" if self.good_after else None


@dataclass(frozen=True)
class History:
    """`measured` counts releases with an answer (pass or fail); `sentence` is for people."""

    spans: tuple[Span, ...]
    measured: int
    sentence: str


@dataclass(frozen=True)
class Fix:
    """The oldest later release that passes. `interval` is where it was mended: `(2.5.1, 2.6.0]`, as measured."""

    build: Build
    interval: str


def is_release(build: Build) -> bool:
    """True for the plain releases of the default index, with whatever Python: one torch, its own Triton."""
    return build.origin == "default" and not build.is_mismatched


def history_of(cells: Sequence[tuple[Build, Verdict]]) -> History:
    """Read one issue's verdicts on one hardware class; `cells` in any order, builds off the line are ignored.

    Anything but a pass or a fail says nothing: it widens an interval and never ends one.
    """
    builds, verdicts = zip(*cells, strict=True) if cells else ((), ())
    return _history(builds, verdicts)


def releases_of(builds: Iterable[Build]) -> tuple[tuple[Build, ...], ...]:
    """The line of releases, oldest first; the Pythons of one release together."""
    every = tuple(builds)
    return tuple(tuple(every[at] for at in places) for _, places in _line(every))


def first_fix(
    releases: Sequence[tuple[Build, ...]], failing: Build, verdict_of: Callable[[Build], Verdict | None]
) -> Fix | None:
    """Where one issue that fails on `failing` passes again, on the same hardware class; None where nothing tells.

    `releases` are as `releases_of` gives them. Of the Pythons of that release it is the one of `failing` if it passes,
    else the first that does. No more verdicts are asked for than it takes.
    """
    last_bad = failing.build_id.release
    later = bisect_right(releases, failing.build_id.public_version, key=lambda one: one[0].build_id.public_version)
    for release in releases[later:]:
        label = release[0].build_id.release
        said = {build: verdict_of(build) for build in release}
        fails = _fails({verdict for verdict in said.values() if verdict is not None})
        if fails:
            last_bad = label
        if fails is False:
            passing = [build for build, verdict in said.items() if verdict is _PASSES]
            alike = next((build for build in passing if build.python == failing.python), passing[0])
            return Fix(alike, f"({last_bad}, {label}]")
    return None


@lru_cache(maxsize=16_384)  # a page of the matrix asks this of every row, and few rows change between two pages
def _history(builds: tuple[Build, ...], verdicts: tuple[Verdict, ...]) -> History:
    line = [(label, {verdicts[at] for at in places}) for label, places in _line(builds)]
    said = [(label, fails) for label, found in line if (fails := _fails(found)) is not None]
    spans = _spans(said)
    return History(spans, len(said), _sentence(spans, said, [found for _, found in line]))


@lru_cache(maxsize=1024)  # the rows of a matrix ask for the same few lines, and versions are slow to compare
def _line(builds: tuple[Build, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The releases among `builds`, oldest first, and at which places of it their Pythons stand."""
    places: dict[str, list[int]] = {}
    for at in sorted(range(len(builds)), key=lambda at: builds[at].build_id):
        if is_release(builds[at]):
            places.setdefault(builds[at].torch, []).append(at)
    return tuple((builds[found[0]].build_id.release, tuple(found)) for found in places.values())


def _fails(verdicts: set[Verdict]) -> bool | None:
    """What the Pythons of one release say together; None where they contradict each other, or say nothing."""
    fails, passes = not FAILING.isdisjoint(verdicts), _PASSES in verdicts
    return fails if fails != passes else None


def _spans(said: Sequence[tuple[str, bool]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    bad: list[str] = []
    good: str | None = None
    for label, fails in said:
        if fails:
            bad.append(label)
            continue
        if bad:
            spans.append(Span(bad[0], bad[-1], good, label))
            bad = []
        good = label
    if bad:
        spans.append(Span(bad[0], bad[-1], good, None))
    return tuple(spans)


def _sentence(spans: Sequence[Span], said: Sequence[tuple[str, bool]], line: Collection[set[Verdict]]) -> str:
    if not said:
        return _nothing_said(line)
    if not spans:
        return f"passes on all {len(said)} measured" if len(said) > 1 else f"passes on {said[0][0]}, the one measured"
    if all(fails for _, fails in said):
        return f"fails on all {len(said)} measured" if len(said) > 1 else f"fails on {said[0][0]}, the one measured"
    return "; ".join(_span_in_words(span) for span in spans)


def _nothing_said(line: Collection[set[Verdict]]) -> str:
    split = sum(1 for verdicts in line if verdicts & FAILING)
    if split:
        return f"Pythons disagree on {_releases(split)}"
    different = sum(1 for verdicts in line if Verdict.DIFFERENT_FAILURE in verdicts)
    return f"fails differently on {_releases(different)}" if different else "no release answered yet"


def _releases(count: int) -> str:
    return "1 release" if count == 1 else f"{count} releases"


def _span_in_words(span: Span) -> str:
    where = span.first_bad if span.first_bad == span.last_bad else f"{span.first_bad} to {span.last_bad}"
    words = f"fails in {where}" if span.good_before or span.good_after is None else f"fails up to {span.last_bad}"
    if span.good_before and span.good_after is None:
        return f"fails since {span.broke_in}"
    if span.good_after:
        words += f", fixed in {span.fixed_in}"
    return words
