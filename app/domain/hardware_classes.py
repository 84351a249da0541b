"""Names of hardware classes. Imports nothing: a program that asks about itself waits for it."""


def cpu_class(architecture: str) -> str:
    """`cpu-x86_64`, by the architecture as the kernel calls it."""
    return f"cpu-{architecture}"


def cuda_class(capability: tuple[int, int]) -> str:
    """`cuda-sm_90` of (9, 0)."""
    return f"cuda-sm_{capability[0]}{capability[1]}"
