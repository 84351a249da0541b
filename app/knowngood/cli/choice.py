"""The choice that a command is given: issues and builds by their names, and hardware classes."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from knowngood.cli.exit_codes import Exit
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import find_issues
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Columns, choose_columns, complete
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.query.cli import QueryOption


@dataclass(frozen=True)
class Chosen:
    """Issues and builds of the catalogue, and hardware classes."""

    issues: tuple[Issue, ...]
    builds: tuple[Build, ...]
    hardware: tuple[str, ...]


def issues_of(issues: Mapping[str, Issue], names: Sequence[str]) -> tuple[Issue, ...]:
    """The issues that are named; without a word all."""
    return find_issues(names, issues) if names else tuple(issues.values())


def builds_of(
    builds: Collection[Build], names: Sequence[str], empty: Callable[[Build], bool], *, whole: bool = False
) -> tuple[Build, ...]:
    """The builds that are named; `all` and `default` are names too, and without a name `empty` chooses. A name without
    a Python means one build, or with `whole` all builds of the wheel.
    """
    if not names:
        return tuple(build for build in builds if empty(build))
    if "all" in names:
        return tuple(builds)
    known = BuildNames({build.id: build for build in builds})
    ids = {(known.find_or_wheel if whole else known.find)(name).id for name in names if name != "default"}
    return tuple(
        build for build in builds if {build.id, build.wheel.id} & ids or (build.default and "default" in names)
    )


def select(
    known: Known,
    option: QueryOption,
    issues: Sequence[Issue],
    builds: Sequence[str],
    hardware: tuple[str, ...],
    now: datetime,
) -> Chosen:
    """Of `issues` those that a query selects, by the builds that are named, else by those that were measured or stand
    on the line of releases.
    """
    is_shown = (lambda _: True) if builds else _measured_or_on_line(known)
    columns = option.columns(builds_of(known.builds.values(), builds, lambda _: True, whole=True), is_shown)
    return Chosen(option.issues(issues, columns, hardware, lambda: known, now), columns, hardware)


def _measured_or_on_line(known: Known) -> Callable[[Build], bool]:
    measured = {build for _, build, _ in known.cells}
    shown = {build.id for build in choose_columns(known.builds.values(), measured, Columns.RELEASES)}
    return lambda build: build.id in shown


def verdicts(names: Sequence[str]) -> frozenset[str]:
    """Of --fail-on. Raises BadRequest for what is none."""
    return one_of(sorted(Verdict), names, "--fail-on", "verdict")


def one_of(known: Iterable[str], names: Sequence[str], flag: str, kind: str) -> frozenset[str]:
    """The names that an option was given. Raises BadRequest for one that is not known."""
    for name in names:
        if name not in set(known):
            raise BadRequest(f'{flag} "{name}" is no {kind}; known: {", ".join(known)}')
    return frozenset(names)


def ended(known: Known, chosen: Chosen, failing: frozenset[str]) -> Exit:
    """A finding where a chosen cell has one of these verdicts."""
    cells = complete(chosen.issues, chosen.builds, chosen.hardware, known).values() if failing else ()
    return Exit.FINDING if any(cell.verdict.value in failing for cell in cells) else Exit.OK
