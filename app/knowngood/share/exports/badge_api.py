"""`/badge/{issue}.svg` and `/badge/watchlists/{name}.svg`: what is known, for a README; `.json` for shields.io to draw.

A picture in a README is asked for by every reader of it, so that an answer may be kept for five minutes; after that it
costs one query for whoever asks with its tag.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, cast
from xml.etree import ElementTree as ET

import orjson
from fastapi import APIRouter, Query, Response

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import Watch, watched_issues
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import concerns_cpu_path
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, Verdict, is_stale
from knowngood.domain.vocabulary import VERDICTS, Role
from knowngood.matrix.lookups import find_build, find_issue, find_watch_list
from knowngood.matrix.overview.selection import Words, known_classes, one_class
from knowngood.share.exports.extract import xml_text
from knowngood.store.engine import Session
from knowngood.web.request_context import Context, RequestContext

# A verdict as a badge: SVG of our own, and the JSON that shields.io draws one from.
#
# https://shields.io/badges/endpoint-badge: `schemaVersion` 1, a message that is not empty, and no key it does not know.


_CACHE_S = 3600
_SIGN_PX, _PAD_PX, _HEIGHT_PX = 6.6, 12, 20
_LONGEST = 60

_COLOURS = {
    Role.BAD: "#b3261e",
    Role.MIXED: "#8a5a00",
    Role.OTHER: "#7b4397",
    Role.GOOD: "#2e6b34",
    Role.UNSURE: "#5a5e64",
    Role.QUIET: "#5a5e64",
}


@dataclass(frozen=True)
class Badge:
    """`label` on the left, `message` on the right, on `color` (as CSS writes it)."""

    label: str
    message: str
    color: str


def badge_of(cell: Cell, release: str, *, is_stale: bool) -> Badge:
    """The badge of a cell; `release` names its build in short. Never a pass where nobody measured."""
    term = VERDICTS[cell.verdict]
    color = _COLOURS[term.role]
    label = f"{cell.issue} ({cell.hardware})"
    if concerns_cpu_path([cell]):
        return Badge(label, "concerns the CPU path", color)
    marks = ["inferred"] if cell.basis else []
    return Badge(label, f"{term.word} on {release}{_marked(marks, is_stale=is_stale)}", color)


def _marked(marks: list[str], *, is_stale: bool) -> str:
    marks = [*marks, *(["old"] if is_stale else [])]
    return f" ({', '.join(marks)})" if marks else ""


def unmeasured_badge(name: str) -> Badge:
    """The badge of an issue, or a watch list, of which nobody measured anything on any build."""
    term = VERDICTS[Verdict.NOT_RUN]
    return Badge(name, term.word, _COLOURS[term.role])


@dataclass(frozen=True)
class WatchListStanding:
    """The standing of the watched issues on one build, each by the worst of the hardware classes that count.

    What cannot exist there is in none of the three. `unknown` has no answer: not run, doubtful, or cannot be built. Of
    those that fail or pass, `inferred` rest on a cell that was not measured.
    """

    failing: int = 0
    passing: int = 0
    unknown: int = 0
    is_stale: bool = False
    inferred: int = 0

    @property
    def watched(self) -> int:
        return self.failing + self.passing + self.unknown


_WORST_FIRST = (
    frozenset({Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE}),
    frozenset({Verdict.INCONCLUSIVE, Verdict.NOT_RUN, Verdict.NO_BUILD}),
    frozenset({Verdict.NOT_AFFECTED}),
)


_PASSES = 2


def watch_list_standing(issues: Iterable[Iterable[Cell]], *, is_stale: bool) -> WatchListStanding:
    """`issues` are the cells of each watched issue on one build, one per hardware class."""
    counts, inferred = [0, 0, 0], 0
    for row in issues:
        cells = tuple(row)
        verdicts = {cell.verdict for cell in cells}
        place = next((place for place, kinds in enumerate(_WORST_FIRST) if verdicts & kinds), None)
        if place is None:
            continue
        counts[place] += 1
        grounds = [cell.basis for cell in cells if cell.verdict in _WORST_FIRST[place]]
        inferred += any(grounds) if place == _PASSES else all(grounds)  # it takes every class to pass, and one to fail
    failing, unknown, passing = counts
    return WatchListStanding(failing, passing, unknown, is_stale, inferred)


def list_badge(name: str, standing: WatchListStanding, release: str, hardware: str = "") -> Badge:
    """The badge of a watch list on one build; `hardware` is named where it is one class. Green where all are known to
    pass.
    """
    label = f"{name} ({hardware})" if hardware else name
    marks = [f"{standing.inferred} inferred"] if standing.inferred else []
    old = _marked(marks, is_stale=standing.is_stale)
    grey, unknown = _COLOURS[Role.QUIET], f", {standing.unknown} unknown" if standing.unknown else ""
    if not standing.watched:
        return Badge(label, f"nothing to watch on {release}", grey)
    if standing.failing:
        message = f"{standing.failing} of {standing.watched} fail{unknown} on {release}{old}"
        return Badge(label, message, _COLOURS[Role.BAD])
    if standing.unknown:
        return Badge(label, f"{standing.passing} of {standing.watched} pass{unknown} on {release}{old}", grey)
    return Badge(label, f"all {standing.watched} pass on {release}{old}", _COLOURS[Role.GOOD])


def shields_endpoint(badge: Badge) -> bytes:
    return orjson.dumps(
        {
            "schemaVersion": 1,
            "label": badge.label,
            "message": badge.message,
            "color": badge.color,
            "cacheSeconds": _CACHE_S,
        }
    )


def badge_svg(badge: Badge) -> bytes:
    """Text and two boxes, without a script, a font of others, or a style that a page's policy would refuse."""
    label, message = (
        text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        for text in map(xml_text, (badge.label, badge.message))
    )
    left, right = (round(len(text) * _SIGN_PX) + _PAD_PX for text in (label, message))
    svg = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "width": str(left + right),
            "height": str(_HEIGHT_PX),
            "role": "img",
            "aria-label": f"{label}: {message}",
        },
    )
    ET.SubElement(svg, "title").text = f"{label}: {message}"
    for x, width, color in ((0, left, "#3b3f45"), (left, right, badge.color)):
        box = {"x": str(x), "width": str(width), "height": str(_HEIGHT_PX), "fill": color}
        ET.SubElement(svg, "rect", box)
    style = {
        "fill": "#fff",
        "font-family": "Verdana,DejaVu Sans,sans-serif",
        "font-size": "11",
        "text-anchor": "middle",
    }
    group = ET.SubElement(svg, "g", style)
    for middle, text in ((left / 2, label), (left + right / 2, message)):
        ET.SubElement(group, "text", {"x": f"{middle:g}", "y": "14"}).text = text
    return cast("bytes", ET.tostring(svg, encoding="utf-8"))


