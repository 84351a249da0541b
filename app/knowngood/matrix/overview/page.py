"""`/matrix`: issues x builds of one hardware class, and what they add up to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Annotated, Any, Self
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.identity_key import IdentityKey, IdentityKeys
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import Message
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import (
    Columns,
    MatrixTotals,
    choose_columns,
    concerns_cpu_path,
    fold,
    stale_after,
    stale_cells,
    tally,
    total,
)
from knowngood.domain.verdicts.status import Prospect, prospect_of
from knowngood.domain.verdicts.verdict import Cell, CellPlace
from knowngood.domain.vocabulary import StatusLabel
from knowngood.matrix.charts.drawing import lifespan_chart
from knowngood.matrix.charts.numbers import lifespans_of, told_history
from knowngood.matrix.overview.facets import FacetChip, counting, facets_of
from knowngood.matrix.overview.row_order import ORDER_WORDS, RowOrder, group_label, in_order
from knowngood.matrix.overview.selection import (
    MatrixQuery,
    Names,
    Selection,
    Words,
    builds_or_wheels,
    one_class,
    read_condition,
    select,
    selected,
)
from knowngood.matrix.overview.totals import bars_of, counted, lines_of
from knowngood.query.evaluate import class_asked, classes_left, conditions_on_cells, without
from knowngood.query.parser import Query as AskedQuery
from knowngood.query.parser import written
from knowngood.store.engine import Session
from knowngood.store.queries import RunRow, load_active_run, load_hardware, load_last_event
from knowngood.web.html.grid import CellGlyph, Choice, ColumnHeader, drawn, heads_of, squares_of
from knowngood.web.html.i18n import Language
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API, MATRIX, issue_address

router = APIRouter(include_in_schema=False)


EVERY, NONE = "all", "none"  # of `fold`: every group, no group
_MOST_NAMED = 12  # ids in a command
MOST_COUNTED = 8  # conditions on cells: dozens of facets each ask the query again


class MatrixView(StrEnum):
    """The way a row is drawn. Where nobody chose, the style sheet does: bars on narrow screens."""

    BY_WIDTH = ""
    SQUARES = "squares"
    LIFESPANS = "lifespans"


class MatrixPageQuery(MatrixQuery):
    """The page shows one hardware class at a time, and may fold its rows.

    `fold` names the components of which a strip is shown instead of their rows. A name that is not in the view folds
    nothing; where it names nothing at all, a view of more than MOST_CELLS cells begins with its later groups folded.
    """

    hardware: Words = ""
    columns: Columns = Columns.MEASURED
    fold: Names
    view: MatrixView = MatrixView.BY_WIDTH
    sort: RowOrder = RowOrder.FAILS

    def asking(self, **changes: object) -> str:
        """The query string of this view with `changes`; what stands at its default is left out."""
        changed = self.model_copy(update=changes).model_dump(mode="json", exclude_defaults=True)
        return f"?{urlencode(changed, doseq=True)}" if changed else ""

    def at_door(self, path: str, hardware: str, columns: Columns) -> str:
        """The address of the API for the same issues and builds. Folds are for readers: the API has what is behind
        them.
        """
        names = {"issues", "builds", "python", "component", "verdict", "fails", "q"}
        params = self.model_dump(mode="json", exclude_defaults=True, include=names)
        params |= {"hardware": hardware} if self.builds else {"hardware": hardware, "columns": columns.value}
        return f"{API}/{path}?{urlencode(params, doseq=True)}"

    @property
    def hidden_fields(self) -> tuple[tuple[str, str], ...]:
        """The hidden fields of the query form."""
        seen = {"q"}
        unseen = self.model_dump(mode="json", exclude_defaults=True, exclude=seen)
        return tuple(
            (name, item) for name, value in unseen.items() for item in (value if isinstance(value, list) else [value])
        )

    @property
    def cleared(self) -> Self:
        """The same view of everything."""
        nothing: dict[str, object] = {
            "q": "",
            "component": "",
            "verdict": None,
            "issues": [],
            "builds": [],
            "python": "",
            "fails": "",
        }
        return self.model_copy(update=nothing)

    @property
    def is_filtered(self) -> bool:
        return bool(self.q or self.component or self.verdict or self.issues or self.builds or self.python or self.fails)


@dataclass(frozen=True)
class Row:
    """`squares` are the columns, `prospects` theirs, and `drawn` what a browser is given of them."""

    issue: Issue
    title: str
    address: str
    squares: tuple[CellGlyph, ...]
    prospects: tuple[Prospect, ...]
    drawn: Markup
    sentence: Message
    tally: MatrixTotals
    is_on_cpu: bool
    is_elsewhere: bool


@dataclass(frozen=True)
class Fold:
    """Where a group of rows is folded, or opened again; `anchor` is where the reader then finds it."""

    address: str
    is_folded: bool
    anchor: str
    count: int


@dataclass(frozen=True)
class Group:
    """The issues of one component, or of whatever rows are ordered by; `name` is what `fold` calls it. `bars`, one for
    each column, are all that a folded group shows.
    """

    name: str
    label: str
    rows: tuple[Row, ...]
    bars: tuple[Markup, ...]
    fold: Fold


MOST_CELLS = 8_000
"""Cells of a page that are drawn. In a larger view each is written as a character, and its later groups begin folded: a
browser needs longer for 30,000 cells than a reader waits (500 issues x 60 builds: interactive after 1.1 to 1.4 s with
all of them, 0.9 s so, two cores, 2026-11-21).
"""


@router.get(MATRIX)
def matrix(context: Context, query: Annotated[MatrixPageQuery, Query()]) -> Response:
    def load(session: Session) -> tuple[Selection, Sequence[str], RunRow | None, int]:
        measured = load_hardware(session)
        usual = query.hardware or context.mine.hardware_among(measured)
        hardware = class_asked(read_condition(query.q), measured, one_class(usual, measured))
        cache = context.state.knowledge
        selection = select(session, query, [hardware], query.columns, cache=cache, now=context.now, folded=True)
        active = load_active_run(session)
        return selection, measured, active, load_last_event(session) if active else 0

    answer = context.answer_in_turn if query.q else context.answer
    return answer(load, lambda loaded: context.page("matrix.html", matrix_page(context, query, *loaded)))


def redirect_old_address(request: Request) -> Response | None:
    """Lead an address of a part of the grid, which stood at `/` until 0.2, on to `/matrix` with all that it says.
    None for any other address. What the grid does not know either is for it to refuse.
    """
    if not request.query_params.keys() & MatrixPageQuery.model_fields.keys():
        return None
    return RedirectResponse(f"{MATRIX}?{request.url.query}", HTTPStatus.PERMANENT_REDIRECT)


def matrix_page(
    context: RequestContext,
    query: MatrixPageQuery,
    selection: Selection,
    measured: Sequence[str],
    active: RunRow | None,
    last_event: int,
) -> dict[str, Any]:
    """Everything templates/matrix.html shows. `active` is a run that goes on (None: none), `last_event` that from which
    a reader follows it.

    `elsewhere` are the issues that apply to no column on this hardware: a line each instead of a row of dots. So are
    those `on_cpu`, which concern the CPU path; `cpu_address` leads there. `has_evidence` says that anything at all was
    measured, on whatever hardware. `empty` is there where no issue is shown, or none of their cells is known. `own` is
    the column (id) of the reader's own build; empty: there is none.

    `asked` has the numbers behind the sentence on what fails on one build; `ages` those of each column's release.
    `names_python` is False where every column is of the default Python alone, `names_triton` where each has its own.
    `begins_folded`: this view is so large that it has folded groups where its address names no `fold`.
    """
    (hardware,) = selection.classes
    heads = heads_of(selection.columns, selection.measured)
    is_large = len(selection.issues) * len(heads) > MOST_CELLS
    own = _own_column(context, selection)
    look = _look(hardware, context.language, heads, selection.looked.builds, own, is_plain=is_large)
    named = _rows(context, query, selection, look)
    rows = [row for _, row in named]
    groups = _groups(query, [pair for pair in named if not pair[1].is_elsewhere], len(heads), context)
    totals = total(row.tally for row in rows)
    counts = _Counts(query, selection, measured)
    cells = sum(len(group.rows) for group in groups) * len(heads)
    return {
        "hardware": hardware,
        "totals": totals,
        "heads": heads,
        "asked": _asked(query, selection, hardware) if query.fails else None,
        "ages": {column.head.id: selection.known.age(column.head) for column in selection.columns},
        "names_python": any(head.python != DEFAULT_PYTHON for head in heads),
        "names_triton": any(head.is_mismatched for head in heads),
        "groups": groups,
        "fold_all": _fold_all(context, query, groups, cells),
        "lifespans": _lifespans(context, query, groups, selection.known, hardware, own),
        "views": [
            Choice(context.say(word), f"{MATRIX}{query.asking(view=view)}", query.view is view)
            for view, word in VIEW_WORDS.items()
        ],
        "elsewhere": tuple(row for row in rows if row.is_elsewhere and not row.is_on_cpu),
        "on_cpu": tuple(row for row in rows if row.is_on_cpu),
        "cpu_address": f"{MATRIX}{query.asking(hardware=CPU_CLASS)}",
        "has_evidence": bool(measured),
        "issue_count": len(rows),
        "column_totals": lines_of(counted([row.prospects for row in rows], len(heads)), context.language),
        "classes": _class_choices(counts, hardware),
        "facets": {}
        if context.is_file or conditions_on_cells(selection.condition) > MOST_COUNTED
        else _facets(context, counts, hardware),
        "empty": _empty(counts, hardware) if not totals.measured + totals.inferred else None,
        "orders": [  # folds name the groups of one order, and mean nothing in another
            Choice(context.say(word), f"{MATRIX}{query.asking(sort=order, fold=[])}", order is query.sort)
            for order, word in ORDER_WORDS.items()
        ],
        "own": own,
        "pythons": _python_choices(context, query, selection),
        "columns": _column_choices(context, query, selection),
        "query": query,
        "csv_address": query.at_door("export/csv", hardware, query.columns),
        "markdown_address": query.at_door("export/markdown", hardware, query.columns),
        "active": active,
        "last_event": last_event,
        "json_address": query.at_door("matrix", hardware, _twin(query)),
        "is_large": is_large,
        "begins_folded": cells > MOST_CELLS,
    }


def _asked(query: MatrixPageQuery, selection: Selection, hardware: str) -> dict[str, Any]:
    """The numbers of a view of what fails on one build: of how many issues, and how many are not known there."""
    (build,) = builds_or_wheels(selection.looked.builds, [query.fails], "fails")
    issues = {issue.id: issue for issue in selection.looked.issues}
    cells = [selection.known.cell(issues[id_], build, hardware) for id_, _ in selection.rows]
    return {
        "build": build,
        "issues": len(cells),
        "unknown": sum(prospect_of(cell) is Prospect.NOT_KNOWN for cell in cells),
    }


VIEW_WORDS = {MatrixView.SQUARES: "squares", MatrixView.LIFESPANS: "lifespans"}


def _lifespans(
    context: RequestContext, query: MatrixPageQuery, groups: Iterable[Group], known: Known, hardware: str, own: str
) -> dict[str, Any] | None:
    """The lifespans of groups that are not folded, with the column of the reader's `own` build marked. None where only
    squares are asked for, or a file has no other view. Beside squares, whose cells are links, bars are pictures alone.
    """
    if query.view is MatrixView.SQUARES or (context.is_file and query.view is MatrixView.BY_WIDTH):
        return None
    issues = [row.issue for group in groups if not group.fold.is_folded for row in group.rows]
    spans = lifespans_of(issues, known, hardware)
    return lifespan_chart(context, spans, build=own, has_cells=query.view is MatrixView.LIFESPANS)


def _twin(query: MatrixPageQuery) -> Columns:
    """The twin lists every cell of this view, and those of releases nobody measured: but what a query says of all
    columns, it says of those of the view.
    """
    return Columns.RELEASES if query.columns is Columns.MEASURED and not query.q else query.columns


@dataclass(frozen=True, eq=False)
class _Look:
    """Values that all rows of a view share. `heads` are those of its columns; `builds` has all there are."""

    hardware: str
    language: Language
    heads: tuple[ColumnHeader, ...]
    builds: Mapping[str, Build]
    own: str
    is_plain: bool


@lru_cache(maxsize=64)
def _look(
    hardware: str,
    language: Language,
    heads: tuple[ColumnHeader, ...],
    builds: tuple[Build, ...],
    own: str,
    *,
    is_plain: bool,
) -> _Look:
    """Make the look of a view; equal looks are the same object."""
    known = {build.id: build for build in builds}
    return _Look(hardware, language, heads, known, own, is_plain)


def _rows(
    context: RequestContext, query: MatrixPageQuery, selection: Selection, look: _Look
) -> tuple[tuple[str, Row], ...]:
    """The rows, each with the name of its group."""
    rows = []
    for group, issue in in_order(selection.issues, query.sort, selection.known, look.hardware):
        cells = selection.rows[issue.id, look.hardware]
        history = told_history(issue, selection.known, look.hardware)
        title = context.title_of(issue)
        stale = _stale(cells, look, context.now)
        rows.append((group, _row(IdentityKey(issue), title, IdentityKeys(cells), history, look, stale)))
    return tuple(rows)


def _stale(cells: tuple[Cell, ...], look: _Look, now: datetime) -> frozenset[CellPlace]:
    fresh_until = _fresh_until(IdentityKeys(cells), look)
    return stale_cells(cells, look.builds, now) if fresh_until and fresh_until < now else frozenset()


@lru_cache(maxsize=4096)
def _fresh_until(cells: IdentityKeys[Cell], look: _Look) -> datetime | None:
    return stale_after(cells.them, look.builds)


@lru_cache(maxsize=2048)  # rows of 60 columns, 18 kB each
def _row(
    issue: IdentityKey[Issue],
    title: str,
    cells: IdentityKeys[Cell],
    history: Message,
    look: _Look,
    stale: frozenset[CellPlace],
) -> Row:
    """Kept until something in it changes, because between two pages little does. Of 100 issues x 40 builds a page after
    one cell's change took 73 ms when all rows and cells were made anew, 33 as here; of 500 x 60 441 and 105 (time of
    the process, compression included; two shared cores, 2026-11-21).
    """
    squares = squares_of(cells.them, look.heads, stale)
    is_elsewhere = bool(squares) and all(square.sign is StatusLabel.NOT_APPLICABLE for square in squares)
    return Row(
        issue=issue.it,
        title=title,
        address=issue_address(issue.it.id, hardware=look.hardware),
        squares=squares,
        prospects=tuple(map(prospect_of, cells.them)),
        drawn=drawn(squares, "td", look.language, plain=look.is_plain, own=look.own),
        sentence=cells.them[-1].reason if is_elsewhere else history,
        tally=tally(cells.them, stale),
        is_on_cpu=concerns_cpu_path(cells.them),
        is_elsewhere=is_elsewhere,
    )


def _groups(
    query: MatrixPageQuery, rows: Iterable[tuple[str, Row]], width: int, context: RequestContext
) -> tuple[Group, ...]:
    grouped = [(name, tuple(row for _, row in members)) for name, members in groupby(rows, key=itemgetter(0))]
    cells = {name: len(members) * width for name, members in grouped}
    folded, all_open = _folded(query, cells), _all_open(sum(cells.values()))
    return tuple(
        Group(
            name,
            label=group_label(name, query.sort, context.language),
            rows=members,
            bars=bars_of(counted([row.prospects for row in members], width), context.language),
            fold=Fold(
                address=f"{MATRIX}{query.asking(fold=_toggled(folded, name) or all_open)}#group-{at}",
                is_folded=name in folded,
                anchor=f"group-{at}",
                count=len(members),
            ),
        )
        for at, (name, members) in enumerate(grouped, start=1)
    )


def _folded(query: MatrixPageQuery, cells: Mapping[str, int]) -> list[str]:
    """The groups whose rows are not shown; `cells` has the number of theirs, in the order of the page. By default a
    view folds the groups beyond MOST_CELLS, but never the first one.
    """
    if query.fold:
        return [name for name in cells if EVERY in query.fold or name in query.fold]
    later = [name for name, end in zip(cells, accumulate(cells.values()), strict=True) if end > MOST_CELLS]
    return later if len(later) < len(cells) else later[1:]


def _all_open(cells: int) -> list[str]:
    """The value of `fold` where every group of so many cells is open."""
    return [NONE] if cells > MOST_CELLS else []


def _toggled(names: Sequence[str], name: str) -> list[str]:
    return [other for other in names if other != name] if name in names else [*names, name]


def _fold_all(context: RequestContext, query: MatrixPageQuery, groups: Sequence[Group], cells: int) -> Choice:
    """Folds every group; opens them all where none is open, or where nobody had asked for those that are folded."""
    folded = [group.fold.is_folded for group in groups]
    is_folded = bool(folded) and (all(folded) if query.fold else any(folded))
    address = f"{MATRIX}{query.asking(fold=_all_open(cells) if is_folded else [EVERY])}"
    return Choice(context.say("open all groups") if is_folded else context.say("fold all groups"), address, is_folded)


@dataclass(frozen=True)
class _Counts:
    """Counts for other queries than the reader's, from the same store. `measured` are the hardware classes."""

    query: MatrixPageQuery
    selection: Selection
    measured: Sequence[str]

    def issues(self, condition: AskedQuery, hardware: str) -> int:
        selection, query = self.selection, self.query
        return len(selected(selection.looked, query, condition, [hardware], query.columns).issues)

    def on(self, hardware: str) -> AskedQuery:
        """The query for another class, without a condition that excludes that class."""
        condition = self.selection.condition
        return condition if classes_left(condition, [hardware]) else without(condition, "hardware")

    def address(self, hardware: str) -> str:
        condition = self.on(hardware)
        text = self.query.q if condition is self.selection.condition else written(condition)
        return f"{MATRIX}{self.query.asking(hardware=hardware, q=text)}"


