"""Platforms and backends of environments. Evidence answers for its own alone.

A platform is a system with its machine (`macos-arm64`), or the system where the machine is not said; each is kept with
the words that state it, so that two which differ can be quoted. Everything here is measured on Linux x86-64; where
nothing is stated it is taken for that, and the answer says so. WSL2 is Linux.
"""

import re
from collections.abc import Iterable, Mapping

from packaging.version import Version

from knowngood.domain.errors import BadRequest
from knowngood.domain.message import Message, Quoted, joined

LINUX, WINDOWS = "linux-x86_64", "windows-x86_64"
PLATFORMS = (LINUX, "linux-aarch64", "macos-arm64", "macos-x86_64", WINDOWS)
TAKEN = Message("taken_as_linux")
"""What an answer says where no platform was stated."""

BACKENDS: Mapping[str, str] = {"cuda": "CUDA", "cpu": "the CPU", "rocm": "ROCm", "xpu": "XPU"}
"""Of wheels that PyTorch releases; a Mac's has MPS and no mark of it, and is told by its platform."""

_SYSTEMS = {"linux": "Linux", "macos": "macOS", "windows": "Windows"}
_SYSTEM = re.compile(
    r"(?P<windows>windows|(?<![a-z])win(?:32|_|-(?:64|arm)))|(?P<macos>mac ?os|osx|darwin)|"
    r"(?P<linux>linux|ubuntu|debian|centos|red hat|rocky|fedora|suse)"
)
_MACHINE = re.compile(
    r"(?P<arm>aarch64|arm64)|(?P<x86_64>x86[_-]64|amd64|(?:linux|osx|win)-64)|"
    r"(?P<other>ppc64le|s390x|riscv64|armv\d\w|i[36]86)"
)
_OF_ONE_PLATFORM = re.compile(
    r"\b(?:GH200|GB[23]00|GB10|Grace|DGX Spark|Spark|Jetson|Xavier|Orin|Thor)\b", re.IGNORECASE
)
# What PyTorch publishes beside the default index, with the suffixes that some of it has.
_RELEASED = re.compile(r"(cu(?=[0-9])|cpu|rocm|xpu)[0-9.]*(?:\.cxx11\.abi|\.with\.pypi\.cudnn)?")
_ALIKE = frozenset({"cuda", "cpu"})


def platform_of(words: str) -> str:
    """The platform that a tool's own words say (`osx-arm64`, `win_amd64`, `macOS 15.5 (arm64)`); empty where they name
    no system, or Linux and no machine.
    """
    plain = words.casefold()
    system, machine = _SYSTEM.search(plain), _MACHINE.search(plain)
    if system is None or not system.lastgroup:
        return ""
    kind = machine.lastgroup if machine else ""
    name = str(machine[0] if machine and kind == "other" else kind)
    match system.lastgroup:
        case "windows":
            return "windows-arm64" if kind == "arm" else WINDOWS
        case "macos":
            return f"macos-{'arm64' if kind == 'arm' else name}" if kind else "macos"
        case _:
            return f"linux-{'aarch64' if kind == 'arm' else name}" if kind else ""


def platform_of_gpus(names: Iterable[str]) -> dict[str, str]:
    """The platform that GPUs state which exist on one platform alone."""
    named = [name for name in names if _OF_ONE_PLATFORM.search(name)]
    return {"linux-aarch64": named[0]} if named else {}


def parse_platform(text: str) -> dict[str, str]:
    """Parse the platform that a text names; empty where the text is. Raises BadRequest for an unknown one."""
    plain = text.strip()
    if plain and plain not in PLATFORMS:
        raise BadRequest(f'"{plain[:60]}" is no platform; write one of {", ".join(PLATFORMS)}')
    return {plain: f"platform {plain}"} if plain else {}


def platform_words(platform: str) -> str:
    system, _, machine = platform.partition("-")
    return " ".join([_SYSTEMS[system], *([machine.replace("_", "-")] if machine and platform != WINDOWS else [])])


def why_not_tested(platforms: Mapping[str, str]) -> Message | None:
    """Why nothing here answers for an environment that states these platforms; None where something may. A system
    alone adds nothing to the same system with its machine.
    """
    exact = {
        platform: words
        for platform, words in platforms.items()
        if not any(o.startswith(f"{platform}-") for o in platforms)
    }
    if len(exact) > 1:
        stated = (
            Message("platform_by", platform=platform_words(name), words=Quoted(words)) for name, words in exact.items()
        )
        return Message("two_platforms", each=joined("each", stated))
    other = next((platform for platform in exact if platform != LINUX), "")
    return Message("nothing_on_platform", platform=platform_words(other)) if other else None


def backend_of(torch: Version) -> str:
    """`cuda`, `cpu`, `rocm` or `xpu`; a bare version is the default index's, which has CUDA. Empty for a vendor's wheel
    (`2.5.0a0+e000cf0ad9.nv24.10`) and for a wheel that somebody compiled.
    """
    if torch.pre and torch.pre[0] == "a" and not torch.is_devrelease:
        return ""
    match = _RELEASED.fullmatch(torch.local or "cu1")
    return match[1].replace("cu", "cuda") if match else ""


def are_alike(torch: Version, other: Version) -> bool:
    """Whether builds of the two may be named beside each other: they share a backend (or a mark of somebody's own), or
    are CUDA and the CPU, whose rows are the same there; nightlies go with nightlies alone.
    """
    backends = {backend_of(torch), backend_of(other)}
    is_one = backends <= _ALIKE or (len(backends) == 1 and ("" not in backends or torch.local == other.local))
    return is_one and torch.is_devrelease == other.is_devrelease


def may_stand_in(torch: Version, other: Version) -> bool:
    """Whether a policy may take a build of `torch` for one of `other`: no nightly, and nothing but CUDA and the CPU."""
    return {backend_of(torch), backend_of(other)} <= _ALIKE and not (torch.is_devrelease or other.is_devrelease)
