"""The matrix as a table on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.measuring.machine import CPU_CLASS
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.domain.verdicts.matrix import concerns_cpu_path, fold, rows_of
from knowngood.app.domain.verdicts.verdict import Cell, Verdict
from knowngood.app.domain.vocabulary import VERDICTS, Role
from knowngood.app.serialization.marks import MARKS, legend_of, mark_of, sign_of

_COLOURS = {
    Role.GOOD: "green",
    Role.BAD: "red",
    Role.OTHER: "magenta",
    Role.MIXED: "yellow",
    Role.UNSURE: "blue",
    Role.QUIET: "dim",
}

_BUILD_WIDTH, _HISTORY_WIDTH, _FEWEST_BUILDS = 9, 36, 4


def sign_in_colour(cell: Cell) -> Text:
    """Its sign; in parentheses where it is inferred. What fails with nothing to do about it is bold."""
    return Text(sign_of(cell), style=_style(cell))


def _style(cell: Cell) -> str:
    bold = "bold " if mark_of(cell) is MARKS[Verdict.AFFECTED] else ""
    return bold + _COLOURS[VERDICTS[cell.verdict].role]


def print_matrix(
    console: Console,
    issues: Sequence[Issue],
    builds: Sequence[Build],
    hardware: str,
    known: Known,
) -> None:
    """As many tables as the width asks for, one row per issue; every sign is explained below. Issues that apply to none
    of the builds are counted.

    Pythons of one build share a column for as long as they agree on this hardware class.
    """
    columns = fold(issues, builds, [hardware], known)
    rows = {issue: row for (issue, _), row in rows_of(issues, columns, [hardware], known).items()}
    absent = [id_ for id_, row in rows.items() if all(cell.verdict is Verdict.NOT_APPLICABLE for cell in row)]
    shown = [issue for issue in issues if issue.id not in absent]
    widest = max((len(issue.id) for issue in shown), default=0)
    at_once = max(_FEWEST_BUILDS, (console.width - widest - _HISTORY_WIDTH) // _BUILD_WIDTH)
    for first in range(0, len(columns) if shown else 0, at_once):
        part = columns[first : first + at_once]
        table = Table(title=f"{hardware}", title_justify="left", header_style="bold", pad_edge=False, box=None)
        table.add_column("issue", no_wrap=True)
        for column in part:
            name = column.head.id.removeprefix("torch-")
            table.add_column(name.replace("+", "\n+").replace("~", "\n~"), justify="center")
        table.add_column("history", overflow="fold")
        for issue in shown:
            row = rows[issue.id][first : first + at_once]
            table.add_row(issue.id, *map(sign_in_colour, row), known.told(issue, hardware))
        console.print(table)
    on_cpu = sum(1 for id_ in absent if concerns_cpu_path(rows[id_]))
    if on_cpu:
        concern = "issue concerns" if on_cpu == 1 else "issues concern"
        console.print(f"{on_cpu} more {concern} the CPU path: see {CPU_CLASS}", highlight=False)
    if len(absent) > on_cpu:
        apply = "issue does not apply" if len(absent) == on_cpu + 1 else "issues do not apply"
        console.print(f"{len(absent) - on_cpu} more {apply} on {hardware}", highlight=False)
    for issue in shown:
        if issue.caveat:
            console.print(f"{issue.id}: {issue.caveat}", highlight=False, soft_wrap=True)
    _print_legend(console, [cell for issue in shown for cell in rows[issue.id]])


def _print_legend(console: Console, cells: Sequence[Cell]) -> None:
    styles = {mark_of(cell): _style(cell) for cell in cells}
    entries = [
        Text(mark.sign or "(empty)", style=styles.get(mark, "")).append(f" {mark.word}", style="not bold default")
        for mark in legend_of(cells)
    ]
    console.print(Text("   ").join(entries))
