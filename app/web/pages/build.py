"""`/builds/{id}`: what this build is, what fails on it, and what of that has a cure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from app.domain.build import Build
from app.domain.history import is_release
from app.domain.issue import Issue
from app.domain.matrix import Tally, stale_cells, tally
from app.domain.verdict import Cell, is_stale
from app.store.attempts import Installed, load_installed
from app.store.reads import load_cells, load_hardware, load_issues
from app.web.addresses import build_address, cell_address, issue_address, line_feed, part
from app.web.finding import find_build
from app.web.selection import Words, one_class
from app.web.signs import GRAVEST_FIRST, WORDS, Sign, cures_of, sign_of
from app.web.squares import Choice
from app.web.visit import API, Visit, Visiting

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Cure:
    """A workaround that helps here, and where it stands with its snippet."""

    title: str
    address: str


@dataclass(frozen=True)
class IssueLine:
    """One issue on this build; `cures` are the workarounds that help here."""

    issue: Issue
    title: str
    address: str
    cell: Cell
    cell_address: str
    cures: tuple[Cure, ...]
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
    comparisons: tuple[Choice, ...]
    upgrade_address: str
    feed_address: str
    installed: Installed | None
    command: str
    json_address: str


@router.get("/builds/{build}")
def build(visit: Visiting, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    with visit.reading() as session:
        found, builds = find_build(session, build)
        measured = load_hardware(session)
        class_ = one_class(hardware, measured)
        issues = load_issues(session)
        stored = load_cells(session, builds=[found.id], hardware=[class_])
        installed = load_installed(session, [cell.evidence for cell in stored if cell.evidence])
        known = visit.known(session)
    cells = [known.cell(issue, found, class_) for issue in issues]
    return visit.page("build.html", build_page(visit, found, builds, issues, cells, measured, installed))


def build_page(  # noqa: PLR0913 - what is known of a build comes from as many tables
    visit: Visit,
    build: Build,
    builds: Mapping[str, Build],
    issues: Sequence[Issue],
    cells: Sequence[Cell],
    measured: Sequence[str],
    installed: Installed | None,
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
        comparisons=tuple(_comparisons(visit, build, builds, hardware)),
        upgrade_address=f"/upgrade?{urlencode({'from': build.id, 'hardware': hardware})}",
        feed_address=line_feed(build.minor),
        installed=installed,
        command=f"knowngood run --builds {build.id} --hardware {hardware}",
        json_address=f"{API}{own}",
    )


def _line(visit: Visit, issue: Issue, cell: Cell, build: Build) -> IssueLine:
    helping = set(cures_of(cell))
    address = issue_address(issue.id, build=build.id, hardware=cell.hardware)
    return IssueLine(
        issue=issue,
        title=visit.in_language(issue.title, issue.title_zh),
        address=address,
        cell=cell,
        cell_address=cell_address(cell.issue, cell.build, cell.hardware),
        cures=tuple(
            Cure(visit.in_language(one.title, one.title_zh), f"{address}#cure-{part(one.id)}")
            for one in issue.workarounds
            if one.id in helping
        ),
        is_stale=is_stale(cell, build, visit.now),
    )


def _beside(build: Build, builds: Mapping[str, Build], hardware: str, step: int) -> Choice | None:
    """The next build of the same Python."""
    ids = [one.id for one in builds.values() if one.python == build.python]
    at = ids.index(build.id) + step
    return Choice(ids[at], build_address(ids[at], hardware), is_chosen=False) if 0 <= at < len(ids) else None


def _comparisons(visit: Visit, build: Build, builds: Mapping[str, Build], hardware: str) -> Iterator[Choice]:
    """With the release before it and the one after it, the older one first; a foreign Triton with its own."""
    line = [one for one in builds.values() if is_release(one) and one.python == build.python]
    before = [one for one in line if one.build_id < build.build_id][-1:]
    after = [one for one in line if one.build_id > build.build_id][:1]
    for other in (*before, *after):
        pair = sorted((build, other), key=lambda one: one.build_id)
        asked = {"a": pair[0].id, "b": pair[1].id, "hardware": hardware}
        label = visit.say("compare with {build}", build=other.id)
        yield Choice(label, f"/compare?{urlencode(asked)}", is_chosen=False)
