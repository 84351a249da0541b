"""Run one job on this host: provision its environment, run its arms, say what happens while it happens.

`run_job` is what every transport runs. `python -m
knowngood_workers.agent.agent` is the same behind a pipe: one line of JSON on standard
input (`{"spec": .., "worker_config": ..}`), events as lines on standard output, SIGTERM to cancel; when standard input
ends or its starter dies, everything it started dies with it. No database, no credential, no setting is read here.
"""

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from knowngood.domain.hardware_classes import isa_environment
from knowngood.domain.issue import CONTROL
from knowngood.domain.measuring.isolation import Isolation, isolation_of, too_little
from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmSpec,
    ArmStarted,
    EnvironmentReady,
    Event,
    JobEnded,
    JobSpec,
    JobStarted,
    Provisioning,
)
from knowngood.domain.measuring.machine import CPU_CLASS, Machine
from knowngood.domain.verdicts.outcome import Ending, RunRecord, Trouble, TroubleCode
from knowngood.serialization import codec
from knowngood.serialization.bounds import LONGEST_SAYING
from knowngood_workers.agent.arm_runner import (
    CANCELLED,
    Execution,
    ForkServer,
    Limits,
    RunLocation,
    arm_environment,
    execute,
    scratch_folder,
    sweep_scratch,
)
from knowngood_workers.agent.process_guard import (
    end_with_everything,
    run_guarded,
    take_stdout,
    watch_stdin,
    write_all,
)
from knowngood_workers.agent.sandbox_policy import (
    OPEN,
    SandboxInputs,
    SandboxSpec,
    packages_of,
    probe_cgroups,
    probe_host_sandbox,
    probe_sandbox,
    sandbox_command,
)
from knowngood_workers.host.diagnostics import kernel_trouble
from knowngood_workers.host.gpu_lock import Device, hold, open_gpus
from knowngood_workers.host.machine_info import (
    code_trouble,
    describe_machine,
    driver_trouble,
    isa_trouble,
    other_isa_trouble,
)
from knowngood_workers.provision.provisioner import (
    Cancelled,
    Environment,
    Provisioner,
    ProvisionFailure,
    choose_cache,
    host_trouble,
)
from knowngood_workers.standalone import cgroup
from knowngood_workers.standalone.sandbox import be_private

_POLL_S = 0.1
_TRIES_ON_GPU = 2


@dataclass(frozen=True)
class WorkerConfig:
    """Where and how this host works. `root` holds environments and scratch; `slots` arms run side by side.

    `limits` are for one arm with all its processes. `fork_server` lets arms be forked from a process that
    has imported torch once, where that changes nothing (harness). Arms are shut off as far as the kernel allows, up to
    `max_isolation`, those on a GPU up to `max_gpu_isolation` too; below `min_isolation` nothing is run. `adopted` maps
    builds to interpreters of this host that hold them already. `settle_s` is the time in which a GPU must become idle
    before and after an arm. `gpus` are the GPUs that jobs may use, by their numbers here; all of them where it is None.
    """

    root: Path
    slots: int
    envs_limit_bytes: int
    limits: Limits
    fork_server: bool = True
    min_isolation: Isolation = Isolation.NONE
    max_isolation: Isolation = Isolation.FILTERED
    max_gpu_isolation: Isolation = Isolation.FILTERED
    adopted: Mapping[str, Path] = field(default_factory=dict)
    settle_s: float = 15.0
    gpus: tuple[int, ...] | None = None

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"


def arms_at_once(machine: Machine, slots: int) -> Mapping[str, int]:
    """How many arms run side by side there, by hardware class: one on each GPU; on the CPU as many as there are slots,
    less one for each GPU, whose arms compile on the CPU too.
    """
    return {CPU_CLASS: max(1, slots - len(machine.gpus)), **Counter(gpu.hardware for gpu in machine.gpus)}


def run_job(spec: JobSpec, worker_config: WorkerConfig, is_cancelled: Callable[[], bool]) -> Iterator[Event]:
    """Do the job, yielding events as they happen; the last is JobEnded.

    Every arm gets one ArmFinished, also where its environment cannot be made, unless the job is cancelled: an attempt
    that was cut short is no evidence and is left out, so that a retry makes it anew. Closing the iterator cancels.
    """
    host = probe_host_sandbox(worker_config.root, worker_config.max_isolation)
    machine = describe_machine(sandbox=host.steps)
    yield JobStarted(job=spec.job, try_no=spec.try_no, machine=machine)
    job = _Job(spec, worker_config, machine, host)
    worker = threading.Thread(target=job.run, name=f"job-{spec.job}")
    worker.start()
    try:
        while True:
            if is_cancelled():
                job.stop.set()
            with contextlib.suppress(queue.Empty):
                event = job.events.get(timeout=_POLL_S)
                yield event
                if isinstance(event, JobEnded):
                    return
    finally:
        job.stop.set()
        worker.join()


