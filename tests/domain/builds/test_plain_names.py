import pytest

from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.message import Message, Quoted, english


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("torch-2.7.1+cu126", "torch 2.7.1 (CUDA 12.6)"),
        ("2.7.1+cu126", "2.7.1 (CUDA 12.6)"),
        ("torch-2.6.0+cu118~py312", "torch 2.6.0 (CUDA 11.8, Python 3.12)"),
        ("torch-2.8.0+cu128~triton-3.5.1~py310", "torch 2.8.0 (CUDA 12.8, Triton 3.5.1, Python 3.10)"),
        ("torch-2.7.1", "torch 2.7.1"),
        ("torch-2.7.1+cpu", "torch 2.7.1 (CPU)"),
        ("torch-2.7.1+rocm6.3", "torch 2.7.1 (rocm6.3)"),
        ("torch-2.7.0a0+ecf3bae40a.nv25.2", "torch 2.7.0a0 (ecf3bae40a.nv25.2)"),
        ("2.9.1", "2.9.1"),
        ("cpu-x86_64", "CPU"),
        ("cpu-x86_64-avx2", "CPU avx2"),
        ("cuda-sm_90", "H100"),
        ("cuda-sm_89", "sm_89"),
        ("torch-2.6.0+x~y~z", "torch-2.6.0+x~y~z"),
        ("pip install torch==2.6.0+cu124", "pip install torch==2.6.0+cu124"),
        ("torch 2.7.1 (CUDA 12.6)", "torch 2.7.1 (CUDA 12.6)"),
    ],
)
def test_builds_and_hardware_have_their_names_and_all_else_is_itself(id_: str, name: str) -> None:
    assert plain_name(id_) == name


def test_a_message_names_what_it_speaks_of_and_quotes_what_is_to_be_copied() -> None:
    build = "torch-2.7.1+cu126"
    assert english(Message("go", build=build)) == "Go to torch 2.7.1 (CUDA 12.6)."
    assert english(Message("on_class", hardware="cuda-sm_90", said=Message("not_run"))) == "H100: not run yet"
    assert english(Message("measure", issue="toy-1", build=Quoted(build))).endswith(f"--issues toy-1 --builds {build}")
