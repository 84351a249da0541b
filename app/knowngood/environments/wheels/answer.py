"""The answer to "is there a wheel": pure, from the table that comes with this release."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import ClassVar

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.platforms import LINUX, PLATFORMS, WINDOWS, parse_platform, platform_words
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue_selectors import nearest
from knowngood.domain.message import NOTHING, Message, Quoted, clauses
from knowngood.environments.wheels.table import PYTHONS, WheelRelease, WheelTable, minor_number
from knowngood.serialization.message_field import MessageField


@dataclass(frozen=True)
class WheelChange:
    """One thing to change so that there is a wheel: the release, or the Python (each empty: it stays). With `sources`
    it is a claim of theirs, read on a day; `variant` is then the one of PyTorch's own indexes (empty: another place).
    """

    release: str
    python: str
    command: str
    variant: str = ""
    sources: tuple[str, ...] = ()
    read_on: date | None = None


@dataclass(frozen=True)
class WheelAnswer:
    """Whether `release` of a package has a wheel for a Python and a platform; each is empty where any will do, and the
    release is then the newest that has one.

    `exists` is null where the table has no such package. `pythons` are those with a wheel of the release, by platform.
    `glibc` is the oldest that the wheel asks for (empty: none). `changes` are the nearest questions with a wheel.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}

    package: str
    release: str
    python: str
    platform: str
    exists: bool | None
    why: MessageField
    read_on: date
    released: date | None = None
    glibc: str = ""
    pythons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    changes: tuple[WheelChange, ...] = ()
    notes: tuple[MessageField, ...] = ()


_SHORT = {"linux": LINUX, "windows": WINDOWS, "macos": "macos-arm64"}


def find_wheel(package: str, release: str, python: str, platform: str, table: WheelTable) -> WheelAnswer:
    """Answer for a release of a package; each but `package` may be empty. Raises BadRequest for a text that is none."""
    package, version = canonicalize_name(package), _version(release)
    platform = next(iter(parse_platform(_SHORT.get(platform.strip().casefold(), platform))), "")
    if python and python not in PYTHONS:
        raise BadRequest(f'"{python[:40]}" is no Python of the table; write one of {", ".join(PYTHONS)}')
    releases = table.releases(package)
    unknown = _unknown(package, version, releases, table)
    answer = WheelAnswer(package, version, python, platform, None, unknown or NOTHING, table.read_on)
    return answer if unknown else _Question(answer, releases).of(version)


