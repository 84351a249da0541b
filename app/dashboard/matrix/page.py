"""`/`: issues x builds of one hardware class, and what they add up to."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, groupby
from typing import Annotated, Self
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from markupsafe import Markup

from knowngood.app.dashboard.charts.drawing import LifespanChart, lifespan_chart
from knowngood.app.dashboard.charts.lifespans import lifespans_of
from knowngood.app.dashboard.matrix.selection import MatrixQuery, Names, Selection, Words, one_class, select
from knowngood.app.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.app.domain.identity_key import IdentityKey, IdentityKeys
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.measuring.machine import CPU_CLASS
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.domain.verdicts.matrix import (
    Columns,
    MatrixTotals,
    choose_columns,
    concerns_cpu_path,
    fold,
    newest_of,
    stale_after,
    stale_cells,
    tally,
    total,
)
from knowngood.app.domain.verdicts.verdict import Cell, CellPlace, Verdict
from knowngood.app.domain.vocabulary import SEVERITY, STATUSES, StatusLabel
from knowngood.app.store.engine import Session
from knowngood.app.store.queries import RunRow, load_active_run, load_hardware, load_last_event
from knowngood.app.web.html.grid import CellGlyph, Choice, ColumnHeader, drawn, heads_of, squares_of
from knowngood.app.web.html.i18n import Language
from knowngood.app.web.html.status_labels import LEGEND, LegendEntry
from knowngood.app.web.request_context import Context, RequestContext
from knowngood.app.web.urls import API, issue_address

router = APIRouter(include_in_schema=False)


EVERY, NONE = "all", "none"  # of `fold`: every group, no group


class MatrixView(StrEnum):
    """The way a row is drawn. Where nobody chose, the style sheet does: bars on narrow screens."""

    BY_WIDTH = ""
    SQUARES = "squares"
    LIFESPANS = "lifespans"


class MatrixPageQuery(MatrixQuery):
    """The page shows one hardware class at a time, and may fold its rows and columns.

    `fold` names the components of which a strip is shown instead of their rows; `fold_minors` the torch minors that
    show their newest patch alone. A name that is not in the view folds nothing; where `fold` names nothing at all, a
    view of more than MOST_CELLS cells begins with its later groups folded.
    """

    hardware: Words = ""
    columns: Columns = Columns.MEASURED
    fold: Names
    fold_minors: Names
    view: MatrixView = MatrixView.BY_WIDTH

    def asking(self, **changes: object) -> str:
        """The query string of this view with `changes`; what stands at its default is left out."""
        changed = self.model_copy(update=changes).model_dump(mode="json", exclude_defaults=True)
        return f"?{urlencode(changed, doseq=True)}" if changed else ""

    def at_door(self, path: str, hardware: str, columns: Columns) -> str:
        """Where the API answers for the same issues and builds. Folds are for eyes: it has what is behind them."""
        names = {"issues", "builds", "python", "component", "verdict", "q"}
        asked = self.model_dump(mode="json", exclude_defaults=True, include=names)
        asked |= {"hardware": hardware} if self.builds else {"hardware": hardware, "columns": columns.value}
        return f"{API}/{path}?{urlencode(asked, doseq=True)}"

    @property
    def kept(self) -> tuple[tuple[str, str], ...]:
        """Hidden fields of the query form."""
        seen = {"q"}
        unseen = self.model_dump(mode="json", exclude_defaults=True, exclude=seen)
        return tuple(
            (name, one) for name, value in unseen.items() for one in (value if isinstance(value, list) else [value])
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
        }
        return self.model_copy(update=nothing)

    @property
    def is_filtered(self) -> bool:
        return bool(self.q or self.component or self.verdict or self.issues or self.builds or self.python)


@dataclass(frozen=True)
class Row:
    """`squares` are the columns that are not folded away, `signs` theirs, and `drawn` what a browser is given of them.
    `tally` counts columns that are folded away too.
    """

    issue: Issue
    title: str
    address: str
    squares: tuple[CellGlyph, ...]
    signs: tuple[StatusLabel, ...]
    drawn: Markup
    sentence: str
    tally: MatrixTotals
    is_on_cpu: bool

    @property
    def is_elsewhere(self) -> bool:
        return bool(self.signs) and all(sign is StatusLabel.NOT_APPLICABLE for sign in self.signs)


@dataclass(frozen=True)
class Fold:
    """Where a group of rows or columns is folded, or opened again; `anchor` is where the reader then finds it."""

    address: str
    is_folded: bool
    anchor: str
    count: int


@dataclass(frozen=True)
class Heat:
    """One square of a strip: the gravest sign of its column, and how many rows have it."""

    sign: StatusLabel
    count: int
    said: str


@dataclass(frozen=True)
class Group:
    """The issues of one component. `heat` is all that a folded group shows."""

    component: str
    rows: tuple[Row, ...]
    heat: tuple[Heat, ...]
    fold: Fold


@dataclass(frozen=True)
class Foot:
    sign: StatusLabel
    word: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class MatrixPage:
    """`elsewhere` are the issues that apply to no column on this hardware: a line each instead of a row of dots. So are
    those `on_cpu`, which concern the CPU path; `cpu_address` leads there. `has_evidence` says that anything at all was
    measured on this hardware, also what this view leaves out.

    `names_python` is False where every column is of the default Python alone. `minors` has the minors of more than one
    column, by the build (id) at whose head they begin. `build_count` counts columns that are folded away too.
    `begins_folded`: this view is so large that it has folded groups where its address names no `fold`.
    """

    hardware: str
    totals: MatrixTotals
    heads: tuple[ColumnHeader, ...]
    minors: Mapping[str, Fold]
    build_count: int
    names_python: bool
    groups: tuple[Group, ...]
    fold_all: Choice
    lifespans: LifespanChart | None
    views: tuple[Choice, ...]
    elsewhere: tuple[Row, ...]
    on_cpu: tuple[Row, ...]
    cpu_address: str
    has_evidence: bool
    issue_count: int
    feet: tuple[Foot, ...]
    classes: tuple[Choice, ...]
    pythons: tuple[Choice, ...]
    columns: tuple[Choice, ...]
    query: MatrixPageQuery
    kept: tuple[tuple[str, str], ...]
    address: str
    cleared_address: str
    csv_address: str
    markdown_address: str
    legend: tuple[LegendEntry, ...]
    active: RunRow | None
    live_address: str
    json_address: str
    is_large: bool
    begins_folded: bool


MOST_CELLS = 8_000
"""Cells of a page that are drawn. In a larger view each is written as a character, and its later groups begin folded: a
browser needs longer for 30,000 cells than a reader waits (500 issues x 60 builds: interactive after 1.1 to 1.4 s with
all of them, 0.9 s so, two cores, 2026-11-21).
"""


@router.get("/")
def matrix(context: Context, query: Annotated[MatrixPageQuery, Query()]) -> Response:
    def load(session: Session) -> tuple[Selection, Sequence[str], Now]:
        measured = load_hardware(session)
        classes, kept = [one_class(query.hardware, measured)], context.state.cells
        selection = select(session, query, classes, query.columns, kept=kept, now=context.now, folded=True)
        active = load_active_run(session)
        return selection, measured, Now(active, load_last_event(session) if active else 0)

    return context.answer(load, lambda found: context.page("matrix.html", matrix_page(context, query, *found)))


@dataclass(frozen=True)
class Now:
    """A run that goes on (None: none), and the event from which a reader follows it."""

    active: RunRow | None
    last_event: int


def matrix_page(
    context: RequestContext, query: MatrixPageQuery, selection: Selection, measured: Sequence[str], now: Now
) -> MatrixPage:
    """Everything templates/matrix.html shows, as values."""
    (hardware,) = selection.classes
    shown = newest_of(selection.columns, query.fold_minors)
    heads = heads_of([selection.columns[at] for at in shown], selection.measured)
    is_large = len(selection.issues) * len(heads) > MOST_CELLS
    look = _look(hardware, context.language, shown, heads, selection.all_builds, is_plain=is_large)
    rows = _rows(context, selection, look)
    groups = _groups(query, [row for row in rows if not row.is_elsewhere], len(heads), context)
    cells = sum(len(group.rows) for group in groups) * len(heads)
    return MatrixPage(
        hardware=hardware,
        totals=total(row.tally for row in rows),
        heads=heads,
        minors=_minors(query, selection, heads),
        build_count=len(selection.columns),
        names_python=any(head.python != DEFAULT_PYTHON for head in heads),
        groups=groups,
        fold_all=_fold_all(context, query, groups, cells),
        lifespans=_lifespans(context, query, groups, selection.known, hardware),
        views=_view_choices(context, query),
        elsewhere=tuple(row for row in rows if row.is_elsewhere and not row.is_on_cpu),
        on_cpu=tuple(row for row in rows if row.is_on_cpu),
        cpu_address=f"/{query.asking(hardware=CPU_CLASS)}",
        has_evidence=hardware in measured,
        issue_count=len(rows),
        feet=_feet(context, rows, len(heads)),
        classes=_class_choices(query, measured, hardware),
        pythons=_python_choices(context, query, selection),
        columns=_column_choices(context, query, selection),
        query=query,
        kept=query.kept,
        address=f"/{query.asking(hardware=hardware)}",
        cleared_address=f"/{query.cleared.asking()}",
        csv_address=query.at_door("export/csv", hardware, query.columns),
        markdown_address=query.at_door("export/markdown", hardware, query.columns),
        legend=LEGEND,
        active=now.active,
        live_address=f"{API}/events?after={now.last_event}" if now.active else "",
        json_address=query.at_door("matrix", hardware, _twin(query)),
        is_large=is_large,
        begins_folded=cells > MOST_CELLS,
    )


VIEW_WORDS = {MatrixView.SQUARES: "squares", MatrixView.LIFESPANS: "lifespans"}


def _view_choices(context: RequestContext, query: MatrixPageQuery) -> tuple[Choice, ...]:
    return tuple(
        Choice(context.say(word), f"/{query.asking(view=view)}", query.view is view)
        for view, word in VIEW_WORDS.items()
    )


def _lifespans(
    context: RequestContext, query: MatrixPageQuery, groups: Iterable[Group], known: Known, hardware: str
) -> LifespanChart | None:
    """Those of groups that are not folded. None where only squares are asked for, or a file has no other view. Beside
    squares, whose cells are links, bars are pictures alone.
    """
    if query.view is MatrixView.SQUARES or (context.is_file and query.view is MatrixView.BY_WIDTH):
        return None
    issues = [row.issue for group in groups if not group.fold.is_folded for row in group.rows]
    spans = lifespans_of(issues, known, hardware)
    return lifespan_chart(context, spans, has_cells=query.view is MatrixView.LIFESPANS)


def _twin(query: MatrixPageQuery) -> Columns:
    """The twin lists every cell of this view, and those of releases nobody measured: but what a query says of all
    columns, it says of those of the view.
    """
    return Columns.RELEASES if query.columns is Columns.MEASURED and not query.q else query.columns


@dataclass(frozen=True, eq=False)
class _Look:
    """Values that all rows of a view share. `places` are the columns that are not folded away, `heads` theirs; `builds`
    has all there are.
    """

    hardware: str
    language: Language
    places: tuple[int, ...]
    heads: tuple[ColumnHeader, ...]
    builds: Mapping[str, Build]
    is_plain: bool


@lru_cache(maxsize=64)
def _look(
    hardware: str,
    language: Language,
    places: tuple[int, ...],
    heads: tuple[ColumnHeader, ...],
    builds: tuple[Build, ...],
    *,
    is_plain: bool,
) -> _Look:
    """The same look is the same object."""
    known = {build.id: build for build in builds}
    return _Look(hardware, language, places, heads, known, is_plain)


def _rows(context: RequestContext, selection: Selection, look: _Look) -> tuple[Row, ...]:
    rows = []
    for issue in selection.issues:
        cells = selection.rows[issue.id, look.hardware]
        history = selection.known.told(issue, look.hardware)
        helping = len(selection.known.helping(issue.id, look.hardware))
        title = context.title_of(issue)
        rows.append(
            _row(
                IdentityKey(issue), title, IdentityKeys(cells), history, helping, look, _stale(cells, look, context.now)
            )
        )
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
    history: str,
    helping: int,
    look: _Look,
    stale: frozenset[CellPlace],
) -> Row:
    """Kept until something in it changes, because between two pages little does. Of 100 issues x 40 builds a page after
    one cell's change took 73 ms when all rows and cells were made anew, 33 as here; of 500 x 60 441 and 105 (time of
    the process, compression included; two shared cores, 2026-11-21).
    """
    squares = squares_of([cells.them[at] for at in look.places], look.heads, stale)
    return Row(
        issue=issue.it,
        title=title,
        address=issue_address(issue.it.id, hardware=look.hardware),
        squares=squares,
        signs=tuple(square.sign for square in squares),
        drawn=drawn(squares, "td", look.language, plain=look.is_plain),
        sentence=_sentence(cells.them, history, helping),
        tally=tally(cells.them, stale),
        is_on_cpu=concerns_cpu_path(cells.them),
    )


def _sentence(cells: Sequence[Cell], history: str, helping: int) -> str:
    """The end of a row: what the whole line of releases says, also where some of it is no column of this view."""
    if cells and all(cell.verdict is Verdict.NOT_APPLICABLE for cell in cells):
        return cells[-1].reason
    if not helping:
        return history
    return f"{history} · {helping} {'workaround helps' if helping == 1 else 'workarounds help'}"


def _groups(query: MatrixPageQuery, rows: Iterable[Row], width: int, context: RequestContext) -> tuple[Group, ...]:
    grouped = [(component, tuple(found)) for component, found in groupby(rows, key=lambda row: row.issue.component)]
    cells = {component: len(found) * width for component, found in grouped}
    folded, all_open = _folded(query, cells), _all_open(sum(cells.values()))
    return tuple(
        Group(
            component,
            rows=found,
            heat=_heat(context, found),
            fold=Fold(
                address=f"/{query.asking(fold=_toggled(folded, component) or all_open)}#group-{at}",
                is_folded=component in folded,
                anchor=f"group-{at}",
                count=len(found),
            ),
        )
        for at, (component, found) in enumerate(grouped, start=1)
    )


def _folded(query: MatrixPageQuery, cells: Mapping[str, int]) -> list[str]:
    """The components whose rows are not shown; `cells` has the number of theirs, in the order of the page. Of itself a
    view folds those beyond MOST_CELLS, but never the first.
    """
    if query.fold:
        return [name for name in cells if EVERY in query.fold or name in query.fold]
    later = [name for name, end in zip(cells, accumulate(cells.values()), strict=True) if end > MOST_CELLS]
    return later if len(later) < len(cells) else later[1:]


def _all_open(cells: int) -> list[str]:
    """The value of `fold` where every group of so many cells is open."""
    return [NONE] if cells > MOST_CELLS else []


def _toggled(names: Sequence[str], name: str) -> list[str]:
    return [one for one in names if one != name] if name in names else [*names, name]


def _fold_all(context: RequestContext, query: MatrixPageQuery, groups: Sequence[Group], cells: int) -> Choice:
    """Folds every group; opens them all where none is open, or where nobody had asked for those that are folded."""
    folded = [group.fold.is_folded for group in groups]
    is_folded = bool(folded) and (all(folded) if query.fold else any(folded))
    address = f"/{query.asking(fold=_all_open(cells) if is_folded else [EVERY])}"
    return Choice(context.say("open all groups") if is_folded else context.say("fold all groups"), address, is_folded)


def _heat(context: RequestContext, rows: Sequence[Row]) -> tuple[Heat, ...]:
    columns = zip(*(row.signs for row in rows), strict=True)
    return tuple(_hottest(context, column) for column in columns)


def _hottest(context: RequestContext, signs: Sequence[StatusLabel]) -> Heat:
    sign = min(set(signs), key=SEVERITY.__getitem__)
    count = signs.count(sign)
    return Heat(sign, count, f"{context.say(STATUSES[sign].word)}: {count}")


def _minors(query: MatrixPageQuery, selection: Selection, heads: Sequence[ColumnHeader]) -> dict[str, Fold]:
    counts = Counter(column.head.minor for column in selection.columns)
    return {
        head.id: Fold(
            address=f"/{query.asking(fold_minors=_toggled(query.fold_minors, head.minor))}#matrix",
            is_folded=head.minor in query.fold_minors,
            anchor="matrix",
            count=counts[head.minor],
        )
        for head in heads
        if head.starts_minor and counts[head.minor] > 1
    }


def _feet(context: RequestContext, rows: Sequence[Row], width: int) -> tuple[Foot, ...]:
    """How many of each column fail without a workaround, with one that helps in part, with one that works, and pass."""
    counts = [Counter(column) for column in zip(*(row.signs for row in rows), strict=True)] or [Counter()] * width
    return tuple(
        Foot(sign, context.say(STATUSES[sign].word), tuple(count[sign] for count in counts))
        for sign in (StatusLabel.FAILS, StatusLabel.PARTIAL, StatusLabel.WORKAROUND, StatusLabel.PASSES)
        if sign is not StatusLabel.PARTIAL or any(count[sign] for count in counts)
    )


def _class_choices(query: MatrixPageQuery, measured: Sequence[str], shown: str) -> tuple[Choice, ...]:
    classes = dict.fromkeys([*measured, shown])
    return tuple(Choice(class_, f"/{query.asking(hardware=class_)}", class_ == shown) for class_ in classes)


def _python_choices(context: RequestContext, query: MatrixPageQuery, selection: Selection) -> tuple[Choice, ...]:
    """Every Python together, as they agree, or one alone; none where one alone was measured, or builds are named."""
    pythons = {build.python for build in selection.all_builds if build.id in selection.measured}
    if query.builds or len(pythons | {query.python} - {""}) < 2:  # noqa: PLR2004 - a choice is between two
        return ()
    every = Choice(context.say("all"), f"/{query.asking(python='')}", not query.python)
    each = sorted(pythons, key=lambda python: [int(part) for part in python.split(".")])
    return (every, *(Choice(python, f"/{query.asking(python=python)}", python == query.python) for python in each))


def _column_choices(context: RequestContext, query: MatrixPageQuery, selection: Selection) -> tuple[Choice, ...]:
    """The choices of columns, with the number of each; none where the address names its builds."""
    if query.builds:
        return ()
    return tuple(
        Choice(
            f"{context.say(label)} ({_width(selection, columns)})",
            f"/{query.asking(columns=columns)}",
            columns is query.columns,
        )
        for columns, label in _COLUMN_WORDS.items()
    )


def _width(selection: Selection, columns: Columns) -> int:
    chosen = choose_columns(selection.offered, selection.measured, columns) or selection.offered
    if columns is Columns.ALL:
        return len(chosen)
    return len(fold(selection.issues, chosen, selection.classes, selection.known))


_COLUMN_WORDS = {
    Columns.MEASURED: "measured",
    Columns.MINORS: "minors",
    Columns.RELEASES: "patches",
    Columns.ALL: "with mismatched Triton",
}
