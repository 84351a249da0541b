"""Which hardware classes a program runs on, by the driver's own library, which may be missing."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowngood.domain.hardware_classes import cpu_class
from knowngood.environments import installed
from knowngood.environments.installed import hardware_here
from tests.workers.toy_driver import ToyDevice, install

CPU = cpu_class(os.uname().machine)


@pytest.fixture(autouse=True)
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that a driver would leave; it is not there yet."""
    file = tmp_path / "version"
    monkeypatch.setattr(installed, "_DRIVER", (str(file),))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    hardware_here.cache_clear()
    yield file
    hardware_here.cache_clear()


def test_a_machine_without_a_driver_has_its_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert hardware_here() == (CPU,)


def test_visible_gpus_come_first_and_each_class_once(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.touch()
    install(monkeypatch, ToyDevice(), ToyDevice(capability=(8, 0)), ToyDevice())
    assert hardware_here() == ("cuda-sm_90", "cuda-sm_80", CPU)


def test_a_driver_that_cannot_be_asked_leaves_it_open(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.touch()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.delitem(sys.modules, "knowngood_workers.host.nvml", raising=False)
    assert hardware_here() == ()
