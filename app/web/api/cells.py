"""`/api/v1/cells/{issue}/{build}`: one cell with its evidence."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.web.evidence import cell_sentence, load_cell_evidence
from app.web.selection import Words
from app.web.shapes.cells import CellDetailBody, cell_detail
from app.web.visit import Visiting

router = APIRouter()


@router.get("/cells/{issue}/{build}", response_model=CellDetailBody)
def cell(visit: Visiting, issue: str, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    with visit.reading() as session:
        found = load_cell_evidence(session, issue, build, hardware)
    return visit.json(cell_detail(found.cell, found.build, visit.now, cell_sentence(found.cell), found.attempts))
