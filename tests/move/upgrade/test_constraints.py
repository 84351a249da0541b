"""Constraints on a candidate: each refuses for one reason, in words."""

from datetime import date

import pytest

from knowngood.domain.builds.build import Companion
from knowngood.domain.errors import BadRequest
from knowngood.domain.hardware_names import measured_classes
from knowngood.domain.message import english
from knowngood.move.upgrade.constraints import (
    Constraints,
    read_cuda,
    read_driver,
    read_pin,
    read_python,
    violations,
)
from tests.make import HARDWARE, make_build

START = make_build("2.5.1+cu124", pinned_triton="3.1.0")
NEXT = make_build("2.8.0+cu128", pinned_triton="3.4.0")
CUDA_13 = make_build("2.11.0+cu130", pinned_triton="3.6.0")
CPU_ONLY = make_build("2.8.0+cpu", pinned_triton=None, origin="cpu")
MISMATCHED = make_build("2.8.0+cu128", pinned_triton="3.4.0", triton="3.5.1")
OTHER_PYTHON = make_build("2.8.0+cu128", pinned_triton="3.4.0", python="3.12")
GPU = "cuda-sm_90"
NO_XLA = make_build("2.10.0+cu128", companions=(Companion("torch-xla", "", "", date(2026, 11, 27)),))
XLA = make_build("2.9.1+cu128", companions=(Companion("torch-xla", "2.9.0", "", date(2026, 11, 27)),))


def must(**said: object) -> Constraints:
    return Constraints(**said)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "constraints", "said"),
    [
        pytest.param(NEXT, must(), None, id="nothing is asked"),
        pytest.param(NEXT, must(python="3.11", driver="550.54.15", hardware=(GPU,)), None, id="all of it holds"),
        pytest.param(OTHER_PYTHON, must(), "is listed for Python 3.12 and not for 3.11", id="Python stays as it is"),
        pytest.param(OTHER_PYTHON, must(python="3.12"), None, id="unless another one is asked for"),
        pytest.param(NEXT, must(python="3.13"), "is listed for Python 3.11 and not for 3.13", id="Python"),
        pytest.param(CUDA_13, must(pins=read_cuda("<13")), "has CUDA 13.0, and cuda<13 is wanted", id="CUDA, a limit"),
        pytest.param(NEXT, must(pins=read_cuda("12.4")), "has CUDA 12.8, and cuda==12.4 is wanted", id="CUDA, exactly"),
        pytest.param(NEXT, must(pins=read_cuda("12.8")), None, id="CUDA, exactly that"),
        pytest.param(CPU_ONLY, must(pins=read_cuda(">=12"), hardware=(HARDWARE,)), "has no CUDA", id="no CUDA at all"),
        pytest.param(CUDA_13, must(driver="550"), "needs driver 580 or newer, and 550 is there", id="driver too old"),
        pytest.param(NEXT, must(driver="550"), None, id="a newer toolkit of the same major runs on it"),
        pytest.param(CPU_ONLY, must(driver="390", hardware=(HARDWARE,)), None, id="no driver for the CPU"),
        pytest.param(make_build("3.0.0+cu150"), must(driver="600"), "not known here", id="a CUDA nobody knows yet"),
        pytest.param(NEXT, must(pins=(read_pin("triton==3.3.0"),)), "has Triton 3.4.0, and triton==3.3.0", id="pin"),
        pytest.param(NEXT, must(pins=(read_pin("torch<2.8"),)), "has torch 2.8.0+cu128, and torch<2.8", id="torch"),
        pytest.param(NEXT, must(pins=(read_pin("python>=3.12"),)), "has Python 3.11, and", id="python as a pin"),
        pytest.param(MISMATCHED, must(), "has Triton 3.5.1 in place of its own 3.4.0", id="a deliberate mismatch"),
        pytest.param(MISMATCHED, must(pins=(read_pin("triton==3.5.1"),)), None, id="a mismatch that is asked for"),
        pytest.param(NO_XLA, must(packages={"torch-xla": ""}), "has no torch-xla that is built for it", id="a package"),
        pytest.param(NO_XLA, must(packages={"numpy": ""}), None, id="a package that the environment does not have"),
        pytest.param(XLA, must(packages={"torch-xla": ""}), None, id="a package that comes along"),
        pytest.param(CPU_ONLY, must(), "and torch 2.5.1 (CUDA 12.4) has", id="CUDA is not given up silently"),
        pytest.param(CPU_ONLY, must(hardware=(HARDWARE,)), None, id="unless the CPU is asked for"),
        pytest.param(CPU_ONLY, must(hardware=(HARDWARE, GPU)), "has no CUDA, and H100 is wanted", id="hardware"),
    ],
)
def test_a_build_that_breaks_a_constraint_says_how(build: object, constraints: Constraints, said: str | None) -> None:
    found = tuple(violations(build, constraints, START, {}))  # type: ignore[arg-type]
    assert (not found) if said is None else any(said in english(one) for one in found), found


def test_all_that_is_broken_is_told() -> None:
    asked = must(driver="550", pins=(read_pin("triton==3.4.0"), read_pin("cuda<13")))
    assert len(list(violations(CUDA_13, asked, START, {}))) == 3


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        pytest.param(read_python, "3", "no minor version of Python", id="python"),
        pytest.param(read_python, "3.11.7", "no minor version of Python", id="python with a patch"),
        pytest.param(read_driver, "new", "no driver version", id="driver"),
        pytest.param(read_pin, "triton", "names no version", id="a pin without a version"),
        pytest.param(read_pin, "numpy<2", "nothing but torch, triton, python and cuda", id="another package"),
        pytest.param(read_pin, "triton=3", "is no pin", id="one sign too few"),
        pytest.param(read_pin, "torch @ https://example.org/torch.whl", "names no version", id="a wheel"),
        pytest.param(read_cuda, "twelve", "no version of CUDA", id="cuda in words"),
        pytest.param(lambda text: measured_classes([text], [HARDWARE]), "cuda-sm_80", "never measured", id="hardware"),
    ],
)
def test_what_means_nothing_is_refused_with_an_example(read: object, text: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        read(text)  # type: ignore[operator]


def test_a_plus_that_an_address_made_a_space_of_is_read() -> None:
    assert str(read_pin("torch==2.8.0 cu128").versions) == "==2.8.0+cu128"


def test_constraints_are_told_in_words() -> None:
    asked = must(python="3.12", driver="550", hardware=(GPU,), pins=(*read_cuda("<13"), read_pin("triton == 3.4.0")))
    assert asked.in_words == ("H100", "Python 3.12", "driver 550", "cuda<13", "triton == 3.4.0")


def test_the_cpu_class_may_be_named_before_anything_is_measured() -> None:
    assert measured_classes([HARDWARE], []) == (HARDWARE,)
