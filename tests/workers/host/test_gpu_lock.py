"""Whose turn it is on a GPU, and whether it is sound. Locks are real, and so are processes that compete for them."""

import fcntl
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pynvml
import pytest

from knowngood.domain.measuring.machine import Gpu
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood_workers.common.host_lock import take_lock
from knowngood_workers.host.gpu_lock import Device, GpuReading, device_trouble, hold, open_gpus, read_device
from knowngood_workers.host.machine_info import read_gpus
from tests.workers.toy_driver import GIGABYTE, ToyDevice, install

MEGABYTE = 1 << 20
H100 = Gpu(0, "NVIDIA H100", (9, 0), 80 * GIGABYTE)
IDLE = GpuReading(used_bytes=600 * MEGABYTE, total_bytes=80 * GIGABYTE)
SMALL = 8 * GIGABYTE


def using(megabytes: int, total: int = 80 * GIGABYTE) -> GpuReading:
    return GpuReading(used_bytes=megabytes * MEGABYTE, total_bytes=total)


STATES: dict[str, tuple[GpuReading | None, GpuReading, TroubleCode | None]] = {
    "as idle as before": (IDLE, IDLE, None),
    "use wavers": (IDLE, using(899), None),
    "memory did not come back": (IDLE, using(901), TroubleCode.GPU_BUSY),
    "another's process": (IDLE, GpuReading(600 * MEGABYTE, 80 * GIGABYTE, (7,)), TroubleCode.GPU_BUSY),
    "fell off the bus": (IDLE, GpuReading(lost="GPU is lost"), TroubleCode.GPU_LOST),
    "lost when first seen": (None, GpuReading(lost="Unknown Error"), TroubleCode.GPU_LOST),
    "first seen, with a display on it": (None, using(1900, SMALL), None),
    "first seen, a large card's own share": (None, using(1900), None),
    "first seen, somebody out of sight computes": (None, using(20_000), TroubleCode.GPU_BUSY),
    "first seen, somebody out of sight on a small card": (None, using(3000, SMALL), TroubleCode.GPU_BUSY),
    "first seen, with a process": (None, GpuReading(0, 0, (7, 8)), TroubleCode.GPU_BUSY),
    "memory is not told": (None, GpuReading(), None),
}


@pytest.mark.parametrize(("idle", "now", "expected"), STATES.values(), ids=STATES.keys())
def test_a_device_is_sound_or_says_why_not(
    idle: GpuReading | None, now: GpuReading, expected: TroubleCode | None
) -> None:
    trouble = device_trouble(H100, idle, now)
    assert (trouble.code if trouble else None) is expected


def test_the_sentence_names_the_device_and_what_to_do() -> None:
    busy = device_trouble(H100, IDLE, GpuReading(IDLE.used_bytes, 0, (7, 8)))
    leaking = device_trouble(H100, IDLE, using(5000))
    lost = device_trouble(H100, IDLE, GpuReading(lost="GPU is lost"))
    assert busy is not None
    assert busy.sentence.startswith("2 processes compute on GPU 0 (NVIDIA H100)")
    assert "CUDA_VISIBLE_DEVICES" in busy.sentence
    assert leaking is not None
    assert leaking.sentence.startswith("5000 MB are in use on GPU 0 (NVIDIA H100) by nobody who shows, where 900 MB")
    assert lost is not None
    assert "GPU is lost; ask dmesg" in lost.sentence


# -- what NVML answers -------------------------------------------------------------------------------------------------


def test_a_device_is_read_as_the_driver_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice(processes=(9, 7))
    install(monkeypatch, device)
    assert read_device(device.uuid) == GpuReading(GIGABYTE // 2, 80 * GIGABYTE, (7, 9))


def test_a_driver_that_cannot_list_processes_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice(processes=(7,), lists_processes=False)
    install(monkeypatch, device)
    assert read_device(device.uuid).processes == ()


def test_a_lost_device_is_told_in_the_drivers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice(error=pynvml.NVML_ERROR_GPU_IS_LOST)
    install(monkeypatch, device)
    assert read_device(device.uuid) == GpuReading(lost="GPU is lost")


def test_a_gpu_that_fell_off_its_bus_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ToyDevice(error=pynvml.NVML_ERROR_GPU_IS_LOST), ToyDevice(capability=(8, 0)))
    driver, cuda, gpus = read_gpus({})
    assert (driver, cuda) == ("580.65", "13.0")
    assert [(gpu.index, gpu.hardware) for gpu in gpus] == [(1, "cuda-sm_80")]


