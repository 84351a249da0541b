"""`/badge/{issue}.svg` and `/badge/{issue}.json`: one verdict for a README, drawn by us or by shields.io."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.domain.build import Build
from app.domain.history import is_release
from app.domain.matrix import cell_of
from app.domain.verdict import CONCLUSIVE, Cell, is_stale
from app.formats.badge import Badge, badge_of, badge_svg, shields_endpoint, unmeasured_badge
from app.store.reads import load_builds, load_cells, load_hardware
from app.web.finding import find_build, find_issue
from app.web.selection import Words, one_class
from app.web.visit import Visit, Visiting

router = APIRouter(include_in_schema=False)

Asked = Annotated[Words, Query()]


@router.get("/badge/{issue}.svg")
def drawn(visit: Visiting, issue: str, build: Asked = "", hardware: Asked = "") -> Response:
    return visit.text(badge_svg(_badge(visit, issue, build, hardware)), "image/svg+xml", "badge.svg")


@router.get("/badge/{issue}.json")
def endpoint(visit: Visiting, issue: str, build: Asked = "", hardware: Asked = "") -> Response:
    return visit.text(shields_endpoint(_badge(visit, issue, build, hardware)), "application/json", "badge.json")


def _badge(visit: Visit, id_: str, build: str, hardware: str) -> Badge:
    """Without a build, that of the newest release with an answer; without a class, the CPU's or the first with one."""
    with visit.reading() as session:
        issue = find_issue(session, id_)
        cells = load_cells(session, issues=[issue.id])
        answered = dict.fromkeys(cell.hardware for cell in cells if cell.verdict in CONCLUSIVE)
        class_ = one_class(hardware, load_hardware(session) if hardware else tuple(answered))
        on_class = {cell.build: cell for cell in cells if cell.hardware == class_}
        named = find_build(session, build)[0] if build else _newest_answered(load_builds(session), on_class)
    if named is None:
        return unmeasured_badge(issue.id)
    cell = cell_of(issue, named, class_, {(cell.issue, cell.build, cell.hardware): cell for cell in cells})
    return badge_of(cell, named.id.removeprefix("torch-"), is_stale=is_stale(cell, named, visit.now))


def _newest_answered(builds: tuple[Build, ...], cells: Mapping[str, Cell]) -> Build | None:
    answered = (build for build in reversed(builds) if build.id in cells and cells[build.id].verdict in CONCLUSIVE)
    return next((build for build in answered if is_release(build)), None)
