"""`/api/v1/builds`: the columns, and one build with every issue on one hardware class."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.domain.matrix import complete
from app.store.reads import load_builds, load_cells, load_hardware, load_issues
from app.web.finding import find_build
from app.web.selection import Words, one_class
from app.web.shapes.builds import BuildDetailBody, BuildsBody, build_body, build_detail
from app.web.visit import Visiting

router = APIRouter()


@router.get("/builds", response_model=BuildsBody)
def builds(visit: Visiting) -> Response:
    with visit.reading() as session:
        found = load_builds(session)
    return visit.json(BuildsBody(builds=[build_body(build) for build in found]))


@router.get("/builds/{build}", response_model=BuildDetailBody)
def build(visit: Visiting, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    with visit.reading() as session:
        found, _ = find_build(session, build)
        class_ = one_class(hardware, load_hardware(session))
        stored = load_cells(session, builds=[found.id], hardware=[class_])
        cells = complete(load_issues(session), [found], [class_], stored)
    return visit.json(build_detail(found, cells.values(), visit.now))
