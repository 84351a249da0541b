"""The answer where a view shows no issue, or nothing that was measured: what matches elsewhere, what is not known
yet, and the command that would measure it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from knowngood.domain.verdicts.matrix import MatrixTotals, tally, total
from knowngood.matrix.overview.selection import Selection

_MOST_NAMED = 12


@dataclass(frozen=True)
class FoundElsewhere:
    """A hardware class on which the same query finds something."""

    hardware: str
    count: int
    address: str


@dataclass(frozen=True)
class EmptyAnswer:
    """`looked_at` counts the cells among which the query found nothing; `command` measures what is missing of them and
    is empty where nothing is.
    """

    elsewhere: tuple[FoundElsewhere, ...]
    looked_at: MatrixTotals
    command: str


def empty_answer(selection: Selection, hardware: str, elsewhere: Sequence[FoundElsewhere]) -> EmptyAnswer:
    looked_at = looked_at_in(selection)
    return EmptyAnswer(
        tuple(elsewhere), looked_at, measuring_command(selection, hardware) if is_partial(looked_at) else ""
    )


def looked_at_in(selection: Selection) -> MatrixTotals:
    """Over every issue that the query asks the cells of, also those it then leaves out."""
    return total(tally(cells, ()) for cells in selection.rows.values())


def is_partial(totals: MatrixTotals) -> bool:
    return totals.measured + totals.inferred < totals.applicable


def measuring_command(selection: Selection, hardware: str) -> str:
    """Asks only for what is not known yet. Names are left out where they would be a page of text."""
    issues = list(dict.fromkeys(issue for issue, _ in selection.rows))
    builds = [column.head.id for column in selection.columns]
    return (
        f"knowngood run --builds {_named(builds)} "
        f"--issues {_named(issues if len(issues) < len(selection.looked.issues) else [])} --hardware {hardware}"
    )


def _named(ids: Sequence[str]) -> str:
    return ",".join(ids) if 0 < len(ids) <= _MOST_NAMED else "all"
