"""The overview: how one build stands, where to go from it, what to watch out for, what changed lately, and how every
release does. One value for `/` and its twin.

What is dear of it is kept until something is written: of the 1,661 shipped cells an upgrade's advice took 0.12 s, the
changes 0.09 s, the times of all attempts 0.04 s and the counts of all releases 0.03 s (one core of a shared machine,
2026-11-23).
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import TypeVar, cast

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, Severity
from knowngood.domain.issue_selectors import is_at_least
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import Message
from knowngood.domain.verdicts.changes import CellTurn, Change
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, Prospect, prospect_of
from knowngood.domain.verdicts.verdict import Cell, is_silent
from knowngood.gate.request import BadField
from knowngood.matrix.charts.numbers import Lifespans, PassRate, lifespans_of, measured_releases, pass_rate
from knowngood.move.upgrade.api import load_times
from knowngood.move.upgrade.candidates import weight_of
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.request import UpgradeRequest, read_upgrade
from knowngood.share.service import ChangesQuery, load_changes
from knowngood.store.engine import Session
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.store.knowledge.model import Recorded
from knowngood.web.app_state import AppState
from knowngood.web.urls import build_address

NEWS_DAYS = 30
MOST_SEVERE = 12

_MOST_CHANGES = 1000
_MOST_ENTRIES = 200
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class BuildStanding:
    """The catalogue's issues on one build and hardware class, by what somebody who runs it has to expect."""

    build: str
    hardware: str
    passes: int
    needs_workaround: int
    as_reported: int
    fails: int
    not_known: int
    does_not_apply: int
    url: str

    @property
    def answers(self) -> int:
        """How many are known to pass or to fail."""
        return self.passes + self.needs_workaround + self.as_reported + self.fails


@dataclass(frozen=True)
class IssueStanding:
    """An issue on the build that the overview is about. `history` is where it came and went on that class."""

    issue: Issue
    cell: Cell
    history: Message

    @property
    def prospect(self) -> Prospect:
        return prospect_of(self.cell)


@dataclass(frozen=True)
class News:
    """Verdicts that became other ones since `since`, newest first; `cells` is how many."""

    since: datetime
    changes: tuple[Change, ...]

    @property
    def cells(self) -> int:
        return sum(len(change.turns) for change in self.changes)

    @property
    def newest(self) -> tuple[CellTurn, ...]:
        """The newest turn of each issue."""
        turns = [turn for change in self.changes for turn in change.turns]
        return tuple(reversed({turn.issue: turn for turn in reversed(turns)}.values()))


@dataclass(frozen=True)
class Yours:
    """Everything about one build. `from_cpu` are those of its answers that were measured on the CPU, for another class:
    `/upgrade` counts them apart from what is measured there.

    `advice` is that of `/upgrade` on the same class, without the candidates that it does not recommend;
    None where none can be given, as with a stored row that cannot be read: `/upgrade` says why.

    `watch_out` are issues of high or critical severity that give wrong numbers there without an error; `lifespans` are
    those of the `severe` ones.
    """

    standing: BuildStanding
    from_cpu: int
    advice: UpgradeAdvice | None
    watch_out: tuple[IssueStanding, ...]
    severe: tuple[IssueStanding, ...]
    lifespans: Lifespans


@dataclass(frozen=True)
class Overview:
    """`catalogue` are the issues by id. `builds` counts those of which anything is stored; `newest` is the last result
    (None: there is none). `yours` is None where no build was measured. `rates` are those of each class.
    """

    catalogue: Mapping[str, Issue]
    builds: int
    hardware: tuple[str, ...]
    newest: datetime | None
    yours: Yours | None
    news: News
    rates: tuple[PassRate, ...]


class OverviewCache:
    """Parts of overviews, for as long as what they were made of is known: until something is written."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: KnowledgeSnapshot | None = None
        self._entries: OrderedDict[Hashable, object] = OrderedDict()

    def find_or_make(self, of: KnowledgeSnapshot, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Find an entry, or make it. Two threads may both make it; the oldest entry goes where there are too many."""
        with self._lock:
            if self._of is not of:
                self._of, self._entries = of, OrderedDict()
            entries = self._entries
            if key in entries:
                return cast("_Made", entries[key])
        made = make()
        with self._lock:
            entries[key] = made
            while len(entries) > _MOST_ENTRIES:
                entries.popitem(last=False)
        return made


