"""Charts as values that a template can draw: places in percent of the width, heights in pixels, names, texts, links.

Drawn without a library: bars are rectangles, the browser does the scales (percent), and templates escape.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from knowngood.domain.identity_key import IdentityKey
from knowngood.domain.message import Message
from knowngood.domain.verdicts.status import Prospect
from knowngood.domain.vocabulary import StatusLabel
from knowngood.matrix.charts.numbers import (
    SIGNS,
    WORDS,
    Lifespan,
    Lifespans,
    PassRate,
    ReleaseTally,
    Segment,
    runs_of,
    short_labels,
)
from knowngood.web.html.i18n import Language, in_words, say
from knowngood.web.request_context import RequestContext
from knowngood.web.urls import API, issue_address, page_of_build

_GAP = 0.14  # of a column, on either side of its bar
BAR_HEIGHT = 150  # of the tallest
TEXT_HEIGHT = 18


@dataclass(frozen=True)
class Box:
    """A rectangle: `x` and `width` in percent, `y` and `height` in pixels."""

    sign: StatusLabel
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True)
class Text:
    """Centred at `x` (percent), on the line `y` (pixels). What is `is_spare` is left out where there is little room."""

    text: str
    x: float
    y: float
    is_strong: bool = False
    is_spare: bool = False


@dataclass(frozen=True)
class Place:
    """A column as a link. `name` says all that is drawn there; `address` is empty where it leads nowhere."""

    name: str
    address: str
    x: float
    width: float


def place(at: int, count: int) -> tuple[float, float]:
    """Where the column stands among so many, and how wide it is; both in percent."""
    return round(100 * at / count, 3), round(100 / count, 3)


def box(sign: StatusLabel, at: int, count: int, y: float, height: float) -> Box:
    x, width = place(at, count)
    return Box(sign, round(x + _GAP * width, 3), round((1 - 2 * _GAP) * width, 3), round(y, 2), round(height, 2))


def labels(releases: Sequence[str], y: float) -> tuple[Text, ...]:
    """The labels under the columns; every other minor is enough where there is little room."""
    count, minors, texts = len(releases), 0, list[Text]()
    for at, text in enumerate(short_labels(releases)):
        is_minor = not text.startswith(".")
        minors += is_minor
        texts.append(Text(text, round(100 * (at + 0.5) / count, 3), y, is_spare=not is_minor or minors % 2 == 0))
    return tuple(texts)


def reached(context: RequestContext, address: str) -> str:
    return address if context.leads_to(address) else ""


CHARTS = "/charts"


def pass_rate_chart(context: RequestContext, pass_rate: PassRate) -> dict[str, Any]:
    """Stacked bars, one for each release: from below what passes to what is not known. `id` names the chart in its
    page; bars stand on its `line`. `heads` and `rows` are its table; the first value of a row names it.
    """
    drawn = [prospect for prospect in SIGNS if prospect is not Prospect.DOES_NOT_APPLY]
    count = len(pass_rate.releases)
    most = max((_height(tally) for tally in pass_rate.releases), default=0) or 1
    boxes, texts, places = list[Box](), list[Text](), list[Place]()
    for at, tally in enumerate(pass_rate.releases):
        top = float(TEXT_HEIGHT + BAR_HEIGHT)
        for prospect in drawn:
            if tally.counts[prospect]:
                height = BAR_HEIGHT * tally.counts[prospect] / most
                top -= height
                boxes.append(box(SIGNS[prospect], at, count, top, height))
        x, width = place(at, count)
        if tally.rate is not None and is_enough(tally):
            texts.append(Text(percent(tally.rate), round(x + width / 2, 3), round(top - 5, 2), is_strong=True))
        places.append(
            Place(
                _tally_words(context, tally),
                reached(context, page_of_build(tally.build, pass_rate.hardware)),
                x,
                width,
            )
        )
    releases = [release.release for release in pass_rate.releases]
    return {
        "id": f"pass-rate-{pass_rate.hardware}",
        "title": context.say("Pass rate by release, {hardware}", hardware=pass_rate.hardware),
        "about": context.say(
            "Issues by their state on each release. The figure above a bar is the percentage that passes of "
            "those with an answer; it is left out where fewer than half have one."
        ),
        "height": BAR_HEIGHT + 2 * TEXT_HEIGHT,
        "line": BAR_HEIGHT + TEXT_HEIGHT,
        "boxes": tuple(boxes),
        "texts": (*texts, *labels(releases, BAR_HEIGHT + 2 * TEXT_HEIGHT - 5)),
        "places": tuple(places),
        "legend": [(SIGNS[prospect], context.say(WORDS[prospect])) for prospect in drawn],
        "heads": tuple(context.say(head) for head in (*RATE_HEAD_WORDS, *(WORDS[prospect] for prospect in SIGNS))),
        "rows": tuple(
            (
                tally.build.id,
                percent(tally.rate) if tally.rate is not None else "",
                *(str(tally.counts[prospect]) for prospect in SIGNS),
            )
            for tally in pass_rate.releases
        ),
        "csv_address": f"{CHARTS}/pass-rate.csv?hardware={pass_rate.hardware}",
        "json_address": f"{API}{CHARTS}?hardware={pass_rate.hardware}",
    }


RATE_HEAD_WORDS = ("Release", "passes in %")


def is_enough(tally: ReleaseTally) -> bool:
    """Whether the release may show a share: at least half of what can exist there has an answer."""
    return 2 * tally.answered >= _height(tally)


def _height(tally: ReleaseTally) -> int:
    return sum(count for prospect, count in tally.counts.items() if prospect is not Prospect.DOES_NOT_APPLY)


def percent(rate: float) -> str:
    """A share in percent; less than all is never 100, and more than nothing is never 0."""
    whole = round(100 * rate)
    return str(min(whole, 99) if rate < 1 else whole) if rate == 0 or whole else "1"


def _tally_words(context: RequestContext, tally: ReleaseTally) -> str:
    counted = (
        f"{context.say(WORDS[prospect])} {tally.counts[prospect]}" for prospect in SIGNS if tally.counts[prospect]
    )
    return f"{tally.build.id}: {', '.join(counted)}"


@dataclass(frozen=True)
class LifespanRow:
    """One issue on one class; `label` is its title. `name` tells the bar to those who cannot see it; `cells` are the
    releases as links, where wanted.
    """

    issue: str
    label: str
    address: str
    is_silent: bool
    sentence: Markup
    name: str
    bar: Markup
    cells: tuple[Place, ...]
    standings: tuple[tuple[str, str], ...]


def lifespan_chart(
    context: RequestContext,
    spans: Lifespans,
    *,
    build: str = "",
    has_cells: bool = True,
) -> dict[str, Any]:
    """`build` is the one whose column is marked; `own` is that column (None: it is none of these). Without `has_cells`
    a bar is a picture alone, for pages of hundreds.
    """
    count = len(spans.builds)
    own = spans.place_of(build) if build else None
    return {
        "heads": labels([release.build_id.release for release in spans.builds], TEXT_HEIGHT - 5),
        "rows": tuple(_row(context, row, count, has_cells=has_cells) for row in spans.rows),
        "own": Place(build, "", *place(own, count)) if own is not None else None,
    }


def _row(context: RequestContext, lifespan: Lifespan, count: int, *, has_cells: bool) -> LifespanRow:
    row = _row_without_cells(
        lifespan.issue.id,
        context.title_of(lifespan.issue),
        lifespan.hardware,
        lifespan.issue.silent,
        lifespan.history,
        IdentityKey(lifespan.segments),
        context.language,
    )
    if not has_cells:
        return row
    return replace(
        row,
        cells=tuple(
            Place(
                f"{segment.release}{context.say(': ')}{_standing(segment, context.language)}",
                reached(context, segment.url),
                *place(at, count),
            )
            for at, segment in enumerate(lifespan.segments)
        ),
    )


@lru_cache(maxsize=4096)  # between two pages few rows change
def _row_without_cells(
    issue: str,
    label: str,
    hardware: str,
    is_silent: bool,  # noqa: FBT001 - lru_cache
    sentence: Message,
    segments: IdentityKey[tuple[Segment, ...]],
    language: Language,
) -> LifespanRow:
    runs = runs_of(segments.it)
    standings = tuple((_releases(run), _standing(run[0], language)) for run in runs.values())
    return LifespanRow(
        issue=issue,
        label=label,
        address=issue_address(issue, hardware=hardware),
        is_silent=is_silent,
        sentence=in_words(sentence, language),
        name=say("; ", language).join(f"{releases}{say(': ', language)}{standing}" for releases, standing in standings),
        bar=Markup("").join(
            _stretch(start, run, len(segments.it))
            for start, run in runs.items()
            if run[0].prospect is not Prospect.DOES_NOT_APPLY
        ),
        cells=(),
        standings=standings,
    )


def _stretch(start: int, run: Sequence[Segment], count: int) -> Markup:
    """Neighbouring releases that look alike, in percent of the width."""
    x, _ = place(start, count)
    width = round(100 * len(run) / count, 3)
    signs = f"{SIGNS[run[0].prospect]}{' inferred' if run[0].is_inferred else ''}"
    kinds = (signs, "mixed") if run[0].is_mixed else (signs,)
    return Markup("").join(  # a template that asks for each of these takes ten times as long
        Markup(f'<rect class="{kind}" x="{x}%" y="5" width="{width}%" height="14"/>')  # noqa: S704 - signs and numbers
        for kind in kinds
    )


def _releases(run: Sequence[Segment]) -> str:
    return run[0].release if len(run) == 1 else f"{run[0].release} \N{EN DASH} {run[-1].release}"


def _standing(segment: Segment, language: Language) -> str:
    parts = [say(WORDS[segment.prospect], language)]
    if segment.is_mixed and segment.prospect is not Prospect.AS_REPORTED:  # whose words say so
        parts.append(say("not with every variant or Python", language))
    if segment.is_inferred:
        parts.append(say("inferred", language))
    return say(", ", language).join(parts)
