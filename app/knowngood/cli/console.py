"""How things look on a terminal: prices in words, a run as a progress display. No rules here."""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from knowngood.domain.grouping import grouped
from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmStarted,
    EnvironmentReady,
    Event,
    JobEnded,
    JobStarted,
    Provisioning,
)
from knowngood.domain.measuring.planning import GUESS_S, PlannedJob, Price
from knowngood.domain.verdicts.outcome import Ending, Trouble
from knowngood.domain.vocabulary import many
from knowngood.store.records import JobRow, JobState, RunRow
from knowngood_workers.provision.download_estimate import Estimate, Fit


def in_words(seconds: float) -> str:
    """`42 s`, `3 min`, `1 h 20 min`."""
    if seconds < 90:  # noqa: PLR2004 - below that, seconds are read more easily
        return f"{seconds:.0f} s"
    minutes = round(timedelta(seconds=seconds).total_seconds() / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"  # noqa: PLR2004


def bytes_in_words(count: float) -> str:
    """`3.1 GB`, as package indexes and disks count them (1 GB = 10^9)."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:  # noqa: PLR2004
            return f"{count:.0f} {unit}" if unit in {"B", "kB"} else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def to_do_in_words(planned: Sequence[PlannedJob]) -> str:
    """`to do: 98 cells, 209 arms, 16 environments`."""
    cells = {(arm.issue, job.build.id, job.hardware) for job in planned for arm in job.arms}
    arms = sum(len(job.arms) for job in planned)
    environments = len({job.request for job in planned})
    return f"to do: {many(len(cells), 'cell')}, {many(arms, 'arm')}, {many(environments, 'environment')}"


def print_price(console: Console, price: Price, estimate: Estimate) -> None:
    """The time that a plan takes, and how much of it is here."""
    guess = f"; {many(price.guessed, 'arm')} never timed, {GUESS_S:g} s each" if price.guessed else ""
    console.print(f"time:        about {in_words(price.seconds)} once all is here{guess}", soft_wrap=True)
    console.print(f"there already: {estimate.ready} of {many(price.environments, 'environment')}")


def print_sizes(console: Console, estimate: Estimate) -> None:
    """The bytes that a plan will download and keep, plainly where they do not fit; then what cannot be made."""
    whole = bytes_in_words(estimate.download_bytes + estimate.guessed_bytes)
    guess = f"about {whole}, {bytes_in_words(estimate.guessed_bytes)} of it a guess at {_open_in_words(estimate)}"
    console.print(f"to download: {guess if estimate.is_open else whole}", soft_wrap=True)
    free = f"{bytes_in_words(estimate.space.free_bytes)} are free"
    console.print(f"on disk:     about {bytes_in_words(estimate.disk_bytes)} more, {free}")
    if warning := _warning(estimate):
        console.print(f"[bold red]{warning}[/]", soft_wrap=True)
    for line in _troubles_in_words(estimate.troubles):
        console.print(line, markup=False, soft_wrap=True)


def _troubles_in_words(troubles: Mapping[str, Trouble]) -> list[str]:
    """One line for all environments that the same thing is wrong with, and so many lines that they can be read."""
    alike = grouped(troubles, lambda name: re.sub(r"[\d.]+", "", troubles[name].sentence.partition(":")[0]))
    lines = [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''} cannot be made: "
        f"{troubles[names[0]].sentence}"
        for names in alike.values()
    ]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"and {more} other reasons (--json has them all)"] if more > 0 else [])]


_MOST_LINES = 10
_TICK_S, _TICKS_A_LINE = 2.0, 30


def _open_in_words(estimate: Estimate) -> str:
    """`9 environments and 12 files whose size nobody told`."""
    parts = [
        *([many(estimate.unresolved, "environment")] if estimate.unresolved else []),
        *([many(len(estimate.unknown), "file")] if estimate.unknown else []),
    ]
    return f"{' and '.join(parts)} that nobody here knows yet"


def _warning(estimate: Estimate) -> str:
    free, most = bytes_in_words(estimate.space.free_bytes), bytes_in_words(estimate.space.limit_bytes)
    match estimate.fit:
        case Fit.FITS:
            return ""
        case Fit.NEVER:
            alone = bytes_in_words(estimate.largest_on_disk)
            return (
                f"this does not fit: the largest environment alone takes about {alone}, and {free} are free; "
                "free some space, or set KNOWNGOOD_DATA_DIR to a folder on a larger disk"
            )
        case Fit.IN_TURNS:
            lacking = bytes_in_words(estimate.disk_bytes - estimate.space.free_bytes)
            return (
                f"this does not fit at once, {lacking} are missing: environments that are done with are removed for "
                "others, and what is needed again is fetched again; free some space, or choose fewer builds"
            )
        case Fit.OVER_LIMIT:
            return (
                f"environments may take {most} together (KNOWNGOOD_ENVS_LIMIT): those that are done with are removed "
                "for others, and what is needed again is fetched again"
            )


class RunProgress:
    """A live line for the whole run and one for each job under way; in a log, a line for each stage of a job, and one
    a minute. May be fed from several threads.

    `jobs` are the run's; events of other jobs are passed over. `tell` takes events as they happen, `show` a snapshot
    (where another process does the work). `left` says how many seconds the run still takes, as its page does;
    `before` counts the arms that the same command did before it was stopped.
    """

    def __init__(
        self,
        console: Console,
        jobs: Sequence[JobRow],
        left: Callable[[], float | None] = lambda: None,
        before: int = 0,
    ) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
        )
        self._console = console
        self._left = left
        self._jobs = {job.id: job for job in jobs}
        self._tasks: dict[str, TaskID] = {}
        self._stages: dict[str, str] = {}
        self._kept: dict[str, str] = {}
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, name="time left", daemon=True)
        self._before = before
        total, done = sum(job.arms_total for job in jobs), sum(job.arms_done for job in jobs)
        self._whole = self._progress.add_task(
            "arms measured", total=before + total, completed=before + done, left=_left_in_words(left())
        )

    def __enter__(self) -> Self:
        self._progress.start()
        self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._clock.join()
        self._progress.update(self._whole, left="")
        self._progress.stop()

    def tell(self, event: Event) -> None:
        job = self._jobs.get(event.job)
        if job is None:
            return
        match event:
            case JobStarted():
                self._line(job, "starting")
            case Provisioning():
                self._line(job, _provisioning_in_words(event))
                self._stage(job, f"environment, {event.phase}")
            case EnvironmentReady():
                how = "ready again" if event.reused else "made"
                self._line(job, f"environment {how} in {in_words(event.seconds)}")
                self._stage(job, f"environment {how} in {in_words(event.seconds)}")
            case ArmStarted():
                self._line(job, "running")
            case ArmFinished():
                self._progress.advance(self._whole)
                self._progress.advance(self._line(job, "running"))
                if event.record.trouble and event.record.ending is Ending.NOT_STARTED:
                    self._kept[event.job] = event.record.trouble.sentence.partition(":")[0]
            case JobEnded():
                self._end(event.job)
                self._note(f"{job.build}: {event.problem or self._kept.get(event.job, 'done')}; {self._so_far()}")

    def _tick(self) -> None:
        """The time left, looked up beside the events: a store that is busy holds up no result."""
        ticks = 0
        while not self._over.wait(_TICK_S):
            ticks += 1
            self._progress.update(self._whole, left=_left_in_words(self._left()))
            if ticks % _TICKS_A_LINE == 0:
                self._note(self._so_far())

    def _so_far(self) -> str:
        whole = next(task for task in self._progress.tasks if task.id == self._whole)
        left = f", {whole.fields['left']}" if whole.fields["left"] and not whole.finished else ""
        return f"{whole.completed:.0f} of {whole.total:.0f} arms after {in_words(whole.elapsed or 0.0)}{left}"

    def _stage(self, job: JobRow, what: str) -> None:
        """Once, however often it is told how far the stage is."""
        if self._stages.get(job.id) != what:
            self._stages[job.id] = what
            self._note(f"{job.build}: {what}")

    def show(self, run: RunRow) -> None:
        """Show a run as another process left it in the store."""
        self._progress.update(self._whole, completed=self._before + run.arms_done)
        for job in run.jobs:
            if job.state is JobState.LEASED:
                self._progress.update(self._line(job, "running"), completed=job.arms_done)
            else:
                self._end(job.id)

    def _line(self, job: JobRow, what: str) -> TaskID:
        description = f"{job.build}: {what[:60]}"
        if job.id not in self._tasks:
            self._tasks[job.id] = self._progress.add_task(
                description, total=job.arms_total, completed=job.arms_done, left=""
            )
        self._progress.update(self._tasks[job.id], description=description)
        return self._tasks[job.id]

    def _end(self, job: str) -> None:
        if (task := self._tasks.pop(job, None)) is not None:
            self._progress.remove_task(task)

    def _note(self, text: str) -> None:
        """A log shows a live display once, when all is over."""
        if not self._console.is_terminal:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _left_in_words(seconds: float | None) -> str:
    return "" if seconds is None else f"about {in_words(seconds)} left"


def _provisioning_in_words(event: Provisioning) -> str:
    size = f"{bytes_in_words(event.done_bytes)} of {bytes_in_words(event.total_bytes)}" if event.total_bytes else ""
    return " ".join(part for part in (event.phase, size, event.detail) if part)
