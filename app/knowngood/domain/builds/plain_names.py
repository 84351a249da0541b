"""Builds and hardware classes as people name them. Their ids are for JSON, addresses and commands."""

import re
from functools import lru_cache

_CLASSES = {"cpu-x86_64": "CPU", "cuda-sm_90": "H100"}
_CLASS = re.compile(r"(cpu-x86_64|cuda-sm_90)(?:-(avx\w+))?")
_BUILD = re.compile(
    r"(?P<torch>torch-)?(?P<release>\d+(?:\.\w+)+)(?:\+(?P<local>\w+(?:\.\w+)*))?"
    r"(?:~triton-(?P<triton>[\w.+-]+))?(?:~py(?P<python>\d{2,3}))?"
)
_CUDA = re.compile(r"\Acu(\d+)(\d)\Z")


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """`torch 2.7.1 (CUDA 12.6, Python 3.12)` of a build's id, `2.7.1 (CUDA 12.6)` of a wheel's, `H100` of a hardware
    class, `sm_89` where its GPUs have no one name; any other text is itself. The default Python goes without saying.
    """
    if class_ := _CLASS.fullmatch(name):
        return " ".join(filter(None, (_CLASSES[class_[1]], class_[2])))
    build = _BUILD.fullmatch(name)
    if build is None:
        return name.removeprefix("cuda-") if name.startswith("cuda-sm_") else name
    parts = (
        "CPU" if build["local"] == "cpu" else _CUDA.sub(r"CUDA \1.\2", build["local"] or ""),
        build["triton"] and f"Triton {build['triton']}",
        build["python"] and f"Python {build['python'][0]}.{build['python'][1:]}",
    )
    words = ", ".join(filter(None, parts))
    return f"{'torch ' if build['torch'] else ''}{build['release']}" + (f" ({words})" if words else "")
