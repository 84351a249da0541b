from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from knowngood.domain.errors import BadRequest
from knowngood.domain.measuring.machine import Gpu, Machine
from knowngood.domain.measuring.placement import (
    CUDA,
    DRIVER_CUDA,
    ISA,
    MEMORY,
    RELEASE,
    Condition,
    Member,
    Placement,
    Waiting,
    Why,
    choose,
    labels_of,
    needs_of,
    parse_condition,
    room_of,
    waiting_of,
)
from tests.make import NOON, make_build

CPU = "cpu-x86_64"
GPU = "cuda-sm_90"
HOST = Machine("Xeon", "avx512", 16, 64 << 30, "Debian 12", "6.1", "2.36", "g++ 12.2.0")
GPU_HOST = replace(
    HOST, driver="580.65", driver_cuda="13.0", gpus=(Gpu(0, "H100", (9, 0), 80 << 30), Gpu(1, "H100", (9, 0), 80 << 30))
)
RIGHT = (Condition(RELEASE, "1.0"),)


def member(id_: str, machine: Machine = HOST, release: str = "1.0", cpu_jobs: int = 1) -> Member:
    return Member(id_, labels_of(machine, release), cpu_jobs, len(machine.gpus))


def test_a_machine_tells_what_it_is_by_labels() -> None:
    assert labels_of(GPU_HOST, "1.0+local") == {
        "knowngood-release": "1.0_local",
        "knowngood-cpu": "cpu-x86_64",
        "knowngood-memory-gb": "64",
        "knowngood-cores": "16",
        "knowngood-isa": "avx512",
        "knowngood-cuda": "cuda-sm_90",
        "knowngood-capability": "9.0",
        "knowngood-driver": "580.65",
        "knowngood-driver-cuda": "13.0",
        "knowngood-gpu-memory-gb": "80",
    }
    assert not any("cuda" in name for name in labels_of(HOST, "1.0"))


@pytest.mark.parametrize(
    ("machine", "cpu_jobs", "room"),
    [
        pytest.param(HOST, 1, {CPU: 1}, id="a host without GPUs"),
        pytest.param(GPU_HOST, 1, {CPU: 1, GPU: 2}, id="each GPU takes a job"),
        pytest.param(GPU_HOST, 0, {GPU: 2}, id="GPUs alone"),
        pytest.param(HOST, 0, {}, id="the dispatcher's own node"),
    ],
)
def test_room_is_told_by_class(machine: Machine, cpu_jobs: int, room: dict[str, int]) -> None:
    assert member("a", machine, cpu_jobs=cpu_jobs).room == room


def test_a_label_that_is_no_class_offers_nothing() -> None:
    assert Member("a", {CUDA: "tpu-v5", RELEASE: "1.0"}, 0, 4).room == {}


def test_only_machines_that_meet_the_conditions_count() -> None:
    fleet = [member("a"), member("b", GPU_HOST), member("c", release="0.9"), Member("head", {}, 0, 0)]
    assert room_of(fleet, RIGHT) == {CPU: 2, GPU: 2}
    assert room_of(fleet, (*RIGHT, Condition(MEMORY, "65", at_least=True))) == {}


@pytest.mark.parametrize(
    ("text", "labels", "holds"),
    [
        ("isa=avx2", {"isa": "avx2"}, True),
        ("isa=avx2", {"isa": "avx512"}, False),
        ("isa=avx2", {}, False),
        ("memory>=64", {"memory": "64"}, True),
        ("memory >= 64", {"memory": "128"}, True),
        ("memory>=64", {"memory": "9"}, False),
        ("driver>=550.54", {"driver": "580.65.06"}, True),
        ("driver>=550.54", {"driver": "550.9"}, False),
        ("driver>=12", {"driver": "12.8"}, True),
        ("driver>=13", {"driver": "12.8"}, False),
        ("driver>=13", {"driver": "unknown"}, False),
    ],
)
def test_conditions_are_read_and_hold(text: str, labels: dict[str, str], *, holds: bool) -> None:
    assert parse_condition(text).holds(labels) is holds


