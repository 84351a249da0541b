"""Arms on a real GPU, with a torch that is on this machine: what they leave behind, and who holds a GPU when.

A fault of an arm is told from the trouble it would make for others by what runs next on the same GPU.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import psutil
import pytest

from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.records import AttemptRow
from knowngood_workers.host.gpu_lock import device_trouble, read_device
from knowngood_workers.host.machine_info import read_gpus
from knowngood_workers.host.nvml import open_nvml
from tests.gpu.laboratory import Device, Laboratory, OwnTorch, find_own_torch, look_at
from tests.waiting import eventually

GPUS = read_gpus()[2]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not GPUS, reason="needs an NVIDIA GPU; its driver shows none to this process"),
    pytest.mark.timeout(270),
]

FAULTY = ("toy-exhausts-1", "toy-launches-1", "toy-misaligned-1", "toy-spins-1")


@pytest.fixture(scope="module")
def own_torch() -> OwnTorch:
    found = find_own_torch()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(scope="module")
def devices() -> Iterator[tuple[Device, ...]]:
    """The GPUs of one class, all of them free before the first test."""
    with open_nvml():
        found = tuple(look_at(gpu) for gpu in GPUS if gpu.hardware == GPUS[0].hardware)
        troubles = [device_trouble(device.gpu, None, device.idle) for device in found]
        assert troubles == [None] * len(found), "the tests need GPUs that nobody else uses"
        yield found


@pytest.fixture(scope="module")
def make_laboratory(
    own_torch: OwnTorch, devices: tuple[Device, ...], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[int], Laboratory]:
    """Laboratories with so many GPUs, each with a data folder of its own."""

    def make(gpus: int) -> Laboratory:
        chosen = tuple(device.gpu for device in devices[:gpus])
        laboratory = Laboratory(tmp_path_factory.mktemp("laboratory"), own_torch, chosen)
        laboratory.prepare()
        return laboratory

    return make


@pytest.fixture(scope="module")
def measured(make_laboratory: Callable[[int], Laboratory]) -> Laboratory:
    """All toys that do harm, run one after the other on one GPU."""
    laboratory = make_laboratory(1)
    laboratory.run(*FAULTY)
    return laboratory


def outcomes(arms: dict[str, AttemptRow]) -> dict[str, Outcome]:
    return {arm: row.judgement.outcome for arm, row in arms.items()}


def reasons(arms: dict[str, AttemptRow]) -> str:
    return "; ".join(f"{arm}: {row.judgement.reason}" for arm, row in arms.items())


def test_a_misaligned_address_poisons_its_own_process_alone(measured: Laboratory) -> None:
    arms = measured.attempts("toy-misaligned-1")
    expected = {"control": Outcome.PASS, "baseline": Outcome.MATCH, "aligned": Outcome.PASS}
    assert outcomes(arms) == expected, reasons(arms)
    assert "misaligned address" in arms["baseline"].judgement.line
    assert arms["baseline"].attempt.finished_at <= arms["aligned"].attempt.started_at


def test_an_arm_that_exhausts_the_memory_says_nothing_and_leaves_it_free(measured: Laboratory) -> None:
    arms = measured.attempts("toy-exhausts-1")
    expected = {"control": Outcome.PASS, "baseline": Outcome.ENV_ERROR, "modest": Outcome.PASS}
    assert outcomes(arms) == expected, reasons(arms)
    assert english(arms["baseline"].judgement.reason).startswith("out of memory")
    assert arms["baseline"].attempt.record.trouble is None, "the GPU was sound afterwards"


def test_an_arm_that_hangs_in_a_kernel_ends_as_timeout_and_leaves_the_gpu_free(measured: Laboratory) -> None:
    arms = measured.attempts("toy-spins-1")
    expected = {"control": Outcome.PASS, "baseline": Outcome.TIMEOUT, "brief": Outcome.PASS}
    assert outcomes(arms) == expected, reasons(arms)
    assert arms["baseline"].attempt.record.trouble is None, "the GPU was sound afterwards"
    assert arms["baseline"].attempt.record.wall_s < 50, "the kernel died soon after its process was told to"


def test_a_kernel_that_ran_is_proven_by_its_probes(measured: Laboratory) -> None:
    arms = measured.attempts("toy-launches-1")
    assert outcomes(arms)["baseline"] is Outcome.PASS, reasons(arms)
    assert outcomes(arms)["by_hand"] is Outcome.PASS, reasons(arms)
    probes = arms["baseline"].attempt.record.probes
    assert (probes["dynamo_graph"], probes["inductor_triton"] >= 1, probes["triton_launch"] >= 1) == (1, True, True)
    assert arms["by_hand"].attempt.record.probes == {"triton_launch": 1}


def test_an_arm_that_claims_a_launch_and_makes_none_is_no_pass(measured: Laboratory) -> None:
    claimed = measured.attempts("toy-launches-1")["only_claimed"]
    assert claimed.judgement.outcome is Outcome.HARNESS_ERROR
    assert "nothing shows that it exercised triton_launch" in english(claimed.judgement.reason)


def test_what_names_no_device_counts_only_if_a_cuda_tensor_entered_it(
    make_laboratory: Callable[[int], Laboratory],
) -> None:
    laboratory = make_laboratory(1)
    laboratory.run("toy-any-device-1")
    arms = laboratory.attempts("toy-any-device-1")
    expected = {"honours": Outcome.PASS, "fails": Outcome.MATCH, "given-up": Outcome.MATCH}
    expected |= dict.fromkeys(("ignores", "fails-ignoring"), Outcome.HARNESS_ERROR)
    assert {name: outcome for name, outcome in outcomes(arms).items() if name in expected} == expected, reasons(arms)
    assert "no CUDA tensor was seen to enter _suspect" in english(arms["ignores"].judgement.reason)


def test_every_arm_saw_one_gpu_and_nothing_of_it_names_the_hardware(
    measured: Laboratory, devices: tuple[Device, ...]
) -> None:
    rows = [row for issue in FAULTY for row in measured.attempts(issue).values()]
    assert len(rows) == 13
    assert not any(devices[0].uuid.removeprefix("GPU-") in repr(row) for row in rows)


def test_after_all_that_the_gpu_is_free(measured: Laboratory, devices: tuple[Device, ...]) -> None:
    assert eventually(lambda: devices[0].is_free, 15)


Span = tuple[str, float, float]


def span_of(row: AttemptRow) -> Span:
    """Which GPU an arm kept busy, and from when to when."""
    told = row.attempt.record.observed
    return told["gpu"], float(told["began"]), float(told["ended"])


def overlap(one: Span, other: Span) -> bool:
    return one[1] < other[2] and other[1] < one[2]


def test_two_runs_of_one_host_never_share_a_gpu_and_use_all_there_are(
    make_laboratory: Callable[[int], Laboratory], devices: tuple[Device, ...]
) -> None:
    gpus = min(len(devices), 2)
    one, other = make_laboratory(gpus), make_laboratory(gpus)
    with one.running("toy-takes-turns-1"), other.running("toy-takes-turns-1"):
        pass
    rows = [row for laboratory in (one, other) for row in laboratory.attempts("toy-takes-turns-1").values()]
    assert [row.judgement.outcome for row in rows] == [Outcome.PASS] * 4, [row.judgement.reason for row in rows]
    spans = sorted((span_of(row) for row in rows), key=lambda span: span[1])
    on_each = [[span for span in spans if span[0] == gpu] for gpu in sorted({span[0] for span in spans})]
    assert not any(overlap(first, after) for spans_of_one in on_each for first, after in pairwise(spans_of_one))
    assert len(on_each) == gpus
    if gpus > 1:
        assert any(overlap(first, second) for first in on_each[0] for second in on_each[1])


def agents_of(run: int) -> list[psutil.Process]:
    """The processes that work for a run, without those that only guard them."""
    below = psutil.Process(run).children(recursive=True)
    named = {process.pid: process for process in below if "knowngood_workers.agent.agent" in process.cmdline()}
    return [process for process in named.values() if process.ppid() in named]


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_worker_that_is_killed_leaves_the_gpu_free_and_the_other_results_standing(
    make_laboratory: Callable[[int], Laboratory], devices: tuple[Device, ...]
) -> None:
    laboratory, device = make_laboratory(1), devices[0]

    def is_at_work() -> bool:
        """The control has its result, and the baseline is on the GPU."""
        now = read_device(device.uuid)
        return "control" in laboratory.attempts("toy-lingers-1") and now.used_bytes > device.idle.used_bytes + (
            200 << 20
        )

    with laboratory.running("toy-lingers-1") as run:
        assert eventually(is_at_work, 120)
        control = laboratory.attempts("toy-lingers-1")["control"]
        (agent,) = agents_of(run.pid)
        below = agent.children(recursive=True)
        agent.kill()
        assert eventually(lambda: all(map(is_gone, below)), 30)
        assert eventually(lambda: device.is_free, 15)
    arms = laboratory.attempts("toy-lingers-1")
    assert outcomes(arms) == {"control": Outcome.PASS, "baseline": Outcome.PASS}, reasons(arms)
    assert arms["control"].attempt == control.attempt
    assert eventually(lambda: device.is_free, 15)
