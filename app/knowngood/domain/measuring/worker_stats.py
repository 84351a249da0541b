"""Statistics of each machine that measures: how busy it was, and the time that a cell takes there."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import fmean

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Device, Issue, inapplicable
from knowngood.domain.measuring.machine import CPU_CLASS, Machine
from knowngood.domain.measuring.planning import ENVIRONMENT_S, GUESS_S


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
    within = ((max(start, since) - since, min(end, until) - since) for start, end in spans)
    return _width((begin / (until - since), end / (until - since)) for begin, end in within)


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


# -- How long the jobs that are left take ------------------------------------------------------------------------------

Key = tuple[str, str, str]  # issue, arm, variant
Span = tuple[float, float]  # seconds on any one clock: from, to
_Timed = tuple[Key, Span]

_NOTHING_S = 0.01  # an arm that ended so soon was never started: its environment could not be made


@dataclass(frozen=True)
class JobAt:
    """How far one job is. `environment` is the time in which its environment was made or found, up to now where that
    still goes on (`is_ready` is False), None before it begins; `done` are the arms that have ended, `running` those
    that go on, up to now, and `to_do` the others.
    """

    build: str
    is_over: bool
    is_ready: bool
    environment: Span | None
    to_do: Sequence[Key]
    running: Sequence[_Timed]
    done: Sequence[_Timed]


def seconds_left(
    jobs: Sequence[JobAt], durations: Mapping[Key, float], environment_s: float | None, slots: int = 0
) -> float | None:
    """The environments and the arms that are left, each as long as its like in this run, as many at once as until now.
    Before the first arm has ended, as long as before this run and on so many `slots`; None where these are not known.

    `durations` are seconds of attempts before this run, and `environment_s` of making an environment (None: not timed).
    """
    done = [arm for job in jobs for arm in job.done if _s(arm[1]) > _NOTHING_S]
    if not done:
        return _arms_s(jobs, done, durations) / slots + _environments_s(jobs, environment_s) if slots else None
    arms = [span for _, span in (*done, *(arm for job in jobs for arm in job.running))]
    environments = [job.environment for job in jobs if job.environment]
    together = _width([*arms, *environments])
    alone = _width(arms) + _width(environments)
    overlap = together / alone if alone else 1.0
    return overlap * (
        _arms_s(jobs, done, durations) / _beside(arms) + _environments_s(jobs, environment_s) / _beside(environments)
    )


def _arms_s(jobs: Sequence[JobAt], done: Sequence[_Timed], before: Mapping[Key, float]) -> float:
    """Seconds until the last arm has ended, one after another. One that runs longer than its like counts as half done:
    otherwise nothing would account for the slow arms while the quick ones end.
    """
    going_on = [(key, _s(span)) for job in jobs if not job.is_over for key, span in job.running]
    known = [(key, _s(span)) for key, span in done]
    known += [(key, 2 * spent) for key, spent in going_on if spent > _expected(known, before)(key)]
    expected = _expected(known, before)
    waiting = sum(expected(key) for job in jobs if not job.is_over for key in job.to_do)
    return waiting + sum(max(expected(key) - spent, 0.0) for key, spent in going_on)


def _expected(known: Sequence[tuple[Key, float]], before: Mapping[Key, float]) -> Callable[[Key], float]:
    """The seconds an arm will take: as in this run with another build, else as before at this run's pace, else as other
    arms of its issue, else as those of all issues here.
    """
    own, of_issue = _means(known), _means((key[0], seconds) for key, seconds in known)
    timed = [(seconds, before[key]) for key, seconds in known if key in before]
    usual = fmean(before.values()) if before else GUESS_S
    # As if one more arm had taken what it always takes: the first one alone may have ended at once.
    pace = (sum(now for now, _ in timed) + usual) / (sum(then for _, then in timed) + usual)
    of_all = fmean(of_issue.values()) if of_issue else GUESS_S

    def expected(key: Key) -> float:
        if key in own:
            return own[key]
        return before[key] * pace if key in before else of_issue.get(key[0], of_all)

    return expected


def _environments_s(jobs: Sequence[JobAt], before_s: float | None) -> float:
    """Seconds until the last environment is there, one after another. The first of a build brings torch with it, and
    may be downloaded; further ones share nearly all with it.
    """
    took: dict[bool, list[float]] = {True: [], False: []}
    waiting: list[tuple[bool, float]] = []
    seen: set[str] = set()
    for job in sorted(jobs, key=lambda job: job.environment or (float("inf"), 0.0)):
        is_first, spent = job.build not in seen, _s(job.environment) if job.environment else 0.0
        seen.add(job.build)
        if job.is_ready and job.environment:
            took[is_first].append(spent)
        elif not job.is_over and (job.to_do or job.running):
            waiting.append((is_first, spent))
    usual = ENVIRONMENT_S if before_s is None else before_s
    first = fmean(took[True]) if took[True] else usual
    slowest = max((spent for is_first, spent in waiting if is_first), default=0.0)
    first = 2 * slowest if slowest > first else first  # half done, as an arm that runs longer than its like
    expected = {True: first, False: fmean(took[False]) if took[False] else min(first, usual)}
    return sum(max(expected[is_first] - spent, 0.0) for is_first, spent in waiting)


def _means(pairs: Iterable[tuple[object, float]]) -> dict[object, float]:
    groups = grouped(pairs, lambda pair: pair[0])
    return {name: fmean(seconds for _, seconds in every) for name, every in groups.items()}


def _s(span: Span) -> float:
    return max(0.0, span[1] - span[0])


def _beside(spans: Sequence[Span]) -> float:
    """How many went on at once, on the mean."""
    width = _width(spans)
    return sum(map(_s, spans)) / width if width else 1.0


def _width(spans: Iterable[Span]) -> float:
    """The time in which any of them went on."""
    width, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        width += max(0.0, end - max(begin, until))
        until = max(until, end)
    return width
