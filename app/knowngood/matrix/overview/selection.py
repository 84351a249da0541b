"""The part of the matrix that is asked for: the same parameters for the page and its JSON twin, checked once."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.errors import BadRequest, UnknownBuild, UnknownIssue
from knowngood.domain.hardware_names import measured_classes
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import find_issues
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Column, Columns, choose_columns, families_of, fold, rows_of, unfolded
from knowngood.domain.verdicts.status import fails
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.query.evaluate import View, columns_left, matching, needs_cells, of_issues
from knowngood.query.parser import LONGEST as LONGEST_QUERY
from knowngood.query.parser import BadQuery, Query, parse
from knowngood.store.engine import Session
from knowngood.store.knowledge.cache import KnowledgeCache
from knowngood.store.knowledge.loader import load_known_at
from knowngood.web.errors import InvalidParameter, QueryRefused, nearest, or_nearest

_LONGEST = 200  # a parameter is a name or a few words


def _split(values: list[str]) -> list[str]:
    """Lists are repeated parameters or comma-separated, as on the command line."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _split_texts(values: object) -> object:
    """Split before anything is checked; a value that is no list of texts, or has an empty one, is left to the later
    check.
    """
    if isinstance(values, list) and all(isinstance(value, str) and value.strip() for value in values):
        return _split(values) if len(values) <= _MOST_TEXTS else values
    return values


def none_where_empty(value: object) -> object:
    """A form sends a choice that nobody made as an empty text."""
    return None if value == "" else value


_MOST_TEXTS = 100  # each a name, or names with commas between

Names = Annotated[
    list[Annotated[str, Field(max_length=10_000)]],
    Field(max_length=_MOST_TEXTS),
    AfterValidator(_split),
    Field(default_factory=list),
]
Word = TypeVar("Word")
# The same, of words that are known beforehand.
Several = Annotated[list[Word], BeforeValidator(_split_texts), Field(default_factory=list, max_length=_MOST_TEXTS)]
Words = Annotated[str, Field(max_length=_LONGEST)]


class MatrixQuery(BaseModel):
    """Parameters of `/matrix` and `/api/v1/matrix`. Everything left out means all of it."""

    issues: Annotated[Names, Field(description="Issue ids, repeated or comma-separated; `all` for all of them")]
    builds: Annotated[
        Names, Field(description="Build ids or versions of torch; a + may be written as %2B or as a space")
    ]
    python: Annotated[
        Words, Field(description="Only builds of this Python (`3.12`), where none are named; none means every one")
    ] = ""
    component: Annotated[Words, Field(description="Only issues of this component")] = ""
    verdict: Annotated[
        Verdict | None,
        BeforeValidator(none_where_empty),
        WithJsonSchema({"type": "string", "enum": [*Verdict, ""]}),
        Field(description="Only issues with at least one cell of this verdict in the selection; empty means any"),
    ] = None
    fails: Annotated[
        Words, Field(description="Only issues that fail on this build, with a workaround or without: `2.13`, or an id")
    ] = ""
    q: Annotated[
        str,
        Field(
            max_length=LONGEST_QUERY,
            description="A query of issues and columns. Bare words stand in an issue's id, title or component",
        ),
    ] = ""


@dataclass(frozen=True)
class _Ground:
    """The issues, columns and cells that conditions on cells are then asked of."""

    issues: tuple[Issue, ...]
    chosen: tuple[Build, ...]
    columns: tuple[Column, ...]
    classes: tuple[str, ...]
    rows: Mapping[tuple[str, str], tuple[Cell, ...]]
    measured: frozenset[str]
    offered: tuple[Build, ...]
    known: Known

    @cached_property
    def lines(self) -> Mapping[tuple[str, str], tuple[Cell, ...]]:
        """A row per issue and class with each build separate, also where Pythons share a column."""
        each = unfolded(self.chosen)
        return self.rows if self.columns == each else rows_of(self.issues, each, self.classes, self.known)


@dataclass(frozen=True)
class Selection(_Ground):
    """Issues in the order of components, columns in the order of releases, and every cell between them.

    `condition` is the query `q`, `looked` its ground, and `offered` are the builds that it leaves to choose from.
    `rows` have, by issue and class, the cell that stands for each column, also of issues that the query then leaves
    out; a row's history comes from all that is `known`, also of builds that are no column. `measured` are the builds
    they were measured on. Columns, and a row's cells, are the very same objects as before where nothing of them
    changed.
    """

    condition: Query
    looked: "Looked"


