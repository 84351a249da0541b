"""What a worker's host is, as far as results depend on it. The worker finds these facts; here is only their shape."""

from dataclasses import dataclass

from app.domain.issue import digest

CPU_CLASS = "cpu-x86_64"


@dataclass(frozen=True)
class Gpu:
    """One device: `capability` is (9, 0) for an H100; memory in bytes."""

    index: int
    name: str
    capability: tuple[int, int]
    memory_bytes: int


@dataclass(frozen=True)
class Machine:
    """One host. No host name and no address: evidence is shipped. `cores` are those this process may use.

    `isa` is the widest vector extension (`avx512`, `avx2`, `none`); `compiler` is what `g++ --version` says first
    (empty: none found); `driver_cuda` is the highest CUDA the driver supports; `sandbox` names what isolates an arm
    here: `process` always, `no-network` where the kernel allows a network namespace.
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
        cuda = {f"cuda-sm_{gpu.capability[0]}{gpu.capability[1]}" for gpu in self.gpus}
        return (CPU_CLASS, *sorted(cuda))

    @property
    def in_words(self) -> str:
        """One line for a person: `AMD EPYC 7B13, 2 cores, avx2, g++ 12.2.0`."""
        return ", ".join(part for part in (self.cpu_model, f"{self.cores} cores", self.isa, self.compiler) if part)
