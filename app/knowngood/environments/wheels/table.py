"""The wheels of the public index, as they were when this release was made: which Pythons and platforms each is for, and
which packages it asks for. Of wheels that the public index does not have, PyTorch's own and those on other packages'
release pages, none was read: each is a claim of its sources (`repros/wheel-claims.toml`), and shown as one.

Source: `repros/wheels.tsv`, which `tools/wheels.py` writes from the index. Tags are read by PEP 425 and PEP 600.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property, lru_cache

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, parse_tag
from packaging.version import Version

from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.builds.platforms import PLATFORMS
from knowngood.domain.errors import BadSnapshot
from knowngood.domain.verdicts.known import Known
from knowngood.serialization.by_type import read_value

PYTHONS = (*(f"3.{minor}" for minor in range(7, 16)), "3.13t", "3.14t", "3.15t")
"""The Pythons that people ask about; those with a t have no GIL."""

FILE = SHIPPED / "wheels.tsv"
UNREAD = "?"
"""In place of the requirements of a release whose wheel could not be read."""

_CUDA_RUNTIMES = ("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime", "cuda-toolkit")
_GLIBC = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_PERENNIAL = re.compile(r"manylinux_(\d{1,2})_(\d{1,3})_")
_INTERPRETER = re.compile(r"(?:cp|py)3(\d{0,2})")


@dataclass(frozen=True)
class WheelFit:
    """The Pythons and platforms that one tag of a wheel is for. `python` is `3.13`, or `3.13t` without the GIL; with
    `is_floor` every newer one too, and with `is_abi_free` those without the GIL as well. `glibc` is the oldest that it
    asks for (None: it asks for none).
    """

    python: str
    is_floor: bool
    is_abi_free: bool
    platforms: tuple[str, ...]
    glibc: tuple[int, int] | None

    def takes(self, python: str) -> bool:
        """An empty `python` is any."""
        is_newer = self.is_floor and minor_number(python) >= minor_number(self.python)
        return python in {"", self.python} or (is_newer and (self.is_abi_free or not python.endswith("t")))


@dataclass(frozen=True)
class WheelRelease:
    """A release with its wheels. `yanked` is why its author took it back; empty where it stands. `requires` are the
    Pythons that it asks for, whatever its tags say; `needs` are the packages that one of its wheels asks for, that for
    Linux x86-64 if there is one: torch, Triton, numpy, NVIDIA's, and those that the table has.
    """

    version: Version
    day: date
    yanked: str
    requires: SpecifierSet
    tags: str
    needs: str = ""

    def specifier(self, package: str, python: str) -> SpecifierSet | None:
        """The versions of a package that it asks for on Linux x86-64; None where it asks for none, or was not read."""
        asked = [need for need in self._requirements if need.name == package and holds_on_linux(need, python)]
        return asked[0].specifier if asked else None

    @cached_property
    def cuda(self) -> str:
        """The CUDA of torch's wheel for Linux x86-64, as `12.8`; empty where it asks for none."""
        specifiers = (self.specifier(package, "") for package in _CUDA_RUNTIMES)
        exact = next((clause.version for specifier in specifiers for clause in specifier or ()), "")
        return ".".join(exact.split(".")[:2])

    @cached_property
    def _requirements(self) -> tuple[Requirement, ...]:
        return () if self.needs == UNREAD else tuple(map(Requirement, filter(None, self.needs.split(" | "))))

    @cached_property
    def fits(self) -> tuple[WheelFit, ...]:
        """Read when somebody asks: the releases of a package have thousands of tags."""
        tags = {tag for text in self.tags.split() for tag in parse_tag(text)}
        return tuple(fit for fit in map(_fit, tags) if fit)

    def has(self, python: str, platform: str) -> bool:
        """Whether there is a wheel for both; empty is any."""
        is_allowed = not python or f"{python.rstrip('t')}.99" in self.requires
        return is_allowed and any(fit.takes(python) and platform in {"", *fit.platforms} for fit in self.fits)

    def glibc(self, python: str, platform: str) -> str:
        """The oldest glibc that a wheel for both asks for; empty where it asks for none."""
        asked = [fit.glibc for fit in self.fits if fit.takes(python) and platform in {"", *fit.platforms} and fit.glibc]
        return ".".join(map(str, min(asked))) if asked else ""

    def pythons(self, platform: str) -> tuple[str, ...]:
        """The Pythons known today that have a wheel on a platform (empty: any), oldest first: `3.9`, `3.13t`."""
        return tuple(python for python in PYTHONS if self.has(python, platform))


