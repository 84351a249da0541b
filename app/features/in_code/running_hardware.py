"""The hardware classes of this machine, as the running process may use them: NVML is asked, and never CUDA."""

import os
import sys
from collections.abc import Iterator
from functools import cache

from knowngood.app.cli.loading import load
from knowngood.app.domain.hardware_classes import cpu_class, cuda_class

_CAPABILITIES = "knowngood.workers.host.nvml:visible_capabilities"
_DRIVER = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg")
"""Where no such file is there is no driver, and the bindings, which take longer than the answer, are not imported."""


@cache
def hardware_here() -> tuple[str, ...]:
    """The CPU class, and those of the GPUs that are visible; without the bindings (`nvidia-ml-py`) the CPU class."""
    return (*dict.fromkeys(_gpus()), cpu_class(os.uname().machine if sys.platform == "linux" else sys.platform))


def _gpus() -> Iterator[str]:
    if not any(map(os.path.exists, _DRIVER)):
        return
    try:
        capabilities = load(_CAPABILITIES)()
    except ImportError:
        return
    yield from map(cuda_class, capabilities)
