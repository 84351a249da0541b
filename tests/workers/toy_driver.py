"""A stand-in for NVIDIA's management library on a machine without a GPU: what it would answer is set by the test."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from uuid import uuid4

import pynvml
import pytest

GIGABYTE = 1 << 30


@dataclass
class ToyDevice:
    """One GPU. `error` is the code that every question about it is answered with; 0 for none."""

    used: int = GIGABYTE // 2
    total: int = 80 * GIGABYTE
    processes: tuple[int, ...] = ()
    capability: tuple[int, int] = (9, 0)
    error: int = 0
    lists_processes: bool = True
    uuid: str = field(default_factory=lambda: f"GPU-{uuid4()}")
    on_look: Callable[[], None] = lambda: None


def install(monkeypatch: pytest.MonkeyPatch, *devices: ToyDevice, cuda: int = 13000) -> None:
    """Have `pynvml` answer from these devices, in this process alone."""

    def asked(device: ToyDevice) -> ToyDevice:
        if device.error:
            raise pynvml.NVMLError(device.error)
        return device

    def by_uuid(uuid: str) -> ToyDevice:
        return asked(next(device for device in devices if device.uuid == uuid))

    def memory(device: ToyDevice) -> SimpleNamespace:
        device.on_look()
        return SimpleNamespace(used=asked(device).used, total=device.total)

    def processes(device: ToyDevice) -> list[SimpleNamespace]:
        if not device.lists_processes:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [SimpleNamespace(pid=pid) for pid in asked(device).processes]

    answers: dict[str, Callable[..., object]] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.65",
        "nvmlSystemGetCudaDriverVersion_v2": lambda: cuda,
        "nvmlDeviceGetCount": lambda: len(devices),
        "nvmlDeviceGetHandleByIndex": lambda index: asked(devices[index]),
        "nvmlDeviceGetHandleByUUID": by_uuid,
        "nvmlDeviceGetUUID": lambda device: device.uuid,
        "nvmlDeviceGetName": lambda _: "Toy GPU",
        "nvmlDeviceGetCudaComputeCapability": lambda device: device.capability,
        "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetComputeRunningProcesses": processes,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
