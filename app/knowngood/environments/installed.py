"""Packages installed beside the running interpreter, and the hardware classes of this machine.

torch is not imported, so that asking costs milliseconds.
"""

import json
import os
import platform
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from knowngood.domain.builds.build_names import minor_python
from knowngood.domain.builds.platforms import platform_of
from knowngood.domain.errors import BadRequest
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_classes import cpu_class, cuda_class
from knowngood.environments.resolve import INTERPRETER, PinnedPackage, StatedEnvironment

# The folder's name says what METADATA says, for a tenth of the time (118 packages: 150 ms and 15 ms; 2026-11-21).
_INSTALLED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._]*)-(?P<version>[^-]+)(?:-[^/]*)?\.(?:dist|egg)-info")
_LOGIN = re.compile(r"(?<=//)[^/@\s]*@")


def state_here() -> StatedEnvironment:
    """Every installed package with its version as installed.

    Of one name in two folders of `sys.path` the first counts, as it does for an import; two versions in one folder are
    a damaged environment and both are stated.
    """
    pins: dict[str, list[PinnedPackage]] = {}
    for folder in dict.fromkeys(sys.path):
        pins = grouped(_installed_in(Path(folder)), lambda pin: pin.name) | pins
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    every = tuple(pin for name in sorted(pins) for pin in pins[name])
    here = f"{platform.system()} {platform.machine()}"
    return StatedEnvironment(INTERPRETER, every, python, platforms={platform_of(here): here})


def _installed_in(folder: Path) -> Iterator[PinnedPackage]:
    try:
        entries = sorted(os.listdir(folder))  # noqa: PTH208 - sorting paths took a tenth of the first answer's calls
    except OSError:  # sys.path names zip files and folders that are not there
        return
    for entry in entries:
        if match := _INSTALLED.fullmatch(entry):
            name, version = canonicalize_name(match["name"]), match["version"].replace("_", "-")
            yield PinnedPackage(name, version, _origin(folder / entry))


def _origin(entry: Path) -> str:
    """The origin of a package; one that came from an index has no `direct_url.json` (PEP 610)."""
    try:
        direct_url = json.loads((entry / "direct_url.json").read_text(encoding="utf-8"))
        url = _LOGIN.sub("", str(direct_url["url"]), count=1)
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f"git+{url}" if "vcs_info" in direct_url else url.removeprefix("file://")


def freeze(python: str = "") -> dict[str, Any]:
    """Installed packages as `pip freeze` would print them, for a question to any server: `environment`,
    `python` and `platform` as the API takes them. Raises BadRequest where another Python is stated than runs.
    """
    stated = state_here()
    if python and minor_python(python) != stated.python:
        raise BadRequest(f"--python {python} was stated, and --here is Python {stated.python}; leave one of them out")
    lines = [f"{pin.name} @ {pin.origin}" if pin.origin else f"{pin.name}=={pin.version}" for pin in stated.pins]
    file = {"name": INTERPRETER, "content": "\n".join([*lines, ""])}
    return {"environment": file, "python": stated.python, "platform": next(iter(stated.platforms))}


# -- The hardware classes of this machine, as this process may use them: read from NVML, and never from CUDA ----------

_DRIVER = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg")
"""Where no such file is there is no driver, and the bindings, which take longer than the answer, are not imported."""


@cache
def hardware_here() -> tuple[str, ...]:
    """The classes of the visible GPUs, then the CPU class; none where there is a driver and not its bindings
    (`nvidia-ml-py`): nobody knows then, and whoever asks lets every measured class count.
    """
    cpu = cpu_class(os.uname().machine if sys.platform == "linux" else sys.platform)
    if not any(map(os.path.exists, _DRIVER)):
        return (cpu,)
    try:
        from knowngood_workers.host.nvml import visible_capabilities

        return (*dict.fromkeys(map(cuda_class, visible_capabilities())), cpu)
    except ImportError:
        return ()
