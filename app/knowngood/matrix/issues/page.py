"""`/issues/{id}`: whether it fails on your build and what to do about it; then where it fails, and the evidence."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.issue import BASELINE, Issue, LinkKind
from knowngood.domain.message import clauses
from knowngood.domain.verdicts.claims import doubts_about, held_claims
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import (
    Columns,
    choose_columns,
    fold,
    helped_elsewhere,
    isa_difference,
    rows_of,
    stale_cells,
    telling_build,
    telling_class,
)
from knowngood.domain.verdicts.status import help_on
from knowngood.domain.verdicts.verdict import FAILING, Cell
from knowngood.domain.verdicts.workaround_cost import Cost
from knowngood.matrix.evidence.reproduce import Subject, commands
from knowngood.matrix.evidence.service import how_known
from knowngood.matrix.issues.cells import make_heads, sections_of, sort_evidence
from knowngood.matrix.issues.workarounds import costs_on, elsewhere_of, workarounds_of
from knowngood.matrix.lookups import find_issue
from knowngood.matrix.overview.selection import Words, builds_or_wheels, named_builds, one_class
from knowngood.store.engine import Session, reading
from knowngood.store.evidence.attempt_codec import AttemptSummary, load_glances, load_timed
from knowngood.store.queries import load_builds
from knowngood.web.auth.principal import is_from_elsewhere
from knowngood.web.errors import InvalidParameter, NotFound
from knowngood.web.html.grid import Choice, heads_of, squares_of
from knowngood.web.my_build import remember
from knowngood.web.request_context import Context, RequestContext, uncached
from knowngood.web.urls import SEARCH, asking, issue_address

router = APIRouter(include_in_schema=False)

_ATTEMPTS_SHOWN = 15


@router.get("/issues/{issue}")
def issue(
    context: Context,
    issue: str,
    build: Annotated[Words, Query()] = "",
    hardware: Annotated[Words, Query()] = "",
    sort: Annotated[Words, Query()] = "",
) -> Response:
    def load(session: Session) -> Callable[[], dict[str, Any]]:
        row = find_issue(session, issue)
        known = context.known(session)
        cells = known.stored(row.id)
        mine = None if build else context.mine.build_among(known.builds)
        own_class = "" if build else context.mine.hardware_among({cell.hardware for cell in cells})
        chosen, cell = _choose(row, known, cells, mine.id if mine else build, hardware or own_class)
        costs = costs_on(row, cell, load_timed(session, row.id, chosen.id, cell.hardware))
        attempts = load_glances(session, row.id, _ATTEMPTS_SHOWN)
        is_remembered = mine is not None and not context.mine.is_shared
        subject = Subject(row, chosen, cell.hardware)
        page = partial(issue_page, context, known, subject, costs, attempts)
        return partial(page, is_remembered=is_remembered, wanted=build, sort=sort)

    return context.answer(load, lambda page: context.page("issue.html", page()))


@router.get("/i/{issue}")
def short(context: Context, issue: str) -> Response:
    """Lead from a short address, such as a program's warning may hold, to the page of its issue: `/i/151290`."""
    try:
        with reading(context.state.engine) as session:
            return uncached(RedirectResponse(issue_address(find_issue(session, issue).id), HTTPStatus.FOUND))
    except NotFound as error:
        search = ("search for it", asking(SEARCH, q=issue), "\u641c\u7d22\u5b83")
        raise NotFound(str(error), [*error.nearest, search], error.thread) from None


@router.get("/issues/{issue}/use")
def use(
    request: Request,
    context: Context,
    issue: str,
    build: Annotated[Words, Query()] = "",
    hardware: Annotated[Words, Query()] = "",
) -> Response:
    """Keep the reader's build in a cookie and lead to its workarounds. A link: it works without scripts.

    No build means none in particular: what was kept is forgotten. A link of another site leads there and keeps nothing.
    """
    with reading(context.state.engine) as session:
        id_ = named_builds(load_builds(session), [build], "build")[0].id if build else ""
    response = RedirectResponse(
        f"{issue_address(issue, build=id_, hardware=hardware)}#use",
        HTTPStatus.SEE_OTHER,
        headers={"Cache-Control": "no-store"},
    )
    if not is_from_elsewhere(request):
        remember(response, build=id_)
    return response


@router.get("/issues/{issue}/repro.py")
def repro(context: Context, issue: str) -> Response:
    return context.answer(
        lambda session: find_issue(session, issue),
        lambda row: context.text(row.script, "text/x-python; charset=utf-8", f"{row.id}.py"),
    )


def _choose(issue: Issue, known: Known, cells: Sequence[Cell], wanted: str, class_: str) -> tuple[Build, Cell]:
    """The build that the page is about, and its cell. `wanted` and `class_` are what the reader asks for; empty: the
    newest failing build, the class it failed on.
    """
    measured = tuple(dict.fromkeys(sorted(cell.hardware for cell in cells)))
    hardware = one_class(class_, measured) if class_ else telling_class(cells, measured)
    builds = known.builds
    build = (
        builds_or_wheels(builds.values(), [wanted], "build")[0] if wanted else telling_build(builds, cells, hardware)
    )
    if build is None:
        raise InvalidParameter("the catalogue has no builds yet; run `knowngood up`")
    return build, known.cell(issue, build, hardware)


