"""Remarks on every issue, read from the store: for the page, its twin and whoever else asks."""

from app.domain.build import Build
from app.domain.hygiene import Remark, remarks_on
from app.domain.issue import Issue
from app.domain.verdict import Cell
from app.store.reads import load_builds, load_cells, load_issues
from app.store.session import Session


def load_remarks(session: Session) -> list[tuple[Issue, Remark]]:
    """In the order of issues, and within one as `remarks_on` has them."""
    builds = {build.id: build for build in load_builds(session)}
    cells: dict[str, list[tuple[Build, Cell]]] = {}
    for cell in load_cells(session, builds=builds):
        cells.setdefault(cell.issue, []).append((builds[cell.build], cell))
    return [(issue, remark) for issue in load_issues(session) for remark in remarks_on(issue, cells.get(issue.id, ()))]
