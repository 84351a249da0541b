"""The dispatcher: the only one that moves jobs. It leases them, lets a transport run them, and records what comes back.

One at a time holds the lease called `dispatcher`. A second waits or is refused; one that takes over finds the jobs of
the dead, counts the loss and queues what is left of them. Agents die with their dispatcher, so nobody who was not
asked ever writes; whatever still speaks for an earlier try is refused by the store.

A dispatcher that waits (`Dispatch.waits`) bears a store that cannot be used for a while: jobs go on meanwhile, and what
they say is recorded once it can be. To end instead would cost each of them a try whenever the database is restarted.
"""

import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from uuid import uuid4

import structlog

from knowngood.domain.errors import KnownGoodError, StoreUnusable
from knowngood.domain.hardware_classes import whole_class, with_isa_classes
from knowngood.domain.measuring.job import Event, JobEnded, JobSpec, Provisioning
from knowngood.store import queries
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.event_recorder import lose_job, record_event
from knowngood.store.jobs.job_queue import (
    DISPATCHER,
    claim_job,
    give_lease_back,
    load_cancelled_jobs,
    load_orphans,
    release_job,
    renew_jobs,
    take_lease,
)
from knowngood.store.jobs.workers import offer_classes
from knowngood.store.records import StaleEvent
from knowngood_workers.dispatch.local_transport import AgentLost, JobHandle, JobReturned, Transport

_PROGRESS_EVERY_S = 1.0
_RENEWALS_PER_LEASE = 3
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0  # between two tries to use a store that cannot be used

log = structlog.get_logger()

T = TypeVar("T")


class DispatcherBusy(KnownGoodError):
    """Another dispatcher holds the lease: it is at work, or died less than a lease ago."""


@dataclass(frozen=True)
class DispatchOptions:
    """How to dispatch.

    `hardware` are the classes this dispatcher's transport can serve. `jobs` of each class run at once, `cuda_jobs` of a
    CUDA class, so that an environment is made while the GPUs are busy with another. `room`, where the transport leads a
    fleet, says instead how many jobs of each class the fleet takes at once; it is asked all the time, and what it does
    not name stays in the queue. `run` keeps to the jobs of one run;
    `until_idle` returns once nothing is left to claim. `waits` for another dispatcher's lease to end, and for a store
    that cannot be used to come back; without, it raises.
    A job is asked to stop, and after `grace_s` made to; one whose agent says nothing for `silence_s` beyond its longest
    arm is given up. After a crash another dispatcher can take over once `lease_s` has passed.
    """

    hardware: tuple[str, ...]
    jobs: int = 1
    cuda_jobs: int = 2
    room: Callable[[], Mapping[str, int]] | None = None
    run: str | None = None
    until_idle: bool = False
    waits: bool = False
    lease_s: float = 30.0
    poll_s: float = 0.25
    grace_s: float = 20.0
    silence_s: float = 1800.0
    holder: str = field(default_factory=lambda: f"{DISPATCHER}-{os.getpid()}-{uuid4().hex[:12]}")

    def room_now(self) -> Mapping[str, int]:
        """How many jobs of each class may be under way."""
        if self.room is not None:
            room = self.room()
        else:
            room = {class_: self.cuda_jobs if class_.startswith("cuda-") else self.jobs for class_ in self.hardware}
        return {class_: room[whole_class(class_)] for class_ in with_isa_classes(room)}


def process_of(holder: str) -> str:
    """The number of the process that a dispatcher's name tells, on whichever host; empty where it tells none."""
    _, _, rest = holder.partition(f"{DISPATCHER}-")
    number, _, unique = rest.partition("-")
    return number if unique else ""


def utc_now() -> datetime:
    return datetime.now(UTC)