class _IsolationTooLow(Exception):
    """An arm was less shut off than this worker must; what it left is thrown away."""


class _Job:
    """One job under way. Its threads write events; whoever runs the job reads them."""

    def __init__(self, spec: JobSpec, worker_config: WorkerConfig, machine: Machine, host: SandboxSpec) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.stop = threading.Event()
        self._spec = spec
        self._config = worker_config
        self._machine = machine
        self._host = host
        self._kernel_lock = threading.Lock()
        self._kernel_answer: tuple[Trouble | None] | None = None  # None: not asked yet
        self._groups = ""
        self._needs_gpu = spec.hardware.startswith("cuda-")
        self._gpus = tuple(
            gpu
            for gpu in machine.gpus
            if gpu.hardware == spec.hardware and (worker_config.gpus is None or gpu.index in worker_config.gpus)
        )

    @property
    def _parallel_arms(self) -> int:
        """How many arms run side by side: of the host's GPUs those that jobs may use."""
        return len(self._gpus) if self._needs_gpu else arms_at_once(self._machine, self._config.slots)[CPU_CLASS]

    def run(self) -> None:
        """The outer loop of the job: whatever goes wrong in here is the job's problem, told in its last word."""
        try:
            problem = self._work()
        except _IsolationTooLow as refused:
            problem = str(refused)
        except Exception as failure:  # noqa: BLE001 - nobody is above who could answer it
            problem = f"the agent failed: {type(failure).__name__}: {failure}"
        self.events.put(JobEnded(job=self._spec.job, try_no=self._spec.try_no, problem=problem[:LONGEST_SAYING]))

    def _work(self) -> str:
        self._require_isolation(self._host.level, self._host.why_not)
        spec = self._spec
        trouble = self._no_gpu() or driver_trouble(spec.build, self._machine, spec.hardware)
        trouble = trouble or isa_trouble(self._machine, spec.hardware)
        if trouble:
            self._finish_unstarted(trouble, lock_digest="")
            return ""
        sweep_scratch(self._config.scratch)
        self._groups, _ = probe_cgroups()
        cgroup.sweep(self._groups)
        config = self._config
        provisioner = Provisioner(config.root, limit_bytes=config.envs_limit_bytes, adopted=config.adopted)
        try:
            environment = provisioner.provision(
                self._spec.build, self._spec.request, self._progress, is_cancelled=self.stop.is_set
            )
        except ProvisionFailure as failure:
            self._finish_unstarted(failure.trouble, lock_digest="")
            return ""
        except Cancelled:
            return CANCELLED
        with environment:
            self.events.put(
                EnvironmentReady(
                    job=self._spec.job,
                    try_no=self._spec.try_no,
                    lock=environment.lock,
                    lock_digest=environment.lock_digest,
                    packages=environment.packages,
                    imported=environment.imported,
                    seconds=environment.seconds,
                    reused=environment.reused,
                )
            )
            trouble = code_trouble(self._spec.hardware, environment.imported.get("arch", ""))
            if trouble:
                self._finish_unstarted(trouble, environment.lock_digest)
            else:
                sandbox_spec = self._sandbox_for(environment)
                self._require_isolation(sandbox_spec.level, sandbox_spec.why_not)
                self._run_arms(environment, sandbox_spec)
        return CANCELLED if self.stop.is_set() else ""

    def _sandbox_for(self, environment: Environment) -> SandboxSpec:
        """How far arms can be shut off with this environment: it may lie where the inside cannot show it."""
        config = self._config
        is_ours = environment.root.is_relative_to(config.root.resolve())
        sandbox_inputs = SandboxInputs(
            python=environment.python,
            root=config.root.resolve(),
            memory_bytes=config.limits.memory_bytes,
            sees_gpu=self._needs_gpu,
            interpreter=environment.interpreter,
            cache=choose_cache(config.root.absolute(), os.environ).resolve(),
            is_mutable=self._spec.request.mutates,
            extra=() if is_ours else packages_of(environment.python),
        )
        limits = [self._host.level, config.max_gpu_isolation] if self._needs_gpu else [self._host.level]
        with scratch_folder(config.scratch) as folder:
            return probe_sandbox(sandbox_inputs, folder, min(limits, key=lambda level: level.rank))

    def _require_isolation(self, level: Isolation, why_not: str = "") -> None:
        problem = too_little(level, self._config.min_isolation, why_not)
        if problem:
            raise _IsolationTooLow(problem)

    def _progress(self, phase: str, detail: str, done: int, total: int) -> None:
        shown = detail[:LONGEST_SAYING]
        self.events.put(Provisioning(self._spec.job, self._spec.try_no, phase, shown, done, total))

    def _no_gpu(self) -> Trouble | None:
        if self._gpus or not self._needs_gpu:
            return None
        return Trouble(TroubleCode.GPU_LOST, f"no GPU of {self._spec.hardware} is to be seen here; ask nvidia-smi why")

    def _finish_unstarted(self, trouble: Trouble, lock_digest: str) -> None:
        """Without an environment every arm has the same evidence: the trouble."""
        for arm in self._spec.arms:
            self.events.put(self._finished(arm, _not_started(trouble), lock_digest))

    def _run_arms(self, environment: Environment, sandbox_spec: SandboxSpec) -> None:
        """As many side by side as this host bears; each issue's control before its other arms."""
        arms: queue.SimpleQueue[ArmSpec] = queue.SimpleQueue()
        for arm in in_running_order(self._spec.arms):
            arms.put(arm)
        with self._open_gpus() as gpus, self._start_fork_server(environment) as fork_server:
            shared = _JobResources(environment, sandbox_spec, fork_server, gpus)
            with ThreadPoolExecutor(self._parallel_arms, thread_name_prefix="arms") as pool:
                running = [pool.submit(self._run_queued, arms, shared) for _ in range(self._parallel_arms)]
            for future in running:
                future.result()

    def _run_queued(self, arms: "queue.SimpleQueue[ArmSpec]", shared: "_JobResources") -> None:
        try:
            while not self.stop.is_set():
                self._attempt(arms.get_nowait(), shared)
        except queue.Empty:
            pass
        except Exception:
            self.stop.set()
            raise

    def _run_location(self, environment: Environment, gpu: str, sandbox_spec: SandboxSpec = OPEN) -> RunLocation:
        pins, limits = tuple(self._spec.request.pins), self._config.limits
        return RunLocation(
            environment.python,
            pins,
            limits,
            gpu,
            sandbox_spec,
            environment.interpreter,
            self._groups,
            isa_environment(self._spec.hardware),
        )

    def _open_gpus(self) -> contextlib.AbstractContextManager[Sequence[Device] | None]:
        if not self._needs_gpu:
            return contextlib.nullcontext()
        return open_gpus(self._gpus, settle_s=self._config.settle_s)

    @contextlib.contextmanager
    def _start_fork_server(self, environment: Environment) -> Iterator[ForkServer | None]:
        """One for the bare environment of a build, where at least two arms can come from it; else None.

        It sees a GPU where its arms will: what torch finds out while it is imported is then the same as in a fresh one.
        """
        request = self._spec.request
        is_bare = not (request.requirements or request.no_deps or request.mutates)
        forkable = sum(not arm.env for arm in self._spec.arms)
        if not (self._config.fork_server and is_bare and forkable > 1):
            yield None
            return
        place = self._run_location(environment, str(self._gpus[0].index) if self._gpus else "")
        with scratch_folder(self._config.scratch) as folder, ForkServer(place, folder) as fork_server:
            yield fork_server

    def _attempt(self, arm: ArmSpec, shared: "_JobResources") -> None:
        made = self._make(arm, shared, gpu="") if shared.gpus is None else self._make_on_gpu(arm, shared, shared.gpus)
        if made is None:
            return
        record = made.record
        if record.ending is Ending.NOT_STARTED and self.stop.is_set():
            return  # its supervisor was ended with the job before it could say a word
        if record.ending is not Ending.NOT_STARTED:  # what was tried once may be refused later
            self._require_isolation(isolation_of(record.sandbox))
        if record.ending is not Ending.CANCELLED:
            self.events.put(made)

    def _make_on_gpu(self, arm: ArmSpec, shared: "_JobResources", gpus: Sequence[Device]) -> ArmFinished | None:
        """The attempt on a GPU that nobody else uses meanwhile; None where it was cut short.

        One that leaves its GPU unsound is doubtful: it is made once more, on a sound GPU where there is one, and the
        last is what counts.
        """
        made: ArmFinished | None = None
        for _ in range(_TRIES_ON_GPU):
            held = hold(
                gpus, self.stop.is_set, lambda: self._progress("wait", "for a GPU that another job holds", 0, 0)
            )
            if not isinstance(held, Device):
                lock_digest = shared.environment.lock_digest
                return made or (self._finished(arm, _not_started(held), lock_digest) if held else None)
            with held:
                made = self._make(arm, shared, held.index)
                trouble = held.wait_until_sound(self.stop.is_set)
            if trouble is None:
                return made
            if self.stop.is_set():  # it was not given the time to become sound
                return None
            made = replace(made, record=replace(made.record, trouble=trouble))
        return made

    def _make(self, arm: ArmSpec, shared: "_JobResources", gpu: str) -> ArmFinished:
        started_at = datetime.now(UTC)
        self.events.put(ArmStarted(self._spec.job, self._spec.try_no, arm.attempt, started_at))
        environment, script = shared.environment, self._spec.scripts[arm.script]
        place = self._run_location(environment, gpu, shared.sandbox_spec)
        try:
            with scratch_folder(self._config.scratch) as scratch:
                done = execute(
                    arm,
                    script,
                    place=place,
                    scratch=scratch,
                    fork_server=shared.fork_server,
                    is_cancelled=self.stop.is_set,
                )
                done = replace(done, record=self._with_trouble(done.record, arm, environment, place, scratch))
            other_isa = other_isa_trouble(self._spec.hardware, arm.env, done.record.imported)
            done = replace(done, record=replace(done.record, trouble=other_isa)) if other_isa else done
        except OSError as failure:  # no place to run: most often a full disk, which the host's probe tells better
            trouble = host_trouble(environment, self._config.root) or Trouble(
                TroubleCode.HARNESS, f"no process could be made for this attempt: {failure}"
            )
            done = _not_started(trouble)
        return self._finished(arm, done, environment.lock_digest, started_at)

    def _with_trouble(
        self, record: RunRecord, arm: ArmSpec, environment: Environment, place: RunLocation, scratch: Path
    ) -> RunRecord:
        """After anything but a return, ask the host what it lacks, while the arm's folder is still as it was left."""
        if record.ending in {Ending.RETURNED, Ending.CANCELLED} or record.trouble:
            return record
        # The arm's own variables may name any compiler, and its folder may hold anything: asked from inside, like it.
        within = sandbox_command(place.sandbox_spec.around(scratch))
        seen = arm_environment(place, scratch, arm.env)
        trouble = host_trouble(environment, scratch, arm.exercises, seen, within)
        if trouble is None and record.ending is Ending.SIGNALLED and "inductor_cpp" in arm.exercises:
            with self._kernel_lock:  # once for the job: the answer is the host's and the build's
                if self._kernel_answer is None:
                    own = arm_environment(place, scratch, {})
                    self._kernel_answer = (kernel_trouble(environment, scratch, own, within),)
                (trouble,) = self._kernel_answer
        return replace(record, trouble=trouble)

    def _finished(
        self, arm: ArmSpec, done: Execution, lock_digest: str, started_at: datetime | None = None
    ) -> ArmFinished:
        """The event of an attempt that ends now; without `started_at` it took no time."""
        now = datetime.now(UTC)
        return ArmFinished(
            job=self._spec.job,
            try_no=self._spec.try_no,
            attempt=arm.attempt,
            record=done.record,
            log=done.log,
            lock_digest=lock_digest,
            machine=self._machine.digest,
            started_at=started_at or now,
            finished_at=now,
        )