def test_a_gpu_without_memory_of_its_own_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice(capability=(12, 1))
    install(monkeypatch, device)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", _refuses)
    assert [(gpu.hardware, gpu.memory_bytes) for gpu in read_gpus({})[2]] == [("cuda-sm_121", 0)]
    assert read_device(device.uuid) == GpuReading()


def _refuses(_: object) -> object:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


# -- whose turn it is --------------------------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of a host of our own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def never() -> bool:
    return False


def say_nothing() -> None:
    return


@contextmanager
def opened(*devices: ToyDevice, settle_s: float = 5.0) -> Iterator[Sequence[Device]]:
    gpus = [Gpu(index, "Toy GPU", device.capability, device.total) for index, device in enumerate(devices)]
    with open_gpus(gpus, settle_s=settle_s) as open_:
        yield open_


def held_by(gpus: Sequence[Device]) -> Device:
    held = hold(gpus, never, say_nothing)
    assert isinstance(held, Device)
    return held


def test_a_lock_is_held_by_one_until_it_is_closed(tmp_path: Path) -> None:
    first = take_lock(tmp_path / "a.lock")
    assert first is not None
    assert take_lock(tmp_path / "a.lock") is None
    other = take_lock(tmp_path / "b.lock")
    assert other is not None
    os.close(other)
    os.close(first)
    again = take_lock(tmp_path / "a.lock")
    assert again is not None
    os.close(again)


def test_a_lock_that_was_tidied_away_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.lock"
    path.touch()
    lock_it = fcntl.flock

    def tidy_and_lock(descriptor: int, how: int) -> None:
        path.unlink()
        lock_it(descriptor, how)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(fcntl, "flock", tidy_and_lock)
        assert take_lock(path) is None
    taken = take_lock(path)
    assert taken is not None
    os.close(taken)


HOLDER = """
import sys, time
from pathlib import Path
from knowngood_workers.common.host_lock import take_lock
print(take_lock(Path(sys.argv[1])), flush=True)
time.sleep(600)
"""


