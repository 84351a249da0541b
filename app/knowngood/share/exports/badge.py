"""A verdict as a badge: SVG of our own, and the JSON that shields.io draws one from.

https://shields.io/badges/endpoint-badge: `schemaVersion` 1, a message that is not empty, and no key it does not know.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast
from xml.etree import ElementTree as ET

import orjson

from knowngood.domain.verdicts.matrix import concerns_cpu_path
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.domain.vocabulary import VERDICTS, Role
from knowngood.share.exports.extract import xml_text

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
    """For an issue, or a watch list, of which nobody measured anything on any build."""
    term = VERDICTS[Verdict.NOT_RUN]
    return Badge(name, term.word, _COLOURS[term.role])


@dataclass(frozen=True)
class WatchListStanding:
    """How the watched issues stand on one build, each by the worst of the hardware classes that count.

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
    """Of a watch list on one build; `hardware` is named where it is one class. Green where all are known to pass."""
    label = f"{name} ({hardware})" if hardware else name
    marks = [f"{standing.inferred} inferred"] if standing.inferred else []
    old = _marked(marks, is_stale=standing.is_stale)
    grey, unknown = _COLOURS[Role.QUIET], f", {standing.unknown} unknown" if standing.unknown else ""
    if not standing.watched:
        return Badge(label, f"nothing to watch on {release}", grey)
    if standing.failing:
        told = f"{standing.failing} of {standing.watched} fail{unknown} on {release}{old}"
        return Badge(label, told, _COLOURS[Role.BAD])
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
    told = {"fill": "#fff", "font-family": "Verdana,DejaVu Sans,sans-serif", "font-size": "11", "text-anchor": "middle"}
    group = ET.SubElement(svg, "g", told)
    for middle, text in ((left / 2, label), (left + right / 2, message)):
        ET.SubElement(group, "text", {"x": f"{middle:g}", "y": "14"}).text = text
    return cast("bytes", ET.tostring(svg, encoding="utf-8"))
