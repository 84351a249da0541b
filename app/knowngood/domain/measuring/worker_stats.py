"""Statistics of each machine that measures: how busy it was, and the time that a cell takes there."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Device, Issue, inapplicable
from knowngood.domain.measuring.machine import CPU_CLASS, Machine


class Window(StrEnum):
    """How far back to look."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    @property
    def span(self) -> timedelta:
        return {Window.DAY: timedelta(days=1), Window.WEEK: timedelta(days=7), Window.MONTH: timedelta(days=30)}[self]


@dataclass(frozen=True)
class AttemptStay:
    """One attempt as far as a machine's time is concerned."""

    machine: str
    hardware: str
    issue: str
    build: str
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True)
class MachineTally:
    """All that a machine ever did here, by hardware class. `origins` are where its results came from: `local`, or the
    names that bundles gave.
    """

    machine: str
    hardware: str
    arms: int
    last_at: datetime
    origins: tuple[str, ...]


@dataclass(frozen=True)
class HeldJobProgress:
    """A job that is held now. `machine` is empty until one has begun with it; `arms` are what runs at this moment.

    `is_held` is False where its lease has run out: its dispatcher is gone, or is about to be missed.
    """

    job: str
    run: str
    machine: str
    build: str
    hardware: str
    arms: tuple[str, ...]
    done: int
    total: int
    is_held: bool


@dataclass(frozen=True)
class ClassWork:
    """One hardware class of one machine within the window. `per_cell_s` is the time of its attempts divided by the
    cells that they were of; None where there was none. What its environments took is not in it.
    """

    hardware: str
    arms: int
    cells: int
    seconds: float

    @property
    def per_cell_s(self) -> float | None:
        return self.seconds / self.cells if self.cells else None


@dataclass(frozen=True)
class Worker:
    """A machine, by its digest. `machine` is None where its description was pruned.

    `busy` is the share of the window in which at least one attempt ran on it: making environments is not recorded by
    machine and does not count. `classes` are those it was seen to measure, and those its hardware has.
    """

    digest: str
    machine: Machine | None
    last_at: datetime
    arms: int
    origins: tuple[str, ...]
    busy: float
    classes: tuple[ClassWork, ...]
    doing: tuple[HeldJobProgress, ...]

    @property
    def served(self) -> frozenset[str]:
        """The hardware classes that it can measure."""
        own = self.machine.hardware if self.machine else ()
        return frozenset({*own, *(class_.hardware for class_ in self.classes)})


@dataclass(frozen=True)
class Unserved:
    """An issue that no machine of the window can measure on any build, and what it needs."""

    issue: Issue
    needs: str


def workers_of(
    tallies: Iterable[MachineTally],
    machines: Mapping[str, Machine],
    stays: Iterable[AttemptStay],
    doing: Sequence[HeldJobProgress],
    *,
    since: datetime,
    now: datetime,
) -> tuple[Worker, ...]:
    """Sum up each worker; the one seen last comes first, and one that is at work now was seen now."""
    tallied, spent = grouped(tallies, lambda tally: tally.machine), grouped(stays, lambda stay: stay.machine)
    workers = [
        _worker(
            digest, machines.get(digest), tallied.get(digest, []), spent.get(digest, []), doing, since=since, now=now
        )
        for digest in {*tallied, *(held.machine for held in doing if held.machine)}
    ]
    return tuple(sorted(workers, key=lambda worker: (worker.last_at, worker.digest), reverse=True))


def _worker(  # noqa: PLR0913 - what is known of one machine
    digest: str,
    machine: Machine | None,
    tallies: Sequence[MachineTally],
    stays: Sequence[AttemptStay],
    doing: Sequence[HeldJobProgress],
    *,
    since: datetime,
    now: datetime,
) -> Worker:
    held = tuple(progress for progress in doing if progress.machine == digest)
    is_at_work = any(progress.is_held for progress in held)
    classes = dict.fromkeys([tally.hardware for tally in tallies] + [progress.hardware for progress in held])
    return Worker(
        digest=digest,
        machine=machine,
        last_at=now if is_at_work else max((tally.last_at for tally in tallies), default=since),
        arms=sum(tally.arms for tally in tallies),
        origins=tuple(dict.fromkeys(origin for tally in tallies for origin in tally.origins)),
        busy=busy_share(((stay.started_at, stay.finished_at) for stay in stays), since, now),
        classes=tuple(_class_work(name, [stay for stay in stays if stay.hardware == name]) for name in sorted(classes)),
        doing=held,
    )


def _class_work(hardware: str, stays: Sequence[AttemptStay]) -> ClassWork:
    return ClassWork(
        hardware=hardware,
        arms=len(stays),
        cells=len({(stay.issue, stay.build) for stay in stays}),
        seconds=sum((stay.finished_at - stay.started_at).total_seconds() for stay in stays),
    )


def busy_share(spans: Iterable[tuple[datetime, datetime]], since: datetime, until: datetime) -> float:
    """The share of the time between that any of the spans covers; spans that overlap count once."""
    covered, reached = timedelta(0), since
    for start, end in sorted(spans):
        begin, close = max(start, reached), min(end, until)
        if close > begin:
            covered += close - begin
            reached = close
    return covered / (until - since)


def unserved(issues: Iterable[Issue], builds: Collection[Build], served: Collection[str]) -> tuple[Unserved, ...]:
    """Issues that exist on no build with any of the classes that are served, and would with another machine."""
    return tuple(
        Unserved(issue, _needs(issue))
        for issue in issues
        if not _exists(issue, builds, served) and _exists(issue, builds, [_least_class(issue)])
    )


def _exists(issue: Issue, builds: Collection[Build], classes: Collection[str]) -> bool:
    return any(inapplicable(issue, build, hardware) is None for build in builds for hardware in classes)


def _least_class(issue: Issue) -> str:
    if issue.requires.device is not Device.CUDA:
        return CPU_CLASS
    major, minor = issue.requires.compute_capability or _ANY_GPU
    return f"cuda-sm_{major}{minor}"


_ANY_GPU = (9, 0)


def _needs(issue: Issue) -> str:
    least = issue.requires.compute_capability
    if issue.requires.device is not Device.CUDA:
        return "a CPU worker"
    return f"a GPU of compute capability {least[0]}.{least[1]} or more" if least else "an NVIDIA GPU"