def test_a_process_that_is_killed_gives_its_lock_back(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() != "None"
        assert take_lock(path) is None
        holder.kill()
        holder.wait()
    taken = take_lock(path)
    assert taken is not None
    os.close(taken)


AS_NOBODY = """
import os, sys
from pathlib import Path
from knowngood_workers.common.host_lock import take_lock
os.setgid(65534)
os.setuid(65534)
print(take_lock(Path(sys.argv[1])))
"""


def taken_by_nobody(path: Path) -> bool:
    ran = subprocess.run([sys.executable, "-c", AS_NOBODY, path], capture_output=True, text=True, check=True)
    return ran.stdout.strip() != "None"


@pytest.fixture
def private_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_users_of_one_machine_take_turns(private_umask: None, monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice()
    install(monkeypatch, device)
    with tempfile.TemporaryDirectory() as temporary:  # pytest's own folders are closed to others
        Path(temporary).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", temporary)
        locks = Path(temporary) / "knowngood-gpus"
        path = locks / f"{device.uuid}.lock"
        with opened(device) as gpus, held_by(gpus):
            assert stat.S_IMODE(locks.stat().st_mode) == 0o1777
            assert not taken_by_nobody(path)
        assert taken_by_nobody(path)
        assert taken_by_nobody(locks / "theirs.lock")
        ours = take_lock(locks / "theirs.lock")
        assert ours is not None
        os.close(ours)


def test_a_folder_of_locks_that_cannot_be_used_is_trouble(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / "knowngood-gpus").touch()
    device = ToyDevice()
    install(monkeypatch, device)
    with opened(device) as gpus:
        found = hold(gpus, never, say_nothing)
    assert isinstance(found, Trouble)
    assert "remove the folder knowngood-gpus" in found.sentence


def test_two_arms_never_hold_one_device_at_once(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice()
    install(monkeypatch, device)
    with opened(device) as mine, opened(device) as anothers:
        first = held_by(mine)
        until = time.monotonic() + 0.5
        assert hold(anothers, lambda: time.monotonic() > until, say_nothing) is None
        with first:
            pass
        with held_by(anothers) as second:
            assert second.index == "0"


def test_whoever_waits_says_so(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knowngood_workers.host.gpu_lock._SAY_S", 0.05)
    device = ToyDevice()
    install(monkeypatch, device)
    said = threading.Event()
    with opened(device) as gpus, held_by(gpus):
        assert hold(gpus, said.is_set, said.set) is None


def test_each_device_has_its_own_turn(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = (ToyDevice(), ToyDevice())
    install(monkeypatch, *devices)
    with opened(*devices) as gpus, held_by(gpus) as first, held_by(gpus) as second:
        assert {first.index, second.index} == {"0", "1"}


# -- sound before and after --------------------------------------------------------------------------------------------


def test_memory_that_comes_back_late_is_waited_for(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice()
    install(monkeypatch, device)
    with opened(device, settle_s=60.0) as gpus, held_by(gpus) as held:
        device.used, looks = 40 * GIGABYTE, list[int]()

        def look() -> None:
            looks.append(device.used)
            device.used = GIGABYTE // 2 if len(looks) == 4 else device.used

        device.on_look = look
        assert held.wait_until_sound(never) is None
    assert len(looks) in {4, 5}


def test_memory_that_does_not_come_back_is_trouble(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice()
    install(monkeypatch, device)
    with opened(device, settle_s=0.3) as gpus:
        with held_by(gpus) as held:
            device.used = 2 * GIGABYTE
            trouble = held.wait_until_sound(never)
        assert trouble is not None
        assert trouble.code is TroubleCode.GPU_BUSY
        looks: list[int] = []
        device.on_look = lambda: looks.append(device.used)
        assert hold(gpus, never, say_nothing) == trouble
        assert len(looks) == 1, "one that failed before is given no more time"
        device.used = GIGABYTE // 2
        with held_by(gpus):
            pass


def test_an_arm_goes_to_another_device_where_one_is_not_sound(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = (ToyDevice(processes=(7,)), ToyDevice())
    install(monkeypatch, *devices)
    with opened(*devices, settle_s=0.2) as gpus, held_by(gpus) as held:
        assert held.index == "1"


def test_where_the_only_sound_device_is_taken_its_turn_is_waited_for(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = (ToyDevice(processes=(7,)), ToyDevice())
    install(monkeypatch, *devices)
    with opened(*devices, settle_s=0.1) as gpus:
        taken = held_by(gpus)
        threading.Timer(0.5, taken.__exit__).start()
        with held_by(gpus) as held:
            assert held.index == "1"


def test_where_no_device_is_sound_the_reason_is_told(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = (ToyDevice(), ToyDevice())
    install(monkeypatch, *devices)
    with opened(*devices, settle_s=0.1) as gpus:
        for device in devices:
            device.error = pynvml.NVML_ERROR_GPU_IS_LOST
        trouble = hold(gpus, never, say_nothing)
    assert isinstance(trouble, Trouble)
    assert trouble.code is TroubleCode.GPU_LOST


def test_a_device_that_was_lost_before_the_job_is_not_there(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice(error=pynvml.NVML_ERROR_GPU_IS_LOST)
    install(monkeypatch, device)
    with opened(device) as gpus:
        trouble = hold(gpus, never, say_nothing)
    assert trouble == Trouble(TroubleCode.GPU_LOST, "no GPU answers; ask nvidia-smi why")


def test_a_cancelled_wait_for_a_device_is_no_trouble(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = ToyDevice(processes=(7,))
    install(monkeypatch, device)
    until = time.monotonic() + 0.2
    with opened(device) as gpus:
        assert hold(gpus, lambda: time.monotonic() > until, say_nothing) is None
