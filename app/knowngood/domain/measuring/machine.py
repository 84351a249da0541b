"""A worker's host, as far as results depend on it. The worker finds these facts; here is only their shape."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from knowngood.domain.hardware_classes import cpu_class, cuda_class
from knowngood.domain.issue import digest
from knowngood.domain.measuring.isolation import Isolation, isolation_of

CPU_CLASS = cpu_class("x86_64")

LONGEST_WORD = 300
"""Characters of a name, a version, the model of a processor."""

MOST_GPUS = 64
"""Of a host; it has no more means of isolation either."""

MOST_CAPABILITY = 100
"""Each of the two parts of a GPU's capability is less: two figures are what a class has."""


@dataclass(frozen=True)
class Gpu:
    """One device: `capability` is (9, 0) for an H100; memory in bytes."""

    index: int
    name: str
    capability: tuple[int, int]
    memory_bytes: int

    @property
    def hardware(self) -> str:
        """The hardware class that is measured on it: `cuda-sm_90`."""
        return cuda_class(self.capability)


@dataclass(frozen=True)
class Machine:
    """One host. No host name and no address: evidence is shipped. `cores` are those this process may use.

    `isa` is the widest vector extension (`avx512`, `avx2`, `none`); `compiler` is what `g++ --version` says first
    (empty: none found); `driver_cuda` is the highest CUDA the driver supports; `sandbox` names what isolates an arm
    here: `process` always, what else the kernel allows and the worker is set to (see isolation).
    """

    cpu_model: str
    isa: str
    cores: int
    memory_bytes: int
    os: str
    kernel: str
    glibc: str
    compiler: str
    driver: str = ""
    driver_cuda: str = ""
    gpus: tuple[Gpu, ...] = ()
    sandbox: tuple[str, ...] = ("process",)

    @property
    def digest(self) -> str:
        return digest(repr(self))

    @property
    def hardware(self) -> tuple[str, ...]:
        """The hardware classes this host can measure."""
        return (CPU_CLASS, *sorted({gpu.hardware for gpu in self.gpus}))

    @property
    def isolation(self) -> Isolation:
        """How far it shuts arms off."""
        return isolation_of(self.sandbox)

    @property
    def brief(self) -> "Machine":
        """With names that a page has room for and GPUs that there can be: what another worker said of itself may be
        anything.
        """
        texts: dict[str, Any] = {
            name: value[:LONGEST_WORD] for name, value in vars(self).items() if isinstance(value, str)
        }
        return replace(
            self,
            **texts,
            gpus=tuple(
                replace(gpu, name=gpu.name[:LONGEST_WORD])
                for gpu in self.gpus[:MOST_GPUS]
                if all(0 <= part < MOST_CAPABILITY for part in gpu.capability)
            ),
        )

    def in_words(self, cores: str) -> str:
        """One line for a person: `AMD EPYC 7B13, 2 cores, avx2, g++ 12.2.0, 2 x NVIDIA H100, driver 580.65`.

        `cores` is how their number is said.
        """
        names = Counter(gpu.name for gpu in self.gpus)
        cards = [f"{n} x {name}" if n > 1 else name for name, n in names.items()]
        driver = f"driver {self.driver}" if cards and self.driver else ""
        parts = (self.cpu_model, cores, self.isa, self.compiler, *cards, driver)
        return ", ".join(part for part in parts if part)
