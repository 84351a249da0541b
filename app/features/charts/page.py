"""`/charts`: what is known as pictures, each with its table and its data; and the data as CSV."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.app.dashboard.charts.drawing import (
    BAR_HEIGHT,
    CHARTS,
    TEXT_HEIGHT,
    BarChart,
    Box,
    Place,
    Text,
    box,
    csv_address,
    labels,
    pass_rate_chart,
    place,
    reached,
)
from knowngood.app.dashboard.charts.pass_rate import pass_rate
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.domain.vocabulary import StatusLabel
from knowngood.app.features.charts.ages import UP_TO_DAYS, ages
from knowngood.app.features.charts.gains import Step, steps_between_releases
from knowngood.app.features.charts.schemas import ages_csv, gains_csv, lifespans_csv, pass_rate_csv
from knowngood.app.features.charts.service import ChartsQuery, LifespansQuery, lifespans_asked
from knowngood.app.web.html.grid import Choice
from knowngood.app.web.request_context import Context, RequestContext
from knowngood.app.web.urls import API, compare_address

router = APIRouter(include_in_schema=False)

_CSV = "text/csv; charset=utf-8"


@dataclass(frozen=True)
class ClassCharts:
    hardware: str
    charts: tuple[BarChart, ...]


@dataclass(frozen=True)
class ChartsPage:
    classes: tuple[ClassCharts, ...]
    choices: tuple[Choice, ...]
    lifespans_csv: str
    lifespans_json: str
    json_address: str


@router.get(CHARTS)
def charts(context: Context, query: Annotated[ChartsQuery, Query()]) -> Response:
    return context.answer(
        lambda session: charts_page(context, query, context.known(session)),
        lambda page: context.page("charts.html", page),
    )


@router.get(f"{CHARTS}/pass-rate.csv")
def pass_rates_as_csv(context: Context, query: Annotated[ChartsQuery, Query()]) -> Response:
    return _csv(
        context,
        lambda known: pass_rate_csv(pass_rate(known, one) for one in query.classes(known)),
        "pass-rate.csv",
    )


@router.get(f"{CHARTS}/gained-and-lost.csv")
def gains_as_csv(context: Context, query: Annotated[ChartsQuery, Query()]) -> Response:
    def write(known: Known) -> bytes:
        classes = query.classes(known)
        return gains_csv((class_, step) for class_ in classes for step in steps_between_releases(known, class_))

    return _csv(context, write, "gained-and-lost.csv")


@router.get(f"{CHARTS}/ages.csv")
def ages_as_csv(context: Context, query: Annotated[ChartsQuery, Query()]) -> Response:
    return _csv(
        context,
        lambda known: ages_csv((one, ages(known, one, context.now)) for one in query.classes(known)),
        "ages.csv",
    )


@router.get(f"{CHARTS}/lifespans.csv")
def lifespans_as_csv(context: Context, query: Annotated[LifespansQuery, Query()]) -> Response:
    return _csv(context, lambda known: lifespans_csv(lifespans_asked(known, query)), "lifespans.csv")


def _csv(context: RequestContext, write: Callable[[Known], bytes], name: str) -> Response:
    return context.answer(
        lambda session: write(context.known(session)),
        lambda written: Response(written, media_type=_CSV, headers=context.attached(name)),
    )


def charts_page(context: RequestContext, query: ChartsQuery, known: Known) -> ChartsPage:
    asked = query.classes(known)
    return ChartsPage(
        classes=tuple(_class(context, known, one) for one in asked),
        choices=(
            Choice(context.say("all measured"), CHARTS, is_chosen=not query.hardware),
            *(Choice(one, f"{CHARTS}?hardware={one}", list(query.hardware) == [one]) for one in known.hardware),
        ),
        lifespans_csv=f"{CHARTS}/lifespans.csv",
        lifespans_json=f"{API}/lifespans",
        json_address=f"{API}{CHARTS}?hardware={','.join(query.hardware)}" if query.hardware else f"{API}{CHARTS}",
    )


def _class(context: RequestContext, known: Known, hardware: str) -> ClassCharts:
    steps = steps_between_releases(known, hardware)
    return ClassCharts(
        hardware,
        (
            pass_rate_chart(context, pass_rate(known, hardware)),
            gains_chart(context, steps, hardware),
            ages_chart(context, ages(known, hardware, context.now), hardware),
        ),
    )


GAIN_HEAD_WORDS = ("After", "Before", "gained", "lost", "of these with a workaround")

_LINE = 0.5  # where the two halves of a diverging bar meet


def gains_chart(context: RequestContext, steps: Sequence[Step], hardware: str) -> BarChart:
    """Gains above the line, losses below it: of that the part with a workaround next to the line."""
    count = len(steps)
    most = max((max(one.gained, one.lost) for one in steps), default=0) or 1
    unit, line = BAR_HEIGHT * _LINE / most, TEXT_HEIGHT + BAR_HEIGHT * _LINE
    boxes, texts, places = list[Box](), list[Text](), list[Place]()
    for at, one in enumerate(steps):
        x, width = place(at, count)
        middle, hard = round(x + width / 2, 3), one.lost - one.lost_with_workaround
        up, eased, down = one.gained * unit, one.lost_with_workaround * unit, hard * unit
        if one.gained:
            boxes.append(box(StatusLabel.PASSES, at, count, line - up, up))
        if eased:
            boxes.append(box(StatusLabel.WORKAROUND, at, count, line, eased))
        if hard:
            boxes.append(box(StatusLabel.FAILS, at, count, line + eased, down))
        if one.gained:
            texts.append(Text(f"+{one.gained}", middle, round(line - up - 4, 2), is_strong=True))
        if one.lost:
            texts.append(Text(f"\N{MINUS SIGN}{one.lost}", middle, round(line + eased + down + 13, 2), is_strong=True))
        name = context.say(
            "From {before} to {after}: {gained} gained, {lost} lost, {eased} of them with a workaround",
            before=one.before.id,
            after=one.after.id,
            gained=one.gained,
            lost=one.lost,
            eased=one.lost_with_workaround,
        )
        address = compare_address(one.before.id, one.after.id, hardware=hardware)
        places.append(Place(name, reached(context, address), x, width))
    return BarChart(
        id=f"gained-and-lost-{hardware}",
        title=context.say("Gained and lost by release, {hardware}", hardware=hardware),
        about=context.say(
            "Of each release, beside the one before: how many issues failed and pass, and how many passed and fail. "
            "Only what is known on both sides counts."
        ),
        height=BAR_HEIGHT + 3 * TEXT_HEIGHT,
        line=line,
        boxes=tuple(boxes),
        texts=(*texts, *labels([one.after.build_id.release for one in steps], BAR_HEIGHT + 3 * TEXT_HEIGHT - 5)),
        places=tuple(places),
        legend=(
            (StatusLabel.PASSES, context.say("gained")),
            (StatusLabel.WORKAROUND, context.say("lost, has a workaround")),
            (StatusLabel.FAILS, context.say("lost")),
        ),
        heads=tuple(context.say(head) for head in GAIN_HEAD_WORDS),
        rows=tuple(
            (one.after.id, one.before.id, str(one.gained), str(one.lost), str(one.lost_with_workaround))
            for one in steps
        ),
        csv_address=csv_address("gained-and-lost", hardware),
        json_address=f"{API}{CHARTS}?hardware={hardware}",
    )


AGE_WORDS = ("≤ {n} days", "> {n} days")  # short: five of them stand beside each other on a phone


def ages_chart(context: RequestContext, counts: Sequence[int], hardware: str) -> BarChart:
    """One bar for each class of age, in a hue that is no verdict's."""
    most, ground = max(counts) or 1, float(TEXT_HEIGHT + BAR_HEIGHT * _LINE)
    names = [context.say(AGE_WORDS[0], n=days) for days in UP_TO_DAYS]
    names.append(context.say(AGE_WORDS[1], n=UP_TO_DAYS[-1]))
    boxes, texts, places = list[Box](), list[Text](), list[Place]()
    for at, count in enumerate(counts):
        x, width = place(at, len(counts))
        middle, height = round(x + width / 2, 3), BAR_HEIGHT * _LINE * count / most
        if count:
            boxes.append(box(StatusLabel.UNSURE, at, len(counts), ground - height, height))
        texts.append(Text(str(count), middle, round(ground - height - 5, 2), is_strong=True))
        texts.append(Text(names[at], middle, ground + TEXT_HEIGHT - 5))
        places.append(Place(f"{names[at]}: {count}", "", x, width))
    return BarChart(
        id=f"ages-{hardware}",
        title=context.say("Age of evidence, {hardware}", hardware=hardware),
        about=context.say("Measured cells by how long ago they were measured last."),
        height=ground + TEXT_HEIGHT,
        line=ground,
        boxes=tuple(boxes),
        texts=tuple(texts),
        places=tuple(places) if any(counts) else (),
        legend=(),
        heads=tuple(context.say(head) for head in AGE_HEAD_WORDS),
        rows=tuple((name, str(count)) for name, count in zip(names, counts, strict=True)),
        csv_address=csv_address("ages", hardware),
        json_address=f"{API}{CHARTS}?hardware={hardware}",
    )


AGE_HEAD_WORDS = ("Age", "Cells")
