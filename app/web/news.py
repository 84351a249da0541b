"""What changed lately: the same question for the page, its JSON twin and the feed."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field

from app.domain.changes import Change, changes_of
from app.domain.issue import Issue
from app.store.changes import load_news
from app.store.reads import load_issues
from app.store.session import Session
from app.web.selection import Names, refuse_unknown

_STEPS = 5000  # of single cells, from which at most so many entries are made


class ChangesQuery(BaseModel):
    """Parameters of `/changes`, `/api/v1/changes` and `/feeds/changes.atom`."""

    issues: Annotated[Names, Field(description="Only of these issues, repeated or comma-separated")]
    limit: Annotated[int, Field(ge=1, le=1000, description="At most so many, the newest")] = 100


def load_changes(session: Session, query: ChangesQuery) -> tuple[tuple[Change, ...], Mapping[str, Issue]]:
    """The changes, newest first, and the catalogue's issues by id. Raises BadQuestion for an issue we do not have."""
    issues = {issue.id: issue for issue in load_issues(session)}
    refuse_unknown("issue", query.issues, issues, "issues")
    news = load_news(session, _STEPS, issues=query.issues or None)
    return changes_of(news)[: query.limit], issues