def select(
    session: Session,
    query: MatrixQuery,
    classes: Sequence[str],
    columns: Columns,
    *,
    cache: KnowledgeCache,
    now: datetime,
    folded: bool = False,
    at: datetime | None = None,
) -> Selection:
    """Load what `query` asks for on the hardware `classes`; `columns` counts where no builds are named.

    What `cache` holds is not read again. With `at`, cells are as they were known at that moment (see `load_cells_at`);
    ages are counted by `now`.

    With `folded` Pythons share a column; builds that are named, and all of them, stand for themselves.
    Raises InvalidParameter for names we do not have, with the nearest ones.
    """
    condition = read_condition(query.q)
    known = cache.load(session, now).knowledge.known
    issues, builds = tuple(known.issues.values()), tuple(known.builds.values())
    if at is not None:
        wanted = _issues(issues, query, condition)
        ids = None if len(wanted) == len(issues) else frozenset(issue.id for issue in wanted)
        known = known_then(session, at, issues=ids, hardware=classes)
    looked = Looked(known, issues, builds, now, folded=folded)
    return selected(looked, query, condition, classes, columns)


@dataclass(frozen=True)
class Looked:
    """The ground of a selection: the cells, the catalogue of today, and the time by which ages are counted.
    `grounds` are kept for the next question of the same request: many differ in what they ask of cells alone.
    """

    known: Known
    issues: tuple[Issue, ...]
    builds: tuple[Build, ...]
    now: datetime
    folded: bool
    grounds: dict[object, _Ground] = field(default_factory=dict, compare=False, repr=False)


def selected(
    looked: Looked, query: MatrixQuery, condition: Query, classes: Sequence[str], columns: Columns
) -> Selection:
    """The same with `condition` in place of the query's own text: the selection that it would give."""
    ground = _ground(looked, query, condition, tuple(classes), columns)
    wanted = ground.issues
    if needs_cells(condition):
        view, lines = View(ground.chosen, looked.now), ground.lines
        wanted = tuple(matching(condition, wanted, view, lambda issue: [lines[issue.id, class_] for class_ in classes]))
    if query.fails:
        build = builds_or_wheels(looked.builds, [query.fails], "fails")[0]
        wanted = tuple(
            issue for issue in wanted if any(fails(looked.known.cell(issue, build, class_)) for class_ in classes)
        )
    return Selection(
        issues=_with_verdict(wanted, ground.rows, query.verdict),
        chosen=ground.chosen,
        columns=ground.columns,
        classes=ground.classes,
        rows=ground.rows,
        known=looked.known,
        measured=ground.measured,
        offered=ground.offered,
        condition=condition,
        looked=looked,
    )


def _ground(
    looked: Looked, query: MatrixQuery, condition: Query, classes: tuple[str, ...], columns: Columns
) -> _Ground:
    known = looked.known
    wanted = _issues(looked.issues, query, condition)
    named = _named_columns(looked.builds, query.builds)
    builds = [build for column in named for build in column.builds] or _of_python(looked.builds, query.python)
    offered = _offered(builds, condition, query.q)
    key = (classes, columns, tuple(issue.id for issue in wanted), tuple(build.id for build in offered))
    if key in looked.grounds:
        return looked.grounds[key]
    measured = frozenset().union(*(known.measured_on(issue.id, class_) for issue in wanted for class_ in classes))
    # What the query names is shown, also where these columns would leave it out.
    chosen = offered if named else choose_columns(offered, measured, columns) or offered
    if named:
        left = (tuple(build for build in column.builds if build in chosen) for column in named)
        standing = tuple(Column(builds) for builds in left if builds)
    else:
        apart = columns is Columns.ALL or not looked.folded
        standing = unfolded(chosen) if apart else fold(chosen, classes, known)
    rows = rows_of(wanted, standing, classes, known)
    ground = _Ground(wanted, tuple(chosen), standing, classes, rows, measured, offered, known)
    return looked.grounds.setdefault(key, ground)


def read_condition(text: str) -> Query:
    """Parse a query as a reader wrote it. Raises QueryRefused, which points at what is wrong in it."""
    try:
        return parse(text)
    except BadQuery as error:
        raise QueryRefused(text, error) from None


def _offered(builds: Sequence[Build], condition: Query, text: str) -> tuple[Build, ...]:
    try:
        return columns_left(condition, builds)
    except BadQuery as error:
        raise QueryRefused(text, error) from None


