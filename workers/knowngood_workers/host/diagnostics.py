"""Diagnostics that tell trouble of the host from trouble of the build: tried, not guessed from a failure's text.

Asked after a failing attempt, so that a missing compiler or a full disk never counts as the issue.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from packaging.version import InvalidVersion, Version

from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood_workers.host.machine_info import find_compiler

SCRATCH_BYTES = 200 << 20
_TRY_S = 60

# Inductor compiles with OpenMP and against Python's headers; so does this.
_HELLO = """#include <cstdio>
#include <omp.h>
int main() { std::printf("%d", omp_get_max_threads() > 0 ? 42 : 0); return 0; }
"""
_TRIVIAL = """import torch
x = torch.arange(64.0)
assert torch.equal(torch.compile(lambda x: x * 2 + 1)(x), x * 2 + 1)
"""
_TRIVIAL_S = 180
_COMPILED = frozenset({"inductor_cpp", "inductor_triton", "triton_launch", "dynamo_graph"})
# An answer, not a silence: an interpreter that was killed has said nothing about the environment.
_IS_SETUPTOOLS_MISSING = """try:
    import setuptools
except Exception:
    print("missing")
"""
_NEEDS_SETUPTOOLS_UP_TO = Version("2.6.99")


class EnvironmentView(Protocol):
    """As much of an environment as the probes need."""

    @property
    def python(self) -> Path: ...

    @property
    def imported(self) -> Mapping[str, str]: ...


def host_trouble(
    environment: EnvironmentView | None,
    scratch: Path,
    exercises: Collection[str] = (),
    environ: Mapping[str, str] = os.environ,
    within: Sequence[str] = (),
) -> Trouble | None:
    """Say what this host lacks to run an attempt; None where nothing is found.

    `scratch` is where the attempt wrote its caches; `exercises` are its probes, empty meaning anything; `environ` is
    what the attempt's process saw (CXX and PATH matter); `within` is put before each command, to run it as shut off as
    the attempt was.
    """
    trouble = disk_trouble(scratch)
    if trouble is None and (not exercises or _COMPILED & set(exercises)):
        trouble = compiler_trouble(scratch, environ, within)
        if trouble is None and environment is not None:
            trouble = headers_trouble(environment, within) or setuptools_trouble(environment, within)
    return trouble


def disk_trouble(scratch: Path) -> Trouble | None:
    """Less than 200 MB, or no file left to make."""
    there = next(path for path in (scratch.absolute(), *scratch.absolute().parents) if path.exists())
    disk = os.statvfs(there)
    free = disk.f_bavail * disk.f_frsize
    if free >= SCRATCH_BYTES and (disk.f_files == 0 or disk.f_favail > 0):
        return None
    what = f"{free >> 20} MB" if free < SCRATCH_BYTES else "no inodes"
    return Trouble(
        TroubleCode.DISK_FULL,
        f"{what} left where attempts keep their caches; free some space, or set KNOWNGOOD_DATA_DIR to a larger disk",
    )


def compiler_trouble(
    scratch: Path, environ: Mapping[str, str] = os.environ, within: Sequence[str] = ()
) -> Trouble | None:
    """Compile and run a program with the compiler that Inductor calls."""
    command = find_compiler(environ)
    if not command:
        return Trouble(TroubleCode.NO_COMPILER, _no_compiler(environ))
    there = scratch if scratch.is_dir() else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix="hello-", dir=there) as folder:
        source, program = Path(folder) / "hello.cpp", Path(folder) / "hello"
        source.write_text(_HELLO, encoding="utf-8")
        complaint = _complaint([*command, "-fopenmp", str(source), "-o", str(program)], environ, within)
        if complaint is None:
            complaint = _complaint([str(program)], environ, within)
    if complaint is None:
        return None
    return Trouble(
        TroubleCode.NO_COMPILER,
        f"{Path(command[0]).name} is here but cannot make a working program ({complaint}); "
        "mend it, for example by apt-get install g++ libc6-dev",
    )


def _no_compiler(environ: Mapping[str, str]) -> str:
    if environ.get("CXX"):
        return f"CXX names {environ['CXX']}, which is not there; install it, or unset CXX and apt-get install g++"
    if shutil.which("clang++", path=environ.get("PATH")):
        return "g++ is not there, which Inductor calls; apt-get install g++, or set CXX=clang++"
    return "g++ is not there, which Inductor calls; apt-get install g++"


def _complaint(command: list[str], environ: Mapping[str, str], within: Sequence[str]) -> str | None:
    try:
        ran = _run(*_sandboxed(command, environ, within))
    except OSError as problem:
        return problem.strerror or "cannot be run"
    except subprocess.TimeoutExpired:
        return f"took over {_TRY_S} s"
    if ran.returncode == 0:
        return None
    if _was_killed(ran):
        return "was killed (SIGKILL), twice"
    lines = [line.strip() for line in ran.stderr.splitlines() if "error" in line] or ran.stderr.splitlines()
    return lines[0].rpartition(": ")[2] if lines else f"exit {ran.returncode}"


def headers_trouble(environment: EnvironmentView, within: Sequence[str] = ()) -> Trouble | None:
    """Inductor's kernels and Triton's launchers include Python.h."""
    script = "import sysconfig, sys; print(sysconfig.get_path('include')); print('%d.%d' % sys.version_info[:2])"
    lines = _ask_python(environment.python, script, within)
    if len(lines) != 2 or (Path(lines[0]) / "Python.h").is_file():  # noqa: PLR2004 - the two lines printed
        return None
    return Trouble(
        TroubleCode.NO_COMPILER,
        f"Python.h of Python {lines[1]} is not there, which Inductor's kernels include; "
        f"apt-get install python{lines[1]}-dev",
    )


def setuptools_trouble(environment: EnvironmentView, within: Sequence[str] = ()) -> Trouble | None:
    """Inductor imports setuptools when it compiles for the CPU, up to torch 2.6 (measured 2026-11)."""
    try:
        is_needed = Version(environment.imported.get("torch", "")) <= _NEEDS_SETUPTOOLS_UP_TO
    except InvalidVersion:
        is_needed = True
    if not is_needed or _ask_python(environment.python, _IS_SETUPTOOLS_MISSING, within) != ["missing"]:
        return None
    return Trouble(
        TroubleCode.NO_SETUPTOOLS,
        "setuptools cannot be imported in this environment, which Inductor needs up to torch 2.6; "
        "an issue's packages must not remove it",
    )


def kernel_trouble(
    environment: EnvironmentView, scratch: Path, environ: Mapping[str, str], within: Sequence[str] = ()
) -> Trouble | None:
    """Whether the smallest function that Inductor can compile for the CPU dies here as well.

    Asked after a crash: then it says nothing about the issue. On two GPU hosts whose g++ is a wrapper every kernel of
    torch 2.5.1 to 2.10.0 died by SIGSEGV, while the image's own 2.11.0 worked (measured 2026-11).
    """
    with tempfile.TemporaryDirectory(prefix="trivial-", dir=scratch) as folder:
        own = {**environ, "TMPDIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
        try:
            command, variables = _sandboxed([str(environment.python), "-B", "-c", _TRIVIAL], own, within)
            ran = subprocess.run(
                command,
                env=variables,
                cwd=folder,
                capture_output=True,
                timeout=_TRIVIAL_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    if ran.returncode >= 0 or ran.returncode == -signal.SIGKILL:  # killed, as by a kernel short of memory: no answer
        return None
    died = signal.Signals(-ran.returncode).name
    return Trouble(
        TroubleCode.BROKEN_KERNELS,
        f"on this host even the smallest function that Inductor compiles for the CPU dies by {died}; "
        "look at the compiler here (CXX names another one), or measure on another host",
    )


def _ask_python(python: Path, script: str, within: Sequence[str]) -> list[str]:
    try:
        ran = _run(*_sandboxed([str(python), "-I", "-B", "-c", script], os.environ, within))
    except (OSError, subprocess.TimeoutExpired):
        return []
    return ran.stdout.split()


def _sandboxed(
    command: list[str], environ: Mapping[str, str], within: Sequence[str]
) -> tuple[list[str], Mapping[str, str]]:
    """The command to run and its variables. What shuts it off is itself outside, so it is given none of `environ`: an
    arm may have chosen some of them, LD_PRELOAD for example.
    """
    if not within:
        return command, environ
    given = [f"{name}={value}" for name, value in environ.items()]
    return [*within, "env", "-i", *given, *command], {"PATH": os.defpath, "LANG": "C.UTF-8"}


def _run(command: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Once more where it was killed from outside, as by a kernel short of memory: that answers nothing."""
    ran = _run_once(command, environ)
    return _run_once(command, environ) if _was_killed(ran) else ran


def _was_killed(ran: subprocess.CompletedProcess[str]) -> bool:
    """It or a program it ran: GCC's driver ends with an exit code of its own where its compiler proper was killed."""
    return ran.returncode == -signal.SIGKILL or (
        ran.returncode > 0 and "Killed signal terminated program" in ran.stderr
    )


def _run_once(command: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=dict(environ), capture_output=True, text=True, errors="replace", timeout=_TRY_S, check=False
    )
