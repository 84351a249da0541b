"""Where a bug came and went along the line of releases, in honest intervals.

An interval names the two builds that were measured: `fixed in (2.6.0, 2.7.1]` says that 2.6.0 still failed, 2.7.1
passed, and nothing between them was measured. Builds with a foreign Triton or another Python are not on the line.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.build import DEFAULT_PYTHON, Build
from app.domain.verdict import Verdict

FAILING = frozenset({Verdict.AFFECTED, Verdict.FLAKY})
_ANSWERS = FAILING | {Verdict.NOT_AFFECTED}


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


def is_on_line(build: Build) -> bool:
    """True for the plain releases of the default index: one torch, its own Triton, the default Python."""
    return build.origin == "default" and not build.is_mismatched and build.python == DEFAULT_PYTHON


def history_of(cells: Sequence[tuple[Build, Verdict]]) -> History:
    """Read one issue's verdicts on one hardware class; `cells` in any order, builds off the line are ignored.

    Anything but a pass or a fail says nothing: it widens an interval and never ends one.
    """
    line = sorted((pair for pair in cells if is_on_line(pair[0])), key=lambda pair: pair[0].build_id)
    said = [(_label(build), verdict) for build, verdict in line if verdict in _ANSWERS]
    spans = _spans(said)
    return History(spans, len(said), _sentence(spans, said, line))


def _label(build: Build) -> str:
    return build.build_id.release


def _spans(said: Sequence[tuple[str, Verdict]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    bad: list[str] = []
    good: str | None = None
    for label, verdict in said:
        if verdict in FAILING:
            bad.append(label)
            continue
        if bad:
            spans.append(Span(bad[0], bad[-1], good, label))
            bad = []
        good = label
    if bad:
        spans.append(Span(bad[0], bad[-1], good, None))
    return tuple(spans)


def _sentence(spans: Sequence[Span], said: Sequence[tuple[str, Verdict]], line: Sequence[tuple[Build, Verdict]]) -> str:
    if not said:
        different = sum(1 for _, verdict in line if verdict is Verdict.DIFFERENT_FAILURE)
        return f"fails differently on {_releases(different)}" if different else "no release answered yet"
    if not spans:
        return f"passes on all {len(said)} measured" if len(said) > 1 else f"passes on {said[0][0]}, the one measured"
    if all(verdict in FAILING for _, verdict in said):
        return f"fails on all {len(said)} measured" if len(said) > 1 else f"fails on {said[0][0]}, the one measured"
    return "; ".join(_span_in_words(span) for span in spans)


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
