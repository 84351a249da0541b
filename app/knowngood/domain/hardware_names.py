"""Names of processors and GPUs as people write them, and the hardware class that each is: one table for every door.

A name's class need not have been measured by anybody: what is known of a class is another question. Capabilities are
NVIDIA's (developer.nvidia.com/cuda-gpus), targets of AMD's GPUs those of the ROCm documentation.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from knowngood.domain.errors import BadRequest
from knowngood.domain.hardware_classes import cpu_class, cuda_class
from knowngood.domain.issue import parse_capability
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import Message

_NAMES: Mapping[str, str] = {
    cuda_class((3, 7)): "K80",
    cuda_class((5, 0)): "M10, GTX 750, GTX 750 Ti",
    cuda_class((5, 2)): "M40, M60, GTX 960, GTX 970, GTX 980, GTX 980 Ti, GTX Titan X",
    cuda_class((5, 3)): "Jetson Nano, Jetson TX1",
    cuda_class((6, 0)): "P100, GP100",
    cuda_class((6, 1)): "P4, P40, GTX 1050, GTX 1050 Ti, GTX 1060, GTX 1070, GTX 1070 Ti, GTX 1080, GTX 1080 Ti, "
    "Titan Xp, Quadro P1000, Quadro P2000, Quadro P4000, Quadro P5000, Quadro P6000, MX150, Pascal",
    cuda_class((6, 2)): "Jetson TX2",
    cuda_class((7, 0)): "V100, V100S, GV100, Titan V, Volta",
    cuda_class((7, 2)): "Xavier, AGX Xavier, Xavier NX",
    cuda_class((7, 5)): "T4, T4G, T400, T600, T1000, RTX 2060, RTX 2070, RTX 2080, RTX 2080 Ti, Titan RTX, "
    "RTX 6000 Turing, Quadro RTX 4000, Quadro RTX 5000, Quadro RTX 6000, Quadro RTX 8000, GTX 1660, GTX 1660 Ti, "
    "GTX 1650, GTX 1650 Ti, MX450, Turing",
    cuda_class((8, 0)): "A100, A30, A800, A100X, A30X, Ampere",
    cuda_class(
        (8, 6)
    ): "A10, A10G, A16, A2, A40, A2000, A4000, A5000, A6000, RTX A2000, RTX A4000, RTX A5000, RTX A6000, "
    "RTX A500, RTX A1000, RTX A4500, RTX A5500, RTX 3050, RTX 3050 Ti, RTX 3060, "
    "RTX 3060 Ti, RTX 3070, RTX 3070 Ti, RTX 3080, RTX 3080 Ti, RTX 3090, RTX 3090 Ti",
    cuda_class((8, 7)): "Orin, Jetson Orin, AGX Orin, Orin NX, Orin Nano",
    cuda_class(
        (8, 9)
    ): "L2, L4, L40, L40S, L20, RTX 4050, RTX 4060, RTX 4060 Ti, RTX 4070, RTX 4070 Ti, RTX 4080, RTX 4090, "
    "RTX 4090 D, RTX 6000 Ada, RTX 5000 Ada, RTX 4500 Ada, RTX 4000 Ada, RTX 4000 SFF Ada, RTX 2000 Ada, "
    "Ada, Ada Lovelace, Lovelace",
    cuda_class((9, 0)): "H100, H200, H20, H800, GH200, GH100, Hopper, Grace Hopper",
    cuda_class((10, 0)): "B100, B200, GB200, Blackwell",
    cuda_class((10, 3)): "B300, GB300, Blackwell Ultra",
    cuda_class((11, 0)): "Thor, Jetson Thor, AGX Thor",
    cuda_class((12, 0)): "RTX 5050, RTX 5060, RTX 5060 Ti, RTX 5070, RTX 5070 Ti, RTX 5080, RTX 5090, RTX 5090 D, "
    "RTX Pro 6000, RTX Pro 6000 Blackwell, RTX Pro 5000, RTX Pro 4500, RTX Pro 4000, RTX Pro 2000",
    cuda_class((12, 1)): "GB10, DGX Spark, Spark",
    "rocm": "rocm, HIP, AMD GPU",
    "mps": "mps, Apple GPU, Apple Silicon, Metal",
    "xpu": "xpu, Intel GPU, Intel Arc",
    "rocm-gfx908": "MI100",
    "rocm-gfx90a": "MI210, MI250, MI250X",
    "rocm-gfx942": "MI300, MI300A, MI300X, MI308X, MI325X, CDNA3",
    "rocm-gfx950": "MI350X, MI355X, CDNA4",
    "rocm-gfx1100": "RX 7900 XT, RX 7900 XTX, Radeon Pro W7900, RDNA3",
    "rocm-gfx1201": "RX 9070, RX 9070 XT, RDNA4",
    cpu_class(
        "x86_64"
    ): "CPU, x86_64, x86-64, x86, amd64, x64, AVX2, AVX512, AVX-512, AMX, Xeon, EPYC, Ryzen, Intel CPU, "
    "AMD CPU, Sapphire Rapids, Skylake",
    cpu_class("aarch64"): "aarch64, arm64, ARM, Graviton, Graviton3, Graviton4, Grace, Ampere Altra, Neoverse",
}

ANY_GPU = ("cuda", "gpu", "nvidia")
"""Words that mean a GPU of any class."""

_NOISE = re.compile(
    r"\b(?:nvidia|geforce|tesla|amd|radeon|instinct|jetson|quadro|graphics|laptop|mobile|max-?q|tensor core|"
    r"generation|(?:server|workstation) edition|gpu|super|sxm\d?|pcie?|nvl\d*|hbm\d\w?|oam|\d{2,3} ?gi?b)\b"
)
_CAPABILITY = re.compile(r"(?:cuda-?)?(?:sm|compute|capability|computecapability|cc)(\d{1,2})(\d)[a-z]?")
_TARGET = re.compile(r"(?:rocm-?)?(gfx[0-9a-f]{3,4})")
_CLASS = re.compile(r"(?:cpu|cuda|rocm)-[\w.]{2,40}")
_LIKE_ZERO = str.maketrans({"o": "0"})
_LONGEST, _ALIKE = 60, 0.85
_FEWEST_LETTERS = 5  # of a name that may be misspelt: of shorter ones one letter makes another


@dataclass(frozen=True)
class NamedHardware:
    """`name` is as the table writes it, or the class itself. An empty `hardware` is a GPU of any class."""

    name: str
    hardware: str

    @property
    def is_any_gpu(self) -> bool:
        return not self.hardware


def hardware_named(text: str) -> NamedHardware | None:
    """The hardware that is meant, by a name, a class or a compute capability; None where the text is none of these."""
    plain = text.strip().casefold()[:_LONGEST]
    if plain in ANY_GPU:
        return NamedHardware(plain, "")
    key = _key(plain)
    if named := _BY_KEY.get(key) or _BY_KEY.get(_key(_NOISE.sub("", plain))):
        return named
    if match := _CAPABILITY.fullmatch(key.replace(".", "")):
        class_ = cuda_class((int(match[1]), int(match[2])))
        return NamedHardware(class_, class_)
    if match := _TARGET.fullmatch(key):
        return NamedHardware(match[1], f"rocm-{match[1]}")
    return NamedHardware(plain, plain) if _CLASS.fullmatch(plain) else None


def gpu_capabilities() -> dict[str, str]:
    """The compute capability of each GPU of the table by name, `12.0`; of AMD's the target, `gfx942`."""
    return {
        name: ".".join(map(str, parse_capability(class_) or [class_.removeprefix("rocm-")]))
        for class_, names in _NAMES.items()
        if not class_.startswith("cpu-")
        for name in names.split(", ")
    }


