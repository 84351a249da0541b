"""The hardware classes of this machine, as the running process may use them: read from NVML, and never from CUDA."""

import os
import sys
from functools import cache

from knowngood.domain.hardware_classes import cpu_class, cuda_class

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