def _class_choices(counts: _Counts, shown: str) -> tuple[Choice, ...]:
    """With the number of issues on each, where the view is narrowed."""
    classes = dict.fromkeys([*counts.measured, shown])
    return tuple(
        Choice(
            f"{plain_name(class_)} ({counts.issues(counts.on(class_), class_)})"
            if counts.query.is_filtered
            else plain_name(class_),
            counts.address(class_),
            class_ == shown,
        )
        for class_ in classes
    )


def _facets(context: RequestContext, counts: _Counts, hardware: str) -> Mapping[str, Sequence[FacetChip]]:
    selection, query = counts.selection, counts.query
    issues = selection.looked.issues
    is_plain = not (query.issues or query.component or query.verdict or query.fails)

    def by_cells(condition: AskedQuery) -> int:
        return counts.issues(condition, hardware)

    count = counting(issues, by_cells, is_plain=is_plain)
    return facets_of(
        selection.condition, issues, count, lambda text: f"{MATRIX}{query.asking(q=text)}", context.language
    )


def _empty(counts: _Counts, shown: str) -> dict[str, Any]:
    """The answer where the view shows no issue, or nothing that was measured. `looked_at` counts the cells among which
    the query found nothing, also of issues that it then leaves out; `command` measures what is missing of them and is
    empty where nothing is. `elsewhere` are the classes on which the same words find something: what they say of
    hardware is taken for a choice of it.
    """
    others = [class_ for class_ in counts.measured if class_ != shown and not counts.selection.issues]
    found = {class_: counts.issues(counts.on(class_), class_) for class_ in others}
    looked_at = total(tally(cells, ()) for cells in counts.selection.rows.values())
    is_partial = looked_at.measured + looked_at.inferred < looked_at.applicable
    return {
        "elsewhere": [(class_, n, counts.address(class_)) for class_, n in found.items() if n],
        "looked_at": looked_at,
        "command": _measuring_command(counts.selection, shown) if is_partial else "",
    }


