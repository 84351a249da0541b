"""The style sheet by the numbers: every ink can be read on every paper that it stands on, in both themes and with
high contrast; nothing in it comes from elsewhere or moves by itself.
"""

import math
import re
from collections.abc import Iterator, Mapping
from itertools import combinations, product

import pytest

from knowngood.domain.vocabulary import StatusLabel
from knowngood.web.html.templates import STATIC

SHEET = re.sub(r"/\*.*?\*/", "", (STATIC / "app.css").read_text(), flags=re.DOTALL)

Colour = tuple[float, float, float]
THEMES = ("light", "dark")
NORMAL, HIGH = 4.5, 7.0
LINES = 3.0  # of what is no text: focus rings, the edge of a field (WCAG 1.4.11)


def block(start: str) -> str:
    """The text between the braces after `start`."""
    at = SHEET.index("{", SHEET.index(start)) + 1
    depth, end = 1, at
    while depth:
        depth += {"{": 1, "}": -1}.get(SHEET[end], 0)
        end += 1
    return SHEET[at : end - 1]


def colour(text: str) -> Colour:
    digits = text.strip().lstrip("#")
    wide = digits if len(digits) == 6 else "".join(2 * one for one in digits)
    red, green, blue = (int(wide[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return red, green, blue


def inks(text: str, theme: str) -> dict[str, Colour]:
    """Custom properties of a block by name, in one theme."""
    told = re.findall(r"--([\w-]+):\s*light-dark\((#\w+),\s*(#\w+)\)", text)
    return {name: colour((light, dark)[THEMES.index(theme)]) for name, light, dark in told}


def brightness(one: Colour) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in one]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Colour, other: Colour) -> float:
    """WCAG 2: 1 for the same, 21 for black on white."""
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


def mixed(share: float, one: Colour, other: Colour) -> Colour:
    """`color-mix(in srgb, one share, other)`."""
    red, green, blue = (share * a + (1 - share) * b for a, b in zip(one, other, strict=True))
    return red, green, blue


def hues(text: str, theme: str) -> dict[str, dict[str, Colour]]:
    """`--hue`, `--fill`, `--whole` and `--on-whole` by the class that sets them."""
    found: dict[str, dict[str, Colour]] = {}
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*--(?:hue|fill|whole):[^{}]*)\}", text):
        for name in re.findall(r"\.([a-z]+)(?=\s*(?:,|$))", selectors.strip()):
            found.setdefault(name, {}).update(inks(body, theme))
    return found


ROOT = block("@layer base").partition(":root {")[2].partition("}")[0]
CONTRAST = block("@media (prefers-contrast: more)")


def papers(theme: str, *, is_high: bool = False) -> tuple[dict[str, Colour], Mapping[str, dict[str, Colour]]]:
    plain = inks(ROOT, theme) | (inks(CONTRAST.partition(":root {")[2].partition("}")[0], theme) if is_high else {})
    by_class = hues(block("@layer parts"), theme)
    if is_high:
        for name, told in hues(CONTRAST, theme).items():
            by_class.setdefault(name, {}).update(told)
    return plain, by_class


def pairs(theme: str, *, is_high: bool) -> Iterator[tuple[str, Colour, Colour]]:
    """Every ink with every paper it may stand on."""
    plain, by_class = papers(theme, is_high=is_high)
    tints = {
        "paper": plain["paper"],
        "sheet": plain["sheet"],
        "code": mixed(0.12, plain["quiet"], plain["paper"]),
        "a row that is pointed at": mixed(0.09, plain["quiet"], plain["paper"]),
        "lit": plain["lit"],
    }
    for ink, (paper, shade) in product(("ink", "quiet", "accent"), tints.items()):
        if (ink, paper) in {("quiet", "lit"), ("accent", "lit")}:
            continue  # a marked line is in ink
        yield f"{ink} on {paper}", plain[ink], shade
    for name, told in by_class.items():
        hue = told.get("hue", plain["quiet"])
        yield f"{name} on its fill", hue, told.get("fill", plain["paper"])
        yield f"{name} on paper", hue, plain["paper"]
        yield f"{name} on sheet", hue, plain["sheet"]
        if "whole" in told:
            yield f"what stands on the whole fill of {name}", told["on-whole"], told["whole"]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("is_high", [False, True], ids=["as usual", "high contrast"])
def test_every_ink_can_be_read_on_every_paper(theme: str, *, is_high: bool) -> None:
    least = HIGH if is_high else NORMAL
    weak = {name: round(contrast(a, b), 2) for name, a, b in pairs(theme, is_high=is_high) if contrast(a, b) < least}
    assert weak == {}


