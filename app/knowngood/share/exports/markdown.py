"""The matrix as a Markdown table, one per hardware class: for an issue, a merge request, a chat.

A sign stands for each verdict, and below each table stands what the signs in it mean. Free text is escaped, so that it
can neither leave its place in the table nor become markup.
"""

from collections.abc import Iterator, Sequence

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import english
from knowngood.domain.verdicts.matrix import Column, concerns_cpu_path
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.domain.vocabulary import many
from knowngood.gate.renderers.markdown import escaped
from knowngood.serialization.marks import VerdictMark, legend_of, sign_of
from knowngood.share.exports.extract import Extract

Rows = Sequence[tuple[Issue, Sequence[Cell]]]

STALE = VerdictMark("°", "old: to be run again")
SILENT = VerdictMark("∆", "wrong numbers without an error")


def matrix_markdown(extract: Extract) -> Iterator[bytes]:
    """A table of each hardware class, in pieces. Rows that apply to none of its columns are left out and counted."""
    columns = extract.columns or tuple(
        Column((extract.builds[id_],)) for id_ in dict.fromkeys(cell.build for cell in extract.cells)
    )
    for class_, of_class in grouped(extract.cells, lambda cell: cell.hardware).items():
        rows = grouped(of_class, lambda cell: cell.issue)
        shown = [
            (issue, rows[issue.id])
            for issue in extract.issues
            if any(cell.verdict is not Verdict.NOT_APPLICABLE for cell in rows.get(issue.id, ()))
        ]
        on_cpu = sum(1 for cells in rows.values() if concerns_cpu_path(cells))
        size = f"{many(len(shown), 'issue')} × {many(len(columns), 'build')}"  # noqa: RUF001 - the sign for times
        title = _title(extract, class_, size, on_cpu=on_cpu, absent=len(rows) - len(shown) - on_cpu)
        yield _table(extract, title, columns, shown).encode()


def _title(extract: Extract, hardware: str, size: str, *, on_cpu: int, absent: int) -> str:
    rest = f" {on_cpu} more concern the CPU path: see {CPU_CLASS}." if on_cpu else ""
    rest += f" {absent} more do not apply there." if absent else ""
    return f"**{size} on {escaped(hardware)}**, as known by {extract.now:%Y-%m-%d %H:%M} UTC.{rest}"


def _table(extract: Extract, title: str, columns: Sequence[Column], rows: Rows) -> str:
    lines = [
        title,
        "",
        _line(["issue", *(_head(column.cell_build) for column in columns), "history"]),
        _line([":--", *(":-:" for _ in columns), ":--"]),
        *(_row(extract, issue, cells) for issue, cells in rows),
        "",
        _legend(extract, rows),
        "",
        "",
    ]
    return "\n".join(lines)


def _line(fields: Sequence[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _head(build: Build) -> str:
    """`2.7.1 cu126`, with whatever else sets it apart."""
    cuda = f"cu{build.cuda.replace('.', '')}" if build.cuda else "cpu"
    triton = f"Triton {build.triton}" if build.is_mismatched else ""
    python = "" if build.python in {"", DEFAULT_PYTHON} else f"py{build.python}"
    return escaped(" ".join(part for part in (build.build_id.release, cuda, triton, python) if part))


def _row(extract: Extract, issue: Issue, cells: Sequence[Cell]) -> str:
    title = escaped(issue.title)
    named = f"[{title}]({extract.links.issue(issue.id)})" if extract.links else title
    silent = f" {SILENT.sign}" if issue.silent else ""
    caveat = f" ({escaped(issue.caveat)})" if issue.caveat else ""
    classes = dict.fromkeys(cell.hardware for cell in cells)
    history = "; ".join(english(extract.known.history_sentence(issue, class_)) for class_ in classes)
    signs = (sign_of(cell) + (STALE.sign if extract.is_stale(cell) else "") for cell in cells)
    return _line([f"{named} {escaped(issue.id)}{silent}{caveat}", *map(escaped, signs), escaped(history)])


def _legend(extract: Extract, rows: Rows) -> str:
    """The signs of this table alone, in a fixed order; an empty place is explained as "not run"."""
    cells = [cell for _, row in rows for cell in row]
    marks = legend_of(cells)
    marks += [STALE] if any(extract.is_stale(cell) for cell in cells) else []
    marks += [SILENT] if any(issue.silent for issue, _ in rows) else []
    return " · ".join(f"{escaped(sign) or '(empty)'} {word}" for sign, word in marks)
