"""A build: torch x CUDA x Triton x Python, named by what is imported. How to parse, print, order and check one.

A build id is torch's version as imported, with what is not default behind tildes:
`torch-2.6.0+cu124`, `torch-2.6.0+cu124~triton-3.3.0`, `torch-2.6.0+cu124~py312`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, lru_cache, total_ordering

from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.message import Message

DEFAULT_PYTHON = "3.11"

_PART = re.compile(r"^(?:triton-(?P<triton>[0-9][0-9A-Za-z.+-]*)|py(?P<major>\d)(?P<minor>\d{1,2}))$")


@total_ordering
@dataclass(frozen=True)
class BuildId:
    """The name of a build. Orders by PEP 440 (`2.7.0+cu128 > 2.7.0`), then Triton, then Python.

    `torch` is the version as imported; `triton` is None where it is that torch's own pin; `python` is `3.11`-like.
    """

    torch: str
    triton: str | None = None
    python: str = DEFAULT_PYTHON

    def __str__(self) -> str:
        parts = [f"torch-{self.torch}"]
        if self.triton is not None:
            parts.append(f"triton-{self.triton}")
        if self.python != DEFAULT_PYTHON:
            parts.append(f"py{self.python.replace('.', '')}")
        return "~".join(parts)

    @property
    def in_words(self) -> str:
        """`torch 2.7.1 (CUDA 12.6, Python 3.12)`; the default Python goes without saying, as in the id."""
        return plain_name(str(self))

    @cached_property
    def apart_from_python(self) -> "BuildId":
        """The same with the default Python: what builds that differ in Python alone have in common."""
        return replace(self, python=DEFAULT_PYTHON)

    @cached_property
    def version(self) -> Version:
        return Version(self.torch)

    @cached_property
    def release(self) -> str:
        """`2.6.0`: the version without its local part."""
        return self.version.public

    @cached_property
    def public_version(self) -> Version:
        """`release`, to be compared: local parts take no part."""
        return Version(self.release)

    @cached_property
    def _key(self) -> tuple[Version, bool, Version, tuple[int, ...]]:
        return (self.version, self.triton is not None, Version(self.triton or "0"), minor_of(self.python))

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, BuildId):
            return NotImplemented
        return self._key < other._key


@lru_cache(maxsize=4096)  # a page of the matrix asks for the same few builds thousands of times
def parse_build_id(text: str) -> BuildId:
    """Read a build id. A space stands for `+`, which is what URLs and shells make of it.

    Raises UnknownBuild with the form expected.
    """
    head, *tail = text.strip().replace(" ", "+").split("~")
    if not head.startswith("torch-"):
        raise UnknownBuild(f'build "{text}" does not start with "torch-"; write for example torch-2.6.0+cu124')
    problem = f'build "{text}" has no PEP 440 version after "torch-"; write for example torch-2.6.0+cu124'
    torch = _plain_version(head.removeprefix("torch-"), problem)
    triton, python = None, DEFAULT_PYTHON
    for part in tail:
        match = _PART.match(part)
        if match is None:
            raise UnknownBuild(f'build "{text}" has "~{part}"; known parts are ~triton-VERSION and ~py312')
        if match["triton"]:
            problem = f'build "{text}" has "triton-{match["triton"]}", which is no PEP 440 version'
            triton = _plain_version(match["triton"], problem)
        else:
            python = f"{match['major']}.{match['minor']}"
    return BuildId(torch=torch, triton=triton, python=python)


def minor_of(python: str) -> tuple[int, ...]:
    """`3.10` as what Pythons are put in order by."""
    return tuple(int(part) for part in python.split("."))


def _plain_version(text: str, problem: str) -> str:
    try:
        return str(Version(text))
    except ValueError:  # InvalidVersion is one; so is a number of 5,000 digits
        raise UnknownBuild(problem) from None


@dataclass(frozen=True)
class Companion:
    """The release of a `package` that was built for a build's minor release of torch, by what upstream says (`source`);
    empty where the index had none for that and the build's Python when it was asked.
    """

    package: str
    release: str
    source: str
    asked: date


@dataclass(frozen=True)
class Build:
    """One column of the matrix: what to install, and what must then be found inside the process.

    `id` is `str(BuildId)`; of a wheel, which has no `python`, `2.6.0+cu124`. `requirement` is torch's version as asked
    of the index (`2.6.0` where the import says `2.6.0+cu124`). `cuda` is `torch.version.cuda` (`12.4`; None for a CPU
    wheel). `triton` is the version beside it, `pinned_triton` that torch's own pin (None: that wheel has none).
    `origin` is `default` (the default index) or the name of a torch backend (`cu126`, `cpu`). `as_of` is what uv is
    given as `--exclude-newer`, so that what is resolved is what that release's users had. `default` builds are the
    small set that `knowngood up` measures anew. `git` is `torch.version.git_version` (40 hex digits; empty where nobody
    has told it). `companions` are of the packages that are built for one minor release of torch.
    """

    id: str
    torch: str
    requirement: str
    cuda: str | None
    triton: str | None
    pinned_triton: str | None
    python: str
    origin: str
    as_of: date
    released: date | None = None
    default: bool = False
    note: str = ""
    git: str = ""
    companions: tuple[Companion, ...] = ()

    def __hash__(self) -> int:
        """Hash the name alone: builds are keys of caches that a page of the matrix reads thousands of times."""
        return hash(self.id)

    @property
    def build_id(self) -> BuildId:
        """The id in parts; for a wheel, that of its build with the default Python."""
        return parse_build_id(self.id if self.python else f"torch-{self.id}")

    @property
    def in_words(self) -> str:
        """`torch 2.7.1 (CUDA 12.6)`, with the Python where it is not the default one."""
        return self.build_id.in_words

    @cached_property
    def wheel(self) -> "Build":
        """The same build with any Python: the subject of a question that names no Python."""
        return replace(self, id=str(self.build_id.apart_from_python).removeprefix("torch-"), python="")

    @property
    def is_mismatched(self) -> bool:
        """Whether Triton is not that torch's own pin: a deliberate mismatch, outside the line of releases."""
        return self.triton != self.pinned_triton

    @property
    def label(self) -> str:
        """`2.6.0` on the default index's line, `2.6.0+cu126` elsewhere."""
        return self.build_id.release if self.origin == "default" else self.torch

    @property
    def minor(self) -> str:
        """`2.6` for 2.6.1+cu124: the group of columns it stands in."""
        return f"{self.build_id.version.major}.{self.build_id.version.minor}"


