"""The GPUs of this host while arms run: whose turn it is, and whether a device is sound before and after an arm.

A device is held by a lock that every agent of this host respects, whatever data folder it works for; NVML tells of its
state without a CUDA context. A device's UUID names hardware: it is used in here alone and goes into no evidence.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

import pynvml

from knowngood.domain.measuring.machine import Gpu
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood_workers.common.host_lock import lock_folder, take_lock
from knowngood_workers.host.nvml import open_nvml

_LOCKS = "knowngood-gpus"

# By how much the use of an idle device wavers: other clients of the driver, a display.
_NOISE_BYTES = 300 << 20
# What may be in use on a device that is seen for the first time and shows no process: the driver's own share, a
# display. Whatever computes in another container shows no process either, but takes more.
_FIRST_BYTES = 2 << 30
_FIRST_SHARE = 10

_LOOK_S = 0.1
_SAY_S = 30.0


@dataclass(frozen=True)
class GpuReading:
    """NVML's reading of a device at one moment; bytes are 0 where it does not tell.

    `lost` is the driver's own word where the device does not answer (empty: it does). `processes` are those that
    compute on it; in containers and some virtual machines there may be some although none is shown.
    """

    used_bytes: int = 0
    total_bytes: int = 0
    processes: tuple[int, ...] = ()
    lost: str = ""


def device_trouble(gpu: Gpu, idle: GpuReading | None, now: GpuReading) -> Trouble | None:
    """Say what is wrong with a device on which nothing of ours runs; None where it is sound.

    `idle` is how it was when it was last seen sound; None where nobody has looked before.
    """
    name = f"GPU {gpu.index} ({gpu.name})"
    if now.lost:
        return Trouble(
            TroubleCode.GPU_LOST,
            f"{name} does not answer any more: {now.lost}; ask dmesg for the driver's Xid messages, "
            "it may need a reset or a restart of the machine",
        )
    if now.processes:
        some = "another process computes" if len(now.processes) == 1 else f"{len(now.processes)} processes compute"
        return Trouble(
            TroubleCode.GPU_BUSY,
            f"{some} on {name}, which an arm needs for itself; end what nvidia-smi lists there, "
            "or hide this GPU from the worker by CUDA_VISIBLE_DEVICES",
        )
    allowed = max(_FIRST_BYTES, now.total_bytes // _FIRST_SHARE) if idle is None else idle.used_bytes + _NOISE_BYTES
    if now.used_bytes <= allowed:
        return None
    return Trouble(
        TroubleCode.GPU_BUSY,
        f"{now.used_bytes >> 20} MB are in use on {name} by nobody who shows, where {allowed >> 20} MB at most are "
        "while it is idle; look for processes in other containers, else the device leaks and needs a reset",
    )


def read_device(uuid: str) -> GpuReading:
    """How the device is now. NVML must be open."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        used, total = _memory(handle)
        return GpuReading(used, total, _processes(handle))
    except pynvml.NVMLError as error:
        return GpuReading(lost=str(error))


def _memory(handle: object) -> tuple[int, int]:
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    except pynvml.NVMLError_NotSupported:  # a GPU that shares the host's memory
        return 0, 0
    return int(memory.used), int(memory.total)


def _processes(handle: object) -> tuple[int, ...]:
    """None is shown where the driver cannot list them: only a device that is gone makes that an error."""
    try:
        return tuple(sorted(int(process.pid) for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)))
    except pynvml.NVMLError_GpuIsLost:
        raise
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError):
        return ()


@dataclass
class Device(AbstractContextManager["Device"]):
    """One GPU, as seen by this agent. Whoever holds its lock may change the rest, and nobody else uses it until it is
    given back: leave the `with` block to do so.
    """

    gpu: Gpu
    uuid: str
    settle_s: float
    idle: GpuReading | None = None
    is_suspect: bool = False
    lock: int = -1

    def __exit__(self, *_: object) -> None:
        os.close(self.lock)

    @property
    def index(self) -> str:
        """Its name in CUDA_VISIBLE_DEVICES, in the order of the PCI bus."""
        return str(self.gpu.index)

    def wait_until_sound(self, is_cancelled: Callable[[], bool]) -> Trouble | None:
        """Once everything of an arm is dead, let its memory come back; what is wrong if it does not. A device that
        failed before gets no time.
        """
        until = time.monotonic() + (0.0 if self.is_suspect else self.settle_s)
        while True:
            now = read_device(self.uuid)
            trouble = device_trouble(self.gpu, self.idle, now)
            if trouble is None:
                self.is_suspect = False
                self.idle = now if self.idle is None or now.used_bytes < self.idle.used_bytes else self.idle
                return None
            if time.monotonic() >= until or is_cancelled():
                self.is_suspect = True
                return trouble
            time.sleep(_LOOK_S)


@contextmanager
def open_gpus(gpus: Iterable[Gpu], *, settle_s: float) -> Iterator[Sequence[Device]]:
    """These GPUs for as long as the block runs. A device that does not answer at once is not among them.

    `settle_s` is what a device is given to become idle: the memory of a killed process comes back after its death.
    NVML stays open meanwhile, so that the driver does not put idle devices away and wake them for every look.
    """
    with open_nvml():
        yield [device for gpu in gpus for device in _open_device(gpu, settle_s)]


def _open_device(gpu: Gpu, settle_s: float) -> Iterator[Device]:
    with suppress(pynvml.NVMLError):
        yield Device(gpu, str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(gpu.index))), settle_s)


def hold(
    devices: Sequence[Device], is_cancelled: Callable[[], bool], say_waiting: Callable[[], None]
) -> Device | Trouble | None:
    """A sound device that nobody else holds. Trouble where none is sound, None where cancelled. Threads may share the
    devices.

    Waits for as long as others hold what is left; `say_waiting` is called now and then meanwhile.
    """
    unfit: dict[str, Trouble] = {}
    say_at = time.monotonic() + _SAY_S
    while not is_cancelled():
        for device in sorted(devices, key=lambda device: device.is_suspect):
            held = None if device.uuid in unfit else _try(device, is_cancelled)
            if isinstance(held, Device):
                return held
            if held is not None:
                unfit[device.uuid] = held
        if len(unfit) == len(devices) and not is_cancelled():
            return next(iter(unfit.values()), Trouble(TroubleCode.GPU_LOST, "no GPU answers; ask nvidia-smi why"))
        if time.monotonic() > say_at:
            say_waiting()
            say_at += _SAY_S
        time.sleep(_LOOK_S)
    return None


def _try(device: Device, is_cancelled: Callable[[], bool]) -> Device | Trouble | None:
    """None where another holds it."""
    try:
        lock = take_lock(lock_folder(_LOCKS) / f"{device.uuid}.lock")
    except OSError as problem:
        return Trouble(
            TroubleCode.GPU_BUSY,
            f"nobody can tell whether GPU {device.gpu.index} is free ({problem.strerror}): remove the folder "
            f"{_LOCKS} among the temporary files, or let every user of this machine write there",
        )
    if lock is None:
        return None
    trouble = device.wait_until_sound(is_cancelled)
    if trouble is not None:
        os.close(lock)
        return trouble
    device.lock = lock
    return device
