"""Whether this machine is able to measure builds, and what to do where it is not. Looks; changes nothing that lasts."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import uv

from knowngood.data_dir import STORE
from knowngood.domain.builds.build import DEFAULT_PYTHON
from knowngood.domain.measuring.isolation import Isolation, too_little
from knowngood.installation import how_to_install
from knowngood.sqlite_file import is_read_only
from knowngood_workers.agent.process_guard import settle
from knowngood_workers.agent.sandbox_policy import probe_cgroups, probe_host_sandbox
from knowngood_workers.host.diagnostics import compiler_trouble
from knowngood_workers.host.interpreters import find_interpreter, has_headers
from knowngood_workers.host.machine_info import describe_compiler, find_compiler, read_gpus
from knowngood_workers.provision.index_config import Index, read_index
from knowngood_workers.provision.provisioner import choose_cache
from knowngood_workers.provision.uv_cli import Fault, Installer, InstallerFailed

PYTHONS = ("3.11", "3.12", "3.13")

# A CUDA build is 5 to 8 GB unpacked; builds share what is equal.
_ONE_BUILD = 10 << 30
_MANY_BUILDS = 40 << 30


class State(StrEnum):
    """`bad`: nothing can be measured until it is mended. `warn`: something cannot, or is slower than need be."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Check:
    name: str
    state: State
    sentence: str


def examine(root: Path, *, at_least: Isolation, at_most: Isolation) -> tuple[Check, ...]:
    """All checks for environments kept below `root`, which need not exist yet. The registry's takes a moment.

    `at_least` and `at_most` are the levels of isolation that this installation is set to.
    """
    root = root.absolute()
    folder = check_folder(root)
    place = root if folder.state is State.OK else Path(tempfile.gettempdir())  # the rest is looked at all the same
    return (
        check_uv(),
        *map(check_interpreter, PYTHONS),
        check_compiler(),
        check_driver(),
        folder,
        *((check_disk(root), check_links(root, choose_cache(root, os.environ))) if place is root else ()),
        check_registry(read_index()),
        check_isolation(place, at_least, at_most),
        check_limits(),
    )


def check_uv() -> Check:
    try:
        path = uv.find_uv_bin()
    except FileNotFoundError:
        return Check("uv", State.BAD, f"uv is not there; {how_to_install('server')}")
    return Check("uv", State.OK, f"found at {path}")


def check_interpreter(version: str, environ: Mapping[str, str] = os.environ) -> Check:
    """An interpreter with C headers; without the default one nothing runs, without the others their builds do not."""
    name, interpreter = f"Python {version}", find_interpreter(version, environ)
    install = f"apt-get install python{version}-dev python{version}-venv, or pyenv install {version}"
    if interpreter is None and version == DEFAULT_PYTHON:
        return Check(name, State.BAD, f"not on this machine, and most builds need it; {install}")
    if interpreter is None:
        return Check(name, State.WARN, f"not on this machine; its builds are left out ({install})")
    if not has_headers(interpreter, version):
        advice = f"Python.h is missing, which compiled kernels include; apt-get install python{version}-dev"
        return Check(name, State.WARN, f"{interpreter}, but {advice}")
    return Check(name, State.OK, f"{interpreter}, with headers")


def check_compiler(environ: Mapping[str, str] = os.environ) -> Check:
    trouble = compiler_trouble(Path(tempfile.gettempdir()), environ)
    if trouble is not None:
        return Check("compiler", State.BAD, trouble.sentence)
    return Check(
        "compiler", State.OK, f"{describe_compiler(environ)} ({find_compiler(environ)[0]}) makes working programs"
    )


def check_driver(environ: Mapping[str, str] = os.environ) -> Check:
    driver, cuda, gpus = read_gpus(environ)
    if not driver:
        sentence = "no NVIDIA driver; CPU cells only. CUDA builds are measured there too, on the CPU"
        return Check("driver", State.OK, sentence)
    if not gpus:
        return Check(
            "driver", State.WARN, f"driver {driver}, but no GPU this process may use; see CUDA_VISIBLE_DEVICES"
        )
    named = ", ".join(f"{gpu.name} (sm_{gpu.capability[0]}{gpu.capability[1]})" for gpu in gpus)
    return Check("driver", State.OK, f"driver {driver} for CUDA up to {cuda}: {named}")


