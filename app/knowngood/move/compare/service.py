"""A comparison as page, JSON and Markdown are asked for it: one set of parameters, and one reading of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import asked_build
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.verdicts.known import Known
from knowngood.matrix.overview.selection import Names, Words, named_issues, one_class, read_asked, refuse_unknown
from knowngood.move.compare.comparison import Comparison, compare
from knowngood.query.evaluate import View, matching
from knowngood.query.parser import LONGEST as LONGEST_QUERY
from knowngood.web.errors import NotFound
from knowngood.web.urls import compare_address


@dataclass(frozen=True)
class CompareRequest:
    """Two builds by their ids or versions of torch, and which issues on which class. What is left out means all of it,
    and the CPU class.
    """

    hardware: str = ""
    issues: tuple[str, ...] = ()
    component: str = ""
    q: str = ""
    a: str = ""
    b: str = ""

    @property
    def is_filtered(self) -> bool:
        return bool(self.issues or self.component or self.q)

    @property
    def narrowing(self) -> Mapping[str, str]:
        """All but the builds, as an address has it."""
        named = {"hardware": self.hardware, "issues": ",".join(self.issues), "component": self.component, "q": self.q}
        return {name: value for name, value in named.items() if value}


def _narrowed(
    *,
    hardware: Annotated[Words, Query(description="One hardware class; the CPU class where none is named")] = "",
    issues: Annotated[
        Names,
        Query(default_factory=list, description="Issue ids, repeated or comma-separated; `all` for all of them"),
    ],
    component: Annotated[Words, Query(description="Only issues of this component")] = "",
    q: Annotated[
        str,
        Query(
            max_length=LONGEST_QUERY,
            description="A query of issues and of these two builds: `affected` keeps what fails on "
            "either. Bare words stand in an issue's id, title or component",
        ),
    ] = "",
) -> CompareRequest:
    return CompareRequest(hardware, tuple(issues), component, q)


Narrowed = Annotated[CompareRequest, Depends(_narrowed)]


def _of_two_builds(
    narrowed: Narrowed,
    a: Annotated[Words, Query(description="The build that is left: its id, or a version of torch")],
    b: Annotated[Words, Query(description="The build that is moved to")],
) -> CompareRequest:
    return replace(narrowed, a=a, b=b)


OfTwoBuilds = Annotated[CompareRequest, Depends(_of_two_builds)]


def comparison_of(asked: CompareRequest, known: Known, now: datetime) -> Comparison:
    """Raises NotFound for builds we do not have, with the nearest ones, and InvalidParameter for the rest."""
    hardware = one_class(asked.hardware, known.hardware)
    before, after = _found("before", asked, known), _found("after", asked, known)
    issues = named_issues(tuple(known.issues.values()), asked.issues)
    if asked.component:
        refuse_unknown("component", [asked.component], {one.component for one in known.issues.values()}, "component")
        issues = tuple(one for one in issues if one.component == asked.component)
    query = read_asked(asked.q)
    compared = compare(issues, before, after, hardware, known, now=now)
    # A query looks at the pairs as at a matrix of these two columns.
    builds = tuple(sorted({before.id: before, after.id: after}.values(), key=lambda build: build.build_id))
    cells = {pair.issue.id: {before.id: pair.before, after.id: pair.after} for pair in compared.pairs}
    chosen = matching(query, issues, View(builds, now), lambda issue: [[cells[issue.id][one.id] for one in builds]])
    ids = {issue.id for issue in chosen}
    return replace(compared, pairs=tuple(pair for pair in compared.pairs if pair.issue.id in ids))


def _found(side: str, asked: CompareRequest, known: Known) -> Build:
    """The build that the reader wrote. A refusal leads to the same comparison with the nearest ones in its place."""
    sides = {"before": asked.a, "after": asked.b}
    try:
        return asked_build(sides[side], known.builds)
    except UnknownBuild as error:
        near = [(one, compare_address(**{**sides, side: one}, **asked.narrowing)) for one in error.nearest]
        offered = near or [("choose two builds", compare_address(**asked.narrowing))]
        raise NotFound(f"{'a' if side == 'before' else 'b'}: {error.problem}", offered) from None
