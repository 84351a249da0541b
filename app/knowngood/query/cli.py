"""`knowngood matrix --query` and `knowngood find`: the part of a matrix that a query selects, as the page and the API
select it.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import complete
from knowngood.domain.verdicts.verdict import Cell
from knowngood.query.evaluate import View, columns_left, matching, needs_cells, of_issues
from knowngood.query.parser import BadQuery, Query, parse


@dataclass(frozen=True)
class QueryOption:
    """A query as it was written, and what it means."""

    text: str
    query: Query
    name: str = "--query"

    def columns(self, builds: Iterable[Build], is_shown: Callable[[Build], bool]) -> tuple[Build, ...]:
        """The builds that are left to be shown; all that the query names where those usually shown are not among
        them. Raises BadRequest where there are none.
        """
        try:
            left = columns_left(self.query, tuple(builds))
        except BadQuery as error:
            raise _refusal(self.text, error, self.name) from None
        in_order = sorted(left, key=lambda build: build.build_id)
        return tuple(build for build in in_order if is_shown(build)) or tuple(in_order)

    def issues(
        self,
        issues: Iterable[Issue],
        builds: Sequence[Build],
        hardware: Sequence[str],
        load: Callable[[], Known],
        now: datetime,
    ) -> tuple[Issue, ...]:
        """The issues that are selected, by the cells of these builds and classes; `load` is called if needed."""
        may_match = of_issues(self.query)
        left = tuple(issue for issue in issues if may_match(issue))
        if not needs_cells(self.query):
            return left
        cells = complete(left, builds, hardware, load())

        def lines_of(issue: Issue) -> list[list[Cell]]:
            return [[cells[issue.id, build.id, class_] for build in builds] for class_ in hardware]

        return tuple(matching(self.query, left, View(tuple(builds), now), lines_of))


def read_query_option(text: str, name: str = "--query") -> QueryOption:
    """Read a query. `name` is the option that gave the text. Raises BadRequest, which shows the place."""
    try:
        return QueryOption(text, parse(text), name)
    except BadQuery as error:
        raise _refusal(text, error, name) from None


def _refusal(text: str, error: BadQuery, name: str) -> BadRequest:
    """The words, the query, and a mark below what is wrong."""
    message = f"{name}: {error}"
    if not error.column:
        return BadRequest(message)
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    before, wrong = shown[: error.column - 1], shown[error.column - 1 : error.column - 1 + error.length]
    return BadRequest(f"{message}\n  {shown}\n  {' ' * _width(before)}{'^' * max(1, _width(wrong))}")


def _width(text: str) -> int:
    """Columns on a terminal, where Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
