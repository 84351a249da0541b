"""`/`: issues x builds of one hardware class, and what they add up to."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Self
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from app.domain.build import DEFAULT_PYTHON, Build
from app.domain.history import FAILING, history_of
from app.domain.issue import Issue
from app.domain.matrix import CellKey, Columns, Tally, choose_columns, fold, stale_cells, tally
from app.domain.verdict import Cell, Verdict
from app.store.reads import RunRow, load_active_run, load_hardware, load_last_event
from app.web.addresses import issue_address
from app.web.selection import MatrixQuery, Selection, Words, one_class, select
from app.web.signs import GRAVEST_FIRST, LEGEND, WORDS, LegendEntry, Sign, cures_of
from app.web.squares import Choice, Head, Square, heads_of, squares_of
from app.web.visit import API, Visit, Visiting

router = APIRouter(include_in_schema=False)


class MatrixPageQuery(MatrixQuery):
    """The page shows one hardware class at a time, and may fold its columns."""

    hardware: Words = ""
    columns: Columns = Columns.MEASURED

    def asking(self, **changes: object) -> str:
        """The query string of this view with `changes`; what stands at its default is left out."""
        changed = self.model_copy(update=changes).model_dump(mode="json", exclude_defaults=True)
        return f"?{urlencode(changed, doseq=True)}" if changed else ""

    @property
    def kept(self) -> tuple[tuple[str, str], ...]:
        """What the filter form sends along unseen."""
        seen = {"q", "component", "verdict"}
        unseen = self.model_dump(mode="json", exclude_defaults=True, exclude=seen)
        return tuple(
            (name, one) for name, value in unseen.items() for one in (value if isinstance(value, list) else [value])
        )

    @property
    def cleared(self) -> Self:
        """The same view of everything."""
        return self.model_copy(update={"q": "", "component": "", "verdict": None, "issues": [], "builds": []})

    @property
    def is_filtered(self) -> bool:
        return bool(self.q or self.component or self.verdict or self.issues or self.builds)


@dataclass(frozen=True)
class Row:
    issue: Issue
    title: str
    address: str
    squares: tuple[Square, ...]
    sentence: str

    @property
    def is_elsewhere(self) -> bool:
        return bool(self.squares) and all(square.sign is Sign.NOT_APPLICABLE for square in self.squares)


@dataclass(frozen=True)
class Group:
    """The issues of one component. `heat` has, per column, the gravest sign in it: all that a folded group shows."""

    component: str
    rows: tuple[Row, ...]
    heat: tuple[Sign, ...]


@dataclass(frozen=True)
class Foot:
    sign: Sign
    word: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class MatrixPage:
    """`elsewhere` are the issues that apply to no column on this hardware: a line each instead of a row of dots.

    `names_python` is False where every column is of the default Python alone.
    """

    hardware: str
    totals: Tally
    heads: tuple[Head, ...]
    names_python: bool
    groups: tuple[Group, ...]
    elsewhere: tuple[Row, ...]
    issue_count: int
    feet: tuple[Foot, ...]
    classes: tuple[Choice, ...]
    columns: tuple[Choice, ...]
    components: tuple[str, ...]
    verdicts: tuple[tuple[str, str], ...]
    query: MatrixPageQuery
    kept: tuple[tuple[str, str], ...]
    cleared_address: str
    legend: tuple[LegendEntry, ...]
    active: RunRow | None
    live_address: str
    json_address: str


@router.get("/")
def matrix(visit: Visiting, query: Annotated[MatrixPageQuery, Query()]) -> Response:
    with visit.reading() as session:
        measured = load_hardware(session)
        selection = select(session, query, [one_class(query.hardware, measured)], query.columns, folded=True)
        active = load_active_run(session)
        now = Now(active, load_last_event(session) if active else 0)
    return visit.page("matrix.html", matrix_page(visit, query, selection, measured, now))


@dataclass(frozen=True)
class Now:
    """A run that goes on (None: none), and the event from which a reader follows it."""

    active: RunRow | None
    last_event: int


def matrix_page(
    visit: Visit, query: MatrixPageQuery, selection: Selection, measured: Sequence[str], now: Now
) -> MatrixPage:
    """Everything templates/matrix.html shows, as values."""
    (hardware,) = selection.classes
    builds = {build.id: build for build in selection.all_builds}
    heads = heads_of(selection.columns, selection.measured)
    cells = [cell for issue in selection.issues for cell in selection.rows[issue.id, hardware]]
    stale = stale_cells(cells, builds, visit.now)
    rows = _rows(visit, selection, heads, builds, stale)
    return MatrixPage(
        hardware=hardware,
        totals=tally(cells, stale),
        heads=heads,
        names_python=any(head.python != DEFAULT_PYTHON for head in heads),
        groups=_groups(row for row in rows if not row.is_elsewhere),
        elsewhere=tuple(row for row in rows if row.is_elsewhere),
        issue_count=len(rows),
        feet=_feet(visit, rows, len(heads)),
        classes=_class_choices(query, measured, hardware),
        columns=_column_choices(visit, query, selection),
        components=tuple(sorted({issue.component for issue in selection.all_issues}, key=str.casefold)),
        verdicts=tuple((verdict.value, visit.say(_VERDICT_WORDS[verdict])) for verdict in Verdict),
        query=query,
        kept=query.kept,
        cleared_address=f"/{query.cleared.asking()}",
        legend=LEGEND,
        active=now.active,
        live_address=f"{API}/events?after={now.last_event}" if now.active else "",
        json_address=f"{API}/matrix{_twin(query, hardware)}",
    )


def _twin(query: MatrixPageQuery, hardware: str) -> str:
    """What lists every cell of this view, and those of releases nobody measured."""
    columns = Columns.RELEASES if query.columns is Columns.MEASURED else query.columns
    return query.asking(hardware=hardware, columns=columns)


_VERDICT_WORDS = {
    Verdict.AFFECTED: WORDS[Sign.FAILS],
    Verdict.NOT_AFFECTED: WORDS[Sign.PASSES],
    Verdict.DIFFERENT_FAILURE: WORDS[Sign.DIFFERENT],
    Verdict.FLAKY: WORDS[Sign.FLAKY],
    Verdict.INCONCLUSIVE: WORDS[Sign.UNSURE],
    Verdict.NOT_APPLICABLE: WORDS[Sign.NOT_APPLICABLE],
    Verdict.NO_BUILD: WORDS[Sign.NO_BUILD],
    Verdict.NOT_RUN: WORDS[Sign.NOT_RUN],
}


def _rows(
    visit: Visit,
    selection: Selection,
    heads: Sequence[Head],
    builds: Mapping[str, Build],
    stale: Collection[CellKey],
) -> tuple[Row, ...]:
    (hardware,) = selection.classes
    stored: dict[str, list[Cell]] = {}
    for cell in selection.stored:
        if cell.build in builds:
            stored.setdefault(cell.issue, []).append(cell)
    rows = []
    for issue in selection.issues:
        cells = selection.rows[issue.id, hardware]
        row = Row(
            issue=issue,
            title=visit.in_language(issue.title, issue.title_zh),
            address=issue_address(issue.id, hardware=hardware),
            squares=squares_of(cells, heads, stale),
            sentence=_sentence(cells, stored.get(issue.id, ()), builds),
        )
        rows.append(row)
    return tuple(rows)


def _sentence(cells: Sequence[Cell], stored: Sequence[Cell], builds: Mapping[str, Build]) -> str:
    """The end of a row: what the whole line of releases says, also where some of it is no column of this view."""
    if cells and all(cell.verdict is Verdict.NOT_APPLICABLE for cell in cells):
        return cells[-1].reason
    sentence = history_of([(builds[cell.build], cell.verdict) for cell in stored]).sentence
    cures = {id_ for cell in stored if cell.verdict in FAILING for id_ in cures_of(cell)}
    if not cures:
        return sentence
    return f"{sentence} · {len(cures)} {'workaround helps' if len(cures) == 1 else 'workarounds help'}"


def _groups(rows: Iterable[Row]) -> tuple[Group, ...]:
    grouped = ((component, tuple(found)) for component, found in groupby(rows, key=lambda row: row.issue.component))
    return tuple(Group(component, found, _heat(found)) for component, found in grouped)


def _heat(rows: Sequence[Row]) -> tuple[Sign, ...]:
    columns = zip(*(row.squares for row in rows), strict=True)
    return tuple(min((square.sign for square in column), key=GRAVEST_FIRST.index) for column in columns)


def _feet(visit: Visit, rows: Sequence[Row], width: int) -> tuple[Foot, ...]:
    """How many of each column fail without a cure, fail with one, and pass."""
    signs = [[square.sign for square in row.squares] for row in rows]
    return tuple(
        Foot(sign, visit.say(WORDS[sign]), tuple(sum(1 for row in signs if row[at] is sign) for at in range(width)))
        for sign in (Sign.FAILS, Sign.CURE, Sign.PASSES)
    )


def _class_choices(query: MatrixPageQuery, measured: Sequence[str], shown: str) -> tuple[Choice, ...]:
    classes = dict.fromkeys([*measured, shown])
    return tuple(Choice(class_, f"/{query.asking(hardware=class_)}", class_ == shown) for class_ in classes)


def _column_choices(visit: Visit, query: MatrixPageQuery, selection: Selection) -> tuple[Choice, ...]:
    """What each choice would show, with its number of columns; none where the address names its builds."""
    if query.builds:
        return ()
    return tuple(
        Choice(
            f"{visit.say(label)} ({_width(selection, columns)})",
            f"/{query.asking(columns=columns)}",
            columns is query.columns,
        )
        for columns, label in _COLUMN_WORDS.items()
    )


def _width(selection: Selection, columns: Columns) -> int:
    chosen = choose_columns(selection.all_builds, selection.measured, columns)
    return len(chosen) if columns is Columns.ALL else len(fold(chosen, selection.stored))


_COLUMN_WORDS = {
    Columns.MEASURED: "measured releases",
    Columns.MINORS: "newest patches",
    Columns.RELEASES: "all releases",
    Columns.ALL: "all, unfolded, with mismatched Triton",
}
