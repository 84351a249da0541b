"""The matrix as a table on a terminal."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import english
from knowngood.domain.verdicts.inference import own_reason
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Column, concerns_cpu_path, fold, rows_of
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import EXCESSES, FAILING, NOT_COVERED, NOT_RUN, Cell, Verdict
from knowngood.domain.vocabulary import VERDICTS, Role, StatusLabel
from knowngood.serialization.marks import legend_of, mark_of, sign_of

_COLOURS = {
    Role.GOOD: "green",
    Role.BAD: "red",
    Role.OTHER: "magenta",
    Role.MIXED: "yellow",
    Role.UNSURE: "blue",
    Role.QUIET: "dim",
}

_BUILD_WIDTH, _HISTORY_WIDTH, _FEWEST_BUILDS = 9, 36, 4
_WIDEST = 10_000  # of a line in a pipe, which folds nothing


def sign_in_colour(cell: Cell) -> Text:
    """Its sign; in parentheses where it is inferred. What fails with nothing to do about it is bold."""
    return Text(sign_of(cell), style=_style(cell))


def _style(cell: Cell) -> str:
    bold = "bold " if status_of(cell) is StatusLabel.FAILS else ""
    return bold + _COLOURS[VERDICTS[cell.verdict].role]


def print_matrix(
    console: Console,
    issues: Sequence[Issue],
    builds: Sequence[Build],
    hardware: str,
    known: Known,
    most: int | None = None,
) -> None:
    """How many fail on the newest build; then a row per issue, of `most` (None: all), with as many columns as the width
    holds: the newest, and a line on what was left out. Every sign is explained below. Issues that apply to none of the
    builds are counted.

    Pythons of one build share a column. A pipe gets a line per issue.
    """
    columns = fold(builds, [hardware], known)
    rows = {issue: row for (issue, _), row in rows_of(issues, columns, [hardware], known).items()}
    absent = [id_ for id_, row in rows.items() if all(cell.verdict is Verdict.NOT_APPLICABLE for cell in row)]
    shown = [issue for issue in issues if issue.id not in absent]
    widest = max((len(issue.id) for issue in shown), default=0)
    left_out = max(0, len(columns) - max(_FEWEST_BUILDS, (console.width - widest - _HISTORY_WIDTH) // _BUILD_WIDTH))
    if most:
        shown.sort(key=lambda issue: (rows[issue.id][-1].verdict not in FAILING, not issue.silent))
    first, rest = shown[:most], len(shown[most:] if most else ())
    if shown:
        print_line(console, _in_one_line([rows[issue.id][-1] for issue in shown], columns[-1], hardware))
        table = _table(columns[left_out:])
        for issue in first:
            cells = map(sign_in_colour, rows[issue.id][left_out:])
            table.add_row(issue.id, *cells, english(known.history_sentence(issue, hardware)))
        _unfolded(console).print(table)
    if rest:
        print_line(console, f"{rest} more issues: --all")
    _print_remarks(console, absent, rows, hardware)
    if left_out and shown:
        print_line(console, _left_out(columns[:left_out]))
    for issue in first:
        if issue.caveat:
            print_line(console, f"{issue.id}: {issue.caveat}")
    _print_legend(console, [cell for issue in first for cell in rows[issue.id][left_out:]])


def _in_one_line(cells: Sequence[Cell], column: Column, hardware: str) -> str:
    """How many fail on one build."""
    fails, passes = (
        sum(cell.verdict in wanted for cell in cells) for wanted in (FAILING - EXCESSES, {Verdict.NOT_AFFECTED})
    )
    build, rest = column.cell_build.build_id.in_words, len(cells) - fails - passes
    return f"{fails} of {len(cells)} issues fail on {build}, {plain_name(hardware)}; {passes} pass, {rest} neither"


def _unfolded(console: Console) -> Console:
    """The terminal, or for a pipe one so wide that nothing is folded."""
    return console if console.is_terminal else Console(file=console.file, width=_WIDEST, highlight=False)


def _table(columns: Sequence[Column]) -> Table:
    table = Table(header_style="bold", pad_edge=False, box=None)
    table.add_column("issue", no_wrap=True)
    for column in columns:
        table.add_column(short_name(column.cell_build.id).replace("+", "\n+").replace("~", "\n~"), justify="center")
    table.add_column("history", overflow="fold")
    return table


def short_name(build: str) -> str:
    return build.removeprefix("torch-")


def print_line(console: Console, text: str | Text) -> None:
    """One line, however narrow the terminal is."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _left_out(columns: Sequence[Column]) -> str:
    first, last = short_name(columns[0].cell_build.id), short_name(columns[-1].cell_build.id)
    which = f"1 older build ({first}) is" if first == last else f"{len(columns)} older builds ({first} to {last}) are"
    return f"{which} left out; --builds names others, --json has all"


def _print_remarks(console: Console, absent: Sequence[str], rows: Mapping[str, Sequence[Cell]], hardware: str) -> None:
    on_cpu = sum(1 for id_ in absent if concerns_cpu_path(rows[id_]))
    if on_cpu:
        concern = "issue concerns" if on_cpu == 1 else "issues concern"
        console.print(f"{on_cpu} more {concern} the CPU path: see {CPU_CLASS}", highlight=False)
    if len(absent) > on_cpu:
        apply = "issue does not apply" if len(absent) == on_cpu + 1 else "issues do not apply"
        console.print(f"{len(absent) - on_cpu} more {apply} on {hardware}", highlight=False)


def print_cells(
    console: Console, issue: Issue, builds: Sequence[Build], hardware: str, known: Known, *, in_full: bool
) -> None:
    """One issue on a class, a line per column, the newest first; in full each with its reason."""
    columns = fold(builds, [hardware], known)
    row = rows_of([issue], columns, [hardware], known)[issue.id, hardware]
    print_line(
        console,
        Text(f"{issue.id} on {plain_name(hardware)}", style="bold").append(
            f": {english(known.history_sentence(issue, hardware))}", style="not bold"
        ),
    )
    if all(cell.verdict is Verdict.NOT_APPLICABLE for cell in row):
        print_line(console, f"  does not apply: {english(row[-1].reason)}" if row else "  no build")
        return
    widest = max((len(short_name(column.cell_build.id)) for column in columns), default=0)
    told = [pair for pair in zip(columns, row, strict=True) if in_full or pair[1].verdict is not Verdict.NOT_APPLICABLE]
    for column, cell in reversed(told):
        mark = mark_of(cell)
        sign = Text(f"{sign_of(cell) or ' ':<4}", style=_style(cell))
        words = "" if own_reason(cell).key in {NOT_RUN.key, NOT_COVERED} else f"{mark.word}: "
        line = Text(f"  {short_name(column.cell_build.id):<{widest}}  ")
        print_line(console, line.append(sign).append(words + english(cell.reason) if in_full else mark.word))


def _print_legend(console: Console, cells: Sequence[Cell]) -> None:
    styles = {mark_of(cell): _style(cell) for cell in cells}
    entries = [
        Text(mark.sign or "(empty)", style=styles.get(mark, "")).append(f" {mark.word}", style="not bold default")
        for mark in legend_of(cells)
    ]
    console.print(Text("   ").join(entries))