def known_then(session: Session, at: datetime, **wanted: Collection[str] | None) -> Known:
    """The cells as known at a past moment, of the issues, builds or classes wanted. Raises InvalidParameter where that
    is too much.
    """
    try:
        return load_known_at(session, at, **wanted)
    except BadRequest as error:
        raise InvalidParameter(str(error), "at") from None


def one_class(name: str, measured: Sequence[str]) -> str:
    """The class a page shows where none is named: the CPU class if it was measured, else the first that was."""
    if name:
        return known_classes([name], measured)[0]
    return CPU_CLASS if CPU_CLASS in measured or not measured else measured[0]


def known_classes(names: Sequence[str], measured: Sequence[str]) -> tuple[str, ...]:
    """The classes that `names` mean; every measured one where there are none."""
    if not names:
        return tuple(measured) or (CPU_CLASS,)
    try:
        return measured_classes(names, measured)
    except BadRequest as error:
        raise InvalidParameter(str(error), "hardware") from None


def _of_python(builds: Sequence[Build], python: str) -> Sequence[Build]:
    if not python:
        return builds
    refuse_unknown("Python", [python], {build.python for build in builds}, "python")
    return [build for build in builds if build.python == python]


def _issues(issues: Sequence[Issue], query: MatrixQuery, condition: Query) -> tuple[Issue, ...]:
    """The issues that may be shown, by all that is known without their cells."""
    named = named_issues(issues, query.issues)
    if query.component:
        refuse_unknown("component", [query.component], {issue.component for issue in issues}, "component")
    may_match = of_issues(condition)
    return tuple(
        issue
        for issue in sorted(named, key=lambda issue: (issue.component.casefold(), issue.id))
        if (not query.component or issue.component == query.component) and may_match(issue)
    )


def _named_columns(builds: Sequence[Build], texts: Sequence[str]) -> tuple[Column, ...]:
    """Each build that is named for itself; where no Python is named, all of the wheel together."""
    families = {column.head.wheel.id: column for column in families_of(tuple(builds))}
    return tuple(families.get(build.id) or Column((build,)) for build in builds_or_wheels(builds, texts))


def named_builds(builds: Iterable[Build], texts: Iterable[str], field: str = "builds") -> tuple[Build, ...]:
    """The builds that `texts` of the parameter `field` mean, in release order."""
    return _meant({build.id: build for build in builds}, BuildNames.find, texts, field)


def builds_or_wheels(builds: Iterable[Build], texts: Iterable[str], field: str = "builds") -> tuple[Build, ...]:
    """The same builds, but wheels where no Python is named."""
    return _meant({build.id: build for build in builds}, BuildNames.find_or_wheel, texts, field)


def _meant(
    builds: Mapping[str, Build], find: Callable[[BuildNames, str], Build], texts: Iterable[str], field: str
) -> tuple[Build, ...]:
    names = BuildNames(builds)
    try:
        by_id = {build.id: build for build in (find(names, text) for text in dict.fromkeys(texts))}
    except UnknownBuild as error:
        raise InvalidParameter(str(error), field) from None
    return tuple(sorted(by_id.values(), key=lambda build: build.build_id))


def named_issues(issues: Sequence[Issue], texts: Sequence[str], field: str = "issues") -> tuple[Issue, ...]:
    """The issues that a reader means in the parameter `field`; all of them where none is named."""
    if not texts:
        return tuple(issues)
    try:
        return find_issues(texts, {issue.id: issue for issue in issues})
    except UnknownIssue as error:
        raise InvalidParameter(str(error), field) from None


def refuse_unknown(what: str, names: Iterable[str], known: Collection[str], field: str) -> None:
    """Raises InvalidParameter at the first name that is not known, with the nearest ones; `field` is the parameter."""
    for name in names:
        if name not in known:
            raise InvalidParameter(f'no {what} is called "{name}" here{or_nearest(nearest(name, known))}', field)


def _with_verdict(
    issues: tuple[Issue, ...], rows: Mapping[tuple[str, str], Sequence[Cell]], verdict: Verdict | None
) -> tuple[Issue, ...]:
    if verdict is None:
        return issues
    showing = {issue for (issue, _), row in rows.items() if any(cell.verdict is verdict for cell in row)}
    return tuple(issue for issue in issues if issue.id in showing)
