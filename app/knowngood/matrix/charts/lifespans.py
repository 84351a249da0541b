"""The lifespan of an issue: how it stands on each release of a hardware class, and where it came and went in brief.

The brief words are those of its history (domain): nothing is concluded here.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.history import FailingSpan, History
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Column
from knowngood.domain.verdicts.status import Prospect, prospect_of
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, Verdict
from knowngood.matrix.charts.releases import cells_by_release, measured_releases

Words = tuple[str, dict[str, object]]
"""A text and the values for its places, to be told in the reader's language."""


@dataclass(frozen=True)
class Segment:
    """One release. `build` is the very build that the cell is of; `is_mixed` says that some Pythons or variants fail
    there and others pass, or that it fails now and then.
    """

    release: str
    build: str
    prospect: Prospect
    is_mixed: bool
    is_inferred: bool

    @property
    def look(self) -> tuple[Prospect, bool, bool]:
        return self.prospect, self.is_mixed, self.is_inferred


@dataclass(frozen=True)
class Run:
    """Neighbouring releases that look alike; `start` counts those before it."""

    start: int
    segments: tuple[Segment, ...]

    @property
    def first(self) -> Segment:
        return self.segments[0]

    @property
    def last(self) -> Segment:
        return self.segments[-1]


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

    @property
    def runs(self) -> tuple[Run, ...]:
        runs, start = [], 0
        for _, alike in groupby(self.segments, key=lambda segment: segment.look):
            run = Run(start, tuple(alike))
            runs.append(run)
            start += len(run.segments)
        return tuple(runs)


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
    for hardware in classes:
        cells = cells_by_release(issues, columns, hardware, known)
        rows = (_lifespan(issue, columns, cells[issue.id], known, hardware) for issue in issues)
        lifespans += (
            row for row in rows if any(segment.prospect is not Prospect.DOES_NOT_APPLY for segment in row.segments)
        )
    return Lifespans(tuple(column.head for column in columns), tuple(lifespans))


def _lifespan(issue: Issue, columns: Sequence[Column], cells: Sequence[Cell], known: Known, hardware: str) -> Lifespan:
    segments = tuple(
        Segment(
            release=column.head.build_id.release,
            build=cell.build,
            prospect=prospect_of(cell),
            is_mixed=_is_mixed(issue, column, cell, known),
            is_inferred=cell.basis is not None,
        )
        for column, cell in zip(columns, cells, strict=True)
    )
    return Lifespan(issue, hardware, segments, tuple(_history_parts(issue, known, hardware)))


def _is_mixed(issue: Issue, column: Column, cell: Cell, known: Known) -> bool:
    verdicts = {variant.verdict for variant in cell.variants}
    if len(column.builds) > 1:
        verdicts |= {known.cell(issue, build, cell.hardware).verdict for build in column.builds}
    conclusive = verdicts & CONCLUSIVE
    return Verdict.FLAKY in conclusive or (
        Verdict.NOT_AFFECTED in conclusive and bool(conclusive - {Verdict.NOT_AFFECTED})
    )


def _history_parts(issue: Issue, known: Known, hardware: str) -> Iterator[Words]:
    history, class_ = known.telling_history(issue, hardware)
    if class_ != hardware:
        yield BRIEF_WORDS["elsewhere"], {"hardware": class_}
    yield from history_in_brief(history)
    helping = len(known.helping(issue.id, class_))
    if helping:
        yield BRIEF_WORDS["help" if helping > 1 else "helps"], {"n": helping}
    elif history.spans:
        yield BRIEF_WORDS["no help"], {}


BRIEF_WORDS = {
    "elsewhere": "as on {hardware}",
    "no answer": "no release answered yet",
    "one passes": "passes on {release}, the one that answered",
    "one fails": "fails on {release}, the one that answered",
    "all pass": "passes on all {n} that answered",
    "all fail": "fails on all {n} that answered",
    "always": "fails up to {release}",
    "broke between": "broke in {interval}",
    "broke": "broke {release}",
    "still": "still fails in {release}",
    "fixed between": "fixed in {interval}",
    "fixed": "fixed {release}",
    "helps": "1 workaround",
    "help": "{n} workarounds",
    "no help": "no workaround known to help",
}


def history_in_brief(history: History) -> Iterator[Words]:
    """`broke 2.7.0`, `fixed 2.8.0`; for an interval with unmeasured releases in it, the interval."""
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
        yield BRIEF_WORDS["broke between"], {"interval": span.broke_in}
    else:
        yield BRIEF_WORDS["broke"], {"release": span.first_bad}
    if span.fixed_in is None:
        yield BRIEF_WORDS["still"], {"release": span.last_bad}
    elif span.after:
        yield BRIEF_WORDS["fixed between"], {"interval": span.fixed_in}
    else:
        yield BRIEF_WORDS["fixed"], {"release": span.good_after}
