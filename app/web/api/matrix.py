"""`/api/v1/matrix`: every cell of a selection, not_run ones too. Exact builds: Pythons are never folded here."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from app.domain.matrix import Columns
from app.store.reads import load_hardware
from app.web.selection import MatrixQuery, Names, known_classes, select
from app.web.shapes.matrix import MatrixBody, matrix_body
from app.web.visit import Visiting

router = APIRouter()


class MatrixApiQuery(MatrixQuery, extra="forbid"):
    """A misspelt parameter would silently widen the answer, so it is refused."""

    hardware: Annotated[Names, Field(description="Hardware classes; none means every measured one")]
    columns: Annotated[
        Columns,
        Field(
            description="Which builds, where none are named. Each comes with the other Pythons it was measured with; "
            "one that was not is listed where it is named"
        ),
    ] = Columns.ALL


@router.get("/matrix", response_model=MatrixBody)
def matrix(visit: Visiting, query: Annotated[MatrixApiQuery, Query()]) -> Response:
    with visit.reading() as session:
        classes = known_classes(query.hardware, load_hardware(session))
        selection = select(session, query, classes, query.columns)
    cells = (cell for class_ in classes for issue in selection.issues for cell in selection.rows[issue.id, class_])
    builds = (build for column in selection.columns for build in column.builds)
    return visit.json(matrix_body(selection.issues, builds, cells, visit.now))
