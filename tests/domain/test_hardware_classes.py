"""The classes that the CPU's is divided into for rows that depend on the vector ISA."""

import pytest

from knowngood.domain.hardware_classes import (
    has_isa,
    isa_environment,
    isa_of,
    whole_class,
    whole_classes,
    with_isa_classes,
)
from knowngood.domain.hardware_names import hardware_named

CPU, AVX2, AVX512, GPU = "cpu-x86_64", "cpu-x86_64-avx2", "cpu-x86_64-avx512", "cuda-sm_90"


@pytest.mark.parametrize(
    ("class_", "isa", "whole", "environment"),
    [
        (CPU, "", CPU, {}),
        (AVX2, "avx2", CPU, {"ATEN_CPU_CAPABILITY": "avx2"}),
        (AVX512, "avx512", CPU, {"ATEN_CPU_CAPABILITY": "avx512"}),
        (GPU, "", GPU, {}),
        ("cpu-aarch64", "", "cpu-aarch64", {}),
    ],
)
def test_a_class_names_a_vector_isa_or_none(class_: str, isa: str, whole: str, environment: dict[str, str]) -> None:
    assert (isa_of(class_), whole_class(class_), isa_environment(class_)) == (isa, whole, environment)


def test_the_cpu_is_divided_and_each_class_named_once() -> None:
    assert with_isa_classes([CPU, GPU]) == (CPU, GPU, AVX2, AVX512)
    assert with_isa_classes([AVX2]) == (AVX2,)
    assert with_isa_classes([CPU, AVX2]) == (CPU, AVX2, AVX512)
    assert whole_classes([GPU, AVX512, AVX2]) == (CPU, GPU)


@pytest.mark.parametrize(
    ("widest", "isa", "is_there"),
    [("avx512", "avx2", True), ("avx512", "avx512", True), ("avx2", "avx512", False), ("none", "avx2", False)],
)
def test_a_machine_has_every_isa_up_to_its_widest(widest: str, isa: str, *, is_there: bool) -> None:
    assert has_isa(widest, isa) is is_there


@pytest.mark.parametrize(
    ("written", "hardware"),
    [
        ("NVIDIA A100-SXM4-80GB", "cuda-sm_80"),
        ("NVIDIA H100 80GB HBM3", "cuda-sm_90"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "cuda-sm_89"),
        ("RTX 4000 SFF Ada Generation", "cuda-sm_89"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "cuda-sm_120"),
        ("RTX 5090 D", "cuda-sm_120"),
        ("Quadro RTX 8000", "cuda-sm_75"),
        ("GeForce GTX 1660 SUPER", "cuda-sm_75"),
        ("NVIDIA TITAN RTX", "cuda-sm_75"),
        ("Quadro P5000", "cuda-sm_61"),
        ("Tesla M60", "cuda-sm_52"),
        ("Tesla K80", "cuda-sm_37"),
        ("Jetson Xavier NX", "cuda-sm_72"),
        ("Orin Nano", "cuda-sm_87"),
        ("RTX 6000", ""),  # of Turing or of Ada: nobody can tell
        ("Nano", ""),
        ("M4", ""),  # Apple's, to most
    ],
)
def test_a_gpu_is_known_by_the_name_that_tools_and_people_write(written: str, hardware: str) -> None:
    named = hardware_named(written)
    assert (named.hardware if named else "") == hardware