def dispatch(
    engine: Engine,
    transport: Transport,
    how: DispatchOptions,
    *,
    stop: Callable[[], bool],
    on_event: Callable[[Event], None] = lambda _: None,
) -> None:
    """Run jobs until `stop()` says so, or nothing is left where `how.until_idle`.

    `on_event` hears every event after it was recorded, in the thread of its job. Raises DispatcherBusy where another
    dispatcher is at work, also when it took over from this one.
    """
    _Dispatcher(engine, transport, how, on_event).run(stop)


@dataclass
class _ActiveJob:
    """A job on its way, and what is to become of it."""

    spec: JobSpec
    handle: JobHandle
    thread: threading.Thread | None = None
    heard: float = field(default_factory=time.monotonic)
    progress_at: float = 0.0
    phase: str = ""
    asked_to_stop_at: float | None = None
    is_released: bool = False
    verdict: str = ""
    error: Exception | None = None

    def ask_to_stop(self) -> None:
        if self.asked_to_stop_at is None:
            self.asked_to_stop_at = time.monotonic()
            self.handle.cancel()

    def is_overdue(self, grace_s: float) -> bool:
        return self.asked_to_stop_at is not None and time.monotonic() - self.asked_to_stop_at > grace_s

    def is_silent(self, silence_s: float) -> bool:
        longest = max((arm.timeout_s for arm in self.spec.arms), default=0.0)
        return time.monotonic() - self.heard > silence_s + longest

    def is_noise(self, event: Event) -> bool:
        """Progress within a phase is worth a row once a second."""
        if not isinstance(event, Provisioning):
            return False
        repeats = event.phase == self.phase and time.monotonic() - self.progress_at < _PROGRESS_EVERY_S
        if not repeats:
            self.phase, self.progress_at = event.phase, time.monotonic()
        return repeats