@dataclass(frozen=True)
class _JobResources:
    """Shared by the arms of a job; `gpus` is None on the CPU class."""

    environment: Environment
    sandbox_spec: SandboxSpec
    fork_server: ForkServer | None
    gpus: Sequence[Device] | None


def _not_started(trouble: Trouble) -> Execution:
    return Execution(RunRecord(Ending.NOT_STARTED, trouble=trouble), log="")


def in_running_order(arms: tuple[ArmSpec, ...]) -> list[ArmSpec]:
    """The order given, but each issue's control first."""
    issues = list(dict.fromkeys(arm.issue for arm in arms))
    return sorted(arms, key=lambda arm: (issues.index(arm.issue), arm.arm != CONTROL))


def main() -> None:
    run_guarded(_serve)


def _serve() -> None:
    be_private()
    cancelled = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: cancelled.set())
    words = take_stdout()
    order = json.loads(sys.stdin.buffer.readline())
    spec = codec.load_spec(order["spec"])
    worker_config = TypeAdapter(WorkerConfig).validate_python(order["worker_config"])
    finished = threading.Event()
    threading.Thread(target=watch_stdin, args=(finished.is_set,), name="stdin", daemon=True).start()
    try:
        for event in run_job(spec, worker_config, cancelled.is_set):
            if isinstance(event, JobEnded):
                finished.set()
            write_all(words, codec.dump_event(event) + b"\n")
    except BrokenPipeError:
        end_with_everything()


if __name__ == "__main__":
    main()
