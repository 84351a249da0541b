"""`/api/v1/charts`: the numbers that the charts draw. `/api/v1/lifespans`: those of the issues' bars.

Their page and its CSV have the same questions and the same numbers.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from knowngood.domain.issue import CONTROL
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import Prospect
from knowngood.domain.verdicts.workaround_cost import Cost, MedianCost
from knowngood.matrix.charts.numbers import Lifespan, PassRate, Segment, lifespans_of, pass_rate
from knowngood.matrix.overview.selection import Names, known_classes, named_issues
from knowngood.store.engine import Session
from knowngood.web.json_body import Body, English, fields_of, read_from, rounded
from knowngood.web.request_context import Context

router = APIRouter(tags=["charts"])


class ChartsQuery(BaseModel):
    hardware: Annotated[
        Names, Field(description="Hardware classes, or names of GPUs such as H100; none means every measured one")
    ]

    def classes(self, known: Known) -> tuple[str, ...]:
        """Raises InvalidParameter for one that was never measured."""
        return known_classes(self.hardware, known.hardware)


class LifespansQuery(ChartsQuery):
    issues: Annotated[Names, Field(description="Issue ids, repeated or comma-separated; all of them unless said")]


def select_lifespans(known: Known, query: LifespansQuery) -> tuple[Lifespan, ...]:
    """Select the lifespans, one class after the other. Raises InvalidParameter for names we do not have."""
    issues = named_issues(tuple(known.issues.values()), query.issues)
    return tuple(row for class_ in query.classes(known) for row in lifespans_of(issues, known, class_).rows)


class ReleaseTallyBody(Body):
    """How many issues stand how on a release; `rate` is the share of those with an answer that passes."""

    release: str
    build: str = read_from("build", "id")
    counts: dict[Prospect, int]
    answered: int
    rate: Annotated[float | None, rounded(4)]


class ClassChartsBody(Body):
    """The charts of one hardware class, over its measured releases, oldest first."""

    hardware: str
    pass_rate: list[ReleaseTallyBody] = read_from("releases")


class ChartsBody(Body):
    classes: list[ClassChartsBody]


@fields_of(Segment, without={"prospect", "is_mixed", "is_inferred"})
class SegmentBody(Body):
    """One release: `mixed` where some variants or Pythons fail and others pass, or it fails now and then."""

    standing: Prospect = read_from("prospect")
    mixed: bool = read_from("is_mixed")
    inferred: bool = read_from("is_inferred")


class LifespanBody(Body):
    """How an issue stands on each measured release of a hardware class, and its history in a sentence."""

    issue: str = read_from("issue", "id")
    title: str = read_from("issue", "title")
    hardware: str
    sentence: English = read_from("history")
    segments: list[SegmentBody]


class LifespansBody(Body):
    lifespans: list[LifespanBody]


def pass_rate_csv(rates: Iterable[PassRate]) -> bytes:
    head = ("hardware", "release", "build", *Prospect, "answered", "rate")
    return _csv(
        head,
        (
            (
                rate.hardware,
                tally.release,
                tally.build.id,
                *(tally.counts[prospect] for prospect in Prospect),
                tally.answered,
                "" if tally.rate is None else f"{tally.rate:.4f}",
            )
            for rate in rates
            for tally in rate.releases
        ),
    )


def lifespans_csv(spans: Iterable[Lifespan]) -> bytes:
    """A line for each issue and release. Ids and figures alone: nothing in it is text that a spreadsheet computes."""
    head = ("issue", "hardware", "release", "build", "standing", "mixed", "inferred")
    return _csv(
        head,
        (
            (
                span.issue.id,
                span.hardware,
                segment.release,
                segment.build,
                segment.prospect,
                str(segment.is_mixed).lower(),
                str(segment.is_inferred).lower(),
            )
            for span in spans
            for segment in span.segments
        ),
    )


def costs_csv(costs: Mapping[str, Cost]) -> bytes:
    """The costs of a cell's workarounds. Ids and figures alone."""
    figures = ("seconds", "seconds_low", "seconds_high", "peak_bytes", "peak_bytes_low", "peak_bytes_high", "attempts")
    return _csv(
        ("workaround", "variant", "arm", *figures),
        (
            (id_, cost.variant, arm, side.seconds, *side.seconds_range, *_peaks(side), side.attempts)
            for id_, cost in costs.items()
            for arm, side in ((id_, cost.workaround), (CONTROL, cost.control))
        ),
    )


def _peaks(side: MedianCost) -> tuple[object, ...]:
    return (side.peak_bytes, *side.peak_bytes_range) if side.peak_bytes else ("", "", "")


def _csv(head: Sequence[object], rows: Iterable[Sequence[object]]) -> bytes:
    out = StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows([head, *rows])
    return out.getvalue().encode()


@router.get("/charts", response_model=ChartsBody)
def charts(context: Context, query: Annotated[ChartsQuery, Query()]) -> Response:
    """By hardware class and measured release: how many issues stand how."""

    def load(session: Session) -> ChartsBody:
        known = context.known(session)
        return ChartsBody(classes=[ClassChartsBody.of(pass_rate(known, class_)) for class_ in query.classes(known)])

    return context.answer(load, context.json)


@router.get("/lifespans", response_model=LifespansBody)
def lifespans(context: Context, query: Annotated[LifespansQuery, Query()]) -> Response:
    """How each issue stands on each measured release: what the bars of the pages draw. Issues that exist on none of the
    releases are left out.
    """
    return context.answer(
        lambda session: select_lifespans(context.known(session), query),
        lambda rows: context.json(LifespansBody(lifespans=[LifespanBody.of(row) for row in rows])),
    )
