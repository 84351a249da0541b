"""Changes of the matrix, made readable: one entry per cause, however many cells it turned and however many steps
each of them took.

While a run goes on, a cell passes through `not_run` and `inconclusive` on its way to an answer, and an import brings
thousands of cells at once. A change shows each cell as it was before the cause and as it is after it. A cell that gets
its first verdict has not changed: it is shown only on request, and marked as a first measurement.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from knowngood.domain.builds.build import parse_build_id
from knowngood.domain.builds.packages import BuildCheck
from knowngood.domain.message import Message
from knowngood.domain.verdicts.verdict import HELPING, OfCell, Verdict, WorkaroundVerdict

Place = tuple[str, str, str]
"""Issue, hardware class, build."""


class Cause(StrEnum):
    """A cause that makes cells change: a run here, an imported bundle, an edit of the catalogue, what somebody said of
    a cell, that all results of a worker were voided or count again, that they were derived again by other rules, or
    that the package index was asked.
    """

    RUN = "run"
    IMPORT = "import"
    CATALOGUE = "catalogue"
    NOTE = "note"
    VOID = "void"
    UNVOID = "unvoid"
    DERIVED = "derived"
    INDEX = "index"


class CureNews(StrEnum):
    """The meaning of a workaround's new verdict for whoever uses it."""

    NO_LONGER_NEEDED = "no_longer_needed"
    STOPPED_WORKING = "stopped_working"
    NOW_WORKS = "now_works"
    NOW_HELPS_IN_PART = "now_helps_in_part"  # with some of the variants that fail, whatever it did before
    FIRST_MEASURED = "first_measured"
    OTHER = "other"


@dataclass(frozen=True)
class CellNews:
    """One step of one cell. None where there was, or is, no cell. `workarounds` are those with another verdict.

    `event` is its place among all events. `run` is empty where it was none; `origin` names where an imported bundle
    came from (empty: no import); where it was neither, `otherwise` says what it was.
    """

    at: datetime
    issue: str
    build: str
    hardware: str
    before: Verdict | None
    after: Verdict | None
    reason: Message | None = None
    workarounds: Mapping[str, tuple[WorkaroundVerdict | None, WorkaroundVerdict | None]] = field(default_factory=dict)
    run: str = ""
    origin: str = ""
    otherwise: Cause = Cause.DERIVED
    event: int = 0

    @property
    def cause(self) -> Cause:
        if self.run:
            return Cause.RUN
        return Cause.IMPORT if self.origin else self.otherwise

    @property
    def belongs_to(self) -> str:
        """The same for all that has one cause: the run, or the moment of the one commit."""
        return self.run or self.at.isoformat()

    @property
    def place(self) -> Place:
        return (self.issue, self.hardware, self.build)


@dataclass
class Earlier:
    """The last verdicts that cells and their workarounds had; what is not in it had none."""

    verdicts: dict[Place, Verdict] = field(default_factory=dict)
    workarounds: dict[tuple[Place, str], WorkaroundVerdict] = field(default_factory=dict)

    def learn(
        self,
        place: Place,
        verdicts: Iterable[Verdict | None],
        workarounds: Mapping[str, Iterable[WorkaroundVerdict | None]],
    ) -> None:
        """Take in one step of a cell, in the order of steps. A step that measured nothing is skipped."""
        for verdict in verdicts:
            if verdict not in {None, Verdict.NOT_RUN}:
                self.verdicts[place] = verdict
        for id_, findings in workarounds.items():
            for finding in findings:
                if finding not in {None, WorkaroundVerdict.UNVERIFIED}:
                    self.workarounds[place, id_] = finding


@dataclass(frozen=True)
class CureTurn:
    """A workaround's verdict before and after; `news` is what that means."""

    before: WorkaroundVerdict
    after: WorkaroundVerdict
    news: CureNews


@dataclass(frozen=True)
class CellTurn(OfCell):
    """A cell before and after a cause. `at` is when it came to be so, `reason` why it is so.

    Where it was not run before, because its repro had become another one, `earlier` is the last verdict it had; None
    where there was none.
    """

    before: Verdict
    after: Verdict
    reason: Message | None
    at: datetime
    workarounds: Mapping[str, CureTurn]
    earlier: Verdict | None = None

    @property
    def is_first(self) -> bool:
        """Nobody had ever measured it: its verdict is new, and nothing changed."""
        return self.before is Verdict.NOT_RUN and self.earlier is None

    @property
    def is_turned(self) -> bool:
        """Whether its own verdict is another one, not only that of a workaround."""
        return self.before is not self.after


@dataclass(frozen=True)
class Change:
    """The cells turned by one cause; `key` names it for good. `turns` stand by issue, then class, then release. Where
    the package index was asked it has none, and `builds` are those that can no longer, or again, be installed.
    """

    key: str
    at: datetime
    cause: Cause
    run: str
    origin: str
    turns: tuple[CellTurn, ...]
    builds: tuple[BuildCheck, ...] = ()

    @property
    def news(self) -> Sequence[BuildCheck | CellTurn]:
        return self.builds or self.turns

    @property
    def issues(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(turn.issue for turn in self.turns))