def difference(build: Build, imported: Mapping[str, str], pins: Mapping[str, str]) -> Message | None:
    """Say how the imported versions differ from the requested ones; None where they do not.

    `imported` holds what the process itself reported: `torch`, `cuda` (empty for none), `triton` (empty for none),
    `git` (empty for unknown), `python` (`3.11.7`), and each extra package's version. `pins` are the extra packages
    with an exact version.
    A local `+cpu` wheel never stands in for a CUDA one (facts: a find-links directory wins silently; measured 2026-11).
    """
    wanted = {"torch": build.torch, "cuda": build.cuda or "", **pins, "triton": build.triton or pins.get("triton")}
    for name, expected in wanted.items():
        version = imported.get(name, "")
        if expected is not None and not _same_version(version, expected):
            return Message("wrong_version", name=name, found=version or "missing", wanted=expected or "none")
    git = imported.get("git", "")
    if build.git and git and git != build.git:
        return Message("wrong_revision", found=git, wanted=build.git)
    python = imported.get("python", "")
    if python and not (python == build.python or python.startswith(f"{build.python}.")):
        return Message("wrong_python", found=python, wanted=build.python)
    return None


def _same_version(version: str, expected: str) -> bool:
    if version == expected:
        return True
    try:
        return Version(version) == Version(expected)
    except InvalidVersion:
        return False
