"""`/`: issues x builds of one hardware class, and what they add up to."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Self
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from app.domain.build import DEFAULT_PYTHON, Build
from app.domain.history import FAILING, history_of
from app.domain.issue import Issue
from app.domain.matrix import CellKey, Columns, Tally, choose_columns, fold, newest_of, stale_cells, tally
from app.domain.verdict import Cell, Verdict
from app.store.reads import RunRow, load_active_run, load_hardware, load_last_event
from app.web.addresses import issue_address
from app.web.selection import MatrixQuery, Names, Selection, Words, one_class, select
from app.web.signs import GRAVEST_FIRST, LEGEND, WORDS, LegendEntry, Sign, cures_of
from app.web.squares import Choice, Head, Square, heads_of, squares_of
from app.web.visit import API, Visit, Visiting

router = APIRouter(include_in_schema=False)


EVERY = "all"  # of `fold`: every group


class MatrixPageQuery(MatrixQuery):
    """The page shows one hardware class at a time, and may fold its rows and columns.

    `fold` names the components of which a strip is shown instead of their rows; `fold_minors` the torch minors that
    show their newest patch alone. A name that is not in the view folds nothing.
    """

    hardware: Words = ""
    columns: Columns = Columns.MEASURED
    fold: Names
    fold_minors: Names

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
        """What the query form sends along unseen."""
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
    issue: Issue
    title: str
    address: str
    squares: tuple[Square, ...]
    sentence: str

    @property
    def is_elsewhere(self) -> bool:
        return bool(self.squares) and all(square.sign is Sign.NOT_APPLICABLE for square in self.squares)


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

    sign: Sign
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
    sign: Sign
    word: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class MatrixPage:
    """`elsewhere` are the issues that apply to no column on this hardware: a line each instead of a row of dots.

    `names_python` is False where every column is of the default Python alone. `minors` has the minors of more than one
    column, by the build (id) at whose head they begin. `build_count` counts columns that are folded away too.
    """

    hardware: str
    totals: Tally
    heads: tuple[Head, ...]
    minors: Mapping[str, Fold]
    build_count: int
    names_python: bool
    groups: tuple[Group, ...]
    fold_all: Choice
    elsewhere: tuple[Row, ...]
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

    @property
    def is_large(self) -> bool:
        """So large that each cell is written as a character, not drawn."""
        return self.issue_count * len(self.heads) > _MOST_DRAWN


_MOST_DRAWN = 8_000


@router.get("/")
def matrix(visit: Visiting, query: Annotated[MatrixPageQuery, Query()]) -> Response:
    with visit.reading() as session:
        measured = load_hardware(session)
        selection = select(
            session, query, [one_class(query.hardware, measured)], query.columns, now=visit.now, folded=True
        )
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
    shown = newest_of(selection.columns, query.fold_minors)
    heads = heads_of([selection.columns[at] for at in shown], selection.measured)
    cells = [cell for issue in selection.issues for cell in selection.rows[issue.id, hardware]]
    stale = stale_cells(cells, builds, visit.now)
    rows = _rows(visit, query, selection, _Shown(shown, heads, stale), builds)
    groups = _groups(visit, query, [row for row in rows if not row.is_elsewhere])
    return MatrixPage(
        hardware=hardware,
        totals=tally(cells, stale),
        heads=heads,
        minors=_minors(query, selection, heads),
        build_count=len(selection.columns),
        names_python=any(head.python != DEFAULT_PYTHON for head in heads),
        groups=groups,
        fold_all=_fold_all(visit, query, groups),
        elsewhere=tuple(row for row in rows if row.is_elsewhere),
        issue_count=len(rows),
        feet=_feet(visit, rows, len(heads)),
        classes=_class_choices(query, measured, hardware),
        pythons=_python_choices(visit, query, selection),
        columns=_column_choices(visit, query, selection),
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
    )


def _twin(query: MatrixPageQuery) -> Columns:
    """The twin lists every cell of this view, and those of releases nobody measured: but what a query says of all
    columns, it says of those of the view.
    """
    return Columns.RELEASES if query.columns is Columns.MEASURED and not query.q else query.columns


@dataclass(frozen=True)
class _Shown:
    """The columns that are not folded away: their places in a row, and their heads. `stale` are cells of any column."""

    places: tuple[int, ...]
    heads: tuple[Head, ...]
    stale: Collection[CellKey]


def _rows(
    visit: Visit, query: MatrixPageQuery, selection: Selection, shown: _Shown, builds: Mapping[str, Build]
) -> tuple[Row, ...]:
    (hardware,) = selection.classes
    told_of = {id_ for id_, build in builds.items() if query.python in {"", build.python}}
    stored: dict[str, list[Cell]] = {}
    for cell in selection.stored:
        if cell.build in told_of:
            stored.setdefault(cell.issue, []).append(cell)
    rows = []
    for issue in selection.issues:
        cells = selection.rows[issue.id, hardware]
        row = Row(
            issue=issue,
            title=visit.in_language(issue.title, issue.title_zh),
            address=issue_address(issue.id, hardware=hardware),
            squares=squares_of([cells[at] for at in shown.places], shown.heads, shown.stale),
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


def _groups(visit: Visit, query: MatrixPageQuery, rows: Iterable[Row]) -> tuple[Group, ...]:
    grouped = [(component, tuple(found)) for component, found in groupby(rows, key=lambda row: row.issue.component)]
    names = [component for component, _ in grouped]
    folded = names if EVERY in query.fold else [name for name in names if name in query.fold]
    return tuple(
        Group(
            component,
            rows=found,
            heat=_heat(visit, found),
            fold=Fold(
                address=f"/{query.asking(fold=_toggled(folded, component))}#group-{at}",
                is_folded=component in folded,
                anchor=f"group-{at}",
                count=len(found),
            ),
        )
        for at, (component, found) in enumerate(grouped, start=1)
    )


def _toggled(names: Sequence[str], name: str) -> list[str]:
    return [one for one in names if one != name] if name in names else [*names, name]


def _fold_all(visit: Visit, query: MatrixPageQuery, groups: Sequence[Group]) -> Choice:
    """Folds every group, or opens them all where none is open."""
    is_folded = bool(groups) and all(group.fold.is_folded for group in groups)
    address = f"/{query.asking(fold=[] if is_folded else [EVERY])}"
    return Choice(visit.say("open all groups") if is_folded else visit.say("fold all groups"), address, is_folded)


def _heat(visit: Visit, rows: Sequence[Row]) -> tuple[Heat, ...]:
    columns = zip(*(row.squares for row in rows), strict=True)
    return tuple(_hottest(visit, [square.sign for square in column]) for column in columns)


def _hottest(visit: Visit, signs: Sequence[Sign]) -> Heat:
    sign = min(signs, key=_GRAVITY.__getitem__)
    count = signs.count(sign)
    return Heat(sign, count, f"{visit.say(WORDS[sign])}: {count}")


_GRAVITY = {sign: rank for rank, sign in enumerate(GRAVEST_FIRST)}


def _minors(query: MatrixPageQuery, selection: Selection, heads: Sequence[Head]) -> dict[str, Fold]:
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


def _feet(visit: Visit, rows: Sequence[Row], width: int) -> tuple[Foot, ...]:
    """How many of each column fail without a cure, fail with one, and pass."""
    counts = [Counter(row.squares[at].sign for row in rows) for at in range(width)]
    return tuple(
        Foot(sign, visit.say(WORDS[sign]), tuple(count[sign] for count in counts))
        for sign in (Sign.FAILS, Sign.CURE, Sign.PASSES)
    )


def _class_choices(query: MatrixPageQuery, measured: Sequence[str], shown: str) -> tuple[Choice, ...]:
    classes = dict.fromkeys([*measured, shown])
    return tuple(Choice(class_, f"/{query.asking(hardware=class_)}", class_ == shown) for class_ in classes)


def _python_choices(visit: Visit, query: MatrixPageQuery, selection: Selection) -> tuple[Choice, ...]:
    """Every Python together, as they agree, or one alone; none where one alone was measured, or builds are named."""
    pythons = {build.python for build in selection.all_builds if build.id in selection.measured}
    if query.builds or len(pythons | {query.python} - {""}) < 2:  # noqa: PLR2004 - a choice is between two
        return ()
    every = Choice(visit.say("all"), f"/{query.asking(python='')}", not query.python)
    each = sorted(pythons, key=lambda python: [int(part) for part in python.split(".")])
    return (every, *(Choice(python, f"/{query.asking(python=python)}", python == query.python) for python in each))


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
    chosen = choose_columns(selection.offered, selection.measured, columns) or selection.offered
    return len(chosen) if columns is Columns.ALL else len(fold(chosen, selection.stored))


_COLUMN_WORDS = {
    Columns.MEASURED: "measured",
    Columns.MINORS: "minors",
    Columns.RELEASES: "patches",
    Columns.ALL: "with mismatched Triton",
}
