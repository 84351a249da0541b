"""Planning jobs and seeing them through, here or by whoever dispatches: what every measuring command shares."""

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import dropwhile, takewhile
from pathlib import Path

import click

from knowngood.cli.choice import Chosen
from knowngood.cli.console import RunProgress, to_do_in_words
from knowngood.cli.exit_codes import Exit
from knowngood.cli.output import err
from knowngood.domain.errors import IndexUnusable, StoreUnusable
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.job import ArmFinished, Event
from knowngood.domain.measuring.planning import PlannedJob, PlanRequest, plan_jobs
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.outcome import TroubleCode
from knowngood.domain.verdicts.verdict import CellPlace
from knowngood.domain.vocabulary import many
from knowngood.health.again import print_verdicts
from knowngood.health.worker import dump_worker_config
from knowngood.settings import Settings
from knowngood.store.engine import Engine, Session, reading, unit_of_work
from knowngood.store.jobs.durations import load_time_left
from knowngood.store.jobs.job_queue import DISPATCHER, cancel_run, create_run, take_lease
from knowngood.store.knowledge.snapshot import read_shipped
from knowngood.store.queries import (
    RunRow,
    load_builds,
    load_issue,
    load_known_attempts,
    load_lease,
    load_run,
    load_runs,
    load_troubles,
)
from knowngood.store.records import JobState, RunState
from knowngood_workers.dispatch.dispatcher import DispatcherBusy, DispatchOptions, dispatch, process_of, utc_now
from knowngood_workers.dispatch.local_transport import LocalTransport
from knowngood_workers.host.machine_info import describe_machine
from knowngood_workers.pack.builder import OpenedPack
from knowngood_workers.provision.index_config import read_index
from knowngood_workers.provision.resolver import environment_key

UP = "up"  # of a run: who asked for it; of a lease: who looks whether there is such a run
FURTHER = 2  # plans after the first: a baseline's verdict asks for workarounds or three attempts, and these for ten


def own_hardware() -> tuple[str, ...]:
    return describe_machine().hardware


