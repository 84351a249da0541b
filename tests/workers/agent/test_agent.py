import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import IO, cast

import psutil
import pynvml
import pytest

from knowngood.catalogue.loader import read_catalogue
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, binding, digest, environment_request, variants_of
from knowngood.domain.measuring.isolation import Isolation
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
from knowngood.domain.verdicts.outcome import Ending, TroubleCode
from knowngood.serialization import codec
from knowngood_workers.agent.agent import WorkerConfig, in_running_order, run_job
from knowngood_workers.agent.arm_runner import Limits
from knowngood_workers.agent.process_guard import settle
from knowngood_workers.agent.sandbox_policy import OPEN, probe_cgroups, probe_host_sandbox
from knowngood_workers.common.host_lock import take_lock
from knowngood_workers.host.machine_info import describe_machine
from knowngood_workers.standalone.cgroup import CGROUP
from tests.make import HARDWARE
from tests.make_wheels import make_wheels
from tests.waiting import PATIENCE_S, eventually
from tests.workers.toy_driver import GIGABYTE, ToyDevice, install
from tests.workers.toy_environment import survivors

CATALOGUE = read_catalogue([Path(__file__).parents[2] / "mini_repros"])
ISSUES = {issue.id: issue for issue in CATALOGUE.issues}
BUILDS = {build.torch: build for build in CATALOGUE.builds}
FIRST = BUILDS["0.0.1+mini"]

