"""Which GPUs the code of a wheel runs on."""

from datetime import UTC, datetime

import pytest

from knowngood.domain.builds.architectures import WheelCode, builds_serving, holds_code, serves
from tests.make import make_build

OLD = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"
NEW = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
WHEN = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("architectures", "hardware", "runs"),
    [
        (OLD, "cuda-sm_90", True),
        (OLD, "cuda-sm_89", True),  # by sm_86, an older one of the same major
        (OLD, "cuda-sm_120", False),
        (OLD, "cuda-sm_100", False),
        (OLD, "cpu-x86_64", True),
        (NEW, "cuda-sm_70", False),
        (NEW, "cuda-sm_120", True),
        (NEW, "cuda-sm_121", True),
        (NEW, "cuda-sm_103", True),
        (NEW, "cuda-sm_110", False),
        ("sm_90a", "cuda-sm_90", True),
        ("sm_100a", "cuda-sm_103", False),
        ("sm_100f", "cuda-sm_103", True),
        ("sm_100f", "cuda-sm_120", False),
        ("compute_90", "cuda-sm_120", True),
        ("compute_90", "cuda-sm_89", False),
        ("compute_90a", "cuda-sm_100", False),
        ("compute_100f", "cuda-sm_103", True),
        ("compute_100f", "cuda-sm_120", False),
        ("sm_80", "cuda-sm_87", False),  # Orin: a Tegra takes no other GPU's binaries
        ("sm_87", "cuda-sm_87", True),
        ("sm_87", "cuda-sm_89", False),
        ("compute_80", "cuda-sm_87", True),
        ("nonsense sm_", "cuda-sm_90", False),
    ],
)
def test_code_runs_on_a_gpu(architectures: str, hardware: str, *, runs: bool) -> None:
    assert holds_code(architectures.split(), hardware) is runs


def test_the_list_of_another_variant_says_nothing() -> None:
    asked, other = make_build("2.7.1+cu126"), make_build("2.7.1+cu128")
    lists = {other.torch: WheelCode(other.torch, tuple(NEW.split()), WHEN)}
    assert serves(asked, "cuda-sm_120", lists) is None
    assert serves(asked, "cuda-sm_120", {}) is None
    assert builds_serving("cuda-sm_120", [other, asked], lists) == (other,)
