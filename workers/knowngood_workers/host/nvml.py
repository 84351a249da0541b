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


def visible_device(index: int, visible: str | None) -> tuple[Any, tuple[int, int]] | None:
    """NVML's handle of a GPU and its capability, (9, 0) of an H100; None where it is not ours, or does not answer."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        if not is_visible(index, str(pynvml.nvmlDeviceGetUUID(handle)), visible):
            return None
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    except pynvml.NVMLError:
        return None
    return handle, (int(major), int(minor))


def visible_capabilities(environ: Mapping[str, str] = os.environ) -> list[tuple[int, int]]:
    """Of every GPU that this process may use and that answers."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    with open_nvml() as is_there:
        count = answered(pynvml.nvmlDeviceGetCount, 0) if is_there else 0
        devices = [visible_device(index, visible) for index in range(count)]
    return [device[1] for device in devices if device is not None]