def load_overview(session: Session, state: AppState, now: datetime, build: Build | None, hardware: str) -> Overview:
    """Load the overview of a build on a class; without one, of the newest release measured there, as an example."""
    snapshot = state.knowledge.load(session, now)
    known = snapshot.knowledge.known
    cache = state.own(OverviewCache)
    about = build or newest_release(known, hardware)
    since = (now - timedelta(days=NEWS_DAYS)).replace(hour=0, minute=0, second=0, microsecond=0)
    news = cache.find_or_make(
        snapshot,
        "news",
        lambda: load_changes(session, ChangesQuery(issues=[], limit=_MOST_CHANGES)).changes,
    )

    def times() -> Recorded:
        return cache.find_or_make(snapshot, "times", lambda: load_times(session))

    def make_yours(build: Build) -> Yours:
        return _yours(build, hardware, known, _advice(build, hardware, snapshot, times()))

    return Overview(
        catalogue=known.issues,
        builds=len({id_ for _, id_, _ in known.cells}),
        hardware=known.hardware,
        newest=cache.find_or_make(snapshot, "newest", lambda: _newest(known)),
        yours=cache.find_or_make(snapshot, (about.id, hardware), lambda: make_yours(about)) if about else None,
        news=News(since, tuple(change for change in news if change.at >= since)),
        rates=cache.find_or_make(
            snapshot, "rates", lambda: tuple(pass_rate(known, class_) for class_ in known.hardware)
        ),
    )


def usual_class(known: Known) -> str:
    """The class that the overview shows where nobody asks for another."""
    return CPU_CLASS if CPU_CLASS in known.hardware or not known.hardware else known.hardware[0]


def newest_release(known: Known, hardware: str) -> Build | None:
    measured = measured_releases(known, [hardware])
    return measured[-1].cell_build if measured else None


def _newest(known: Known) -> datetime | None:
    times = (cell.measured_at for issue in known.issues for cell in known.stored(issue))
    return max((time for time in times if time is not None), default=None)


def standing_of(build: Build, hardware: str, counts: Mapping[Prospect, int]) -> BuildStanding:
    """`counts` are of the issues, those of which nothing can exist there too."""
    by_name = {prospect.value: counts.get(prospect, 0) for prospect in Prospect}
    return BuildStanding(build=build.id, hardware=hardware, url=build_address(build.id, hardware), **by_name)


def _yours(build: Build, hardware: str, known: Known, advice: UpgradeAdvice | None) -> Yours:
    rows = [
        IssueStanding(issue, known.cell(issue, build, hardware), known.history_sentence(issue, hardware))
        for issue in known.issues.values()
    ]
    severe = tuple(_most_severe(rows, known, hardware))
    grave = [row for row in rows if is_at_least(row.issue.severity, Severity.HIGH) and is_silent(row.issue, row.cell)]
    answering = [row.cell for row in rows if row.prospect in _ANSWERS]
    return Yours(
        standing=standing_of(build, hardware, Counter(row.prospect for row in rows)),
        from_cpu=sum(cell.basis is not None and cell.basis.hardware != cell.hardware for cell in answering),
        advice=advice,
        watch_out=tuple(sorted((row for row in grave if row.prospect in FAILING_PROSPECTS), key=_gravity)),
        severe=severe,
        lifespans=lifespans_of([row.issue for row in severe], known, hardware),
    )


_ANSWERS = FAILING_PROSPECTS | {Prospect.PASSES}


def _most_severe(rows: Iterable[IssueStanding], known: Known, hardware: str) -> list[IssueStanding]:
    """The issues that ever failed on the class, by the weight that an upgrade gives them; of one weight, those that
    fail on the build first.
    """
    failed = {row.issue.id for row in rows if known.history(row.issue.id, hardware).spans}
    return sorted((row for row in rows if row.issue.id in failed), key=_gravity)[:MOST_SEVERE]


_ORDER = {prospect: rank for rank, prospect in enumerate(Prospect)}


def _gravity(row: IssueStanding) -> tuple[int, bool, int, str]:
    return (-weight_of(row.issue), row.prospect not in FAILING_PROSPECTS, _ORDER[row.prospect], row.issue.id)


def _advice(build: Build, hardware: str, snapshot: KnowledgeSnapshot, times: Recorded) -> UpgradeAdvice | None:
    if not snapshot.is_whole:
        return None
    request = UpgradeRequest(start=build.id, hardware=(hardware,))
    try:
        advice = advise(read_upgrade(request, snapshot.knowledge, times), snapshot.knowledge.known)
    except BadField:
        return None
    # Each candidate holds every issue, so only the one that is shown is kept.
    return replace(advice, candidates=(advice.best,) if advice.best else (), left_out=())