def hardware_meant(text: str) -> NamedHardware | None:
    """The hardware of a name that is misspelt by a letter or so: `hoper`, `RTX 4O90`."""
    key = _key(text.casefold()[:_LONGEST])
    if (named := _BY_KEY.get(key.translate(_LIKE_ZERO))) is not None:
        return named
    if len(key) < _FEWEST_LETTERS or any(character.isdigit() for character in key):
        return None
    near = get_close_matches(key, _WORDS, 1, _ALIKE)
    return _BY_KEY[near[0]] if near else None


def class_named(text: str, classes: Iterable[str]) -> str:
    """The class that `text` means: itself where it is one of `classes`, else the class of a name; unknown names stay as
    they are. For a GPU of any class, the first one among `classes`.
    """
    known = tuple(classes)
    if text in known:
        return text
    named = hardware_named(text)
    if named is None:
        return text
    return named.hardware or next((class_ for class_ in known if class_.startswith("cuda-")), text)


def measured_classes(names: Iterable[str], measured: Sequence[str]) -> tuple[str, ...]:
    """The classes that are meant, each once. Raises BadRequest for one that was never measured, about which nothing is
    known; the CPU class is always accepted, because there is always something to run on it.
    """
    known = tuple(dict.fromkeys([CPU_CLASS, *measured]))
    classes = dict.fromkeys(class_named(name, known) for name in names)
    for class_ in classes:
        if class_ not in known:
            raise BadRequest(f'hardware "{class_[:_LONGEST]}" was never measured here; known: {", ".join(known)}')
    return tuple(classes)


def several_gpus(names: Sequence[str]) -> tuple[Message, ...]:
    """The note on an environment that names these."""
    return (Message("several_gpus", gpus=tuple(names)),) if len(names) > 1 else ()


def article_of(name: str) -> str:
    """`a` V100, `an` RTX 5090; a class has none."""
    if _CLASS.fullmatch(name):
        return ""
    return "an" if re.match(r"[AEIO]|[FHLMNRSX][A-Z0-9]", name) else "a"


def _key(text: str) -> str:
    return re.sub(r"[\s_\-]+", "", text)


def _by_key() -> dict[str, NamedHardware]:
    """Cards also by their number alone where it has four figures: `4090`, `5070ti`."""
    cards: dict[str, NamedHardware] = {}
    for class_, names in _NAMES.items():
        for name in names.split(", "):
            key = _key(name.casefold())
            cards[key] = NamedHardware(name, class_)
            short = re.fullmatch(r"(?:rtx|gtx)(\d{4}(?:ti)?)", key)
            if short:
                cards[short[1]] = cards[key]
    return cards


_BY_KEY = _by_key()
_WORDS = [key for key in _BY_KEY if not any(character.isdigit() for character in key)]