def _measuring_command(selection: Selection, hardware: str) -> str:
    """Asks only for what is not known yet. Names are left out where they would be a page of text."""
    issues = list(dict.fromkeys(issue for issue, _ in selection.rows))
    builds = [column.head.id for column in selection.columns]
    return (
        f"knowngood run --builds {_named(builds)} "
        f"--issues {_named(issues if len(issues) < len(selection.looked.issues) else [])} --hardware {hardware}"
    )


def _named(ids: Sequence[str]) -> str:
    return ",".join(ids) if 0 < len(ids) <= _MOST_NAMED else "all"


def _own_column(context: RequestContext, selection: Selection) -> str:
    """The head (id) of the column that the reader's own build is in, with any Python (empty: none)."""
    own = context.mine.build_among({build.id: build for build in selection.looked.builds})
    name = own.build_id.apart_from_python if own else ""
    return next((column.head.id for column in selection.columns if column.head.build_id.apart_from_python == name), "")


def _python_choices(context: RequestContext, query: MatrixPageQuery, selection: Selection) -> tuple[Choice, ...]:
    """Every Python together, or one alone; none where one alone was measured, or builds are named."""
    pythons = {build.python for build in selection.looked.builds if build.id in selection.measured}
    if query.builds or len(pythons | {query.python} - {""}) < 2:  # noqa: PLR2004 - a choice is between two
        return ()
    every = Choice(context.say("all"), f"{MATRIX}{query.asking(python='')}", not query.python)
    each = sorted(pythons, key=lambda python: [int(part) for part in python.split(".")])
    return (
        every,
        *(Choice(python, f"{MATRIX}{query.asking(python=python)}", python == query.python) for python in each),
    )


def _column_choices(context: RequestContext, query: MatrixPageQuery, selection: Selection) -> tuple[Choice, ...]:
    """The choices of columns, with the number of each; none where the address names its builds."""
    if query.builds:
        return ()
    return tuple(
        Choice(
            f"{context.say(label)} ({_width(selection, columns)})",
            f"{MATRIX}{query.asking(columns=columns)}",
            columns is query.columns,
        )
        for columns, label in _COLUMN_WORDS.items()
    )


def _width(selection: Selection, columns: Columns) -> int:
    chosen = choose_columns(selection.offered, selection.measured, columns) or selection.offered
    if columns is Columns.ALL:
        return len(chosen)
    return len(fold(chosen, selection.classes, selection.known))


_COLUMN_WORDS = {
    Columns.MEASURED: "measured",
    Columns.MINORS: "minors",
    Columns.RELEASES: "patches",
    Columns.ALL: "with mismatched Triton",
}
