"""The order of rows, and what they are grouped by in it."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, Severity
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import fails
from knowngood.domain.verdicts.verdict import is_silent
from knowngood.matrix.charts.numbers import measured_releases
from knowngood.web.html.i18n import Language, say
from knowngood.web.pagination import backwards


class RowOrder(StrEnum):
    FAILS = "fails"  # on the newest settled release: wrong numbers first, then errors, then what does not fail there
    COMPONENT = "component"
    SEVERITY = "severity"
    CHANGED = "changed"  # by the newest release at which it came or went
    ID = "id"


ORDER_WORDS: Mapping[RowOrder, str] = {
    RowOrder.FAILS: "what fails",
    RowOrder.COMPONENT: "component",
    RowOrder.SEVERITY: "severity",
    RowOrder.CHANGED: "newest change",
    RowOrder.ID: "id",
}

WORST_FIRST = tuple(reversed(Severity))
_ALL = "issues"
NEVER = "never"
SILENT, LOUD, REST = "silent", "loud", "rest"
FAILING_WORDS = {
    SILENT: "fail on {release}: wrong numbers, no error",
    LOUD: "fail on {release} with an error",
    REST: "not known to fail on {release}",
}


def newest_first(release: str) -> object:
    """The sort key of a release, newest first."""
    return backwards(Version(release))


def newest_settled(known: Known, hardware: str) -> Build | None:
    """The newest release that is settled and was measured on a class; where none is settled, the newest measured."""
    line = [column.cell_build for column in measured_releases(known, [hardware])]
    settled = [build for build in line if (age := known.age(build)) and age.settled]
    return next(reversed(settled or line), None)


def in_order(issues: Iterable[Issue], order: RowOrder, known: Known, hardware: str) -> list[tuple[str, Issue]]:
    """Sort the issues, each with the name of its group; within a group by id."""
    judged = newest_settled(known, hardware) if order is RowOrder.FAILS else None
    named = [(_group(issue, order, known, hardware, judged), issue) for issue in issues]
    by_id = sorted(named, key=lambda pair: number_in(pair[1].id))
    match order:
        case RowOrder.FAILS:
            severe_first = sorted(by_id, key=lambda pair: WORST_FIRST.index(pair[1].severity))
            return sorted(severe_first, key=lambda pair: [*FAILING_WORDS].index(pair[0].partition(" ")[0]))
        case RowOrder.COMPONENT:
            return sorted(by_id, key=lambda pair: (pair[0].casefold(), pair[1].id))
        case RowOrder.SEVERITY:
            return sorted(by_id, key=lambda pair: WORST_FIRST.index(pair[1].severity))
        case RowOrder.CHANGED:
            return sorted(by_id, key=lambda pair: (pair[0] == NEVER, pair[0] == NEVER or newest_first(pair[0])))
        case RowOrder.ID:
            return by_id


def _group(issue: Issue, order: RowOrder, known: Known, hardware: str, judged: Build | None) -> str:
    """`judged` is the build that the order of what fails goes by."""
    match order:
        case RowOrder.FAILS:
            cell = known.cell(issue, judged, hardware) if judged else None
            kind = REST if cell is None or not fails(cell) else SILENT if is_silent(issue, cell) else LOUD
            return f"{kind} {judged.build_id.release if judged else ''}".strip()
        case RowOrder.COMPONENT:
            return issue.component
        case RowOrder.SEVERITY:
            return issue.severity.value
        case RowOrder.CHANGED:
            return known.history(issue.id, hardware).last_turn or NEVER
        case RowOrder.ID:
            return _ALL


def group_label(name: str, order: RowOrder, language: Language) -> str:
    match order:
        case RowOrder.FAILS:
            kind, _, release = name.partition(" ")
            return say(FAILING_WORDS[kind], language, release=release) if release else say("all issues", language)
        case RowOrder.COMPONENT:
            return name
        case RowOrder.SEVERITY:
            return say(name, language)
        case RowOrder.CHANGED:
            if name == NEVER:
                return say("no change known", language)
            return say("came or went in {release}", language, release=name)
        case RowOrder.ID:
            return say("all issues", language)


def number_in(id_: str) -> tuple[str, int, str]:
    """`pytorch-99` before `pytorch-104505`."""
    match = re.search(r"\d+", id_)
    return (id_[: match.start()], int(match[0]), id_) if match else (id_, 0, id_)
