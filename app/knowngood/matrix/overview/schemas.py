"""A selection of the matrix as JSON: what `knowngood matrix --json` prints and `/api/v1/matrix` answers."""

from collections.abc import Iterable
from datetime import datetime

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.verdict import Cell
from knowngood.matrix.evidence.cell_schemas import CellBody, cell_body
from knowngood.matrix.issues.build_schemas import BuildBody
from knowngood.matrix.issues.schemas import IssueBody, issue_body
from knowngood.web.json_body import Body


class MatrixBody(Body):
    """Every cell of the selection, not_run ones too; titles and snippets stand once, in `issues`."""

    issues: list[IssueBody]
    builds: list[BuildBody]
    cells: list[CellBody]


class MatrixPageBody(MatrixBody):
    """A part of the matrix: `issues` and `builds` are those of its cells. `next` stands only where it is in parts: the
    address of the cells after these (null: there are none).
    """

    next: str | None = None


def matrix_body(issues: Iterable[Issue], builds: Iterable[Build], cells: Iterable[Cell], now: datetime) -> MatrixBody:
    by_id = {build.id: build for build in builds}
    return MatrixBody(
        issues=[issue_body(issue) for issue in issues],
        builds=[BuildBody.of(build) for build in by_id.values()],
        cells=[cell_body(cell, by_id[cell.build], now) for cell in cells],
    )