def check_folder(root: Path) -> Check:
    """Whether what is measured can be kept, in the data folder or in a new one. Nothing is made there."""
    advice = "set KNOWNGOOD_DATA_DIR to a folder that you may write"
    try:
        place = _nearest(root)
        (root / STORE).exists()
    except OSError as problem:
        return Check("data folder", State.BAD, f"{root} cannot be looked into ({problem.strerror}); {advice}")
    if is_read_only(root / STORE):
        sentence = f"the store in {root} may only be read: questions are answered from it, nothing can be measured; "
        return Check("data folder", State.BAD, sentence + advice)
    if not os.access(place, os.W_OK | os.X_OK):
        return Check("data folder", State.BAD, f"{place} may not be written, so that nothing can be kept; {advice}")
    return Check("data folder", State.OK, f"{root} can be written" if place == root else f"{root} can be made")


def check_disk(root: Path) -> Check:
    free = shutil.disk_usage(_nearest(root)).free
    words = f"{free / (1 << 30):.0f} GB free where environments are kept"
    if free < _ONE_BUILD:
        advice = "a CUDA build needs up to 10 GB; free some space or set KNOWNGOOD_DATA_DIR to a larger disk"
        return Check("disk", State.BAD, f"{words}; {advice}")
    if free < _MANY_BUILDS:
        return Check("disk", State.WARN, f"{words}; enough for a few builds at a time, older ones will be evicted")
    return Check("disk", State.OK, words)


def check_links(root: Path, cache: Path) -> Check:
    """Hard links from uv's cache into environments are what makes the second torch environment nearly free."""
    try:
        with (
            tempfile.NamedTemporaryFile(dir=_nearest(cache)) as file,
            tempfile.TemporaryDirectory(dir=_nearest(root)) as folder,
        ):
            os.link(file.name, f"{folder}/link")
    except OSError as problem:
        return Check(
            "hard links",
            State.WARN,
            f"uv's cache and the environments cannot share files ({problem.strerror}), so that each environment takes "
            "its full size; set UV_CACHE_DIR to a folder on the disk of KNOWNGOOD_DATA_DIR",
        )
    return Check("hard links", State.OK, "uv's cache and the environments share their files")


def _nearest(path: Path) -> Path:
    """The folder itself, or the nearest above it that is there. Raises OSError where one may not be looked into."""
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def check_registry(index: Index, environ: Mapping[str, str] = os.environ) -> Check:
    """Resolve one small package, as provisioning would, with a cache of its own so that nothing remembered counts."""
    sources = ", ".join(index.sources)
    with tempfile.TemporaryDirectory(prefix="knowngood-") as folder:
        installer = Installer(Path(folder) / "cache", given_index=index, environ=environ)
        try:
            installer.lock(Path(folder), ["packaging"], "--only-binary", ":all:")
        except InstallerFailed as failed:
            reason = "cannot be reached" if failed.fault is Fault.UNREACHABLE else "does not serve packages"
            advice = "check network, proxy, certificates and credentials, or pip's and uv's index settings"
            return Check("package index", State.BAD, f"{sources}: {reason}; {advice} ({failed})")
    return Check("package index", State.OK, f"reachable ({sources})")


def check_isolation(root: Path, at_least: Isolation, at_most: Isolation) -> Check:
    """How far repros are shut off from this machine, tried for real, and what keeps them from more."""
    reached = probe_host_sandbox(root, at_most)
    means = ", ".join(reached.steps)
    refused = too_little(reached.level, at_least, reached.why_not)
    if refused:
        return Check("isolation", State.BAD, refused)
    if reached.level is at_most:
        return Check("isolation", State.OK, f"repros run at the level '{reached.level}' ({means})")
    return Check(
        "isolation",
        State.WARN,
        f"repros run at the level '{reached.level}' ({means}), which is recorded with each result, and could run at "
        f"'{at_most}': {reached.why_not or 'no filter of calls is known for this processor'}",
    )


def check_limits() -> Check:
    """Which limits of an arm the kernel holds, and which are counted here. Both are in order; one is tighter."""
    settle()
    groups, why_not = probe_cgroups()
    if groups:
        words = (
            "the kernel limits the memory and the tasks of each repro, in a control group of its own; disk is counted"
        )
    else:
        words = (
            "memory, processes and disk of repros are counted ten times a second, and nothing limits memory in files "
            f"that are on their way through a socket: {why_not}"
        )
    return Check("limits", State.OK, words)