# How each kind of eye sees linear RGB: Machado, Oliveira and Fernandes, 2009, at full severity.
EYES = {
    "trichromat": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanope": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranope": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanope": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
APART = 7.0  # of CIELAB: seen at a glance; just noticed from 2.3 on


def lab(one: Colour, eye: str) -> Colour:
    """CIELAB of a colour as an eye sees it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in one]
    red, green, blue = (
        min(1.0, max(0.0, sum(share * part for share, part in zip(line, linear, strict=True)))) for line in EYES[eye]
    )
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (
            (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
            0.2126 * red + 0.7152 * green + 0.0722 * blue,
            (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eye", EYES)
def test_what_fails_what_passes_and_what_is_not_known_look_apart_to_every_eye(theme: str, eye: str) -> None:
    """The fills of cells, and the bare paper of those that were not run."""
    plain, by_class = papers(theme)
    fills = {
        "fails": by_class["fails"]["whole"],
        "fails, has a workaround": by_class["cure"]["fill"],
        "passes": by_class["passes"]["fill"],
        "cannot say": by_class["unsure"]["fill"],
        "not run": plain["paper"],
    }
    near = {
        f"{a} beside {b}": round(math.dist(lab(fills[a], eye), lab(fills[b], eye)), 1)
        for a, b in combinations(fills, 2)
        if math.dist(lab(fills[a], eye), lab(fills[b], eye)) < APART
    }
    assert near == {}


def test_no_two_verdicts_have_one_sign() -> None:
    """By shape alone, for whoever sees no colours at all."""
    drawings = re.findall(r'<symbol id="s-(\w+)"[^>]*?(?:/>|>(.*?)</symbol>)', (STATIC / "signs.svg").read_text())
    signs = {name: drawing for name, drawing in drawings if name in set(StatusLabel)}
    assert set(signs) == set(StatusLabel)
    assert len(set(signs.values())) == len(signs)


@pytest.mark.parametrize("theme", THEMES)
def test_source_code_can_be_read(theme: str) -> None:
    plain, _ = papers(theme)
    told = re.findall(r"\.([a-z0-9]+)(?:,[^{}]*)?\{\s*color: light-dark\((#\w+),\s*(#\w+)\)", block("@layer parts"))
    assert len(told) >= 4
    weak = {
        name: round(contrast(colour((light, dark)[THEMES.index(theme)]), plain["sheet"]), 2)
        for name, light, dark in told
        if contrast(colour((light, dark)[THEMES.index(theme)]), plain["sheet"]) < NORMAL
    }
    assert weak == {}


@pytest.mark.parametrize("theme", THEMES)
def test_the_focus_ring_can_be_seen(theme: str) -> None:
    plain, by_class = papers(theme)
    assert re.search(r":focus-visible \{ outline: 2px solid var\(--accent\)", block("@layer base"))
    shades = [plain["paper"], plain["sheet"], *(told["fill"] for told in by_class.values() if "fill" in told)]
    assert min(contrast(plain["accent"], one) for one in shades) >= LINES


def test_every_colour_has_a_light_and_a_dark_value() -> None:
    """Outside of print, which is on white paper."""
    screen = SHEET.replace(block("@media print"), "")
    alone = re.sub(r"light-dark\([^()]*\)", "", screen)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![\w-]*\s*[,{])", alone) == []


def test_every_custom_property_that_is_used_is_set() -> None:
    used = set(re.findall(r"var\(--([\w-]+)", SHEET))
    assert used - set(re.findall(r"--([\w-]+):", SHEET)) == set()


def test_every_sign_has_a_hue() -> None:
    _, by_class = papers("light")
    assert set(by_class) >= {sign.value for sign in StatusLabel} - {StatusLabel.NOT_RUN.value}


def test_the_sheet_asks_nobody_else_and_moves_nothing() -> None:
    assert all(not re.match(r"[\"']?(\w+:|//)", told) for told in re.findall(r"url\(([^)]*)", SHEET))
    assert "@import" not in SHEET
    reduced = block("@media (prefers-reduced-motion: reduce)")
    assert "animation: none !important" in reduced
    assert "transition: none !important" in reduced


@pytest.mark.parametrize(
    "query",
    ["(prefers-contrast: more)", "(forced-colors: active)", "(prefers-reduced-motion: reduce)", "print"],
)
def test_the_sheet_answers_what_a_reader_asks_of_their_system(query: str) -> None:
    assert f"@media {query}" in SHEET


def test_figures_line_up() -> None:
    assert "font-variant-numeric: tabular-nums" in block("@layer base")
