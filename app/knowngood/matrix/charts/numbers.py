"""The numbers behind charts. Their columns are the measured releases of a hardware class, each with the cell that
stands for it. On these the share of the issues that pass; and the lifespan of an issue: how it stands on each release,
and where it came and went in brief.

The brief words are those of its history (domain): nothing is concluded here.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.identity_key import IdentityKey, IdentityKeys
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.history import FailingSpan, History, releases_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Column, rows_of
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, Prospect, prospect_of
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, Verdict
from knowngood.domain.vocabulary import PROSPECTS, StatusLabel
from knowngood.web.urls import cell_address

STACKED = (
    Prospect.PASSES,
    Prospect.AS_REPORTED,
    Prospect.NEEDS_WORKAROUND,
    Prospect.FAILS,
    Prospect.NOT_KNOWN,
    Prospect.DOES_NOT_APPLY,
)
"""In the order in which bars stack them, and tables list them."""
SIGNS: Mapping[Prospect, StatusLabel] = {prospect: StatusLabel(PROSPECTS[prospect].label) for prospect in STACKED}
WORDS: Mapping[Prospect, str] = {prospect: PROSPECTS[prospect].word for prospect in STACKED}


def measured_releases(known: Known, hardware: Collection[str]) -> tuple[Column, ...]:
    """Every release with a result on one of the classes, oldest first. All of its Pythons share the column."""
    return tuple(
        Column(tuple(sorted(release, key=lambda build: build.python != DEFAULT_PYTHON)))
        for release in releases_of(known.builds.values())
        if any(known.is_measured(build, hardware) for build in release)
    )


def cells_by_release(
    issues: Iterable[Issue], columns: Sequence[Column], hardware: str, known: Known
) -> dict[str, tuple[Cell, ...]]:
    """By issue, the cell that stands for each column, as in the matrix."""
    rows = rows_of(tuple(issues), columns, [hardware], known)
    return {issue: cells for (issue, _), cells in rows.items()}


def short_labels(releases: Iterable[str]) -> tuple[str, ...]:
    """`2.9`, `.1`, `2.10`: the minor where it begins, and else the patch alone, so that each fits under a bar."""
    labels, before = list[str](), ""
    for release in releases:
        minor, _, patch = release.rpartition(".")
        labels.append(f".{patch}" if minor == before else minor)
        before = minor
    return tuple(labels)


@dataclass(frozen=True)
class ReleaseTally:
    """One release: how many issues stand how, the zeros too."""

    build: Build
    counts: Mapping[Prospect, int]

    @property
    def release(self) -> str:
        return self.build.build_id.release

    @property
    def answered(self) -> int:
        failing = sum(self.counts[prospect] for prospect in FAILING_PROSPECTS)
        return self.counts[Prospect.PASSES] + failing

    @property
    def rate(self) -> float | None:
        """The share of the issues with an answer that pass; None where none has one."""
        return self.counts[Prospect.PASSES] / self.answered if self.answered else None


@dataclass(frozen=True)
class PassRate:
    hardware: str
    releases: tuple[ReleaseTally, ...]


def pass_rate(known: Known, hardware: str) -> PassRate:
    columns = measured_releases(known, [hardware])
    rows = cells_by_release(known.issues.values(), columns, hardware, known)
    return PassRate(
        hardware,
        tuple(
            ReleaseTally(column.cell_build, _tally(prospect_of(cells[at]) for cells in rows.values()))
            for at, column in enumerate(columns)
        ),
    )


def _tally(prospects: Iterable[Prospect]) -> Mapping[Prospect, int]:
    counts = Counter(prospects)
    return {prospect: counts[prospect] for prospect in Prospect}


Words = tuple[str, dict[str, object]]
"""A text and the values for its places, to be told in the reader's language."""


@dataclass(frozen=True)
class Segment:
    """One release. `build` is the very build that the cell is of, `url` the cell's address; `is_mixed` says that some
    Pythons or variants fail there and others pass, or that it fails now and then.
    """

    release: str
    build: str
    url: str
    prospect: Prospect
    is_mixed: bool
    is_inferred: bool

    @property
    def look(self) -> tuple[Prospect, bool, bool]:
        return self.prospect, self.is_mixed, self.is_inferred


@dataclass(frozen=True)
class Lifespan:
    """`parts` are those of its sentence."""

    issue: Issue
    hardware: str
    segments: tuple[Segment, ...]
    parts: tuple[Words, ...]

    @property
    def sentence(self) -> str:
        return " · ".join(words.format(**values) for words, values in self.parts)


def runs_of(segments: Iterable[Segment]) -> dict[int, tuple[Segment, ...]]:
    """Neighbouring releases that look alike, by the number of those before them."""
    runs: dict[int, tuple[Segment, ...]] = {}
    start = 0
    for _, alike in groupby(segments, key=lambda segment: segment.look):
        runs[start] = tuple(alike)
        start += len(runs[start])
    return runs


@dataclass(frozen=True)
class Lifespans:
    """Lifespans over the same releases; `builds` name these."""

    builds: tuple[Build, ...]
    rows: tuple[Lifespan, ...]

    def place_of(self, build: str) -> int | None:
        """The place of a build's column, with any Python; None where there is none."""
        family = build.removeprefix("torch-").partition("~py")[0]
        return next((at for at, other in enumerate(self.builds) if other.wheel.id == family), None)


