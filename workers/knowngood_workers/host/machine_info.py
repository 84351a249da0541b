"""Facts of this host that results depend on: read from the kernel, the compiler and the driver, never guessed.

Nothing here needs torch, and nothing here touches a GPU: NVML answers without a CUDA context.
"""

import os
import platform
import shlex
import shutil
import sys
from collections.abc import Mapping
from math import ceil
from pathlib import Path

import psutil
import pynvml

from knowngood.domain.builds.architectures import holds_code
from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_classes import VECTOR_ISA_VARIABLE, has_isa, isa_of
from knowngood.domain.measuring.machine import Gpu, Machine
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood_workers.common.programs import ask_program
from knowngood_workers.host.nvml import answered, open_nvml, visible_devices
from knowngood_workers.standalone import cgroup

_PROBE_S = 20


def describe_machine(sandbox: tuple[str, ...] = ("process",)) -> Machine:
    """`sandbox` is what shuts arms off here (see isolation), which takes longer to find out than all the rest."""
    model, isa = parse_cpuinfo(cgroup.read("/proc/cpuinfo"))
    limits = read_cgroup_limits(Path("/sys/fs/cgroup"), cgroup.read("/proc/self/cgroup"))
    driver, driver_cuda, gpus = read_gpus()
    return Machine(
        cpu_model=model,
        isa=isa,
        cores=min(len(os.sched_getaffinity(0)), limits.get("cores", sys.maxsize)),
        memory_bytes=min(psutil.virtual_memory().total, limits.get("memory", sys.maxsize)),
        os=platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
        if Path("/etc/os-release").exists()
        else "Linux",
        kernel=platform.release(),
        glibc=os.confstr("CS_GNU_LIBC_VERSION") or "",
        compiler=describe_compiler(),
        driver=driver,
        driver_cuda=driver_cuda,
        gpus=gpus,
        sandbox=sandbox,
    )


def parse_cpuinfo(text: str) -> tuple[str, str]:
    """The CPU's model and its widest vector extension (`avx512`, `avx2`, `none`) out of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(":")
        if separator:
            fields.setdefault(name.strip(), value.strip())
    flags = set(fields.get("flags", "").split())
    # Inductor asks for all of these before it emits 512-bit code (torch/_inductor/cpu_vec_isa.py).
    has_avx512 = {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= flags
    isa = "avx512" if has_avx512 else "avx2" if "avx2" in flags else "none"
    return fields.get("model name") or platform.machine(), isa


def read_cgroup_limits(mount: Path, membership: str) -> dict[str, int]:
    """The tightest `cores` and `memory` (bytes) that cgroups grant this process; what is unlimited is left out.

    `membership` is /proc/self/cgroup. Version 2 is read from the process's group upwards, since any ancestor may limit;
    version 1 from its two controllers, where a container sees its own group at the mount point.
    """
    limits: dict[str, list[int]] = {"cores": [], "memory": []}
    for line in membership.splitlines():
        hierarchy, _, group = line.partition("::")
        if hierarchy == "0":
            folder = mount / group.strip("/")
            for ancestor in (folder, *folder.parents):
                if ancestor == mount.parent:
                    break
                _collect(limits, cpu=cgroup.read(ancestor / "cpu.max"), memory=cgroup.read(ancestor / "memory.max"))
    quota, period = cgroup.read(mount / "cpu/cpu.cfs_quota_us"), cgroup.read(mount / "cpu/cpu.cfs_period_us")
    _collect(limits, cpu=f"{quota} {period}", memory=cgroup.read(mount / "memory/memory.limit_in_bytes"))
    return {name: min(values) for name, values in limits.items() if values}


def _collect(limits: dict[str, list[int]], *, cpu: str, memory: str) -> None:
    match cpu.split():
        case [quota, period] if quota.isdigit() and period.isdigit() and int(period) > 0:
            limits["cores"].append(max(1, ceil(int(quota) / int(period))))
        case _:
            pass  # `max`, version 1's -1, or no such file
    if memory.strip().isdigit():
        limits["memory"].append(int(memory))


def find_compiler(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The C++ compiler that Inductor calls: CXX where it is set, else g++. Empty where it is not there.

    Inductor never looks for clang++ by itself on Linux (torch/_inductor/config.py, `cpp.cxx`), so neither do we.
    """
    command = tuple(shlex.split(environ.get("CXX", ""))) or ("g++",)
    return command if shutil.which(command[0], path=environ.get("PATH")) else ()


