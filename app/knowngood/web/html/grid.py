"""Cells as drawn, and the columns they stand in: shared by the matrix and by the strips of an issue."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup, escape

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.verdicts.inference import PYTHONS_DIFFER, ground_of
from knowngood.domain.verdicts.matrix import Column
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import Cell, CellPlace, Verdict
from knowngood.domain.vocabulary import StatusLabel
from knowngood.web.html import i18n
from knowngood.web.html.i18n import Language
from knowngood.web.html.status_labels import inferred_word
from knowngood.web.urls import cell_address, page_of_build, part


@dataclass(frozen=True)
class Choice:
    """One link of a switch."""

    label: str
    address: str
    is_chosen: bool


@dataclass(frozen=True)
class ColumnHeader:
    """One column. `label` names it in a word or two where there is no room for a table; `build` is that of its cells.

    `python` is `3.11`, or `3.11/12` where several share the column; of those that were measured, if any was.
    """

    id: str
    build: str
    address: str
    release: str
    cuda: str
    triton: str
    python: str
    label: str
    minor: str
    is_mismatched: bool
    starts_minor: bool


class CellGlyph(NamedTuple):
    """One cell as drawn; thousands are made at once, so it holds no text of its own but `2/6` where it is flaky, and a
    dot where its Pythons differ.

    `build` is the very build that it tells of: in a folded column not always the one that names the column. `ground`
    is what it is inferred from; empty: it was measured.
    """

    issue: str
    hardware: str
    head: ColumnHeader
    build: str
    sign: StatusLabel
    is_stale: bool
    text: str
    ground: str = ""


def heads_of(columns: Sequence[Column], measured: Collection[str]) -> tuple[ColumnHeader, ...]:
    """`measured` are the builds (ids) with a result in this view."""
    before = ["", *(column.head.minor for column in columns)]
    return tuple(_head(column, measured, minor) for minor, column in zip(before, columns, strict=False))


def _head(column: Column, measured: Collection[str], minor_before: str) -> ColumnHeader:
    build = column.head
    release = build.build_id.release
    cuda = cuda_of(build)
    python = "" if column.cell_build.python in {"", DEFAULT_PYTHON} else f"py{build.python}"
    triton = f"Triton {build.triton}" if build.is_mismatched else ""
    beside = ("" if build.origin == "default" else cuda, triton, python)
    return ColumnHeader(
        id=build.id,
        build=column.cell_build.id,
        address=page_of_build(column.cell_build),
        release=release,
        cuda=cuda,
        triton=build.triton or "",
        python=_pythons([member.python for member in column.builds if member.id in measured] or [build.python]),
        label=" ".join(part for part in (release, *beside) if part),
        minor=build.minor,
        is_mismatched=build.is_mismatched,
        starts_minor=build.minor != minor_before,
    )


def _pythons(versions: Sequence[str]) -> str:
    """The Pythons in the width of a column: `3.10`, `3.11/12`, `3.10-13` (by an en dash)."""
    minors = sorted(int(version.partition(".")[2]) for version in versions)
    first, last = minors[0], minors[-1]
    if len(minors) > 2 and last - first == len(minors) - 1:  # noqa: PLR2004 - two are as short by name
        return f"3.{first}\N{EN DASH}{last}"
    return f"3.{'/'.join(str(minor) for minor in minors)}"


def cuda_of(build: Build) -> str:
    """`cu126` as wheels are tagged; `cpu` where the wheel has no CUDA."""
    return f"cu{build.cuda.replace('.', '')}" if build.cuda else "cpu"


def squares_of(
    cells: Iterable[Cell], heads: Iterable[ColumnHeader], stale: Collection[CellPlace]
) -> tuple[CellGlyph, ...]:
    """One square per column."""
    squares = []
    for cell, head in zip(cells, heads, strict=True):
        sign = status_of(cell)
        is_stale = bool(stale) and cell.key in stale
        text = _k_of_n(cell) if sign is _FLAKY else "·" if cell.reason.key == PYTHONS_DIFFER else ""
        ground = ground_of(cell.basis) if cell.basis else ""
        squares.append(CellGlyph(cell.issue, cell.hardware, head, cell.build, sign, is_stale, text, ground))
    return tuple(squares)


_FLAKY = StatusLabel.FLAKY  # a member of an enum is looked up in 0.1 us, and this is asked of every square


def drawn(squares: Iterable[CellGlyph], tag: str, language: Language, *, plain: bool = False, own: str = "") -> Markup:
    """A row of squares, each in its `tag` (`td`, `li`). A filter for templates, which draw thousands of cells at once:
    of 4000 cells a macro each took 53 ms, a loop in the template 41 ms, a text each 11 ms, and texts cast in a mould
    per build and sign as here 4 ms (2026-11, two shared cores).

    With `plain` they hold no drawing: the style sheet writes each sign as a character. Of 30,000 cells a browser then
    makes half as many elements, for 1.1 s of its main thread where drawings took 2.5 s, and 5 to 6 s in a table whose
    every row is laid out (Chromium on a busy machine of two cores, 2026-11-21). Stencils in the style sheet (`mask`)
    took 2.4 s: each was painted anew in every frame.

    `own` is the column (id) of the reader's own build, which is marked.
    """
    marked = f'{tag} class="own"'
    return Markup(  # noqa: S704 - see _mould
        "".join(_drawn(square, marked if square.head.id == own else tag, language, plain=plain) for square in squares)
    )


def _drawn(glyph: CellGlyph, tag: str, language: Language, *, plain: bool) -> str:
    before, between, after = _mould(
        tag, language, glyph.hardware, glyph.build, glyph.head.label, glyph.sign, glyph.ground, glyph.is_stale, plain
    )
    return f"{before}{escape(glyph.issue)}{between}{part(glyph.issue)}{after}{glyph.text}</a>"


@lru_cache(maxsize=16_384)
def _mould(  # noqa: PLR0913 - everything that a square's text is made of, but its issue
    tag: str,
    language: Language,
    hardware: str,
    build: str,
    label: str,
    sign: StatusLabel,
    ground: str,
    is_stale: bool,  # noqa: FBT001 - as all others here: one text per combination
    plain: bool,  # noqa: FBT001
) -> tuple[str, str, str]:
    """The HTML before the issue's name, between there and the issue in the address, and after that.

    The name says verdict, issue and build to those who cannot see the sign. All that is not ours is escaped. In this
    order of attributes, and without the end of the `tag`, which HTML lets everybody leave out, 500 issues x 60 builds
    are 354 kB gzipped, not 454.
    """
    word = inferred_word(sign, ground, language)
    name = f"{i18n.say('old', language)}: {word}" if is_stale else word
    path, _, rest = cell_address(_ISSUE, build, hardware).partition(_ISSUE)
    kind = " ".join(["q", sign.value, *(["inferred"] if ground else []), *(["stale"] if is_stale else [])])
    return (
        f'<{tag} data-label="{escape(label)}"><a class="{kind}" aria-label="{escape(name)}: ',
        f' on {escape(build)}" href="{path}',
        f'{escape(rest)}">{"" if plain else _DRAWING.format(sign.value)}',
    )


_ISSUE = "issue"
_DRAWING = '<svg><use href="#s-{}"/></svg>'


def _k_of_n(cell: Cell) -> str:
    flaky = next((variant for variant in cell.variants if variant.verdict is Verdict.FLAKY), None)
    return f"{flaky.k}/{flaky.n}" if flaky else ""
