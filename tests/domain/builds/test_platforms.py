"""Which builds may be named beside one another, and which may stand in."""

import pytest
from packaging.version import Version

from knowngood.domain.builds.platforms import are_alike, backend_of, may_stand_in


@pytest.mark.parametrize(
    ("torch", "backend"),
    [
        ("2.6.0", "cuda"),
        ("2.6.0rc1", "cuda"),
        ("2.6.0+cu124", "cuda"),
        ("2.6.0+cu121.with.pypi.cudnn", "cuda"),
        ("2.7.0.dev20250101+cu126", "cuda"),
        ("2.6.0+cpu", "cpu"),
        ("2.6.0+cpu.cxx11.abi", "cpu"),
        ("2.6.0+rocm6.2.4", "rocm"),
        ("2.6.0+xpu", "xpu"),
        ("2.5.0a0+e000cf0ad9.nv24.10", ""),
        ("2.5.0a0", ""),
        ("2.6.0+computecanada", ""),
        ("2.6.0+cu124.post1", ""),
    ],
)
def test_a_wheel_is_of_one_backend(torch: str, backend: str) -> None:
    assert backend_of(Version(torch)) == backend


@pytest.mark.parametrize(
    ("one", "other", "is_near", "stands_in"),
    [
        ("2.6.0+cu124", "2.6.0+cu126", True, True),
        ("2.6.0+cu124", "2.6.0+cpu", True, True),
        ("2.6.0+cu124", "2.6.0", True, True),
        ("2.6.0+cu124", "2.6.0+rocm6.2.4", False, False),
        ("2.6.0+cpu", "2.6.0+xpu", False, False),
        ("2.6.0+rocm6.1", "2.6.0+rocm6.2.4", True, False),
        ("2.6.0+rocm6.1", "2.6.0+xpu", False, False),
        ("2.6.0+cu124", "2.6.0.dev20241112+cu124", False, False),
        ("2.6.0.dev20241111+cu124", "2.6.0.dev20241112+cu124", True, False),
        ("2.6.0+cu124", "2.5.0a0+e000cf0ad9.nv24.10", False, False),
        ("2.5.0a0+e000cf0ad9.nv24.10", "2.5.0a0+ecf131c.nv25.1", False, False),
        ("2.5.0+acme", "2.6.0+acme", True, False),
    ],
)
def test_builds_of_one_backend_are_near_and_only_cuda_and_the_cpu_stand_in(
    one: str, other: str, *, is_near: bool, stands_in: bool
) -> None:
    for pair in ((Version(one), Version(other)), (Version(other), Version(one))):
        assert (are_alike(*pair), may_stand_in(*pair)) == (is_near, stands_in)
