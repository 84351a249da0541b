"""Names of hardware classes. Imports next to nothing: a program that asks about itself waits for it."""

from collections.abc import Iterable, Mapping


def cpu_class(architecture: str) -> str:
    """`cpu-x86_64`, by the architecture as the kernel calls it."""
    return f"cpu-{architecture}"


def cuda_class(capability: tuple[int, int]) -> str:
    """`cuda-sm_90` of (9, 0)."""
    return f"cuda-sm_{capability[0]}{capability[1]}"


_VECTOR_ISAS = ("avx2", "avx512")  # the narrower first: whatever has one has those before it
VECTOR_ISA_CLASSES = {f"{cpu_class('x86_64')}-{isa}": isa for isa in _VECTOR_ISAS}
"""The classes of rows whose result depends on the vector ISA, with the ISA. Of `cpu-x86_64` their worst is said."""

VECTOR_ISA_VARIABLE = "ATEN_CPU_CAPABILITY"
"""What torch's own kernels go by and, from torch 2.6 on, Inductor's too."""


def isa_of(hardware: str) -> str:
    """`avx2` of `cpu-x86_64-avx2`; empty for a class that names no vector ISA."""
    return VECTOR_ISA_CLASSES.get(hardware, "")


def isa_classes(hardware: str) -> tuple[str, ...]:
    """The classes that `hardware` is divided into for rows that depend on the vector ISA; none but of the CPU's."""
    return tuple(VECTOR_ISA_CLASSES) if hardware == cpu_class("x86_64") else ()


def whole_class(hardware: str) -> str:
    """The class that is divided; itself of all that name no vector ISA."""
    return cpu_class("x86_64") if hardware in VECTOR_ISA_CLASSES else hardware


def whole_classes(classes: Iterable[str]) -> tuple[str, ...]:
    """Classes of the matrix among these: those that every row may have."""
    return tuple(sorted({whole_class(class_) for class_ in classes}))


def with_isa_classes(classes: Iterable[str]) -> tuple[str, ...]:
    """These and those that they are divided into, each once."""
    every = list(classes)
    return tuple(dict.fromkeys([*every, *(isa_class for class_ in every for isa_class in isa_classes(class_))]))


def has_isa(widest: str, isa: str) -> bool:
    """Whether a machine whose widest vector ISA is `widest` has `isa` too."""
    return widest in _VECTOR_ISAS[_VECTOR_ISAS.index(isa) :]


def isa_environment(hardware: str) -> Mapping[str, str]:
    """Variables of a process that is to use the vector ISA of its class."""
    isa = isa_of(hardware)
    return {VECTOR_ISA_VARIABLE: isa} if isa else {}
