"""The matrix as a table on a terminal."""

from collections.abc import Sequence
from textwrap import wrap

from rich.console import Console
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

_BUILD_WIDTH, _HISTORY_WIDTH = 9, 36
_FEWEST_BUILDS, _NARROW_HISTORY = 4, 12
_GAP = "  "


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
    at_once = _builds_at_once(console.width - widest)
    for first in range(0, len(columns) if shown else 0, at_once):
        heads = [column.head.id.removeprefix("torch-") for column in columns[first : first + at_once]]
        lines = [(issue.id, rows[issue.id][first : first + at_once], known.told(issue, hardware)) for issue in shown]
        console.print(_table(console.width, hardware, heads, lines), end="", soft_wrap=True)
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


def _builds_at_once(width: int) -> int:
    """As many as leave the history its width, or a few beside a narrow one."""
    few = min(_FEWEST_BUILDS, (width - _NARROW_HISTORY) // _BUILD_WIDTH)
    return max(1, few, (width - _HISTORY_WIDTH) // _BUILD_WIDTH)


def _table(width: int, title: str, builds: Sequence[str], lines: Sequence[tuple[str, Sequence[Cell], str]]) -> Text:
    """Written as one text: rich's own table takes 60 us for each of a thousand places, which is most of a command."""
    heads = [build.replace("+", "\n+").replace("~", "\n~").split("\n") for build in builds]
    signs = [[sign_of(cell) for cell in cells] for _, cells, _ in lines]
    widths = [max(map(len, (*head, *column))) for head, column in zip(heads, zip(*signs, strict=True), strict=True)]
    first = max(len("issue"), *(len(name) for name, _, _ in lines))
    indent = first + sum(len(_GAP) + width for width in (*widths, 0))
    table = Text().append(f"{title}\n", "italic").append(_head(heads, first, widths), "bold")
    for (name, cells, told), row in zip(lines, signs, strict=True):
        table.append(f"{name:<{first}}")
        for cell, sign, wide in zip(cells, row, widths, strict=True):
            table.append(_GAP).append(f"{sign:^{wide}}", _style(cell))
        history = wrap(told, max(_NARROW_HISTORY, width - indent), break_on_hyphens=False)
        table.append(_GAP + f"\n{' ' * indent}".join(history) + "\n")
    return table


def _head(heads: Sequence[Sequence[str]], first: int, widths: Sequence[int]) -> str:
    """The lines above the issues, which all end on the last one."""
    deepest = max(map(len, heads))
    above = [""] * (deepest - 1)
    columns = [["", *above][len(head) :] + list(head) for head in heads]
    lines = zip([*above, "issue"], *columns, [*above, "history"], strict=True)
    return "".join(
        _GAP.join(
            (f"{name:<{first}}", *(f"{part:^{width}}" for part, width in zip(parts, widths, strict=True)), history)
        )
        + "\n"
        for name, *parts, history in lines
    )


def _print_legend(console: Console, cells: Sequence[Cell]) -> None:
    styles = {mark_of(cell): _style(cell) for cell in cells}
    entries = [
        Text(mark.sign or "(empty)", style=styles.get(mark, "")).append(f" {mark.word}", style="not bold default")
        for mark in legend_of(cells)
    ]
    console.print(Text("   ").join(entries))
