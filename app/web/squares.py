"""Cells as drawn, and the columns they stand in: shared by the matrix and by the strips of an issue."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup, escape

from app.domain.build import DEFAULT_PYTHON, Build
from app.domain.matrix import CellKey
from app.domain.verdict import Cell, Verdict
from app.web.addresses import build_address, cell_address
from app.web.signs import WORDS, Sign, sign_of


@dataclass(frozen=True)
class Choice:
    """One link of a switch."""

    label: str
    address: str
    is_chosen: bool


@dataclass(frozen=True)
class Head:
    """One column. `label` names it in a word or two where there is no room for a table."""

    id: str
    address: str
    release: str
    cuda: str
    triton: str
    python: str
    label: str
    is_mismatched: bool
    starts_minor: bool


class Square(NamedTuple):
    """One cell as drawn; thousands are made at once, so it holds no text of its own but `2/6` where it is flaky."""

    issue: str
    hardware: str
    head: Head
    sign: Sign
    is_stale: bool
    text: str


def heads_of(builds: Sequence[Build]) -> tuple[Head, ...]:
    before = ["", *(build.minor for build in builds)]
    return tuple(_head(build, minor) for minor, build in zip(before, builds, strict=False))


def _head(build: Build, minor_before: str) -> Head:
    release = build.build_id.release
    cuda = cuda_of(build)
    python = "" if build.python == DEFAULT_PYTHON else f"py{build.python}"
    triton = f"Triton {build.triton}" if build.is_mismatched else ""
    beside = ("" if build.origin == "default" else cuda, triton, python)
    return Head(
        id=build.id,
        address=build_address(build.id),
        release=release,
        cuda=cuda,
        triton=build.triton or "",
        python=python,
        label=" ".join(part for part in (release, *beside) if part),
        is_mismatched=build.is_mismatched,
        starts_minor=build.minor != minor_before,
    )


def cuda_of(build: Build) -> str:
    """`cu126` as wheels are tagged; `cpu` where the wheel has no CUDA."""
    return f"cu{build.cuda.replace('.', '')}" if build.cuda else "cpu"


def squares_of(cells: Iterable[Cell], heads: Iterable[Head], stale: Collection[CellKey]) -> tuple[Square, ...]:
    """One square per column."""
    return tuple(
        _square(cell, head, (cell.issue, cell.build, cell.hardware) in stale)
        for cell, head in zip(cells, heads, strict=True)
    )


def _square(cell: Cell, head: Head, is_stale: bool) -> Square:  # noqa: FBT001 - called thousands of times
    sign = sign_of(cell)
    return Square(cell.issue, cell.hardware, head, sign, is_stale, _k_of_n(cell) if sign is Sign.FLAKY else "")


def drawn(squares: Iterable[Square], tag: str, say: Callable[[str], str]) -> Markup:
    """A row of squares, each in its `tag` (`td`, `li`). A filter for templates, which draw thousands of cells at once:
    of 4000 cells a macro each took 53 ms, a loop in the template 41 ms, this 11 ms (2026-11, two shared cores).
    """
    words = {sign: (escape(say(word)), escape(say("old") + ": " + say(word))) for sign, word in WORDS.items()}
    return Markup("".join(_drawn(one, tag, words[one.sign][one.is_stale]) for one in squares))  # noqa: S704 - see _drawn


def _drawn(one: Square, tag: str, word: str) -> str:
    """Its name says verdict, issue and build to those who cannot see the sign. All that is not ours is escaped."""
    stale = " stale" if one.is_stale else ""
    issue, build, label = _escaped(one.issue), _escaped(one.head.id), _escaped(one.head.label)
    return (
        f'<{tag}><a class="q {one.sign.value}{stale}" href="{cell_address(one.issue, one.head.id, one.hardware)}"'
        f' aria-label="{word}: {issue} on {build}" data-label="{label}">'
        f'<svg><use href="#s-{one.sign.value}"/></svg>{one.text}</a></{tag}>'
    )


@lru_cache(maxsize=4096)
def _escaped(text: str) -> str:
    return str(escape(text))


def _k_of_n(cell: Cell) -> str:
    flaky = next((one for one in cell.variants if one.verdict is Verdict.FLAKY), None)
    return f"{flaky.k}/{flaky.n}" if flaky else ""
