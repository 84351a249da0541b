"""The GPU architectures that a wheel was compiled for, which GPUs its code runs on, and which drivers its CUDA.

A list is read in one very wheel and says nothing of any other: 2.7.1+cu128 holds code for sm_120, 2.7.1+cu126 does not.
Source: NVIDIA, "CUDA C++ Programming Guide", Binary Compatibility and Architecture-Specific Features.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from knowngood.domain.builds.build import Build
from knowngood.domain.message import Message

OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}
"""The oldest branch of NVIDIA's driver that runs each major version of CUDA: within one, a newer toolkit runs on an
older driver (NVIDIA, "CUDA Compatibility", table 1; read 2026-11-21). Workers judge their hosts by the same rule.
"""

_CUDA = "cuda-sm_"
_TEGRA = frozenset({"53", "62", "72", "87", "101"})
"""Architectures of NVIDIA's boards, whose binaries are not compatible with those of other GPUs."""


@dataclass(frozen=True)
class WheelCode:
    """The list of one wheel: `torch` is its version with its variant, `lock` the digest of the packages it was imported
    among, `read_at` when it was first read.
    """

    torch: str
    architectures: tuple[str, ...]
    read_at: datetime
    lock: str = ""


def holds_code(architectures: Iterable[str], hardware: str) -> bool:
    """Whether code for these (`sm_80`, `sm_90a`, `compute_90`) runs on the GPUs of a class; true of the CPU class,
    which asks for none.
    """
    wanted = hardware.removeprefix(_CUDA)
    return wanted == hardware or any(_runs_on(code, wanted.rstrip("af")) for code in architectures)


def _runs_on(code: str, target: str) -> bool:
    kind, _, number = code.partition("_")
    digits = number.rstrip("af")
    if not (digits.isdigit() and target.isdigit()) or digits == target:
        return digits == target
    if number.endswith("a") or int(target) < int(digits):
        return False  # `a` is for that GPU alone, and nothing runs on an older one
    if kind == "compute" and digits == number:
        return True  # PTX, which the driver compiles
    return digits[:-1] == target[:-1] and not {digits, target} & _TEGRA


def serves(build: Build, hardware: str, wheels: Mapping[str, WheelCode]) -> bool | None:
    """Whether the build's wheel holds code for a class, by the list that was read in it; None where none was."""
    read = wheels.get(build.torch)
    return holds_code(read.architectures, hardware) if read else None


def builds_serving(hardware: str, builds: Iterable[Build], wheels: Mapping[str, WheelCode]) -> tuple[Build, ...]:
    """The builds whose lists hold code for a class, in the order of releases."""
    served = (build for build in builds if serves(build, hardware, wheels))
    return tuple(sorted(served, key=lambda build: build.build_id))


def oldest_driver(cuda: str) -> int | None:
    """The oldest branch of the driver for a version of CUDA (`12.8`); None where it is not on file."""
    return OLDEST_DRIVER.get(int(cuda.partition(".")[0]))


def driver_runs(build: Build, driver: str) -> bool | None:
    """Whether a driver (`550.54.15`; empty: none is known) runs the CUDA of a build; None where that is not known."""
    return True if build.cuda is None else runs_cuda(build.cuda, driver)


def runs_cuda(cuda: str, driver: str) -> bool | None:
    """The same for a version of CUDA."""
    oldest = oldest_driver(cuda)
    return int(driver.partition(".")[0]) >= oldest if driver and oldest else None


def driver_objection(build: Build, driver: str) -> Message | None:
    """The objection to a build with a driver: that it is too old, or that this is not known. None where it runs it, or
    no driver is known.
    """
    return None if build.cuda is None else cuda_objection(build.cuda, driver)


def cuda_objection(cuda: str, driver: str) -> Message | None:
    """The same to a version of CUDA."""
    if not driver or runs_cuda(cuda, driver):
        return None
    oldest = oldest_driver(cuda)
    if oldest is None:
        return Message("driver_unknown", found=cuda)
    return Message("driver_too_old", found=cuda, wanted=oldest, driver=driver)
