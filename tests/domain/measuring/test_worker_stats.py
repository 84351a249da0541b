"""How busy a machine was, what a cell costs there, and what nobody can measure."""

from datetime import timedelta

import pytest

from knowngood.domain.issue import Device, Requires
from knowngood.domain.measuring.machine import Gpu, Machine
from knowngood.domain.measuring.worker_stats import (
    AttemptStay,
    HeldJobProgress,
    MachineTally,
    busy_share,
    unserved,
    workers_of,
)
from tests.make import HARDWARE, NOON, make_build, make_issue

HOUR = timedelta(hours=1)
MACHINE = Machine("AMD EPYC", "avx2", 2, 8 << 30, "Debian 12", "6.1", "2.36", "g++ 12.2.0")


@pytest.mark.parametrize(
    ("spans", "share"),
    [
        pytest.param([], 0.0, id="nothing"),
        pytest.param([(0, 1)], 0.1, id="one"),
        pytest.param([(0, 2), (1, 3), (1, 2)], 0.3, id="side by side counts once"),
        pytest.param([(5, 6), (0, 1)], 0.2, id="in any order"),
        pytest.param([(-3, 1), (9, 20)], 0.2, id="only what is in the window"),
        pytest.param([(-3, -1), (12, 13)], 0.0, id="outside"),
        pytest.param([(2, 1)], 0.0, id="clocks that ran backwards"),
        pytest.param([(-5, 50)], 1.0, id="all of it"),
    ],
)
def test_busy_is_the_share_of_the_window_that_anything_ran_in(spans: list[tuple[int, int]], share: float) -> None:
    moments = [(NOON + start * HOUR, NOON + end * HOUR) for start, end in spans]
    assert busy_share(moments, NOON, NOON + 10 * HOUR) == pytest.approx(share)


def stay(issue: str, start: int, hardware: str = HARDWARE, machine: str = "m1") -> AttemptStay:
    at = NOON + timedelta(seconds=start)
    return AttemptStay(machine, hardware, issue, "torch-2.6.0", at, at + timedelta(seconds=10))


def test_what_a_cell_costs_is_the_time_of_its_attempts_by_class() -> None:
    tally = [
        MachineTally("m1", HARDWARE, 30, NOON, ("local",)),
        MachineTally("m1", "cuda-sm_90", 7, NOON + HOUR, ("lab",)),
    ]
    stays = [stay("toy-1", 0), stay("toy-1", 10), stay("toy-2", 20), stay("toy-9", 30, machine="m2")]
    (worker,) = workers_of(tally, {"m1": MACHINE}, stays, (), since=NOON - HOUR, now=NOON + HOUR)
    assert (worker.arms, worker.last_at, worker.origins) == (37, NOON + HOUR, ("local", "lab"))
    cpu, cuda = {one.hardware: one for one in worker.classes}[HARDWARE], worker.classes[-1]
    assert (cpu.arms, cpu.cells, cpu.per_cell_s) == (3, 2, 15.0)
    assert (cuda.hardware, cuda.per_cell_s) == ("cuda-sm_90", None)
    assert worker.busy == pytest.approx(30 / 7200)


def test_whoever_works_now_was_seen_now_and_comes_first_also_before_its_first_result() -> None:
    doing = HeldJobProgress("j", "run-1", "m2", "torch-2.6.0", HARDWARE, ("toy-1 baseline",), 0, 3, is_held=True)
    tallies = [MachineTally("m1", HARDWARE, 1, NOON, ("local",))]
    found = workers_of(tallies, {}, (), [doing], since=NOON - HOUR, now=NOON + HOUR)
    assert [(one.digest, one.last_at) for one in found] == [("m2", NOON + HOUR), ("m1", NOON)]
    assert (found[0].machine, found[0].arms, found[0].doing) == (None, 0, (doing,))


def test_a_job_whose_lease_has_run_out_is_no_sign_of_life() -> None:
    lost = HeldJobProgress("j", "run-1", "m1", "torch-2.6.0", HARDWARE, (), 0, 3, is_held=False)
    (worker,) = workers_of(
        [MachineTally("m1", HARDWARE, 1, NOON, ("local",))], {}, (), [lost], since=NOON - HOUR, now=NOON + HOUR
    )
    assert worker.last_at == NOON


def test_an_issue_is_unserved_where_another_machine_would_do_and_none_here_does() -> None:
    cuda = Requires(Device.CUDA)
    issues = [
        make_issue("cpu-1"),
        make_issue("gpu-1", requires=cuda),
        make_issue("hopper-1", requires=Requires(Device.CUDA, compute_capability=(9, 0))),
        make_issue("old-1", requires=Requires(torch="<1.0")),
    ]
    builds = [make_build("2.6.0+cu124")]

    def left(*served: str) -> dict[str, str]:
        return {one.issue.id: one.needs for one in unserved(issues, builds, served)}

    gpus = {"gpu-1": "an NVIDIA GPU", "hopper-1": "a GPU of compute capability 9.0 or more"}
    assert left(HARDWARE) == gpus
    assert left(HARDWARE, "cuda-sm_80") == {"hopper-1": gpus["hopper-1"]}
    assert left(HARDWARE, "cuda-sm_90") == {}
    assert left() == {"cpu-1": "a CPU worker", **gpus}


def test_a_machine_serves_what_its_hardware_has_though_it_measured_none_of_it_yet() -> None:
    gpu = Machine(**{**vars(MACHINE), "gpus": (Gpu(0, "NVIDIA H100", (9, 0), 85_000_000_000),)})
    (worker,) = workers_of(
        [MachineTally("m1", HARDWARE, 1, NOON, ("local",))], {"m1": gpu}, (), (), since=NOON - HOUR, now=NOON
    )
    assert worker.served == {HARDWARE, "cuda-sm_90"}