@dataclass(frozen=True)
class WheelTable:
    """Releases of each package, oldest first, as of `read_on`."""

    read_on: date
    packages: Mapping[str, tuple[WheelRelease, ...]]

    def releases(self, package: str) -> tuple[WheelRelease, ...]:
        """Those of a package that are no previews."""
        return tuple(release for release in self.packages.get(package, ()) if not release.version.is_prerelease)


@cache
def shipped_wheels() -> WheelTable:
    return read_table(FILE.read_text(encoding="utf-8"))


def wheels_of(known: Known) -> WheelTable:
    """The table that goes with what is known: that of its snapshot, else that of this release. Raises BadSnapshot."""
    try:
        return read_table(known.listed) if known.listed else shipped_wheels()
    except ValueError as error:
        raise BadSnapshot(f"the snapshot lists wheels as this release cannot read them ({error!r:.100})") from None


@lru_cache(maxsize=4)
def read_table(text: str) -> WheelTable:
    first, *lines = text.splitlines()
    releases = dict[str, list[WheelRelease]]()
    for line in lines:
        package, version, day, yanked, requires, tags, needs = line.split("\t")
        release = WheelRelease(Version(version), date.fromisoformat(day), yanked, SpecifierSet(requires), tags, needs)
        releases.setdefault(package, []).append(release)
    read_on = date.fromisoformat(first.rpartition(" ")[2])
    return WheelTable(read_on, {package: tuple(each) for package, each in releases.items()})


_LINUX = {"platform_system": "Linux", "platform_machine": "x86_64", "sys_platform": "linux", "os_name": "posix"}


def holds_on_linux(need: Requirement, python: str) -> bool:
    """Whether a requirement holds on Linux x86-64; one that depends on the Python, where that is known."""
    if need.marker is None:
        return True
    if "python" in str(need.marker) and not python:
        return False
    return need.marker.evaluate({**_LINUX, "python_version": python, "python_full_version": f"{python}.0"})


def minor_number(python: str) -> int:
    """`13` of `3.13` and of `3.13t`; 0 of `3`."""
    return int(python.rstrip("t").partition(".")[2] or 0)


def _fit(tag: Tag) -> WheelFit | None:
    """None for what no Python 3 takes."""
    interpreter = _INTERPRETER.fullmatch(tag.interpreter)
    if interpreter is None:
        return None
    is_python = tag.interpreter.startswith("py")
    return WheelFit(
        python=f"3.{interpreter[1] or 0}{'t' if tag.abi == f'{tag.interpreter}t' else ''}",
        is_floor=is_python or tag.abi == "abi3",
        is_abi_free=is_python and tag.abi == "none",
        platforms=tuple(_platforms(tag.platform)),
        glibc=_glibc(tag.platform),
    )


def _platforms(tag: str) -> Iterable[str]:
    if tag == "any":
        return PLATFORMS
    system = next((name for start, name in _SYSTEMS.items() if tag.startswith(start)), "")
    if tag.endswith("universal2"):
        return (f"{system}-arm64", f"{system}-x86_64")
    machine = next((machine for end, machine in _MACHINES.items() if tag.endswith(end)), "")
    return (f"{system}-{machine}",) if system and machine else ()


_SYSTEMS = {"manylinux": "linux", "linux": "linux", "macosx": "macos", "win": "windows"}
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}


def _glibc(tag: str) -> tuple[int, int] | None:
    perennial = _PERENNIAL.match(tag)
    if perennial:
        return int(perennial[1]), int(perennial[2])
    return next((oldest for name, oldest in _GLIBC.items() if tag.startswith(f"{name}_")), None)


# -- Claims of where other wheels are ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class WheelClaim:
    """Of torch: `variants` (`cu128`, oldest first) that its own index has for releases `torch` on `platforms`. Of
    another package: `page` and `command` of its wheels, which sources say there are for the minor releases `torch`.
    """

    package: str
    torch: tuple[str, ...]
    sources: tuple[str, ...]
    read_on: date
    variants: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    page: str = ""
    command: str = ""

    def lists(self, release: str, platform: str) -> bool:
        """Whether it is of torch, and says which variants a release has on a platform."""
        return self.package == "torch" and release in self.torch and platform in self.platforms


@cache
def shipped_claims() -> tuple[WheelClaim, ...]:
    tables = tomllib.loads((SHIPPED / "wheel-claims.toml").read_text(encoding="utf-8"))["claim"]
    return tuple(read_value(WheelClaim, table) for table in tables)


def variants_of(release: str, platform: str, claims: Iterable[WheelClaim]) -> tuple[str, ...]:
    """All variants that sources list for a release of torch on a platform."""
    return tuple(variant for claim in claims if claim.lists(release, platform) for variant in claim.variants)
