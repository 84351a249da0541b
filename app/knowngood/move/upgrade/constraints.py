"""The constraints that a build must hold before its evidence counts at all: Python, CUDA, driver, hardware, pins.

A build that breaks one of these is no candidate, whatever was measured on it; it is named with the reason all the same.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.architectures import WheelCode, driver_objection, serves
from knowngood.domain.builds.build import Build, Companion
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import parse_capability
from knowngood.domain.message import Message
from knowngood.environments.wheels.refusals import release_to_move_to
from knowngood.environments.wheels.table import WheelTable

_PYTHON = re.compile(r"3\.[0-9]{1,2}")
_DRIVER = re.compile(r"[0-9]{3,4}(\.[0-9]{1,3}){0,2}")
_BARE = re.compile(r"[0-9]+(\.[0-9]+)*")
_LOST_PLUS = re.compile(r"(?<=[0-9]) (?=[a-z])")  # an address makes a space of the `+` of a local version
_TRITONS = frozenset({"triton", "pytorch-triton"})
_PINNED = ("torch", "triton", "python", "cuda")
_LONGEST = 100
BY_WHEELS = "Requires-Dist"
"""The source of a companion that wheels name themselves."""


@dataclass(frozen=True)
class VersionPin:
    """`name` is torch, triton, python or cuda; `text` as it was written."""

    name: str
    versions: SpecifierSet
    text: str


@dataclass(frozen=True)
class Constraints:
    """`python` is `3.12` (empty: that of the build one is on, or any from a wheel); `driver` as `nvidia-smi` says it
    (empty: any); `hardware` the classes that count (none: every measured one); `names` are those by which they were
    asked for.
    `packages` are those of the environment, by canonical name, with their versions (empty: not stated): what is made
    for one torch must have a release for the build's, by `index` or by what upstream says.
    """

    python: str = ""
    driver: str = ""
    hardware: tuple[str, ...] = ()
    pins: tuple[VersionPin, ...] = field(default=())
    names: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    index: WheelTable | None = None

    @property
    def in_words(self) -> tuple[str, ...]:
        versions = [f"Python {self.python}" if self.python else "", f"driver {self.driver}" if self.driver else ""]
        named = (plain_name(self.names.get(class_, class_)) for class_ in self.hardware)
        return tuple(part for part in (*named, *versions, *(pin.text for pin in self.pins)) if part)

    @property
    def names_triton(self) -> bool:
        return any(pin.name == "triton" for pin in self.pins)


def read_python(text: str) -> str:
    """Raises BadRequest, as all of these do for what they cannot understand."""
    if text and not _PYTHON.fullmatch(text):
        raise BadRequest(f'"{text[:40]}" is no minor version of Python; write for example 3.12')
    return text


def read_driver(text: str) -> str:
    if text and not _DRIVER.fullmatch(text):
        raise BadRequest(f'"{text[:40]}" is no driver version; write it as nvidia-smi does, for example 550.54.15')
    return text


def read_cuda(text: str) -> tuple[VersionPin, ...]:
    """A version alone means exactly that one."""
    if not text:
        return ()
    written = f"=={text}" if _BARE.fullmatch(text) else text
    try:
        return (VersionPin("cuda", SpecifierSet(written), f"cuda{written}"),)
    except InvalidSpecifier:
        raise BadRequest(f'"{text[:40]}" is no version of CUDA; write for example 12.8 or <13') from None


def read_pin(text: str) -> VersionPin:
    """`triton==3.3.0`, `torch<2.9`, `cuda>=12.6`: what can be held against a build."""
    written = _LOST_PLUS.sub("+", text.strip())
    try:
        requirement = Requirement(written)
    except (InvalidRequirement, InvalidSpecifier):
        raise BadRequest(f'"{text[:_LONGEST]}" is no pin; write for example triton==3.3.0 or torch<2.9') from None
    name = requirement.name.casefold().replace("_", "-")
    name = "triton" if name in _TRITONS else name
    if name not in _PINNED:
        raise BadRequest(
            f'"{text[:_LONGEST]}" cannot be held against a build: that says nothing but torch, triton, python and cuda'
        )
    if requirement.url or requirement.extras or requirement.marker or not str(requirement.specifier):
        raise BadRequest(f'"{text[:_LONGEST]}" names no version; write for example {name}==3.3.0')
    return VersionPin(name, requirement.specifier, written)


def companions_of(build: Build, constraints: Constraints, start: Build) -> tuple[Companion, ...]:
    """The packages of the environment that must have a release for the build's torch: those that upstream says are
    built for one minor release, and those that have to move by what their wheels ask for.
    """
    claimed = [companion for companion in build.companions if companion.package in constraints.packages]
    return (*claimed, *_moving(build, constraints, start, {companion.package for companion in claimed}))


def _moving(build: Build, constraints: Constraints, start: Build, claimed: Collection[str]) -> Iterator[Companion]:
    index, python = constraints.index, build.python or start.python
    if index is None:
        return
    for package, version in constraints.packages.items():
        torches = (start.build_id.version, build.build_id.version)
        release = release_to_move_to(package, version, *torches, python, index) if package not in claimed else ""
        if release != "":
            yield Companion(package, release or "", BY_WHEELS, index.read_on)


def violations(
    build: Build, constraints: Constraints, start: Build, wheels: Mapping[str, WheelCode]
) -> Iterator[Message]:
    """Say which constraints `build` breaks for a reader who comes from `start`; nothing where it may be chosen.
    `wheels` are the lists of architectures by torch's version: where none was read nothing is refused.
    """
    wanted = constraints.python or start.python
    if wanted and build.python != wanted:
        yield Message("other_python_listed", found=build.python, wanted=wanted)
    yield from (
        Message("no_companion", package=companion.package, asked=str(companion.asked))
        for companion in companions_of(build, constraints, start)
        if not companion.release
    )
    for pin in constraints.pins:
        version, name = _version_of(build, pin.name), _SHOWN[pin.name]
        if version is None or not pin.versions.contains(version, prereleases=True):
            yield Message("has_other", found=f"{name} {version}" if version else f"no {name}", wanted=pin.text)
    if build.is_mismatched and not constraints.names_triton:
        triton, own = build.triton or "none", build.pinned_triton or "none"
        yield Message("other_triton", found=triton, wanted=own)
    if objection := driver_objection(build, constraints.driver):
        yield objection
    yield from _hardware(build, constraints.hardware, start, wheels)


def _version_of(build: Build, name: str) -> Version | None:
    if name == "torch":
        return build.build_id.version
    text = {"triton": build.triton, "python": build.python, "cuda": build.cuda}[name]
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


_SHOWN = {"torch": "torch", "triton": "Triton", "python": "Python", "cuda": "CUDA"}


def _hardware(
    build: Build, hardware: Sequence[str], start: Build, wheels: Mapping[str, WheelCode]
) -> Iterator[Message]:
    """The list that was read in a wheel decides whether it has code for a class, not its version of CUDA."""
    if build.cuda is not None:
        yield from (
            Message("holds_no_code", gpu=class_.removeprefix("cuda-"))
            for class_ in hardware
            if serves(build, class_, wheels) is False
        )
        return
    gpu = next((class_ for class_ in hardware if parse_capability(class_)), "")
    if gpu:
        yield Message("has_other", found="no CUDA", wanted=gpu)
    elif start.cuda is not None and not hardware:
        yield Message("no_cuda", hardware=start.in_words)