def lifespans_of(issues: Iterable[Issue], known: Known, hardware: str) -> Lifespans:
    """The lifespans on one class, without the issues that exist on none of its releases."""
    return _over(measured_releases(known, [hardware]), issues, known, [hardware])


def lifespans_by_class(issue: Issue, known: Known, classes: Collection[str]) -> Lifespans:
    """The lifespans of one issue, on each of the classes where it exists."""
    return _over(measured_releases(known, classes), [issue], known, classes)


def _over(columns: Sequence[Column], issues: Iterable[Issue], known: Known, classes: Iterable[str]) -> Lifespans:
    issues, lifespans = tuple(issues), list[Lifespan]()
    releases = tuple(column.head.build_id.release for column in columns)
    several = {at: column.builds for at, column in enumerate(columns) if len(column.builds) > 1}
    for hardware in classes:
        cells = cells_by_release(issues, columns, hardware, known)
        for issue in issues:
            beside = tuple(
                [(at, known.cell(issue, build, hardware).verdict) for at in several for build in several[at]]
            )
            segments = _segments(releases, IdentityKeys(cells[issue.id]), beside)
            if any(segment.prospect is not Prospect.DOES_NOT_APPLY for segment in segments):
                lifespans.append(Lifespan(issue, hardware, segments, _parts(issue, known, hardware)))
    return Lifespans(tuple(column.head for column in columns), tuple(lifespans))


@lru_cache(maxsize=4096)  # between two pages few rows change
def _segments(
    releases: tuple[str, ...], cells: IdentityKeys[Cell], beside: tuple[tuple[int, Verdict], ...]
) -> tuple[Segment, ...]:
    """`beside` are the verdicts of builds that share a column, each with its place."""
    return tuple(
        Segment(
            release=release,
            build=cell.build,
            url=cell_address(*cell.key),
            prospect=prospect_of(cell),
            is_mixed=_is_mixed(cell, (verdict for place, verdict in beside if place == at)),
            is_inferred=cell.basis is not None,
        )
        for at, (release, cell) in enumerate(zip(releases, cells.them, strict=True))
    )


def _is_mixed(cell: Cell, beside: Iterable[Verdict]) -> bool:
    conclusive = CONCLUSIVE & {*(variant.verdict for variant in cell.variants), *beside}
    return Verdict.FLAKY in conclusive or (
        Verdict.NOT_AFFECTED in conclusive and bool(conclusive - {Verdict.NOT_AFFECTED})
    )


def _parts(issue: Issue, known: Known, hardware: str) -> tuple[Words, ...]:
    history, class_ = known.telling_history(issue, hardware)
    return _history_parts(
        IdentityKey(history), "" if class_ == hardware else class_, len(known.helping(issue.id, class_))
    )


@lru_cache(maxsize=4096)
def _history_parts(history: IdentityKey[History], elsewhere: str, helping: int) -> tuple[Words, ...]:
    """`elsewhere` is the class that the history comes from, if that is another one; `helping` counts workarounds."""
    first: list[Words] = [(BRIEF_WORDS["elsewhere"], {"hardware": elsewhere})] if elsewhere else []
    last: list[Words] = [(BRIEF_WORDS["no help"], {})] if history.it.spans else []
    if helping:
        last = [(BRIEF_WORDS["help" if helping > 1 else "helps"], {"n": helping})]
    return (*first, *history_in_brief(history.it), *last)


BRIEF_WORDS = {
    "elsewhere": "as on {hardware}",
    "no answer": "no release answered yet",
    "one passes": "passes on {release}, the one that answered",
    "one fails": "fails on {release}, the one that answered",
    "all pass": "passes on all {n} that answered",
    "all fail": "fails on all {n} that answered",
    "always": "fails up to {release}",
    "broke between": "broke after {after}, by {by}",
    "broke": "broke {release}",
    "still": "still fails in {release}",
    "fixed between": "fixed after {after}, by {by}",
    "fixed": "fixed {release}",
    "helps": "1 workaround",
    "help": "{n} workarounds",
    "no help": "no workaround known to help",
}


def history_in_brief(history: History) -> Iterator[Words]:
    """`broke 2.7.0`, `fixed 2.8.0`; where releases in between were not measured, both ends."""
    answered = [release for release in history.releases if release.fails is not None]
    if not answered:
        yield BRIEF_WORDS["no answer"], {}
    elif len(answered) == 1:
        yield BRIEF_WORDS["one fails" if answered[0].fails else "one passes"], {"release": answered[0].name}
    elif not history.spans:
        yield BRIEF_WORDS["all pass"], {"n": len(answered)}
    elif all(release.fails for release in answered):
        yield BRIEF_WORDS["all fail"], {"n": len(answered)}
    else:
        for span in history.spans:
            yield from _span_in_brief(span)


def _span_in_brief(span: FailingSpan) -> Iterator[Words]:
    if span.broke_in is None:
        yield BRIEF_WORDS["always"], {"release": span.last_bad}
    elif span.before:
        yield BRIEF_WORDS["broke between"], {"after": span.good_before, "by": span.first_bad}
    else:
        yield BRIEF_WORDS["broke"], {"release": span.first_bad}
    if span.fixed_in is None:
        yield BRIEF_WORDS["still"], {"release": span.last_bad}
    elif span.after:
        yield BRIEF_WORDS["fixed between"], {"after": span.last_bad, "by": span.good_after}
    else:
        yield BRIEF_WORDS["fixed"], {"release": span.good_after}
