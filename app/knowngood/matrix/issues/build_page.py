"""`/builds/{id}`: what this build is, what fails on it, and what of that has a workaround."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import grouped
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.inference import ground_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import concerns_cpu_path, helped_elsewhere, stale_cells, tally
from knowngood.domain.verdicts.status import partly_working, status_of, working
from knowngood.domain.verdicts.verdict import Cell, WorkaroundFinding
from knowngood.domain.vocabulary import STATUSES, StatusLabel
from knowngood.matrix.lookups import find_build
from knowngood.matrix.overview.selection import Words, one_class
from knowngood.serialization.lock_keys import InstalledEnvironment
from knowngood.store.engine import Session
from knowngood.store.evidence.attempt_codec import load_installed
from knowngood.web.html.grid import Choice, TitledIssue
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import build_address, issue_address, part

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class IssueLine(TitledIssue):
    """One issue on this build; `workarounds` are those that help here with every variant that fails, `partly` those
    that help with some, `helps` is what was found of the first; `works_on` is a build on which one helps that was not
    tried here (empty: none is known). `ground` is what an inferred cell is inferred from (empty: it was measured, or
    not known).
    """

    cell: Cell
    workarounds: tuple[Choice, ...]
    partly: tuple[Choice, ...]
    helps: WorkaroundFinding | None
    works_on: str
    ground: str


@router.get("/builds/{build}")
def build(context: Context, build: str, hardware: Annotated[Words, Query()] = "") -> Response:
    def load(session: Session) -> dict[str, Any]:
        named, builds = find_build(session, build)
        known = context.known(session)
        class_ = one_class(hardware, known.hardware)
        cells = [known.cell(issue, named, class_) for issue in known.issues.values()]
        installed = load_installed(session, [cell.evidence for cell in cells if cell.evidence and not cell.basis])
        return build_page(context, named, builds, cells, known, installed)

    return context.answer(load, partial(context.page, "build.html"))


def build_page(
    context: RequestContext,
    build: Build,
    builds: Mapping[str, Build],
    cells: Sequence[Cell],
    known: Known,
    installed: InstalledEnvironment | None,
) -> dict[str, Any]:
    """`cells` are those of one hardware class, one per issue; `builds` stand in release order."""
    hardware = cells[0].hardware if cells else one_class("", known.hardware)
    lines: dict[StatusLabel, list[IssueLine]] = {sign: [] for sign in STATUSES}
    for cell in cells:
        lines[status_of(cell)].append(_line(context, known, cell))
    return {
        "build": build,
        "hardware": hardware,
        "totals": tally(cells, stale_cells(cells, builds, context.now)),
        "counts": tuple(_counted(context, sign, lines[sign]) for sign in COUNT_WORDS if lines[sign]),
        "sections": tuple(_sections(lines)),
        "classes": tuple(
            Choice(class_, build_address(build.id, class_), class_ == hardware)
            for class_ in dict.fromkeys([*known.hardware, hardware])
        ),
        "pythons": tuple(
            Choice(other.python or context.say("any"), build_address(other.id, hardware), other.id == build.id)
            for other in (build.wheel, *builds.values())
            if other.build_id.apart_from_python == build.build_id.apart_from_python
        ),
        "older": _beside(build, builds, hardware, -1),
        "newer": _beside(build, builds, hardware, 1),
        "comparisons": tuple(_comparisons(context, build, builds, hardware)),
        "installed": installed,
        "wheel": known.wheels.get(build.torch),
        "age": known.age(build),
    }


COUNT_WORDS = {
    StatusLabel.FAILS: "{n} fail, no workaround found",
    StatusLabel.UNTRIED: "{n} fail, workaround not tried here",
    StatusLabel.PARTIAL: "{n} fail with a workaround that helps in part",
    StatusLabel.WORKAROUND: "{n} fail with a workaround",
    StatusLabel.AS_REPORTED: "{n} pass as reported, and fail in a variant",
    StatusLabel.FLAKY: "{n} flaky",
    StatusLabel.DIFFERENT: "{n} fail differently",
    StatusLabel.PASSES: "{n} pass",
}
ONE_COUNTED_WORDS = {
    StatusLabel.FAILS: "{n} fails, no workaround found",
    StatusLabel.UNTRIED: "{n} fails, workaround not tried here",
    StatusLabel.PARTIAL: "{n} fails with a workaround that helps in part",
    StatusLabel.WORKAROUND: "{n} fails with a workaround",
    StatusLabel.AS_REPORTED: "{n} passes as reported, and fails in a variant",
    StatusLabel.DIFFERENT: "{n} fails differently",
    StatusLabel.PASSES: "{n} passes",
}


def _counted(context: RequestContext, sign: StatusLabel, lines: Sequence[IssueLine]) -> str:
    words = ONE_COUNTED_WORDS if len(lines) == 1 and sign in ONE_COUNTED_WORDS else COUNT_WORDS
    return context.say(words[sign], n=len(lines))


def _sections(lines: Mapping[StatusLabel, Sequence[IssueLine]]) -> Iterator[tuple[StatusLabel, list[IssueLine], bool]]:
    """One section per sign that occurs, with its lines. Issues of the CPU path are kept apart from issues that cannot
    exist, and marked: the page of this build on the CPU shows them.
    """
    for sign, sign_lines in lines.items():
        for is_on_cpu, some in sorted(grouped(sign_lines, lambda line: concerns_cpu_path([line.cell])).items()):
            yield sign, some, is_on_cpu


def _line(context: RequestContext, known: Known, cell: Cell) -> IssueLine:
    issue = known.issues[cell.issue]
    elsewhere = helped_elsewhere(issue, cell, known)
    helping, partly = working(cell), partly_working(cell)
    address = issue_address(issue.id, build=cell.build, hardware=cell.hardware)

    def links(ids: Sequence[str]) -> tuple[Choice, ...]:
        return tuple(
            Choice(
                context.in_language(workaround.title, workaround.title_zh),
                f"{address}#cure-{part(workaround.id)}",
                is_chosen=False,
            )
            for workaround in issue.workarounds
            if workaround.id in ids
        )

    return IssueLine(
        issue=issue,
        title=context.title_of(issue),
        address=address,
        cell=cell,
        workarounds=links(helping),
        partly=links(partly),
        helps=next(
            (
                cell.workarounds[workaround.id]
                for workaround in issue.workarounds
                if workaround.id in (helping or partly)
            ),
            None,
        ),
        works_on=elsewhere[1].id if elsewhere else "",
        ground=ground_of(cell.basis) if cell.basis else "",
    )


def _beside(build: Build, builds: Mapping[str, Build], hardware: str, step: int) -> Choice | None:
    """The next build of the same Python, or the next wheel."""
    ids = [other.id for other in _like(build, builds)]
    at = ids.index(build.id) + step
    return Choice(ids[at], build_address(ids[at], hardware), is_chosen=False) if 0 <= at < len(ids) else None


def _like(build: Build, builds: Mapping[str, Build]) -> list[Build]:
    if not build.python:
        return list({other.wheel.id: other.wheel for other in builds.values()}.values())
    return [other for other in builds.values() if other.python == build.python]


def _comparisons(context: RequestContext, build: Build, builds: Mapping[str, Build], hardware: str) -> Iterator[Choice]:
    """Links that compare the build with the release before and the one after it, the older one first; a build with a
    foreign Triton with the one that has its own.
    """
    line = [release for release in _like(build, builds) if is_release(release)]
    before = [release for release in line if release.build_id < build.build_id][-1:]
    after = [release for release in line if release.build_id > build.build_id][:1]
    for other in (*before, *after):
        pair = sorted((build, other), key=lambda side: side.build_id)
        params = {"a": pair[0].id, "b": pair[1].id, "hardware": hardware}
        label = context.say("compare with {build}", build=other.id)
        yield Choice(label, f"/compare?{urlencode(params)}", is_chosen=False)