RUNS_FOR_EVER = """
import subprocess, sys, time

def control():
    print("the arm speaks")
    return {"a": 1}

def baseline():
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(600)
"""


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def shared_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def worker_config(shared_root: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerConfig]:
    """Environments come from the toy wheels alone, and are made once for all tests here."""
    for name in ("UV_FIND_LINKS", "UV_INDEX", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    yield WorkerConfig(shared_root, slots=2, envs_limit_bytes=1 << 30, limits=Limits(400 << 20, grace_s=0.3))
    assert survivors(shared_root / "scratch") == []


def make_spec(*issues: Issue, build: Build = FIRST, hardware: str = HARDWARE) -> JobSpec:
    request = environment_request(issues[0], build)
    arms = tuple(
        ArmSpec(
            attempt=f"{issue.id}.{arm.id}.{variant.id}",
            issue=issue.id,
            arm=arm.id,
            variant=variant.id,
            ordinal=1,
            binding=binding(arm, variant, request),
            script=digest(issue.script),
            params=variant.params,
            env=arm.env,
            exercises=arm.exercises,
            timeout_s=issue.timeout_s,
        )
        for issue in issues
        for arm in issue.arms
        for variant in variants_of(issue, arm.id)
    )
    scripts = {digest(issue.script): issue.script for issue in issues}
    return JobSpec("job-1", 1, build, hardware, request, scripts, arms)


def endless() -> JobSpec:
    """A job whose control passes and whose baseline runs for ever."""
    issue = replace(ISSUES["toy-passes-1"], script=RUNS_FOR_EVER)
    spec = make_spec(issue)
    return replace(spec, arms=tuple(replace(arm, timeout_s=600.0) for arm in spec.arms))


def finished(events: Sequence[Event]) -> list[ArmFinished]:
    return [event for event in events if isinstance(event, ArmFinished)]


@pytest.mark.cgroup
def test_where_a_control_group_was_delegated_each_arm_says_that_it_had_one_and_the_machine_does_not(
    worker_config: WorkerConfig,
) -> None:
    settle()
    home, why_not = probe_cgroups()
    if not home:
        pytest.skip(why_not)
    events = list(run_job(make_spec(ISSUES["toy-fixed-1"]), worker_config, never))
    assert {CGROUP in event.record.sandbox for event in finished(events)} == {True}
    (started,) = (event for event in events if isinstance(event, JobStarted))
    assert CGROUP not in started.machine.sandbox
    assert list(Path(home).glob("kg-*")) == []


def test_a_job_tells_its_story_in_order_and_every_arm_ends_once(worker_config: WorkerConfig) -> None:
    spec = make_spec(ISSUES["toy-variants-1"])
    events = list(run_job(spec, worker_config, never))
    assert isinstance(events[0], JobStarted)
    assert events[-1] == JobEnded("job-1", 1, problem="")
    kinds = [type(event) for event in events]
    assert kinds.index(EnvironmentReady) > max(at for at, kind in enumerate(kinds) if kind is Provisioning)
    assert Counter(event.attempt for event in finished(events)) == dict.fromkeys([arm.attempt for arm in spec.arms], 1)
    for event in finished(events):
        begun = next(
            at for at, one in enumerate(events) if isinstance(one, ArmStarted) and one.attempt == event.attempt
        )
        assert begun < events.index(event)
        assert event.started_at <= event.finished_at
    endings = {event.attempt: event.record.ending for event in finished(events)}
    assert endings["toy-variants-1.baseline.small"] is Ending.RETURNED
    assert endings["toy-variants-1.baseline.large"] is Ending.RAISED


@pytest.mark.skipif(describe_machine().isa == "none", reason="no vector ISA to choose")
def test_arms_of_an_isa_class_are_told_their_isa_and_those_of_the_whole_class_none(worker_config: WorkerConfig) -> None:
    script = "import os\n\ndef control():\n    return {'isa': os.environ.get('ATEN_CPU_CAPABILITY', 'its own')}\n"
    issue = replace(ISSUES["toy-passes-1"], script=script)
    for hardware, isa in ((HARDWARE, "its own"), (f"{HARDWARE}-avx2", "avx2")):
        spec = make_spec(issue, hardware=hardware)
        spec = replace(spec, arms=tuple(arm for arm in spec.arms if arm.arm == "control"))
        (event,) = finished(list(run_job(spec, worker_config, never)))
        assert event.record.observed == {"isa": isa}


def test_an_arm_is_bound_to_the_machine_and_the_lock_it_ran_with(worker_config: WorkerConfig) -> None:
    events = list(run_job(make_spec(ISSUES["toy-passes-1"]), worker_config, never))
    machine = next(event.machine for event in events if isinstance(event, JobStarted))
    ready = next(event for event in events if isinstance(event, EnvironmentReady))
    assert {(event.machine, event.lock_digest) for event in finished(events)} == {(machine.digest, ready.lock_digest)}
    assert ready.imported["torch"] == "0.0.1+mini"


def test_each_issues_control_runs_first() -> None:
    spec = make_spec(ISSUES["toy-passes-1"], ISSUES["toy-fixed-1"])
    shuffled = tuple(reversed(spec.arms))
    ordered = [(arm.issue, arm.arm) for arm in in_running_order(shuffled)]
    assert ordered[0] == ("toy-fixed-1", "control")
    assert ordered.index(("toy-passes-1", "control")) == ordered.index(("toy-passes-1", "baseline")) - 1
    assert len(ordered) == len(spec.arms)


def test_where_there_is_no_such_build_every_arm_says_so(worker_config: WorkerConfig) -> None:
    build = BUILDS["9.9.9+mini"]
    events = list(run_job(make_spec(ISSUES["toy-passes-1"], build=build), worker_config, never))
    records = [event.record for event in finished(events)]
    assert [record.ending for record in records] == [Ending.NOT_STARTED] * 2
    assert all(record.trouble and "9.9.9" in record.trouble.sentence for record in records)
    assert events[-1] == JobEnded("job-1", 1, problem="")


def test_a_wheel_that_is_not_the_build_runs_nothing(worker_config: WorkerConfig) -> None:
    events = list(run_job(make_spec(ISSUES["toy-passes-1"], build=BUILDS["0.0.3+mini"]), worker_config, never))
    troubles = {event.record.trouble.code for event in finished(events) if event.record.trouble}
    assert troubles == {TroubleCode.WRONG_BUILD}
    assert len(finished(events)) == 2


def test_an_issue_with_packages_has_them_and_runs_fresh(worker_config: WorkerConfig) -> None:
    records = [e.record for e in finished(list(run_job(make_spec(ISSUES["toy-packages-1"]), worker_config, never)))]
    assert [record.ending for record in records] == [Ending.RETURNED] * 2
    assert {record.imported["mini_extra"] for record in records} == {"1.0"}
    assert not any("forked" in record.sandbox for record in records)


@pytest.mark.parametrize("fork_server", [True, False], ids=["forked", "fresh"])
def test_arms_of_a_bare_build_are_forked_unless_the_workplace_says_otherwise(
    worker_config: WorkerConfig, fork_server: bool
) -> None:
    events = list(run_job(make_spec(ISSUES["toy-passes-1"]), replace(worker_config, fork_server=fork_server), never))
    assert {"forked" in event.record.sandbox for event in finished(events)} == {fork_server}


def test_after_a_failure_the_host_is_asked_what_it_lacks(
    worker_config: WorkerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    records = {
        event.attempt: event.record
        for event in finished(list(run_job(make_spec(ISSUES["toy-fixed-1"]), worker_config, never)))
    }
    failed, passed = records["toy-fixed-1.baseline.default"], records["toy-fixed-1.aot_eager.default"]
    assert failed.trouble is not None
    assert failed.trouble.code is TroubleCode.NO_COMPILER
    assert passed.trouble is None


def test_a_gpu_class_without_a_gpu_is_trouble_and_no_result(worker_config: WorkerConfig) -> None:
    events = list(run_job(make_spec(ISSUES["toy-passes-1"], hardware="cuda-sm_123"), worker_config, never))
    assert {event.record.trouble.code for event in finished(events) if event.record.trouble} == {TroubleCode.GPU_LOST}
    assert {event.record.ending for event in finished(events)} == {Ending.NOT_STARTED}


# -- on a GPU, whose driver is a stand-in: arms, locks and processes are real ------------------------------------------

TELLS_ITS_GPU = """
import os, time

def baseline(takes_s=0.5, fails=False):
    began = time.monotonic()
    time.sleep(takes_s)
    if fails:
        raise RuntimeError("the arm's own failure")
    return {"gpu": os.environ["CUDA_VISIBLE_DEVICES"], "began": began, "ended": time.monotonic()}
"""


@pytest.fixture
def gpu_workplace(worker_config: WorkerConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkerConfig:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where this host's locks are
    return replace(worker_config, settle_s=0.5)


def on_gpu(arms: int, *, build: Build = FIRST, **params: float | bool) -> JobSpec:
    """A job of so many arms that tell which GPU they saw, and when."""
    issue = replace(ISSUES["toy-passes-1"], script=TELLS_ITS_GPU)
    spec = make_spec(issue, build=build, hardware="cuda-sm_90")
    (baseline,) = (arm for arm in spec.arms if arm.arm == "baseline")
    each = (replace(baseline, attempt=f"{number}", params=params, exercises=()) for number in range(arms))
    return replace(spec, arms=tuple(each))


Span = tuple[float, float]


def spans_by_gpu(*stories: Sequence[Event]) -> dict[str, list[Span]]:
    """When arms ran on each GPU, in order."""
    found: dict[str, list[Span]] = {}
    for event in (event for events in stories for event in finished(events)):
        told = event.record.observed
        found.setdefault(told["gpu"], []).append((float(told["began"]), float(told["ended"])))
    return {gpu: sorted(spans) for gpu, spans in found.items()}


def overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def test_a_driver_that_is_too_old_is_told_before_anything_is_downloaded(
    gpu_workplace: WorkerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, ToyDevice(), cuda=12040)
    events = list(run_job(on_gpu(2, build=replace(FIRST, cuda="13.0")), gpu_workplace, never))
    assert not any(isinstance(event, Provisioning | EnvironmentReady) for event in events)
    records = [event.record for event in finished(events)]
    assert [record.ending for record in records] == [Ending.NOT_STARTED] * 2
    assert {record.trouble.code for record in records if record.trouble} == {TroubleCode.DRIVER_TOO_OLD}
    assert events[-1] == JobEnded("job-1", 1, problem="")


def test_each_gpu_runs_one_arm_at_a_time_and_several_run_side_by_side(
    gpu_workplace: WorkerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, ToyDevice(), ToyDevice(), ToyDevice(capability=(8, 0)))
    told: list[Event] = []

    def run(takes_s: float) -> bool:
        """Whether some ran side by side."""
        told[:] = run_job(on_gpu(4, takes_s=takes_s), gpu_workplace, never)
        spans = spans_by_gpu(told)
        assert set(spans) <= {"0", "1"}, "the third is of another class"
        assert not any(overlap(one, after) for on_one in spans.values() for one, after in pairwise(on_one))
        return any(overlap(*both) for both in product(spans.get("0", ()), spans.get("1", ())))

    assert any(map(run, (0.5, 5.0, 50.0))), "however long they take"
    assert all("forked" in event.record.sandbox for event in finished(told))


def test_two_jobs_of_one_host_take_turns_on_its_gpu(
    gpu_workplace: WorkerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, ToyDevice())
    with ThreadPoolExecutor(2) as pool:
        stories = list(pool.map(lambda _: list(run_job(on_gpu(2), gpu_workplace, never)), range(2)))
    (spans,) = spans_by_gpu(*stories).values()
    assert len(spans) == 4
    assert not any(overlap(one, after) for one, after in pairwise(spans))


def story_in_which(
    devices: Sequence[ToyDevice], spec: JobSpec, worker_config: WorkerConfig, happens: Callable[[ToyDevice], None]
) -> list[Event]:
    """Run the job; while its first arm is at work something `happens` to the first device: at the third look at it,
    after those of the job and of the arm.
    """
    looks: list[int] = []

    def look() -> None:
        looks.append(devices[0].used)
        if len(looks) == 3:
            happens(devices[0])

    devices[0].on_look = look
    return list(run_job(spec, worker_config, never))


def fall_off(device: ToyDevice) -> None:
    device.error = pynvml.NVML_ERROR_GPU_IS_LOST


def leak(device: ToyDevice) -> None:
    device.used = 4 * GIGABYTE


@pytest.mark.parametrize("happens", [fall_off, pytest.param(leak, marks=pytest.mark.soak)])
def test_an_arm_whose_gpu_is_unsound_afterwards_is_made_again_on_a_sound_one(
    gpu_workplace: WorkerConfig, monkeypatch: pytest.MonkeyPatch, happens: Callable[[ToyDevice], None]
) -> None:
    devices = (ToyDevice(), ToyDevice())
    install(monkeypatch, *devices)
    events = story_in_which(devices, on_gpu(1), gpu_workplace, happens)
    (told,) = finished(events)
    assert sum(isinstance(event, ArmStarted) for event in events) == 2
    assert (told.record.observed["gpu"], told.record.trouble) == ("1", None)


def test_where_no_gpu_is_sound_any_more_every_arm_has_the_reason(
    gpu_workplace: WorkerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = (ToyDevice(),)
    install(monkeypatch, *devices)
    events = story_in_which(devices, on_gpu(2, fails=True), gpu_workplace, leak)
    first, second = (event.record for event in finished(events))
    assert first.raised is not None, "what it left is evidence, beside the trouble"
    assert (first.ending, second.ending) == (Ending.RAISED, Ending.NOT_STARTED)
    for record in (first, second):
        assert record.trouble is not None
        assert record.trouble.code is TroubleCode.GPU_BUSY
    assert events[-1] == JobEnded("job-1", 1, problem="")


def test_a_job_that_waits_for_its_gpu_can_be_cancelled(
    gpu_workplace: WorkerConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = ToyDevice()
    install(monkeypatch, device)
    (tmp_path / "knowngood-gpus").mkdir()
    lock = take_lock(tmp_path / "knowngood-gpus" / f"{device.uuid}.lock")
    assert lock is not None
    is_ready = threading.Event()
    threading.Timer(1.0, is_ready.set).start()
    events = list(run_job(on_gpu(1), gpu_workplace, is_ready.is_set))
    os.close(lock)
    assert finished(events) == []
    assert events[-1] == JobEnded("job-1", 1, problem="cancelled")


def test_arms_of_the_cpu_class_leave_a_core_for_each_gpu(
    gpu_workplace: WorkerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, ToyDevice())
    spec = replace(on_gpu(3, takes_s=0.2), hardware=HARDWARE)
    events = list(run_job(spec, replace(gpu_workplace, slots=2), never))
    (spans,) = spans_by_gpu(events).values()
    assert len(spans) == 3
    assert not any(overlap(one, after) for one, after in pairwise(spans))


def test_what_is_cut_short_by_a_cancellation_is_left_out(worker_config: WorkerConfig) -> None:
    def baseline_is_at_work() -> bool:
        return "sleep" in survivors(worker_config.scratch)

    events = list(run_job(endless(), replace(worker_config, slots=1), baseline_is_at_work))
    assert events[-1] == JobEnded("job-1", 1, problem="cancelled")
    assert [event.attempt for event in finished(events)] == ["toy-passes-1.control.default"]


def test_closing_the_story_early_ends_the_job(worker_config: WorkerConfig) -> None:
    events = run_job(endless(), worker_config, never)
    for event in events:
        if isinstance(event, ArmFinished):
            break
    began = time.monotonic()
    cast(Generator[Event], events).close()
    assert time.monotonic() - began < PATIENCE_S


@pytest.fixture
def start_agent(worker_config: WorkerConfig) -> Iterator[Callable[[JobSpec], subprocess.Popen[bytes]]]:
    """Agents as transports start them: their order in, standard input left open."""
    started: list[subprocess.Popen[bytes]] = []

    def start(spec: JobSpec) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "knowngood_workers.agent.agent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        order = {
            "spec": json.loads(codec.dump_spec(spec)),
            "worker_config": {
                "root": str(worker_config.root),
                "slots": 2,
                "envs_limit_bytes": 1 << 30,
                "limits": {"memory_bytes": 400 << 20, "grace_s": 0.3},
            },
        }
        stdin = cast(IO[bytes], process.stdin)
        stdin.write(json.dumps(order).encode() + b"\n")
        stdin.flush()
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            cast(IO[bytes], stream).close()


def story(process: subprocess.Popen[bytes]) -> Iterator[Event]:
    return (codec.load_event(line) for line in cast(IO[bytes], process.stdout))


def follow_to_baseline(process: subprocess.Popen[bytes], root: Path) -> None:
    """Read on until the arm that runs for ever has started its own child."""
    for event in story(process):
        if isinstance(event, ArmStarted) and ".baseline." in event.attempt:
            break
    assert eventually(lambda: "sleep" in survivors(root))


Start = Callable[[JobSpec], subprocess.Popen[bytes]]


def test_the_program_says_events_and_nothing_else(start_agent: Start) -> None:
    process = start_agent(make_spec(replace(ISSUES["toy-passes-1"], script=RUNS_FOR_EVER.replace("(600)", "(0)"))))
    events = list(story(process))
    assert isinstance(events[-1], JobEnded)
    assert any("the arm speaks" in event.log for event in finished(events))
    assert process.wait(PATIENCE_S) == 0


def test_asking_the_program_to_end_ends_its_job_in_order(start_agent: Start, worker_config: WorkerConfig) -> None:
    process = start_agent(endless())
    follow_to_baseline(process, worker_config.root)
    process.terminate()
    events = list(story(process))
    assert events[-1] == JobEnded("job-1", 1, problem="cancelled")
    assert "toy-passes-1.baseline.default" not in {event.attempt for event in finished(events)}
    assert process.wait(PATIENCE_S) == 0
    assert survivors(worker_config.scratch) == []


def everything_below(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def none_lives(processes: Sequence[psutil.Process]) -> bool:
    return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes)


def test_an_agent_that_is_killed_takes_everything_with_it(start_agent: Start, worker_config: WorkerConfig) -> None:
    process = start_agent(endless())
    follow_to_baseline(process, worker_config.root)
    below = everything_below(process)
    assert len(below) > 3
    process.kill()
    assert eventually(lambda: none_lives(below))


def test_a_guard_outlives_its_agent_to_clear_up_after_it(start_agent: Start, worker_config: WorkerConfig) -> None:
    process = start_agent(endless())
    follow_to_baseline(process, worker_config.root)
    below = everything_below(process)
    agent = psutil.Process(process.pid).children()[0]
    agent.kill()
    assert process.wait(PATIENCE_S) != 0
    assert none_lives(below)


def test_the_end_of_standard_input_ends_everything(start_agent: Start, worker_config: WorkerConfig) -> None:
    process = start_agent(endless())
    follow_to_baseline(process, worker_config.root)
    below = everything_below(process)
    cast(IO[bytes], process.stdin).close()
    process.wait(PATIENCE_S)
    assert none_lives(below)


def test_two_jobs_of_one_host_do_not_touch_each_other(worker_config: WorkerConfig) -> None:
    spec = make_spec(ISSUES["toy-passes-1"])
    stories: list[list[Event]] = [[], []]

    def run(at: int) -> None:
        stories[at] = list(run_job(spec, worker_config, never))

    threads = [threading.Thread(target=run, args=(at,)) for at in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    endings = [sorted((event.attempt, event.record.ending) for event in finished(events)) for events in stories]
    assert endings[0] == endings[1]
    assert len(endings[0]) == len(spec.arms)


def test_a_worker_that_must_shut_arms_off_further_than_it_can_runs_nothing(worker_config: WorkerConfig) -> None:
    """It says so before it downloads anything."""
    place = replace(worker_config, max_isolation=Isolation.PROCESS, min_isolation=Isolation.NETWORK)
    events = list(run_job(make_spec(ISSUES["toy-passes-1"]), place, never))
    assert [type(event) for event in events] == [JobStarted, JobEnded]
    ended = cast(JobEnded, events[-1])
    assert ended.problem.startswith("this worker isolates repros at the level 'process'")
    assert "KNOWNGOOD_MIN_ISOLATION asks for 'network'" in ended.problem


def test_an_arm_that_was_less_shut_off_than_promised_is_no_evidence(
    worker_config: WorkerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor says what it did; a kernel that refuses now what it allowed a moment ago must not pass unseen."""
    promised = probe_host_sandbox(worker_config.root)
    if promised.level.rank < Isolation.NETWORK.rank:
        pytest.skip(f"this kernel offers '{promised.level}' at most: {promised.why_not}")
    place = replace(worker_config, min_isolation=Isolation.NETWORK)
    monkeypatch.setattr(
        "knowngood_workers.agent.agent._Job._sandbox_for",
        lambda *_: replace(OPEN, steps=("process", "no-network")),
    )
    monkeypatch.setattr(
        "knowngood_workers.agent.sandbox_policy.SandboxSpec.around",
        lambda *_: {"steps": ["process"], "cwd": "", "ops": []},
    )
    events = list(run_job(make_spec(ISSUES["toy-passes-1"]), place, never))
    assert finished(events) == []
    assert "KNOWNGOOD_MIN_ISOLATION asks for 'network'" in cast(JobEnded, events[-1]).problem


def test_every_attempt_says_how_far_it_was_shut_off(worker_config: WorkerConfig) -> None:
    levels = [Isolation.PROCESS, probe_host_sandbox(worker_config.root).level]
    for level in levels:
        events = list(run_job(make_spec(ISSUES["toy-passes-1"]), replace(worker_config, max_isolation=level), never))
        assert {event.record.isolation for event in finished(events)} == {level}
        assert cast(JobStarted, events[0]).machine.isolation is level