@dataclass(frozen=True)
class _Question:
    """`asked` is the answer so far; `releases` are those of the table, oldest first."""

    asked: WheelAnswer
    releases: tuple[WheelRelease, ...]

    @cached_property
    def fitting(self) -> tuple[WheelRelease, ...]:
        """The releases that stand and have a wheel for both."""
        return tuple(
            each for each in self.releases if not each.yanked and each.has(self.asked.python, self.asked.platform)
        )

    def of(self, version: str) -> WheelAnswer:
        """The answer for a release; an empty `version` is the newest that has such a wheel."""
        wanted = Version(version) if version else (self.fitting or self.releases)[-1].version
        release = next((each for each in self.releases if each.version == wanted), None)
        if release is None:
            ends = {"first": str(self.releases[0].version), "last": str(self.releases[-1].version)}
            why = Message("wheel_no_release", name=f"{self.asked.package} {version}", **ends)
            return replace(self.asked, exists=False, why=why, changes=self._other_release(self.fitting[-1:]))
        exists = release.has(self.asked.python, self.asked.platform)
        is_linux = self.asked.platform.startswith("linux")
        others = self._other_release(nearest_release(release, self.fitting))
        return replace(
            self.asked,
            release=str(release.version),
            exists=exists,
            why=self._why(release),
            released=release.day,
            glibc=release.glibc(self.asked.python, self.asked.platform) if exists and is_linux else "",
            pythons={name: pythons for name in PLATFORMS if (pythons := release.pythons(name))},
            changes=() if exists else (*self._other_python(release), *others),
            notes=tuple(self._notes(release)),
        )

    def _why(self, release: WheelRelease) -> Message:
        """The first thing that is lacking: the Python on all platforms, the platform for all Pythons, or both."""
        python, platform, name = self.asked.python, self.asked.platform, f"{self.asked.package} {release.version}"
        if release.has(python, platform):
            where = _where(python, platform)
            return Message("wheel_there", name=name, where=where) if where else Message("wheels_there", name=name)
        if not release.has(python, ""):
            platform = ""
        elif not release.has("", platform):
            python = ""
        return clauses([Message("wheel_not_there", name=name, where=_where(python, platform)), self._other(release)])

    def _other(self, release: WheelRelease) -> Message:
        for other in nearest_release(release, self.fitting):
            key = "wheel_first" if other.version > release.version else "wheel_last"
            return Message(key, found=str(other.version))
        return Message("wheel_of_none", first=str(self.releases[0].version))

    def _other_python(self, release: WheelRelease) -> Iterable[WheelChange]:
        """The nearest Python that the release has a wheel for."""
        is_free = self.asked.python.endswith("t")
        others = [other for other in release.pythons(self.asked.platform) if other.endswith("t") == is_free]
        if self.asked.python and others:
            other = min(others, key=lambda each: abs(minor_number(each) - minor_number(self.asked.python)))
            yield WheelChange("", other, f"pip install {self.asked.package}=={release.version}")

    def _other_release(self, releases: Iterable[WheelRelease]) -> tuple[WheelChange, ...]:
        commands = {str(each.version): f"pip install {self.asked.package}=={each.version}" for each in releases}
        return tuple(WheelChange(version, "", command) for version, command in commands.items())

    def _notes(self, release: WheelRelease) -> Iterable[Message]:
        if release.yanked:
            yield Message("wheel_yanked", reason=Quoted(release.yanked))
        if self.asked.package == "torch" and self.asked.platform == WINDOWS:
            yield Message("wheel_cpu")


def nearest_release(release: WheelRelease, fitting: Sequence[WheelRelease]) -> Sequence[WheelRelease]:
    """The first newer release of those that fit, else the last one; none where none does."""
    newer = [each for each in fitting if each.version > release.version]
    return newer[:1] or fitting[-1:]


def read_requirement(requirement: str) -> tuple[str, str]:
    """The package of `torch==2.8.0`, and its release (empty: none is pinned). Raises BadRequest for any other text."""
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        raise BadRequest(f'"{requirement[:60]}" is no requirement; write torch==2.8.0, or torch alone') from None
    pins = list(parsed.specifier)
    if len(pins) > 1 or any(pin.operator not in {"==", "==="} or "*" in pin.version for pin in pins):
        example = f"{parsed.name[:40]}==VERSION"
        raise BadRequest(f'"{requirement[:60]}" names no single release; write {example}, or the name alone')
    return parsed.name, pins[0].version if pins else ""


def _version(text: str) -> str:
    try:
        return str(Version(text)) if text else ""
    except InvalidVersion:
        raise BadRequest(f'"{text[:40]}" is no version; write one such as 2.8.0') from None


def _unknown(package: str, version: str, releases: Sequence[WheelRelease], table: WheelTable) -> Message | None:
    """Why the table cannot say it; None where it can."""
    if not releases:
        return Message(
            "wheel_no_package", name=package, names=tuple(nearest(package, table.packages) or table.packages)
        )
    if version and Version(version).local:
        return Message("wheel_local", name=f"{package} {version}")
    first = releases[0].version
    return Message("wheel_too_old", name=package, first=str(first)) if version and Version(version) < first else None


def _where(python: str, platform: str) -> str:
    """`Python 3.14 on Windows`; empty where any will do."""
    words = platform_words(platform) if platform else ""
    return " on ".join(part for part in (python and f"Python {python}", words) if part)


def pythons_in_words(pythons: Sequence[str]) -> str:
    """`3.9 to 3.13, 3.13t`."""
    usual = [python for python in pythons if not python.endswith("t")]
    is_line = len(usual) > 2 and minor_number(usual[-1]) - minor_number(usual[0]) == len(usual) - 1  # noqa: PLR2004
    free = [python for python in pythons if python.endswith("t")]
    return ", ".join([*([f"{usual[0]} to {usual[-1]}"] if is_line else usual), *free])
