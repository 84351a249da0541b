"""Which builds are compared, for which issues: one set of parameters and one reading for page, JSON and Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import asked_build
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.matrix.overview.selection import Names, Words, named_issues, one_class, read_asked, refuse_unknown
from knowngood.move.compare.comparison import Comparison, compare
from knowngood.query.evaluate import View, matching
from knowngood.query.parser import LONGEST as LONGEST_QUERY
from knowngood.query.parser import Query
from knowngood.store.engine import Session
from knowngood.store.queries import load_builds, load_hardware, load_issues
from knowngood.web.errors import NotFound
from knowngood.web.urls import compare_address


class Narrowed(BaseModel):
    """Which issues are compared, and on which hardware. Everything left out means all of it."""

    hardware: Annotated[Words, Field(description="One hardware class; the CPU class where none is named")] = ""
    issues: Annotated[Names, Field(description="Issue ids, repeated or comma-separated; `all` for all of them")]
    component: Annotated[Words, Field(description="Only issues of this component")] = ""
    q: Annotated[
        str,
        Field(
            max_length=LONGEST_QUERY,
            description="A query of issues and of these two builds: `affected` keeps what fails on "
            "either. Bare words stand in an issue's id, title or component",
        ),
    ] = ""

    @property
    def is_filtered(self) -> bool:
        return bool(self.issues or self.component or self.q)

    @property
    def said(self) -> Mapping[str, str]:
        """As an address says it."""
        told = {"hardware": self.hardware, "issues": ",".join(self.issues), "component": self.component, "q": self.q}
        return {name: value for name, value in told.items() if value}


class CompareQuery(Narrowed):
    a: Annotated[Words, Field(description="The build that is left: its id, or a version of torch")]
    b: Annotated[Words, Field(description="The build that is moved to")]


@dataclass(frozen=True)
class CompareOptions:
    """The choices of a comparison: all builds and issues, the measured classes, and what was measured on the one
    shown.
    """

    builds: tuple[Build, ...]
    issues: tuple[Issue, ...]
    classes: tuple[str, ...]
    hardware: str


def load_options(session: Session, hardware: str) -> CompareOptions:
    """Raises InvalidParameter for a class that was never measured."""
    measured = load_hardware(session)
    return CompareOptions(load_builds(session), load_issues(session), measured, one_class(hardware, measured))


def comparison_of(known: Known, room: CompareOptions, query: CompareQuery, now: datetime) -> Comparison:
    """Raises NotFound for builds we do not have, with the nearest ones, and InvalidParameter for issues."""
    before = _found(query.a, "a", room, query)
    after = _found(query.b, "b", room, query)
    issues = _wanted(room.issues, query)
    asked = read_asked(query.q)
    return _narrowed(compare(issues, before, after, room.hardware, known, now=now), asked, now)


def _narrowed(compared: Comparison, asked: Query, now: datetime) -> Comparison:
    """The pairs that a query selects, which looks at them as at a matrix of these two columns."""
    sides = {compared.before.id: compared.before, compared.after.id: compared.after}
    builds = tuple(sorted(sides.values(), key=lambda build: build.build_id))
    cells = {pair.issue.id: {compared.before.id: pair.before, compared.after.id: pair.after} for pair in compared.pairs}
    issues = [pair.issue for pair in compared.pairs]
    found = matching(asked, issues, View(builds, now), lambda issue: [[cells[issue.id][one.id] for one in builds]])
    ids = {issue.id for issue in found}
    return replace(compared, pairs=tuple(pair for pair in compared.pairs if pair.issue.id in ids))


def _wanted(issues: Sequence[Issue], query: Narrowed) -> tuple[Issue, ...]:
    named = named_issues(issues, query.issues)
    if query.component:
        refuse_unknown("component", [query.component], {issue.component for issue in issues}, "component")
    return tuple(issue for issue in named if not query.component or issue.component == query.component)


def _found(text: str, side: str, room: CompareOptions, query: CompareQuery) -> Build:
    """The build that the reader wrote. A refusal leads to the same comparison with the nearest ones in its place."""
    try:
        return asked_build(text, {build.id: build for build in room.builds})
    except UnknownBuild as error:
        sides = {"before": query.a, "after": query.b}
        changed = "before" if side == "a" else "after"
        near = [(one, compare_address(**{**sides, changed: one}, **query.said)) for one in error.nearest]
        offered = near or [("choose two builds", compare_address(**query.said))]
        raise NotFound(f"{side}: {error.problem}", offered) from None
