"""The facts of a host, and what it lacks."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from knowngood.domain.measuring.isolation import Isolation
from knowngood.domain.measuring.machine import CPU_CLASS, Gpu, Machine
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood_workers.agent.agent import arms_at_once
from knowngood_workers.agent.doctor import (
    State,
    check_compiler,
    check_disk,
    check_interpreter,
    check_isolation,
    check_links,
)
from knowngood_workers.host.diagnostics import SCRATCH_BYTES, host_trouble, kernel_trouble
from knowngood_workers.host.interpreters import find_interpreter
from knowngood_workers.host.machine_info import (
    code_trouble,
    describe_machine,
    driver_trouble,
    find_compiler,
    isa_trouble,
    other_isa_trouble,
    parse_cpuinfo,
    read_cgroup_limits,
)
from knowngood_workers.host.nvml import is_visible
from tests.make import make_build

AVX512 = "avx avx2 avx512f avx512dq avx512bw avx512vl"

CPUS = {
    "all of AVX-512 that Inductor wants": (f"model name\t: A\nflags\t\t: fpu {AVX512}\n", ("A", "avx512")),
    "foundation alone is not enough": ("model name\t: A\nflags\t\t: avx2 avx512f\n", ("A", "avx2")),
    "AVX2": ("model name\t: B: with colon\nflags\t\t: fpu avx avx2\n", ("B: with colon", "avx2")),
    "neither": ("model name\t: C\nflags\t\t: fpu sse2\n", ("C", "none")),
    "the first processor speaks": ("model name\t: D\nflags\t: avx2\n\nmodel name\t: E\nflags\t: sse\n", ("D", "avx2")),
}


@pytest.mark.parametrize(("text", "expected"), CPUS.values(), ids=CPUS.keys())
def test_the_cpu_is_read(text: str, expected: tuple[str, str]) -> None:
    assert parse_cpuinfo(text) == expected


CGROUPS = {
    "version 2, quota rounded up": (
        "0::/a/b\n",
        {"a/b/cpu.max": "150000 100000", "a/b/memory.max": "4096"},
        {"cores": 2, "memory": 4096},
    ),
    "an ancestor's limit counts": ("0::/a/b\n", {"a/b/memory.max": "8192", "a/memory.max": "4096"}, {"memory": 4096}),
    "unlimited": ("0::/a\n", {"a/cpu.max": "max 100000", "a/memory.max": "max"}, {}),
    "half a core is one": ("0::/\n", {"cpu.max": "50000 100000"}, {"cores": 1}),
    "version 1": (
        "5:memory:/docker/x\n",
        {
            "cpu/cpu.cfs_quota_us": "400000\n",
            "cpu/cpu.cfs_period_us": "100000\n",
            "memory/memory.limit_in_bytes": "1024\n",
        },
        {"cores": 4, "memory": 1024},
    ),
    "version 1, unlimited": ("", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, {}),
    "no cgroups": ("", {}, {}),
}


@pytest.mark.parametrize(("membership", "files", "expected"), CGROUPS.values(), ids=CGROUPS.keys())
def test_cgroup_limits_are_read(
    tmp_path: Path, membership: str, files: dict[str, str], expected: dict[str, int]
) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert read_cgroup_limits(tmp_path, membership) == expected


@pytest.mark.parametrize(
    ("visible", "expected"),
    [(None, True), ("", False), ("-1", False), ("0,1", True), ("1", False), ("GPU-ab", True), ("GPU-xy", False)],
)
def test_a_gpu_is_ours_where_cuda_would_show_it(visible: str | None, expected: bool) -> None:
    assert is_visible(0, "GPU-abcd", visible) is expected


def test_this_machine_is_described() -> None:
    machine = describe_machine()
    assert machine.hardware[0] == CPU_CLASS
    assert 1 <= machine.cores <= len(os.sched_getaffinity(0))
    assert machine.memory_bytes > 1 << 28
    assert machine.sandbox[0] == "process"
    assert machine.glibc.startswith("glibc ")
    assert describe_machine().digest == machine.digest


MACHINE = Machine("cpu", "avx2", 2, 1, "os", "kernel", "glibc", "g++", driver="550.1", driver_cuda="12.4")

CARDS: dict[str, tuple[str, str, bool]] = {
    "its own architecture": ("cuda-sm_90", "sm_80 sm_90", True),
    "the CPU class asks nothing": ("cpu-x86_64", "sm_90", True),
    "an older minor architecture of the same major": ("cuda-sm_86", "sm_80", True),
    "a newer minor architecture": ("cuda-sm_80", "sm_86", False),
    "another major": ("cuda-sm_100", "sm_80 sm_90", False),
    "another major, by PTX": ("cuda-sm_120", "sm_80 compute_90", True),
    "PTX does not run backwards": ("cuda-sm_70", "sm_80 compute_90", False),
    "code for that card alone": ("cuda-sm_90", "sm_80 sm_90a", True),
    "nobody knows what it was compiled for": ("cuda-sm_100", "", True),
}


@pytest.mark.parametrize(("hardware", "compiled_for", "fits"), CARDS.values(), ids=CARDS.keys())
def test_the_wheel_holds_code_for_the_card(hardware: str, compiled_for: str, *, fits: bool) -> None:
    trouble = code_trouble(hardware, compiled_for)
    assert code_of(trouble) is (None if fits else TroubleCode.NO_CODE_FOR_CARD)


DRIVERS: dict[str, tuple[str, str | None, str, bool]] = {
    "as new as the build": ("12.4", "12.4", "cuda-sm_90", True),
    "newer": ("13.0", "12.4", "cuda-sm_90", True),
    "older within its major version": ("12.4", "12.9", "cuda-sm_90", True),
    "older by a major version": ("12.4", "13.0", "cuda-sm_90", False),
    "the CPU class asks nothing": ("12.4", "13.0", "cpu-x86_64", True),
    "the build has no CUDA": ("12.4", None, "cuda-sm_90", True),
    "nobody knows what the driver supports": ("", "13.0", "cuda-sm_90", True),
}


@pytest.mark.parametrize(("supported", "cuda", "hardware", "fits"), DRIVERS.values(), ids=DRIVERS.keys())
def test_the_driver_is_new_enough_for_the_build(supported: str, cuda: str | None, hardware: str, *, fits: bool) -> None:
    trouble = driver_trouble(make_build(cuda=cuda), replace(MACHINE, driver_cuda=supported), hardware)
    assert code_of(trouble) is (None if fits else TroubleCode.DRIVER_TOO_OLD)


def test_a_driver_that_is_too_old_says_for_what() -> None:
    trouble = driver_trouble(make_build(cuda="13.0"), MACHINE, "cuda-sm_90")
    assert trouble is not None
    assert trouble.sentence.startswith("driver 550.1 supports CUDA up to 12.4 and the build needs 13.0; ")


@pytest.mark.parametrize(
    ("isa", "hardware", "fits"),
    [
        ("avx512", "cpu-x86_64-avx512", True),
        ("avx512", "cpu-x86_64-avx2", True),
        ("avx2", "cpu-x86_64-avx512", False),
        ("none", "cpu-x86_64-avx2", False),
        ("none", "cpu-x86_64", True),
    ],
)
def test_a_machine_serves_the_vector_isas_that_it_has(isa: str, hardware: str, *, fits: bool) -> None:
    trouble = isa_trouble(replace(MACHINE, isa=isa), hardware)
    assert code_of(trouble) is (None if fits else TroubleCode.NO_VECTOR_ISA)


@pytest.mark.parametrize(
    ("hardware", "env", "told", "sentence"),
    [
        ("cpu-x86_64-avx2", {}, {"vector_isa": "avx2", "vector_isa_inductor": "avx2"}, ""),
        ("cpu-x86_64-avx512", {}, {"vector_isa": "avx512", "vector_isa_inductor": "avx512 amx_tile"}, ""),
        ("cpu-x86_64-avx2", {}, {"vector_isa": "avx2", "vector_isa_inductor": "avx512"}, "ran with avx512 where avx2"),
        ("cpu-x86_64-avx512", {}, {"vector_isa": "default"}, "ran with default where avx512"),
        ("cpu-x86_64-avx512", {"ATEN_CPU_CAPABILITY": "default"}, {"vector_isa": "default"}, ""),
        ("cpu-x86_64-avx2", {}, {}, ""),
        ("cpu-x86_64", {}, {"vector_isa": "avx512"}, ""),
    ],
)
def test_what_ran_with_another_vector_isa_than_its_class_proves_nothing(
    hardware: str, env: dict[str, str], told: dict[str, str], sentence: str
) -> None:
    trouble = other_isa_trouble(hardware, env, told)
    assert (trouble.sentence if trouble else "").startswith(sentence)
    assert (trouble is None) is not bool(sentence)


def test_a_machine_is_one_line_has_an_arm_on_each_gpu_and_keeps_its_digest() -> None:
    """Evidence refers to machines by digest."""
    cards = (Gpu(0, "NVIDIA H100", (9, 0), 1), Gpu(1, "NVIDIA H100", (9, 0), 1), Gpu(2, "NVIDIA L4", (8, 9), 1))
    host = replace(MACHINE, gpus=cards)
    assert MACHINE.in_words("2 cores") == "cpu, 2 cores, avx2, g++"
    assert host.in_words("2 cores") == "cpu, 2 cores, avx2, g++, 2 x NVIDIA H100, NVIDIA L4, driver 550.1"
    assert (host.hardware, *(arms_at_once(host, slots) for slots in (2, 5))) == (
        ("cpu-x86_64", "cuda-sm_89", "cuda-sm_90"),
        {"cpu-x86_64": 1, "cuda-sm_89": 1, "cuda-sm_90": 2},
        {"cpu-x86_64": 2, "cuda-sm_89": 1, "cuda-sm_90": 2},
    )
    assert MACHINE.digest == "b43faf9114465863333f79f464ba76c3"


# -- what an attempt needs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """An environment whose Python is this one."""

    python: Path = Path(sys.executable)
    imported: Mapping[str, str] = field(default_factory=lambda: {"torch": "2.6.0+cu124"})


def code_of(trouble: Trouble | None) -> TroubleCode | None:
    return trouble.code if trouble else None


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="this machine has no g++")


@needs_compiler
def test_a_sound_host_has_no_trouble(tmp_path: Path) -> None:
    assert host_trouble(None, tmp_path) is None


@needs_compiler
def test_the_compiler_is_the_one_inductor_calls(tmp_path: Path) -> None:
    assert find_compiler({"PATH": os.environ["PATH"]}) == ("g++",)
    assert find_compiler({"PATH": os.environ["PATH"], "CXX": "g++ -O1"}) == ("g++", "-O1")
    assert find_compiler({"PATH": str(tmp_path)}) == ()


def test_no_compiler_says_what_to_install(tmp_path: Path) -> None:
    trouble = host_trouble(None, tmp_path, ("inductor_cpp",), {"PATH": str(tmp_path)})
    assert trouble == Trouble(TroubleCode.NO_COMPILER, "g++ is not there, which Inductor calls; apt-get install g++")


def test_another_compiler_is_pointed_to(tmp_path: Path) -> None:
    program(tmp_path, "clang++", "exit 0")
    trouble = host_trouble(None, tmp_path, (), {"PATH": str(tmp_path)})
    assert trouble is not None
    assert "CXX=clang++" in trouble.sentence


def test_a_compiler_that_makes_nothing_that_runs_is_no_compiler(tmp_path: Path) -> None:
    program(tmp_path, "g++", "echo 'hello.cpp:2: error: omp.h: No such file' >&2; exit 1")
    trouble = host_trouble(None, tmp_path, (), {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert code_of(trouble) is TroubleCode.NO_COMPILER
    assert trouble is not None
    assert "No such file" in trouble.sentence


KILLED = "echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1"


@needs_compiler
@pytest.mark.parametrize("times", [1, 2])
def test_a_compiler_killed_once_is_asked_again_and_killed_twice_is_said_to_be(tmp_path: Path, times: int) -> None:
    count = f'echo >> {tmp_path}/asked; [ "$(wc -l < {tmp_path}/asked)" -gt {times} ]'
    program(tmp_path, "g++", f'{count} && exec /usr/bin/g++ "$@"; {KILLED}')
    trouble = host_trouble(None, tmp_path, (), {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (trouble is None) is (times == 1)
    assert trouble is None or "was killed (SIGKILL), twice" in trouble.sentence


def test_an_attempt_that_compiles_nothing_needs_no_compiler(tmp_path: Path) -> None:
    assert host_trouble(None, tmp_path, ("eager", "xla_compile"), {"PATH": str(tmp_path)}) is None


def test_a_full_scratch_is_found_before_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(f_bavail=SCRATCH_BYTES // 4096 - 1, f_frsize=4096, f_files=1, f_favail=1)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    trouble = host_trouble(None, tmp_path / "not" / "made", (), {"PATH": str(tmp_path)})
    assert code_of(trouble) is TroubleCode.DISK_FULL


@needs_compiler
def test_missing_python_headers_are_named(tmp_path: Path) -> None:
    python = program(tmp_path, "python", "printf '/nowhere\\n3.11\\n'")
    trouble = host_trouble(Given(python=python), tmp_path)
    assert code_of(trouble) is TroubleCode.NO_COMPILER
    assert trouble is not None
    assert "apt-get install python3.11-dev" in trouble.sentence


@needs_compiler
@pytest.mark.parametrize(
    ("torch", "expected"), [("2.6.0+cu124", TroubleCode.NO_SETUPTOOLS), ("2.7.0+cu126", None), ("2.13.0+cpu", None)]
)
def test_setuptools_is_missed_up_to_torch_2_6(tmp_path: Path, torch: str, expected: TroubleCode | None) -> None:
    python = program(tmp_path, "python", 'case "$4" in *setuptools*) echo missing;; esac')
    assert code_of(host_trouble(Given(python, {"torch": torch}), tmp_path)) is expected


@needs_compiler
@pytest.mark.parametrize("does", ["kill -KILL $$", "exit 1"])
def test_an_interpreter_that_could_not_be_asked_says_nothing_about_setuptools(tmp_path: Path, does: str) -> None:
    python = program(tmp_path, "python", does)
    assert host_trouble(Given(python, {"torch": "2.6.0+cu124"}), tmp_path) is None


@pytest.mark.parametrize(
    ("does", "expected"),
    [
        ("kill -SEGV $$", TroubleCode.BROKEN_KERNELS),
        ("kill -KILL $$", None),  # somebody else's doing
        ("exit 1", None),
        ("exit 0", None),
    ],
)
def test_kernels_are_broken_where_the_smallest_one_kills_its_process(
    tmp_path: Path, does: str, expected: TroubleCode | None
) -> None:
    python = program(tmp_path, "python", does)
    assert code_of(kernel_trouble(Given(python=python), tmp_path, dict(os.environ))) is expected


# -- what is on the machine --------------------------------------------------------------------------------------------


def interpreter(folder: Path, version: str, *, headers: bool) -> Path:
    path = folder / "bin" / f"python{version}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    if headers:
        (folder / "include" / f"python{version}").mkdir(parents=True)
        (folder / "include" / f"python{version}" / "Python.h").touch()
    return path


def test_an_interpreter_with_headers_is_preferred(tmp_path: Path) -> None:
    interpreter(tmp_path / "one", "3.98", headers=False)
    good = interpreter(tmp_path / "two", "3.98", headers=True)
    environ = {"PATH": f"{tmp_path / 'one' / 'bin'}:{tmp_path / 'two' / 'bin'}", "HOME": str(tmp_path)}
    assert find_interpreter("3.98", environ) == good


def test_pyenvs_newest_version_stands_where_its_shims_do(tmp_path: Path) -> None:
    versions = tmp_path / ".pyenv" / "versions"
    interpreter(versions / "3.98.9", "3.98", headers=True)
    newest = interpreter(versions / "3.98.10", "3.98", headers=True)
    shims = tmp_path / ".pyenv" / "shims"
    shims.mkdir()
    program(shims, "python3.98", "exit 127")
    assert find_interpreter("3.98", {"PATH": str(shims), "HOME": str(tmp_path)}) == newest


def test_an_absent_interpreter_is_bad_only_where_nothing_runs_without_it(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    interpreter(tmp_path, "3.12", headers=False)
    bare = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    assert check_interpreter("3.98", environ).state is State.WARN
    assert check_interpreter("3.12", bare).state is State.WARN
    assert "python3.12-dev" in check_interpreter("3.12", bare).sentence


def test_the_doctor_says_what_to_do(tmp_path: Path) -> None:
    compiler = check_compiler({"PATH": str(tmp_path)})
    assert (compiler.state, "apt-get install g++" in compiler.sentence) == (State.BAD, True)
    assert check_links(tmp_path / "root", tmp_path / "cache").state is State.OK
    assert check_disk(tmp_path / "not" / "made").name == "disk"


def test_the_doctor_says_how_far_repros_are_shut_off_and_refuses_as_a_worker_would(tmp_path: Path) -> None:
    capped = check_isolation(tmp_path, Isolation.NONE, Isolation.PROCESS)
    assert (capped.state, "'process'" in capped.sentence) == (State.OK, True)
    refused = check_isolation(tmp_path, Isolation.FILTERED, Isolation.PROCESS)
    assert refused.state is State.BAD
    assert "KNOWNGOOD_MIN_ISOLATION asks for 'filtered': nothing was run" in refused.sentence