def describe_compiler(environ: Mapping[str, str] = os.environ) -> str:
    """The first line of what the compiler says about itself; empty where there is none."""
    command = find_compiler(environ)
    printed = ask_program([*command, "--version"], timeout_s=_PROBE_S) if command else None
    return (printed or "").partition("\n")[0].strip()


def read_gpus(environ: Mapping[str, str] = os.environ) -> tuple[str, str, tuple[Gpu, ...]]:
    """The driver, the highest CUDA it supports (`12.8`) and the GPUs this process may use; all empty without a driver.

    NVML lists every GPU of the host; CUDA_VISIBLE_DEVICES says which of them are ours, as the affinity does for cores.
    A GPU that has fallen off its bus is left out, and the others still count.
    """
    with open_nvml() as is_there:
        if not is_there:
            return "", "", ()
        gpus = tuple(_read_gpu(*device) for device in visible_devices(environ))
        cuda = answered(pynvml.nvmlSystemGetCudaDriverVersion_v2, 0)
        return (
            str(answered(pynvml.nvmlSystemGetDriverVersion, "")),
            f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else "",
            gpus,
        )


def _read_gpu(index: int, handle: object, capability: tuple[int, int]) -> Gpu:
    name = str(answered(lambda: pynvml.nvmlDeviceGetName(handle), ""))
    # A GPU that shares the host's memory (GB10) has none of its own to tell of.
    memory = answered(lambda: int(pynvml.nvmlDeviceGetMemoryInfo(handle).total), 0)
    return Gpu(index=index, name=name, capability=capability, memory_bytes=memory)


def driver_trouble(build: Build, machine: Machine, hardware: str) -> Trouble | None:
    """Say why this host's driver cannot run `build` on a CUDA class; None where it can, or on the CPU class.

    Known before anything is downloaded. Within one major version of CUDA a newer toolkit runs on an older driver
    (NVIDIA, "CUDA Compatibility").
    """
    if not hardware.startswith("cuda-") or build.cuda is None or not machine.driver_cuda:
        return None
    if int(machine.driver_cuda.split(".")[0]) >= int(build.cuda.split(".")[0]):
        return None
    return Trouble(
        TroubleCode.DRIVER_TOO_OLD,
        f"driver {machine.driver} supports CUDA up to {machine.driver_cuda} and the build needs {build.cuda}; "
        "update the driver, or measure this build on another machine",
    )


def isa_trouble(machine: Machine, hardware: str) -> Trouble | None:
    """Say that this host's processor lacks the vector ISA of a class; None where it has it, or the class names none."""
    isa = isa_of(hardware)
    if not isa or has_isa(machine.isa, isa):
        return None
    return Trouble(
        TroubleCode.NO_VECTOR_ISA,
        f"this processor has no {isa} (its widest vector ISA: {machine.isa}); measure it on a machine that has",
    )


def other_isa_trouble(hardware: str, env: Mapping[str, str], imported: Mapping[str, str]) -> Trouble | None:
    """Say that a process used another vector ISA than its class names; None where it did not, or an arm's own variable
    (`env`) asked for another. `imported` is what the process said of itself.
    """
    if VECTOR_ISA_VARIABLE in env:
        return None
    isas = [imported[name] for name in ("vector_isa", "vector_isa_inductor") if name in imported]
    others = [isa for isa in isas if isa_of(hardware) and not isa.startswith(isa_of(hardware))]
    if not others:
        return None
    return Trouble(TroubleCode.HARNESS, f"ran with {', '.join(others)} where {isa_of(hardware)} was asked for")


def code_trouble(hardware: str, compiled_for: str) -> Trouble | None:
    """Say that a wheel holds no code for the cards of a CUDA class; None where it does, or on the CPU class.

    `compiled_for` is what the build's process says its kernels were compiled for (`sm_80 sm_90 compute_90`); empty
    where unknown.
    """
    if not compiled_for or holds_code(compiled_for.split(), hardware):
        return None
    return Trouble(
        TroubleCode.NO_CODE_FOR_CARD,
        f"the wheel holds code for {compiled_for}, none of which runs on {hardware.removeprefix('cuda-')}; "
        "choose a build made for this card",
    )
