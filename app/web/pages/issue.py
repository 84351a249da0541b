"""`/issues/{id}`: where it fails, what to do about it on your build, what others claim, and the evidence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response
from markupsafe import Markup

from app.domain.build import DEFAULT_PYTHON, Build, BuildId
from app.domain.history import FAILING, History, history_of, is_release
from app.domain.issue import Issue, Link, LinkKind
from app.domain.matrix import Columns, choose_columns, complete, fold, rows_of, stale_cells
from app.domain.verdict import Cell, is_stale
from app.store.reads import load_builds, load_cells
from app.web.addresses import attempt_address, cell_address, issue_address
from app.web.commands import Commands, Subject, commands
from app.web.errors import BadQuestion
from app.web.finding import find_issue
from app.web.prose import markdown, python
from app.web.remedies import Elsewhere, Remedy, elsewhere_of, remedies_of
from app.web.selection import Words, named_builds, one_class
from app.web.signs import WORDS, Sign, sign_of
from app.web.squares import Choice, Square, heads_of, squares_of
from app.web.visit import API, Visit, Visiting

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Strip:
    """The line of releases on one hardware class, with the sentence of its history."""

    hardware: str
    history: History
    sentence: str
    squares: tuple[Square, ...]


@dataclass(frozen=True)
class EvidenceLine:
    """One measured cell."""

    cell: Cell
    address: str
    evidence_address: str
    sign: Sign
    word: str
    is_stale: bool


@dataclass(frozen=True)
class IssuePage:
    issue: Issue
    title: str
    summary: Markup
    strips: tuple[Strip, ...]
    build: Build
    builds: tuple[str, ...]
    hardware: str
    classes: tuple[Choice, ...]
    cell: Cell
    cell_address: str
    sign: Sign
    word: str
    remedies: tuple[Remedy, ...]
    elsewhere: tuple[Elsewhere, ...]
    helping: int
    links: Mapping[LinkKind, tuple[Link, ...]]
    evidence: tuple[EvidenceLine, ...]
    script: Markup
    repro_address: str
    commands: Commands
    json_address: str


@router.get("/issues/{issue}")
def issue(
    visit: Visiting, issue: str, build: Annotated[Words, Query()] = "", hardware: Annotated[Words, Query()] = ""
) -> Response:
    with visit.reading() as session:
        found = find_issue(session, issue)
        builds = {one.id: one for one in load_builds(session)}
        cells = load_cells(session, issues=[found.id])
    return visit.page("issue.html", issue_page(visit, found, builds, cells, build, hardware))


@router.get("/issues/{issue}/repro.py")
def repro(visit: Visiting, issue: str) -> Response:
    with visit.reading() as session:
        found = find_issue(session, issue)
    return visit.text(found.script, "text/x-python; charset=utf-8", f"{found.id}.py")


def issue_page(
    visit: Visit, issue: Issue, builds: Mapping[str, Build], cells: Sequence[Cell], wanted: str, class_: str
) -> IssuePage:
    """`wanted` and `class_` are what the address asks for; empty: the newest failing build, the class it failed on."""
    cells = [cell for cell in cells if cell.build in builds]
    measured = tuple(dict.fromkeys(sorted(cell.hardware for cell in cells)))
    hardware = one_class(class_, measured) if class_ else _telling_class(cells, measured)
    build = named_builds(builds.values(), [wanted], "build")[0] if wanted else _telling_build(builds, cells, hardware)
    cell = complete([issue], [build], [hardware], cells)[issue.id, build.id, hardware]
    known = {one.build for one in cells}
    releases = choose_columns(builds.values(), known, Columns.RELEASES)
    remedies = remedies_of(issue, build, cell, visit)
    return IssuePage(
        issue=issue,
        title=visit.in_language(issue.title, issue.title_zh),
        summary=markdown(visit.in_language(issue.summary, issue.summary_zh)),
        strips=_strips(visit, issue, releases, measured or (hardware,), cells, builds),
        build=build,
        builds=tuple(one.id for one in choose_columns(builds.values(), {*known, build.id}, Columns.ALL))[::-1],
        hardware=hardware,
        classes=tuple(
            Choice(one, issue_address(issue.id, build=wanted, hardware=one), one == hardware)
            for one in dict.fromkeys([*measured, hardware])
        ),
        cell=cell,
        cell_address=cell_address(issue.id, build.id, hardware),
        sign=sign_of(cell),
        word=visit.say(WORDS[sign_of(cell)]),
        remedies=remedies,
        elsewhere=elsewhere_of(issue, build, cell, visit),
        helping=sum(1 for remedy in remedies if remedy.rank),
        links=_links(issue),
        evidence=_evidence(visit, cells, builds),
        script=python(issue.script),
        repro_address=f"{issue_address(issue.id)}/repro.py",
        commands=commands(Subject(issue, build, hardware), visit.base),
        json_address=f"{API}{issue_address(issue.id)}",
    )


def _telling_class(cells: Iterable[Cell], measured: Sequence[str]) -> str:
    """The first class it fails on: that is what a reader came for."""
    failing = sorted(cell.hardware for cell in cells if cell.verdict in FAILING)
    return one_class("", failing or measured)


def _telling_build(builds: Mapping[str, Build], cells: Sequence[Cell], hardware: str) -> Build:
    """The newest plain build it fails on; else the newest measured; else the newest there is."""
    here = [cell for cell in cells if cell.hardware == hardware]
    failing = {cell.build for cell in here if cell.verdict in FAILING}
    pool = failing or {cell.build for cell in here} or set(builds)
    if not pool:
        raise BadQuestion("the catalogue has no builds yet; run `knowngood up`")
    return max((builds[id_] for id_ in pool), key=_prominence)


def _prominence(build: Build) -> tuple[bool, BuildId, bool, BuildId]:
    """Releases before other wheels, newer ones before older, the default Python before its twins."""
    name = build.build_id
    return is_release(build), name.apart_from_python, build.python == DEFAULT_PYTHON, name


def _strips(
    visit: Visit,
    issue: Issue,
    chosen: Sequence[Build],
    classes: Sequence[str],
    cells: Sequence[Cell],
    builds: Mapping[str, Build],
) -> tuple[Strip, ...]:
    """One below the other, and so of the same columns: a contradiction on one hardware class unfolds them for all."""
    columns = fold(chosen, cells)
    heads = heads_of(columns, {cell.build for cell in cells})
    rows = rows_of([issue], columns, classes, cells)
    strips = []
    for hardware in classes:
        here = [cell for cell in cells if cell.hardware == hardware]
        row = rows[issue.id, hardware]
        squares = squares_of(row, heads, stale_cells(row, builds, visit.now))
        history = history_of([(builds[cell.build], cell.verdict) for cell in here])
        strips.append(Strip(hardware, history, _lead(history, hardware, len(classes)), squares))
    return tuple(strips)


def _lead(history: History, hardware: str, classes: int) -> str:
    """`Fails in 2.7.0 to 2.7.1, fixed in (2.7.1, 2.8.0]`; with the class in front where there are several."""
    sentence = history.sentence
    return f"{hardware}: {sentence}" if classes > 1 else f"{sentence[0].upper()}{sentence[1:]}"


def _links(issue: Issue) -> dict[LinkKind, tuple[Link, ...]]:
    return {kind: tuple(link for link in issue.links if link.kind is kind) for kind in LinkKind}


def _evidence(visit: Visit, cells: Sequence[Cell], builds: Mapping[str, Build]) -> tuple[EvidenceLine, ...]:
    """Newest releases first, one hardware class after the other."""
    newest_first = sorted(cells, key=lambda cell: builds[cell.build].build_id, reverse=True)
    return tuple(
        _line(visit, cell, builds[cell.build]) for cell in sorted(newest_first, key=lambda cell: cell.hardware)
    )


def _line(visit: Visit, cell: Cell, build: Build) -> EvidenceLine:
    sign = sign_of(cell)
    return EvidenceLine(
        cell=cell,
        address=cell_address(cell.issue, cell.build, cell.hardware),
        evidence_address=attempt_address(cell.evidence) if cell.evidence else "",
        sign=sign,
        word=visit.say(WORDS[sign]),
        is_stale=is_stale(cell, build, visit.now),
    )
