"""The GPUs of this host by NVML, which makes no CUDA context. Imports the driver's bindings and nothing of ours: a
program that asks about itself waits for no more.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import pynvml

_T = TypeVar("_T")


@contextmanager
def open_nvml() -> Iterator[bool]:
    """The driver's management library for as long as the block runs; False where this host has no NVIDIA driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def answered(ask: Callable[[], _T], otherwise: _T) -> _T:
    """The driver's answer, or `otherwise` where it does not know: containers may lack libcuda, for example."""
    try:
        return ask()
    except pynvml.NVMLError:
        return otherwise


def is_visible(index: int, uuid: str, visible: str | None) -> bool:
    """Whether CUDA_VISIBLE_DEVICES shows this GPU: indices or beginnings of UUIDs; unset means all, empty or -1
    none.
    """
    if visible is None:
        return True
    named = [part.strip() for part in visible.split(",") if part.strip()]
    return any(part == str(index) or (part.startswith("GPU-") and uuid.startswith(part)) for part in named)


def visible_devices(environ: Mapping[str, str] = os.environ) -> Iterator[tuple[int, Any, tuple[int, int]]]:
    """Number, NVML's handle and capability, (9, 0) of an H100, of every GPU that this process may use and that answers.
    NVML must be open.
    """
    for index in range(answered(pynvml.nvmlDeviceGetCount, 0)):
        with suppress(pynvml.NVMLError):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            if is_visible(index, str(pynvml.nvmlDeviceGetUUID(handle)), environ.get("CUDA_VISIBLE_DEVICES")):
                major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
                yield index, handle, (int(major), int(minor))


def visible_capabilities() -> list[tuple[int, int]]:
    """Of every GPU that this process may use and that answers."""
    with open_nvml() as is_there:
        return [capability for _, _, capability in visible_devices()] if is_there else []