router = APIRouter(include_in_schema=False)

_BROWSER_CACHE_S = 300

Asked = Annotated[Words, Query()]


@router.get("/badge/watchlists/{name}.svg")
@router.get("/badge/watchlists/{name}.json")
def list_badge_of(context: Context, name: str, build: Asked = "", hardware: Asked = "") -> Response:
    return context.answer(
        lambda session: _list_badge(context, session, name, build, hardware), partial(_shown, context)
    )


@router.get("/badge/{issue}.svg")
@router.get("/badge/{issue}.json")
def badge(context: Context, issue: str, build: Asked = "", hardware: Asked = "") -> Response:
    return context.answer(lambda session: _badge(context, session, issue, build, hardware), partial(_shown, context))


def _shown(context: RequestContext, badge: Badge) -> Response:
    """The badge in the form that the address ends in. Private ones stay with their reader. A badge has no language: all
    readers get the same.
    """
    if context.request.url.path.endswith(".svg"):
        response = context.text(badge_svg(badge), "image/svg+xml", "badge.svg")
    else:
        response = context.text(shields_endpoint(badge), "application/json", "badge.json")
    if response.headers["Cache-Control"] == "no-cache":
        response.headers["Cache-Control"] = f"public, max-age={_BROWSER_CACHE_S}"
        del response.headers["Vary"]
    return response


def _badge(context: RequestContext, session: Session, id_: str, build: str, hardware: str) -> Badge:
    """The badge of an issue: without a build, on the newest release with an answer; without a class, on the CPU's or
    the first with one.
    """
    issue = find_issue(session, id_)
    known = context.known(session)
    cells = known.stored(issue.id)
    answered = dict.fromkeys(cell.hardware for cell in cells if cell.verdict in CONCLUSIVE)
    class_ = one_class(hardware, known.hardware if hardware else tuple(answered))
    named = _named_or_newest(session, known, build, [cell for cell in cells if cell.hardware == class_])
    if named is None:
        return unmeasured_badge(issue.id)
    cell = known.cell(issue, named, class_)
    return badge_of(cell, _in_short(named), is_stale=is_stale(cell, named, context.now))


def _list_badge(context: RequestContext, session: Session, name: str, build: str, hardware: str) -> Badge:
    """The badge of a watch list: without a build, on the newest release with any answer; without a class, on those of
    the list, else all measured.
    """
    watch_list = find_watch_list(session, name)
    known = context.known(session)
    watched = _watched(known, watch_list.content.watch)
    measured = known.hardware
    wanted = [hardware] if hardware else [class_ for class_ in watch_list.content.hardware if class_ in measured]
    classes = known_classes(wanted, measured)
    cells = [cell for issue in watched for cell in known.stored(issue.id) if cell.hardware in classes]
    named = _named_or_newest(session, known, build, cells)
    if named is None:
        return unmeasured_badge(name)
    rows = [[known.cell(issue, named, class_) for class_ in classes] for issue in watched]
    old = any(is_stale(cell, named, context.now) for row in rows for cell in row)
    only = classes[0] if len(classes) == 1 else ""
    return list_badge(name, watch_list_standing(rows, is_stale=old), _in_short(named), only)


def _watched(known: Known, watch: Watch) -> tuple[Issue, ...]:
    """The watched issues; none where the list names what has left the catalogue: half of a list must not pass for the
    whole.
    """
    try:
        return watched_issues(watch, known.issues, known.names)[0]
    except BadRequest:
        return ()


def _in_short(build: Build) -> str:
    return build.id.removeprefix("torch-")


def _named_or_newest(session: Session, known: Known, name: str, cells: Sequence[Cell]) -> Build | None:
    """The build of that name, else the newest release among `cells` with an answer."""
    if name:
        return find_build(session, name)[0]
    answered = {cell.build for cell in cells if cell.verdict in CONCLUSIVE}
    return next(
        (build for build in reversed(tuple(known.builds.values())) if build.id in answered and is_release(build)), None
    )
