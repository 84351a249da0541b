"""The charts' numbers as JSON and as CSV."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Annotated

from knowngood.app.dashboard.charts.lifespans import Lifespan, Segment
from knowngood.app.dashboard.charts.pass_rate import PassRate, ReleaseTally
from knowngood.app.domain.verdicts.status import Prospect
from knowngood.app.features.charts.ages import UP_TO_DAYS
from knowngood.app.features.charts.gains import Step
from knowngood.app.features.compare.comparison import Group
from knowngood.app.web.json_body import Body, read_from, rounded
from knowngood.app.web.urls import cell_address, compare_address


class ReleaseTallyBody(Body):
    """How many issues stand how on a release; `rate` is the share of those with an answer that passes."""

    release: str
    build: str = read_from("build", "id")
    counts: dict[Prospect, int]
    answered: int
    rate: Annotated[float | None, rounded(4)]


class StepBody(Body):
    """The counts of a comparison of two releases: `gained` are its `fixed`, `lost` its `newly_broken`, of which
    `lost_with_workaround` have one that helps.
    """

    before: str = read_from("before", "id")
    after: str = read_from("after", "id")
    gained: int
    lost: int
    lost_with_workaround: int
    counts: dict[Group, int]
    url: str


class AgeBody(Body):
    """How many measured cells are at most so many days old, and older than those before; null: older than all."""

    up_to_days: int | None
    cells: int


class ClassChartsBody(Body):
    """The charts of one hardware class, over its measured releases, oldest first, and the age of its evidence."""

    hardware: str
    pass_rate: list[ReleaseTallyBody]
    gained_and_lost: list[StepBody]
    ages: list[AgeBody]


class ChartsBody(Body):
    classes: list[ClassChartsBody]


class SegmentBody(Body):
    """One release: `mixed` where some variants or Pythons fail and others pass, or it fails now and then."""

    release: str
    build: str
    standing: Prospect = read_from("prospect")
    mixed: bool = read_from("is_mixed")
    inferred: bool = read_from("is_inferred")
    url: str


class LifespanBody(Body):
    """How an issue stands on each measured release of a hardware class, and where it came and went, in brief."""

    issue: str
    title: str
    hardware: str
    sentence: str
    segments: list[SegmentBody]


class LifespansBody(Body):
    lifespans: list[LifespanBody]


def class_charts_body(rates: PassRate, steps: Iterable[Step], ages: Iterable[int]) -> ClassChartsBody:
    return ClassChartsBody(
        hardware=rates.hardware,
        pass_rate=[ReleaseTallyBody.of(one) for one in rates.releases],
        gained_and_lost=[_step_body(one, rates.hardware) for one in steps],
        ages=[AgeBody(up_to_days=days, cells=count) for days, count in zip((*UP_TO_DAYS, None), ages, strict=True)],
    )


def _step_body(one: Step, hardware: str) -> StepBody:
    return StepBody(
        before=one.before.id,
        after=one.after.id,
        gained=one.gained,
        lost=one.lost,
        lost_with_workaround=one.lost_with_workaround,
        counts=dict(one.counts),
        url=compare_address(one.before.id, one.after.id, hardware=hardware),
    )


def lifespan_body(one: Lifespan) -> LifespanBody:
    return LifespanBody(
        issue=one.issue.id,
        title=one.issue.title,
        hardware=one.hardware,
        sentence=one.sentence,
        segments=[_segment_body(one, segment) for segment in one.segments],
    )


def _segment_body(one: Lifespan, segment: Segment) -> SegmentBody:
    return SegmentBody(
        release=segment.release,
        build=segment.build,
        standing=segment.prospect,
        mixed=segment.is_mixed,
        inferred=segment.is_inferred,
        url=cell_address(one.issue.id, segment.build, one.hardware),
    )


def pass_rate_csv(rates: Iterable[PassRate]) -> bytes:
    head = ("hardware", "release", "build", *Prospect, "answered", "rate")
    return _csv(head, (_tally_row(one.hardware, release) for one in rates for release in one.releases))


def _tally_row(hardware: str, one: ReleaseTally) -> Sequence[object]:
    rate = "" if one.rate is None else f"{one.rate:.4f}"
    return (hardware, one.release, one.build.id, *(one.counts[prospect] for prospect in Prospect), one.answered, rate)


def gains_csv(steps: Iterable[tuple[str, Step]]) -> bytes:
    head = ("hardware", "before", "after", "gained", "lost", "lost_with_workaround", *Group)
    return _csv(
        head,
        (
            (
                hardware,
                one.before.id,
                one.after.id,
                one.gained,
                one.lost,
                one.lost_with_workaround,
                *(one.counts[group] for group in Group),
            )
            for hardware, one in steps
        ),
    )


def ages_csv(ages: Iterable[tuple[str, Sequence[int]]]) -> bytes:
    rows = (
        (hardware, days, count)
        for hardware, counts in ages
        for days, count in zip((*UP_TO_DAYS, ""), counts, strict=True)
    )
    return _csv(("hardware", "up_to_days", "cells"), rows)


def lifespans_csv(spans: Iterable[Lifespan]) -> bytes:
    """A line for each issue and release. Ids and figures alone: nothing in it is text that a spreadsheet computes."""
    head = ("issue", "hardware", "release", "build", "standing", "mixed", "inferred")
    return _csv(
        head,
        (
            (
                one.issue.id,
                one.hardware,
                segment.release,
                segment.build,
                segment.prospect,
                str(segment.is_mixed).lower(),
                str(segment.is_inferred).lower(),
            )
            for one in spans
            for segment in one.segments
        ),
    )


def _csv(head: Sequence[object], rows: Iterable[Sequence[object]]) -> bytes:
    out = StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows([head, *rows])
    return out.getvalue().encode()
