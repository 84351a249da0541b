"""`/api/v1/issues`: the catalogue, and one issue with its history and measured cells."""

from fastapi import APIRouter, Response

from app.domain.history import history_of
from app.store.reads import load_builds, load_cells, load_issues
from app.web.finding import find_issue
from app.web.shapes.issues import IssueDetailBody, IssuesBody, issue_body, issue_detail
from app.web.visit import Visiting

router = APIRouter()


@router.get("/issues", response_model=IssuesBody)
def issues(visit: Visiting) -> Response:
    with visit.reading() as session:
        found = load_issues(session)
    return visit.json(IssuesBody(issues=[issue_body(issue) for issue in found]))


@router.get("/issues/{issue}", response_model=IssueDetailBody)
def issue(visit: Visiting, issue: str) -> Response:
    with visit.reading() as session:
        found = find_issue(session, issue)
        builds = {build.id: build for build in load_builds(session)}
        cells = load_cells(session, issues=[found.id])
    known = [cell for cell in cells if cell.build in builds]
    histories = {
        hardware: history_of([(builds[cell.build], cell.verdict) for cell in known if cell.hardware == hardware])
        for hardware in sorted({cell.hardware for cell in known})
    }
    return visit.json(issue_detail(found, histories, known, builds, visit.now))
