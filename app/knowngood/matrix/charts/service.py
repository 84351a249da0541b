"""The question that page, JSON and CSV of the charts have in common."""

from typing import Annotated

from pydantic import BaseModel, Field

from knowngood.domain.verdicts.known import Known
from knowngood.matrix.charts.lifespans import Lifespan, lifespans_of
from knowngood.matrix.overview.selection import Names, known_classes, named_issues


class ChartsQuery(BaseModel):
    hardware: Annotated[
        Names, Field(description="Hardware classes, or names of GPUs such as H100; none means every measured one")
    ]

    def classes(self, known: Known) -> tuple[str, ...]:
        """Raises InvalidParameter for one that was never measured."""
        return known_classes(self.hardware, known.hardware)


class LifespansQuery(ChartsQuery):
    issues: Annotated[Names, Field(description="Issue ids, repeated or comma-separated; all of them unless said")]


def lifespans_asked(known: Known, query: LifespansQuery) -> tuple[Lifespan, ...]:
    """One class after the other. Raises InvalidParameter for names we do not have."""
    issues = named_issues(tuple(known.issues.values()), query.issues)
    return tuple(row for class_ in query.classes(known) for row in lifespans_of(issues, known, class_).rows)