@pytest.mark.parametrize("text", ["", "isa", "isa=", "=avx2", "memory>64", "memory>=much", "isa=in(a,b)", "a=b=c"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_condition(text)


def test_a_build_asks_for_a_driver_of_its_cuda() -> None:
    build = make_build("2.9.1+cu130")
    assert needs_of(build, GPU) == (Condition(DRIVER_CUDA, "13", at_least=True),)
    assert needs_of(build, CPU) == ()


OLD_DRIVER = replace(GPU_HOST, driver="550.54", driver_cuda="12.4")
NEW = (Condition(DRIVER_CUDA, "13", at_least=True),)


@pytest.mark.parametrize(
    ("fleet", "hardware", "wishes", "holders", "busy", "choice"),
    [
        pytest.param([member("a")], GPU, (), (), {}, None, id="no GPU, no GPU job"),
        pytest.param([], CPU, (), (), {}, None, id="nobody"),
        pytest.param([member("a", release="0.9")], CPU, (), (), {}, None, id="another release cannot be used"),
        pytest.param(
            [member("a"), member("b")],
            CPU,
            (),
            (),
            {},
            Placement({"knowngood-cpu": (CPU,), RELEASE: ("1.0",)}),
            id="all alike",
        ),
        pytest.param(
            [member("a"), member("b")],
            CPU,
            (),
            ("b",),
            {},
            Placement({"knowngood-cpu": (CPU,), RELEASE: ("1.0",)}, "b"),
            id="whoever has the environment is best",
        ),
        pytest.param(
            [member("a"), member("b")],
            CPU,
            (),
            ("b",),
            {"b": 1},
            Placement({"knowngood-cpu": (CPU,), RELEASE: ("1.0",)}),
            id="unless it is busy",
        ),
        pytest.param(
            [member("a", GPU_HOST), member("b", GPU_HOST)],
            GPU,
            (),
            ("a", "b"),
            {"a": 1},
            Placement({CUDA: (GPU,), RELEASE: ("1.0",)}, "b"),
            id="the less busy of two",
        ),
        pytest.param(
            [member("a", OLD_DRIVER), member("b", GPU_HOST)],
            GPU,
            NEW,
            (),
            {},
            Placement({CUDA: (GPU,), RELEASE: ("1.0",), DRIVER_CUDA: ("13.0",)}),
            id="a driver that serves the build",
        ),
        pytest.param(
            [member("a", OLD_DRIVER)],
            GPU,
            NEW,
            (),
            {},
            Placement({CUDA: (GPU,), RELEASE: ("1.0",)}),
            id="no such driver: the machine says so itself",
        ),
        pytest.param(
            [member("a", replace(HOST, isa="avx2")), member("b")],
            f"{CPU}-avx512",
            needs_of(make_build(), f"{CPU}-avx512"),
            (),
            {},
            Placement({"knowngood-cpu": (CPU,), RELEASE: ("1.0",), ISA: ("avx512",)}),
            id="a vector ISA that the class names",
        ),
        pytest.param(
            [member("a", replace(HOST, isa="avx2")), member("b")],
            f"{CPU}-avx2",
            needs_of(make_build(), f"{CPU}-avx2"),
            ("b",),
            {},
            Placement({"knowngood-cpu": (CPU,), RELEASE: ("1.0",), ISA: ("avx2", "avx512")}, "b"),
            id="whoever has a wider one has it too",
        ),
    ],
)
def test_a_job_goes_where_it_can_and_best_where_its_environment_is(
    fleet: list[Member],
    hardware: str,
    wishes: tuple[Condition, ...],
    holders: tuple[str, ...],
    busy: dict[str, int],
    choice: Placement | None,
) -> None:
    assert choose(fleet, hardware, conditions=RIGHT, wishes=wishes, holders=holders, busy=busy) == choice


LATER, EARLIER = NOON + timedelta(seconds=30), NOON - timedelta(hours=2)


@pytest.mark.parametrize(
    ("offers", "dispatcher_until", "waiting"),
    [
        pytest.param({GPU: LATER}, LATER, None, id="in its turn"),
        pytest.param(
            {CPU: LATER},
            LATER,
            Waiting(GPU, 3, Why.NO_WORKER, "no worker of class cuda-sm_90 has joined; none ever has", None),
            id="never joined",
        ),
        pytest.param(
            {GPU: EARLIER},
            LATER,
            Waiting(
                GPU,
                3,
                Why.NO_WORKER,
                "no worker of class cuda-sm_90 has joined; last seen 2026-11-21 10:00 UTC",
                EARLIER,
            ),
            id="gone",
        ),
        pytest.param(
            {GPU: LATER},
            None,
            Waiting(GPU, 3, Why.NO_DISPATCHER, "no dispatcher is at work; start one with `knowngood dispatch`", NOON),
            id="no dispatcher",
        ),
    ],
)
def test_what_waits_for_nobody_says_why(
    offers: dict[str, datetime], dispatcher_until: datetime | None, waiting: Waiting | None
) -> None:
    assert waiting_of({GPU: 3}, offers, dispatcher_until, NOON) == ((waiting,) if waiting else ())