def issue_page(
    context: RequestContext,
    known: Known,
    chosen: Subject,
    costs: Mapping[str, Cost],
    attempts: Sequence[AttemptSummary],
    *,
    is_remembered: bool,
    wanted: str,
    sort: str,
) -> dict[str, Any]:
    """Everything templates/issue.html shows. `is_remembered` where the reader chose the build before, on this or
    another page. `wanted` is the build that the address asks for, `sort` the column of the evidence. `help` says which
    form the box has that says what to do, `shown` is the workaround in it, and `works_on` where that works, if it is
    not verified here.
    """
    issue, build, hardware = chosen.issue, chosen.build, chosen.hardware
    builds, cells, cell = known.builds, known.stored(issue.id), known.cell(issue, build, hardware)
    measured = tuple(dict.fromkeys(sorted(cell.hardware for cell in cells)))
    releases = choose_columns(builds.values(), {measured_cell.build for measured_cell in cells}, Columns.RELEASES)
    offered = choose_columns(builds.values(), {measured_cell.build for measured_cell in cells}, Columns.ALL)
    workarounds, works_on = workarounds_of(issue, cell, known, context, costs), helped_elsewhere(issue, cell, known)
    strips = _strips(context, issue, releases, measured or (hardware,), cells, known)

    def address_of(order: str) -> str:
        class_ = hardware if wanted else ""
        return f"{asking(issue_address(issue.id), build=wanted, hardware=class_, sort=order)}#evidence"

    return {
        "issue": issue,
        "strips": strips,
        "isas": isa_difference(issue, known),
        "build": build,
        "cell": cell,
        "builds": tuple({column.wheel.id: column.wheel for column in (*offered[::-1], build)}.values()),
        "classes": tuple(
            Choice(plain_name(class_), issue_address(issue.id, build=wanted, hardware=class_), class_ == hardware)
            for class_ in dict.fromkeys([*measured, hardware])
        ),
        "help": help_on(cell),
        **_amounts(releases, hardware, known.stored(issue.id)),
        "fix": known.fix_of(issue.id, build, hardware) if cell.verdict in FAILING else None,
        "workarounds": workarounds,
        "works_on": works_on[1] if works_on else None,
        "shown": next((one for one in workarounds if not works_on or one.id == works_on[0].id), None),
        "elsewhere": elsewhere_of(issue, build, cell),
        "known": how_known(cell.basis, context.language) if cell.basis else "",
        "claims": held_claims(issue, [(builds[measured_cell.build], measured_cell) for measured_cell in cells]),
        "links": {kind: tuple(link for link in issue.links if link.kind is kind) for kind in LinkKind},
        "evidence": sort_evidence(cells, sort),
        "stale": stale_cells(cells, builds, context.now),
        "evidence_heads": make_heads(context, sort, address_of, has_classes=len(measured) > 1),
        "attempts": attempts,
        "is_remembered": is_remembered,
        "commands": commands(chosen, context.base),
        "sections": sections_of(context, issue, known, workarounds) if context.is_file else None,
    }


def _amounts(releases: Sequence[Build], hardware: str, cells: Iterable[Cell]) -> dict[str, Any]:
    """The baseline's amounts on each release, on one class, oldest first, and the largest of all."""
    names = {build.id: build.build_id.release for build in releases}
    found = [
        ((names[cell.build], amount.key), amount)
        for cell in sorted(cells, key=lambda cell: list(names).index(cell.build) if cell.build in names else -1)
        for amount in cell.amounts
        if cell.build in names and cell.hardware == hardware and amount.arm == BASELINE
    ]
    return {"amounts": found, "most": max((max(one.value, one.most) for _, one in found), default=0)}


def _strips(
    context: RequestContext,
    issue: Issue,
    chosen: Sequence[Build],
    classes: Sequence[str],
    cells: Sequence[Cell],
    known: Known,
) -> list[dict[str, Any]]:
    """The line of releases on each class: its squares, and its history as a sentence with upstream's claims against it.
    All have the same columns.
    """
    columns = fold(chosen, classes, known)
    heads = heads_of(columns, {cell.build for cell in cells})
    rows = rows_of([issue], columns, classes, known)
    strips = list[dict[str, Any]]()
    for hardware in classes:
        row = rows[issue.id, hardware]
        squares = squares_of(row, heads, stale_cells(row, known.builds, context.now))
        history = known.history(issue.id, hardware)
        sentence = clauses([history.sentence, *doubts_about(issue, history)])
        strips.append({"hardware": hardware, "history": history, "sentence": sentence, "squares": squares})
    return strips
