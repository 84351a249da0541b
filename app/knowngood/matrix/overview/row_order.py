"""The order of rows, and what they are grouped by in it."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from packaging.version import Version

from knowngood.domain.issue import Issue, Severity
from knowngood.domain.verdicts.known import Known
from knowngood.web.html.i18n import Language, say
from knowngood.web.pagination import backwards


class RowOrder(StrEnum):
    COMPONENT = "component"
    SEVERITY = "severity"
    CHANGED = "changed"  # by the newest release at which it came or went
    ID = "id"


ORDER_WORDS: Mapping[RowOrder, str] = {
    RowOrder.COMPONENT: "component",
    RowOrder.SEVERITY: "severity",
    RowOrder.CHANGED: "newest change",
    RowOrder.ID: "id",
}

WORST_FIRST = tuple(reversed(Severity))
_ALL = "issues"
NEVER = "never"


def newest_first(release: str) -> object:
    """The sort key of a release, newest first."""
    return backwards(Version(release))


def in_order(issues: Iterable[Issue], order: RowOrder, known: Known, hardware: str) -> list[tuple[str, Issue]]:
    """Sort the issues, each with the name of its group; within a group by id."""
    named = [(_group(issue, order, known, hardware), issue) for issue in issues]
    by_id = sorted(named, key=lambda pair: number_in(pair[1].id))
    match order:
        case RowOrder.COMPONENT:
            return sorted(by_id, key=lambda pair: (pair[0].casefold(), pair[1].id))
        case RowOrder.SEVERITY:
            return sorted(by_id, key=lambda pair: WORST_FIRST.index(pair[1].severity))
        case RowOrder.CHANGED:
            return sorted(by_id, key=lambda pair: (pair[0] == NEVER, pair[0] == NEVER or newest_first(pair[0])))
        case RowOrder.ID:
            return by_id


def _group(issue: Issue, order: RowOrder, known: Known, hardware: str) -> str:
    match order:
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