class _Dispatcher:
    def __init__(
        self, engine: Engine, transport: Transport, how: DispatchOptions, on_event: Callable[[Event], None]
    ) -> None:
        self._engine = engine
        self._transport = transport
        self._how = how
        self._on_event = on_event
        self._active: dict[str, _ActiveJob] = {}
        self._renewed_at = 0.0
        self._offered: frozenset[str] = frozenset()
        self._news = threading.Event()
        self._outage_lock = threading.Lock()
        self._outage_since: float | None = None
        self._abandoned = threading.Event()  # this dispatcher ends; its jobs' threads wait for nothing then

    def run(self, stop: Callable[[], bool]) -> None:
        if not self._retry(partial(self._acquire, stop), stop):
            return
        try:
            self._retry(self._adopt, stop)
            while not stop() and self._retry(self._step, stop):
                self._pause()
            self._wind_down()
        finally:
            self._abandon()
            with unit_of_work(self._engine) as s:
                give_lease_back(s, DISPATCHER, self._how.holder)
            log.info("lease given back", lease=DISPATCHER, holder=self._how.holder)

    def _retry(self, work: Callable[[], T], is_over: Callable[[], bool]) -> T:
        """Do it again and again until the store can be used; raises StoreUnusable once nobody waits for it any more.

        It is to be work that may be done twice: of a commit whose answer was lost nobody knows whether it was made.
        """
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                done = work()
            except StoreUnusable as problem:
                if not self._how.waits or is_over():
                    raise
                self._note_outage(str(problem))
            else:
                self._note_outage("")
                return done
            until = time.monotonic() + pause_s
            while time.monotonic() < until and not is_over():
                time.sleep(min(_FIRST_PAUSE_S, self._how.poll_s))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _note_outage(self, reason: str) -> None:
        """Say once, by whichever thread finds it out, that the store cannot be used; without a `reason` that it can."""
        with self._outage_lock:
            if reason and self._outage_since is None:
                self._outage_since = time.monotonic()
                log.error("the store cannot be used; waiting for it", reason=reason)
            elif self._outage_since is not None and not reason:
                log.info("the store can be used again", seconds=round(time.monotonic() - self._outage_since, 1))
                self._outage_since = None

    def _pause(self) -> None:
        """Until the next look, or until a job has ended."""
        self._news.wait(self._how.poll_s)
        self._news.clear()

    def _acquire(self, stop: Callable[[], bool]) -> bool:
        is_told = False
        while not stop():
            if self._take_lease():
                log.info("lease taken", lease=DISPATCHER, holder=self._how.holder)
                return True
            if not self._how.waits:
                raise self._busy()
            if not is_told:
                log.info("another dispatcher is at work; waiting", lease=DISPATCHER, holder=self._how.holder)
            is_told = True
            self._pause()
        return False

    def _take_lease(self) -> bool:
        asked_at = time.monotonic()
        with unit_of_work(self._engine) as s:
            taken = take_lease(s, DISPATCHER, self._how.holder, utc_now(), self._how.lease_s)
        self._renewed_at = asked_at
        return taken

    def _busy(self) -> DispatcherBusy:
        with reading(self._engine) as s:
            lease = queries.load_lease(s, DISPATCHER)
        until = f" until {lease.until:%H:%M:%S} UTC, or longer if it lives" if lease else ""
        return DispatcherBusy(f"another dispatcher is at work{until}; this one would disturb it. Stop it, or wait")

    def _step(self) -> bool:
        """One look at everything; False once nothing is left to do."""
        is_renewed = self._renew()
        if is_renewed:
            self._adopt()
        self._offer(again=is_renewed)
        self._reap()
        self._stop_jobs()
        claimed = self._claim()
        return bool(claimed or self._active or not self._how.until_idle)

    def _renew(self) -> bool:
        """Keep the leases, in good time; True where they were renewed now."""
        if time.monotonic() - self._renewed_at < self._how.lease_s / _RENEWALS_PER_LEASE:
            return False
        if not self._take_lease():
            log.error("lease lost", lease=DISPATCHER, holder=self._how.holder, jobs=len(self._active))
            raise self._busy()
        with unit_of_work(self._engine) as s:
            renew_jobs(s, self._active, self._how.holder, utc_now(), self._how.lease_s)
        return True

    def _offer(self, *, again: bool) -> None:
        """Let readers know which classes have a worker, at once where one is new."""
        now = frozenset(self._how.room_now())
        if again or now - self._offered:
            with unit_of_work(self._engine) as s:
                offer_classes(s, now, self._how.holder, utc_now(), self._how.lease_s)
        self._offered = now

    def _adopt(self) -> None:
        """Count the losses of whoever held jobs before us; nothing of theirs can still be running."""
        with reading(self._engine) as s:
            orphans = load_orphans(s, self._how.holder, utc_now())
        for job, try_no in orphans:
            if job not in self._active:
                log.warning("job adopted", job=job, try_no=try_no)
                self._lose(job, try_no, "the dispatcher that watched it is gone")

    def _reap(self) -> None:
        """Let go of jobs that have ended. What a job's thread could not answer, nobody can: it ends the dispatcher."""
        for job, active in list(self._active.items()):
            if active.thread is not None and not active.thread.is_alive():
                del self._active[job]
                if active.error is not None:
                    raise active.error

    def _stop_jobs(self) -> None:
        if not self._active:
            return
        with reading(self._engine) as s:
            cancelled = load_cancelled_jobs(s, self._how.holder)
        for job, active in self._active.items():
            if job in cancelled:
                active.ask_to_stop()
            if active.is_silent(self._how.silence_s):
                active.verdict = f"the agent said nothing for {self._how.silence_s:.0f} s"
                active.handle.kill()
            if active.is_overdue(self._how.grace_s):
                active.handle.kill()

    def _claim(self) -> bool:
        claimed = False
        while open_classes := self._classes_with_room():
            with unit_of_work(self._engine) as s:
                spec = claim_job(
                    s,
                    self._how.holder,
                    utc_now(),
                    self._how.lease_s,
                    hardware=open_classes,
                    run=self._how.run,
                )
            if spec is None:
                break
            claimed = True
            if not self._start(spec):
                break  # the fleet has shrunk meanwhile: look again
        return claimed

    def _classes_with_room(self) -> tuple[str, ...]:
        busy = Counter(whole_class(active.spec.hardware) for active in self._active.values())
        return tuple(class_ for class_, jobs in self._how.room_now().items() if busy[whole_class(class_)] < jobs)

    def _start(self, spec: JobSpec) -> bool:
        """False where nobody is there to take it, other than was thought."""
        log.info("job claimed", job=spec.job, try_no=spec.try_no, build=spec.build.id, hardware=spec.hardware)
        try:
            active = _ActiveJob(spec, self._transport.start(spec))
        except JobReturned as reason:
            self._release(spec, str(reason))
            return False
        except AgentLost as lost:
            self._lose(spec.job, spec.try_no, str(lost))
            return True
        active.thread = threading.Thread(target=self._watch, args=(active,), name=f"job-{spec.job[:8]}", daemon=True)
        self._active[spec.job] = active
        active.thread.start()
        return True

    def _watch(self, active: _ActiveJob) -> None:
        """A job's whole life, in a thread of its own."""
        try:
            try:
                for event in active.handle.events():
                    active.heard = math.inf  # not silent, however long it takes until this can be recorded
                    self._handle_event(active, event)
                    active.heard = time.monotonic()
            except (AgentLost, StaleEvent) as problem:
                self._answer_loss(active, problem)
        except Exception as error:  # noqa: BLE001 - the outer loop of this thread; the dispatcher's own raises it again
            active.error = error
        finally:
            active.handle.kill()
            self._news.set()

    def _handle_event(self, active: _ActiveJob, event: Event) -> None:
        if isinstance(event, JobEnded) and active.is_released:
            self._retry(partial(self._release, active.spec, "the dispatcher stops"), self._abandoned.is_set)
        elif not active.is_noise(event):
            self._retry(partial(self._record, event), self._abandoned.is_set)
        self._retry(partial(self._on_event, event), self._abandoned.is_set)

    def _record(self, event: Event) -> None:
        with unit_of_work(self._engine) as s:
            record_event(s, event, utc_now(), holder=self._how.holder)

    def _answer_loss(self, active: _ActiveJob, problem: KnownGoodError) -> None:
        reason = str(problem)
        if active.is_released or isinstance(problem, JobReturned):
            self._retry(partial(self._release, active.spec, reason), self._abandoned.is_set)
        else:
            log.warning("worker lost", job=active.spec.job, try_no=active.spec.try_no, reason=reason)
            why = active.verdict or reason
            self._retry(partial(self._lose, active.spec.job, active.spec.try_no, why), self._abandoned.is_set)

    def _lose(self, job: str, try_no: int, reason: str) -> None:
        try:
            with unit_of_work(self._engine) as s:
                lose_job(s, job, try_no, reason, utc_now())
        except StaleEvent as stale:
            log.info("loss was counted already", job=job, reason=str(stale))

    def _release(self, spec: JobSpec, reason: str) -> None:
        try:
            with unit_of_work(self._engine) as s:
                release_job(s, spec.job, spec.try_no, utc_now())
        except StaleEvent as stale:
            reason = str(stale)  # it was handed back before: by a commit whose answer was lost
        log.info("job handed back", job=spec.job, try_no=spec.try_no, reason=reason)

    def _wind_down(self) -> None:
        """Ask every agent to stop, give their jobs back unharmed, and make those stop that do not."""
        for active in self._active.values():
            active.is_released = True
            active.ask_to_stop()
        while self._active:
            self._renew()
            self._stop_jobs()
            self._reap()
            if self._active:
                self._pause()

    def _abandon(self) -> None:
        """Leave no agent behind, whatever brought us here."""
        self._abandoned.set()
        for active in self._active.values():
            active.is_released = True
            active.handle.kill()
        for active in self._active.values():
            if active.thread is not None:
                active.thread.join(self._how.grace_s)
        self._active.clear()
