"""`/builds/{id}`: what this build is, what fails on it, and what of that has a cure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.domain.build import Build
from app.domain.issue import Issue
from app.domain.matrix import Tally, complete, stale_cells, tally
from app.domain.verdict import Cell, is_stale
from app.store.reads import load_cells, load_hardware, load_issues
from app.web.addresses import build_address, cell_address, issue_address
from app.web.finding import find_build
from app.web.selection import Words, one_class
from app.web.signs import GRAVEST_FIRST, WORDS, Sign, cures_of, sign_of
from app.web.squares import Choice
from app.web.visit import API, Visit, Visiting

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class IssueLine:
    """One issue on this build; `cures` are titles of the workarounds that help here."""

    issue: Issue
    title: str
    address: str
    cell: Cell
    cell_address: str
    cures: tuple[str, ...]
    is_stale: bool


@dataclass(frozen=True)
class Section:
    sign: Sign
    word: str
    lines: tuple[IssueLine, ...]


@dataclass(frozen=True)
class BuildPage:
    build: Build
    hardware: str
    totals: Tally
    counts: Mapping[Sign, int]
    sections: tuple[Section, ...]
    classes: tuple[Choice, ...]
    pythons: tuple[Choice, ...]
    older: Choice | None
    newer: Choice | None
    json_address: str


@router.get("/builds/{build}")
def build(visit: Visiting, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    with visit.reading() as session:
        found, builds = find_build(session, build)
        measured = load_hardware(session)
        class_ = one_class(hardware, measured)
        issues = load_issues(session)
        stored = load_cells(session, builds=[found.id], hardware=[class_])
    cells = complete(issues, [found], [class_], stored)
    return visit.page("build.html", build_page(visit, found, builds, issues, list(cells.values()), measured))


def build_page(
    visit: Visit,
    build: Build,
    builds: Mapping[str, Build],
    issues: Sequence[Issue],
    cells: Sequence[Cell],
    measured: Sequence[str],
) -> BuildPage:
    """`cells` are those of one hardware class, one per issue; `builds` stand in release order."""
    hardware = cells[0].hardware if cells else one_class("", measured)
    by_id = {issue.id: issue for issue in issues}
    lines: dict[Sign, list[IssueLine]] = {sign: [] for sign in GRAVEST_FIRST}
    for cell in cells:
        lines[sign_of(cell)].append(_line(visit, by_id[cell.issue], cell, build))
    own = build_address(build.id, hardware)
    stale = stale_cells(cells, builds, visit.now)
    return BuildPage(
        build=build,
        hardware=hardware,
        totals=tally(cells, stale),
        counts={sign: len(found) for sign, found in lines.items()},
        sections=tuple(Section(sign, visit.say(WORDS[sign]), tuple(found)) for sign, found in lines.items() if found),
        classes=tuple(
            Choice(class_, build_address(build.id, class_), class_ == hardware)
            for class_ in dict.fromkeys([*measured, hardware])
        ),
        pythons=tuple(
            Choice(one.python, build_address(one.id, hardware), one.id == build.id)
            for one in builds.values()
            if one.build_id.apart_from_python == build.build_id.apart_from_python
        ),
        older=_beside(build, builds, hardware, -1),
        newer=_beside(build, builds, hardware, 1),
        json_address=f"{API}{own}",
    )


def _line(visit: Visit, issue: Issue, cell: Cell, build: Build) -> IssueLine:
    helping = set(cures_of(cell))
    return IssueLine(
        issue=issue,
        title=visit.in_language(issue.title, issue.title_zh),
        address=issue_address(issue.id, build=build.id, hardware=cell.hardware),
        cell=cell,
        cell_address=cell_address(cell.issue, cell.build, cell.hardware),
        cures=tuple(visit.in_language(one.title, one.title_zh) for one in issue.workarounds if one.id in helping),
        is_stale=is_stale(cell, build, visit.now),
    )


def _beside(build: Build, builds: Mapping[str, Build], hardware: str, step: int) -> Choice | None:
    """The next build of the same Python."""
    ids = [one.id for one in builds.values() if one.python == build.python]
    at = ids.index(build.id) + step
    return Choice(ids[at], build_address(ids[at], hardware), is_chosen=False) if 0 <= at < len(ids) else None