def changes_of(news: Iterable[CellNews], earlier: Earlier | None = None, *, first: bool = False) -> tuple[Change, ...]:
    """Newest first. `news` stand in the order in which they happened; what ended as it began is left out.

    First measurements, of cells and of workarounds, are left out too, unless `first` asks for them.
    """
    grouped: dict[str, _Steps] = {}
    known = Earlier(dict(earlier.verdicts), dict(earlier.workarounds)) if earlier else Earlier()
    for step in news:
        grouped.setdefault(step.belongs_to, _Steps()).add(step, known)
        known.learn(step.place, (step.before, step.after), step.workarounds)
    changes = (steps.change(key, first=first) for key, steps in grouped.items())
    changed = [change for change in changes if change.turns]
    return tuple(sorted(changed, key=lambda change: (change.at, change.key), reverse=True))


def only(
    changes: Iterable[Change], *, issues: Collection[str] | None = None, hardware: Collection[str] = ()
) -> tuple[Change, ...]:
    """The part of each change that concerns these issues (None: all) on these hardware classes (empty: any)."""

    def concerns(turn: CellTurn) -> bool:
        return (issues is None or turn.issue in issues) and (not hardware or turn.hardware in hardware)

    parts = (replace(change, turns=tuple(filter(concerns, change.turns))) for change in changes)
    return tuple(change for change in parts if change.turns)


class _Steps:
    """The steps of one cause, and what was known of each cell when it began."""

    def __init__(self) -> None:
        self._cells: dict[Place, list[CellNews]] = {}
        self._verdicts: dict[Place, Verdict | None] = {}
        self._workarounds: dict[tuple[Place, str], WorkaroundVerdict | None] = {}

    def add(self, step: CellNews, known: Earlier) -> None:
        self._cells.setdefault(step.place, []).append(step)
        self._verdicts.setdefault(step.place, known.verdicts.get(step.place))
        for id_ in step.workarounds:
            self._workarounds.setdefault((step.place, id_), known.workarounds.get((step.place, id_)))

    def change(self, key: str, *, first: bool) -> Change:
        every = (self._turn(place) for place in self._cells if first or not self._is_first(place))
        candidates = (turn if first else _without_first(turn) for turn in every)
        news = (turn for turn in candidates if turn.is_turned or turn.workarounds)
        turns = tuple(sorted(news, key=lambda turn: (turn.issue, turn.hardware, parse_build_id(turn.build))))
        last = [steps[-1] for steps in self._cells.values()][-1]
        at = max((turn.at for turn in turns), default=last.at)
        return Change(key, at, last.cause, last.run, last.origin, turns)

    def _is_first(self, place: Place) -> bool:
        """Whether the cell was never measured before; that holds for most of the thousands of cells of an import."""
        return self._verdicts[place] is None and self._cells[place][0].before in {None, Verdict.NOT_RUN}

    def _turn(self, place: Place) -> CellTurn:
        first, last = self._cells[place][0], self._cells[place][-1]
        before, after = first.before or Verdict.NOT_RUN, last.after or Verdict.NOT_RUN
        return CellTurn(
            issue=first.issue,
            build=first.build,
            hardware=first.hardware,
            before=before,
            after=after,
            reason=last.reason,
            at=last.at,
            workarounds=self._cures(place, after),
            earlier=self._verdicts[place] if before is Verdict.NOT_RUN else None,
        )

    def _cures(self, place: Place, verdict: Verdict) -> dict[str, CureTurn]:
        began: dict[str, WorkaroundVerdict] = {}
        ended: dict[str, WorkaroundVerdict] = {}
        for step in self._cells[place]:
            for id_, (before, after) in step.workarounds.items():
                began.setdefault(id_, before or WorkaroundVerdict.UNVERIFIED)
                ended[id_] = after or WorkaroundVerdict.UNVERIFIED
        return {
            id_: CureTurn(before, ended[id_], _meaning(before, ended[id_], self._workarounds[place, id_], verdict))
            for id_, before in began.items()
            if before is not ended[id_]
        }


def _meaning(
    before: WorkaroundVerdict, after: WorkaroundVerdict, earlier: WorkaroundVerdict | None, cell: Verdict
) -> CureNews:
    """`earlier` is the last verdict before this one that said anything; `cell` is the cell's own, afterwards."""
    was = earlier if before is WorkaroundVerdict.UNVERIFIED else before
    if was is None:
        return CureNews.FIRST_MEASURED
    match after:
        case WorkaroundVerdict.UNNECESSARY | WorkaroundVerdict.UNVERIFIED if (
            was in HELPING and cell is Verdict.NOT_AFFECTED
        ):
            return CureNews.NO_LONGER_NEEDED
        case WorkaroundVerdict.INEFFECTIVE | WorkaroundVerdict.HARMFUL if was in HELPING:
            return CureNews.STOPPED_WORKING
        case WorkaroundVerdict.EFFECTIVE if was is not WorkaroundVerdict.EFFECTIVE:
            return CureNews.NOW_WORKS
        case WorkaroundVerdict.PARTIAL if was is not WorkaroundVerdict.PARTIAL:
            return CureNews.NOW_HELPS_IN_PART
        case _:
            return CureNews.OTHER


def _without_first(turn: CellTurn) -> CellTurn:
    """The turn without workarounds that were measured for the first time."""
    cures = {id_: cure for id_, cure in turn.workarounds.items() if cure.news is not CureNews.FIRST_MEASURED}
    return replace(turn, workarounds=cures)
