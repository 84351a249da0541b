"""The ground of the GPU tests, as far as it can be seen without a GPU."""

from pathlib import Path

from knowngood.catalogue.loader import read_catalogue
from knowngood.domain.issue import Device
from tests.gpu.laboratory import TOYS, OwnTorch, find_own_torch

IMAGE = {"torch": "2.11.0+cu130", "cuda": "13.0", "triton": "3.6.0", "python": "3.12.3"}


def test_the_machines_own_torch_is_a_column(tmp_path: Path) -> None:
    own = OwnTorch(Path("python3"), IMAGE)
    (tmp_path / "builds.toml").write_text(own.table)
    (build,) = read_catalogue([tmp_path]).builds
    assert (build.id, build.torch, build.cuda, build.triton, build.is_mismatched) == (
        str(own.build),
        "2.11.0+cu130",
        "13.0",
        "3.6.0",
        False,
    )
    assert str(own.build) == "torch-2.11.0+cu130~py312"


def test_the_toys_for_gpus_are_a_sound_catalogue() -> None:
    issues = read_catalogue([TOYS]).issues
    assert len(issues) == 7
    assert {issue.requires.device for issue in issues} == {Device.CUDA, Device.ANY}


def test_a_python_without_torch_is_told_by_name(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
    bare.chmod(0o755)
    absent = find_own_torch({"KNOWNGOOD_GPU_PYTHON": str(tmp_path / "absent")})
    found = find_own_torch({"KNOWNGOOD_GPU_PYTHON": str(bare)})
    assert "is not there; set KNOWNGOOD_GPU_PYTHON" in str(absent)
    assert "No module named 'torch'); set KNOWNGOOD_GPU_PYTHON" in str(found)
