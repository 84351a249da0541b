"""Records that the store hands out beside domain values: frozen, complete, free of SQL."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from knowngood.domain.errors import KnownGoodError
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.verdicts.outcome import Judgement
from knowngood.domain.verdicts.verdict import Cell, Difference, OfCell, Verdict, WorkaroundVerdict
from knowngood.domain.verdicts.voids import Void


class UnknownRun(KnownGoodError):
    """A run id that names no run of this store."""


class UnknownAttempt(KnownGoodError):
    """An attempt id that names no attempt of this store, or one whose issue or build the catalogue does not know."""


class StaleEvent(KnownGoodError):
    """An event of a try that no longer holds its job: another try has it, or it has ended. Nothing was recorded."""


class UnfitEvent(StaleEvent):
    """An event that says more than evidence may hold, upon which its try loses the job. Nothing was recorded."""


class JobState(StrEnum):
    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    POISONED = "poisoned"  # given up: its worker died too often before any arm had started
    CANCELLED = "cancelled"


class ArmState(StrEnum):
    PLANNED = "planned"
    RUNNING = "running"
    DONE = "done"


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    DONE = "done"


@dataclass(frozen=True)
class AttemptRow:
    """One line of a cell's evidence. `counted` is False where it is bound to what the repro no longer is, and where it
    was voided: then `void` says by whom, when and why.
    """

    attempt: Attempt
    judgement: Judgement
    counted: bool
    void: Void | None


@dataclass(frozen=True)
class AttemptDetail(AttemptRow):
    """All there is of one attempt. Texts are empty where a bundle left them out or pruning removed them.

    When it came in (None: before that was kept) and through which token, by its id and its name (both empty: made here,
    or imported at the command line), is this server's own word. `difference` is what keeps a pass from counting as one
    (None: nothing does).
    """

    log: str
    lock: str
    packages: Mapping[str, str]
    machine: Machine | None
    received_at: datetime | None
    token: str
    token_name: str
    difference: Difference | None


@dataclass(frozen=True)
class JobRow:
    id: str
    build: str
    hardware: str
    state: JobState
    try_no: int
    arms_total: int
    arms_done: int
    started_at: datetime | None
    finished_at: datetime | None
    problem: str


@dataclass(frozen=True)
class RunRow:
    """`request` is what was asked for, as the asker put it. `jobs` stand in the order they are claimed in."""

    id: str
    state: RunState
    created_at: datetime
    finished_at: datetime | None
    request: Mapping[str, object]
    arms_total: int
    arms_done: int
    jobs: tuple[JobRow, ...]

    @property
    def problems(self) -> int:
        """The number of jobs that left arms undone."""
        return sum(1 for job in self.jobs if job.problem)


@dataclass(frozen=True)
class EventRow:
    """Something that happened. Ids only grow, in the order of commit; `run` is empty where none was concerned."""

    id: int
    at: datetime
    kind: str
    run: str
    data: Mapping[str, object]


@dataclass(frozen=True)
class Lease:
    """The holder of a task that only one may do, and when the lease ends if it is not renewed."""

    holder: str
    until: datetime


@dataclass(frozen=True)
class CellChange(OfCell):
    """One cell before and after; None where there was, or is, none."""

    before: Cell | None
    after: Cell | None

    @property
    def verdicts(self) -> tuple[Verdict | None, Verdict | None]:
        return (self.before.verdict if self.before else None, self.after.verdict if self.after else None)

    @property
    def is_news(self) -> bool:
        """True where the cell's verdict or that of a workaround is another one; not where evidence merely grew."""
        return _verdicts_of(self.before) != _verdicts_of(self.after)

    @property
    def turned_workarounds(self) -> Mapping[str, tuple[WorkaroundVerdict | None, WorkaroundVerdict | None]]:
        """The workarounds whose verdict changed, by id: before and after, None where there was, or is, none."""
        before, after = _workarounds(self.before), _workarounds(self.after)
        return {
            id_: (before.get(id_), after.get(id_))
            for id_ in sorted({*before, *after})
            if before.get(id_) is not after.get(id_)
        }


def _verdicts_of(cell: Cell | None) -> tuple[object, ...]:
    if cell is None:
        return ()
    return (cell.verdict, _workarounds(cell))


def _workarounds(cell: Cell | None) -> dict[str, WorkaroundVerdict]:
    return {id_: finding.verdict for id_, finding in cell.workarounds.items()} if cell else {}


@dataclass(frozen=True)
class Clash:
    """An attempt that was not taken: another stands under its number, which came from `origin`, through `token`."""

    id: str
    origin: str
    token: str


@dataclass(frozen=True)
class ImportReport:
    """`added` attempts are new here, `known` were here before; of the added, `unknown` belong to issues or builds that
    this catalogue does not have: kept, and shown once it has them; `voided` are covered by a void and do not count;
    `replaced` took the place of another under their number. `refused` say something else than what is here. `changed`
    are the cells that came out differently. `notes` are the notes and voids of people that were new or ended.
    """

    origin: str
    added: int
    known: int
    unknown: int
    superseded: int
    voided: int
    changed: tuple[CellChange, ...]
    replaced: int = 0
    refused: tuple[Clash, ...] = ()
    notes: int = 0


@dataclass(frozen=True)
class ExportSelection:
    """The evidence to export: of these issues, builds and hardware classes (None: all), superseded too or not."""

    issues: frozenset[str] | None = None
    builds: frozenset[str] | None = None
    hardware: frozenset[str] | None = None
    only_counted: bool = False


@dataclass(frozen=True)
class Removed:
    """`size` is in bytes of what the rows held; the database's own overhead and indexes are not in it."""

    rows: int = 0
    size: int = 0