@dataclass(frozen=True)
class Work:
    """The means of a run: the settings, the pack it runs from, the builds that are used as this machine has them.
    `runs` are those that were made with it.
    """

    settings: Settings
    pack: OpenedPack | None = None
    adopted: Mapping[str, Path] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        return self.pack.environ(os.environ) if self.pack else dict(os.environ)

    def able(self, planned: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """The jobs that can be done with this: all of them, or those whose environments the pack holds."""
        if self.pack is None and not self.adopted:
            return tuple(planned)
        feasible = tuple(job for job in planned if self._is_here(job))
        if len(feasible) < len(planned):
            arms = sum(len(job.arms) for job in planned) - sum(len(job.arms) for job in feasible)
            source = "the pack" if self.pack else "an adopted interpreter, which is used as it is,"
            err.print(f"{arms} arms need packages that {source} lacks, and are left out", soft_wrap=True)
        return feasible

    def _is_here(self, job: PlannedJob) -> bool:
        if job.build.id in self.adopted and not job.request.packages and not job.request.mutates:
            return True
        if self.pack is None:
            return job.build.id not in self.adopted
        return self.pack.holds(environment_key(job.build, job.request))


def plan(engine: Engine, chosen: Chosen, wanted: PlanRequest, *, only_local: bool = False) -> tuple[PlannedJob, ...]:
    """Jobs for what is chosen, as the store holds it by now: rows may be edited while a run goes from plan to plan.
    With `only_local` what other machines measured does not count as known. Raises UnknownIssue.
    """
    with reading(engine) as s:
        known, issues = load_known_attempts(s, only_local=only_local), [load_issue(s, one.id) for one in chosen.issues]
        return plan_jobs(issues, chosen.builds, chosen.hardware, known, wanted, line=load_builds(s))


def run_planned(
    engine: Engine,
    work: Work,
    planned: Sequence[PlannedJob],
    request: Mapping[str, object],
    stop: Callable[[], bool],
    seen: Collection[str] = (),
    replan: Callable[[], Sequence[PlannedJob]] | None = None,
    *,
    is_priced: bool = False,
) -> str:
    """Queue the jobs and see them through, here or, where another dispatcher is at work, by it. Gives the run that came
    instead, if any: one of another `up` that is not among `seen`, or ours where another `up` has cancelled it. An `up`
    says how to plan again (`replan`). `is_priced` where the price was printed before.

    Raises IndexUnusable once an environment cannot be made because the default index cannot be reached: no other one
    could be.
    """
    if not planned:
        err.print("nothing to run: every cell asked for has its answer")
        return ""
    if not is_priced:
        err.print(to_do_in_words(planned), highlight=False)
    request = {**request, "slots": work.settings.slots}
    run_id, is_own = queue(engine, planned, request, seen, replan)
    work.runs.append(run_id)
    if not is_own:
        err.print("another `up` measures this already: following it")
    how = DispatchOptions(hardware=own_hardware(), run=run_id, until_idle=True, lease_s=work.settings.lease_s)
    by_default = {job.build.id for job in planned if job.build.origin == "default"}
    offline = _see_through(engine, work, run_id, how, stop, by_default)
    if stop() or offline:
        with unit_of_work(engine) as s:
            if is_own:
                cancel_run(s, run_id, utc_now())
        if offline:
            raise IndexUnusable(offline)
        _tell_stopped(engine, run_id)
        raise click.exceptions.Exit(Exit.OK)
    return "" if is_own and _run(engine, run_id).state is not RunState.CANCELLED else run_id


def _tell_stopped(engine: Engine, run_id: str) -> None:
    run, before = _run(engine, run_id), done_before(engine, run_id)
    done = f"{before + run.arms_done} of {many(before + run.arms_total, 'arm')} are done, and their results are kept"
    err.print(f"stopped: {done}; the same command continues", markup=False, highlight=False, soft_wrap=True)


def done_before(engine: Engine, run_id: str) -> int:
    """The arms that the same command did before it was stopped, less those that a trouble of the host kept from it."""
    with reading(engine) as s:
        run, *earlier = dropwhile(lambda each: each.id != run_id, load_runs(s, 50))
        stopped = takewhile(lambda each: each.request == run.request and each.state is not RunState.DONE, earlier)
        return sum(trouble is None for _, trouble in load_troubles(s, [each.id for each in stopped]))


def queue(
    engine: Engine,
    planned: Sequence[PlannedJob],
    request: Mapping[str, object],
    seen: Collection[str],
    replan: Callable[[], Sequence[PlannedJob]] | None = None,
) -> tuple[str, bool]:
    """A new run of these jobs and True; of two `up` at once, on whatever hosts, the second is given the run of the
    first and False. Where that has ended since the jobs were planned, what is left is planned once more.

    Once only: what is left of a run that is among `seen` is not for this host, and may wait for ever.
    """
    with unit_of_work(engine) as s:
        if replan is not None:
            take_lease(s, UP, UP, utc_now(), 0)  # not to hold it: the other one waits here until this is committed
            queued = [run for run in unfinished_ups(s) if run not in seen]
            if queued:
                return queued[0], False
            planned = replan()
        return create_run(s, planned, request, utc_now()), True


def places_of(planned: Sequence[PlannedJob]) -> Iterator[CellPlace]:
    return ((arm.issue, job.build.id, job.hardware) for job in planned for arm in job.arms)


def tell_results(settings: Settings, known: Known, places: Collection[CellPlace]) -> None:
    """Say what a run found in these cells, and whether this release's results say the same."""
    print_verdicts(err, places, known, read_shipped().knowledge.known if settings.shipped else None)


def tell_warnings(issues: Sequence[Issue]) -> None:
    """Say what `check` warns of in the rows that are run: their cells say it too; and which of them no run measures."""
    for issue in issues:
        for words in issue.warnings:
            err.print(f"warning: {issue.id}: {words}", markup=False, highlight=False, soft_wrap=True)
    tell_timed(issues)


def tell_timed(issues: Iterable[Issue]) -> None:
    if timed := ",".join(issue.id for issue in issues if issue.is_timed):
        words = f"left out, because time tells them, which no run measures: knowngood costs --issues {timed}"
        err.print(words, markup=False, highlight=False, soft_wrap=True)


def tell_troubles(engine: Engine, work: Work) -> bool:
    """Say which troubles of a host kept arms of these runs from running. Returns whether no arm could run."""
    with reading(engine) as s:
        troubles = [trouble for _, trouble in load_troubles(s, work.runs)]
    first = {trouble.code: trouble.sentence for trouble in reversed(troubles) if trouble}
    for code, count in Counter(trouble.code for trouble in troubles if trouble).most_common():
        which = "no arm could" if count == len(troubles) else f"{count} of {len(troubles)} arms could not"
        err.print(f"{which} run: {first[code]}", markup=False, highlight=False, soft_wrap=True)
    return bool(troubles) and all(troubles)


def unfinished_ups(s: Session) -> list[str]:
    return [run.id for run in load_runs(s, 50) if run.finished_at is None and run.request.get("by") == UP]


def _see_through(
    engine: Engine,
    work: Work,
    run_id: str,
    how: DispatchOptions,
    stop: Callable[[], bool],
    by_default: Collection[str],
) -> str:
    """Dispatch the run until it is done. A dispatcher of every run does it where one is at work; one that keeps to a
    run of its own does not, and then this goes on when that one ends. Ends early where the index of the builds
    `by_default` cannot be reached, and returns that trouble.
    """
    jobs, left, offline = _run(engine, run_id).jobs, partial(_left, engine, run_id), list[str]()
    concerned = {job.id for job in jobs if job.build in by_default}
    has_index = cache(lambda: not read_index(work.environ).no_index)
    with RunProgress(err, jobs, left, done_before(engine, run_id)) as progress:
        is_told = False

        def tell(event: Event) -> None:
            progress.tell(event)
            trouble = event.record.trouble if isinstance(event, ArmFinished) and event.job in concerned else None
            if trouble and trouble.code is TroubleCode.INDEX_UNREACHABLE and has_index():
                offline.append(trouble.sentence)

        while not stop():
            try:
                dispatch(engine, transport(work), how, stop=lambda: stop() or bool(offline), on_event=tell)
            except DispatcherBusy:
                if not is_told:
                    err.print(waited_for(engine, run_id), markup=False, highlight=False, soft_wrap=True)
                is_told = True
                if _is_done_by_another(engine, run_id, progress, stop):
                    break
            else:
                break
    return next(iter(offline), "")


def _left(engine: Engine, run_id: str) -> float | None:
    with suppress(StoreUnusable), reading(engine) as s:  # busy for a moment: the next look is soon
        return load_time_left(s, load_run(s, run_id), utc_now())
    return None


def waited_for(engine: Engine, run_id: str) -> str:
    """Who measures already, and at what."""
    with reading(engine) as s:
        lease, runs = load_lease(s, DISPATCHER), load_runs(s, 50)
    who = process_of(lease.holder) if lease else ""
    ahead = [
        f"`{run.request.get('by', 'run')}` since {run.created_at:%H:%M} UTC ({run.arms_done} of {run.arms_total} arms)"
        for run in runs
        if run.id != run_id and any(job.state is JobState.LEASED for job in run.jobs)
    ]
    return (
        f"waiting: {f'process {who}' if who else 'another process'} measures on this store already"
        f"{f', {ahead[0]}' if ahead else ''}; it takes this over, or this goes on when it ends. "
        "Ctrl-C ends the waiting and loses nothing"
    )


def _run(engine: Engine, run_id: str) -> RunRow:
    with reading(engine) as s:
        return load_run(s, run_id)


def _is_done_by_another(engine: Engine, run_id: str, progress: RunProgress, stop: Callable[[], bool]) -> bool:
    """Show what another dispatcher does of the run, for three seconds or to its end."""
    until = time.monotonic() + 3.0
    while not stop() and time.monotonic() < until:
        row = _run(engine, run_id)
        progress.show(row)
        if row.finished_at:
            return True
        time.sleep(0.5)
    return False


def transport(work: Work) -> LocalTransport:
    return LocalTransport(dump_worker_config(work.settings, work.adopted), environment=work.environ)


def is_led(engine: Engine) -> bool:
    """Whether a dispatcher is at work, which may serve other hardware than this machine has."""
    with reading(engine) as s:
        lease = load_lease(s, DISPATCHER)
    return lease is not None and lease.until > utc_now()
