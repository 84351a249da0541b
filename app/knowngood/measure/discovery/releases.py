"""Which releases of torch and Triton a package index has that the catalogue has not, and what a build of each would be.

Pure: what the index lists and what a wheel says come in as values. What cannot be told from them is left out or named,
never guessed: a build that says more than its wheel does would be refused by the first import.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from knowngood.ask.wheels.rules import wheels_in
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build, minor_of
from knowngood.domain.builds.packages import IndexFile
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.grouping import grouped
from knowngood.domain.verdicts.history import is_release
from knowngood.environments.wheels.table import WheelRelease

_SETTLED = timedelta(days=21)  # `as_of` stands some weeks after a release: its users' packages, and no later ones
_CUDA_NAMES = re.compile(r"(?:nvidia-cuda-runtime(?:-cu\d+)?|cuda-toolkit)")
_VERSION_LINE = re.compile(
    r"^(?P<name>__version__|cuda|git_version)\b[^=\n]*=\s*['\"](?P<value>[^'\"\n]{1,80})['\"]", re.MULTILINE
)
_GIT = re.compile(r"[0-9a-f]{40}")
_LOCAL = re.compile(r"[a-z0-9]+(?:\.[a-z0-9]+)*")


@dataclass(frozen=True)
class Release:
    """A final release with wheels for Linux on x86-64. `wheels` are those that are installed with each Python, of the
    Pythons known today that have a GIL.

    `released` is the day of its first wheel; None where the index does not tell. `yanked` is None unless all are.
    """

    version: Version
    wheels: Mapping[str, IndexFile]
    released: date | None
    yanked: str | None

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(sorted(self.wheels, key=minor_of))


@dataclass(frozen=True)
class WheelFacts:
    """A torch wheel's facts about itself. `triton` is None where it asks for none. `git` is empty where nobody told."""

    local: str
    cuda: str | None
    triton: SpecifierSet | None
    git: str = ""
    remark: str = ""


@dataclass(frozen=True)
class BuildProposal:
    """A build to add, as a table of `builds.toml`; `remarks` are for whoever reads it before it is added."""

    torch: str
    local: str
    cuda: str | None
    triton: str | None
    as_of: date
    released: date | None
    python: str = DEFAULT_PYTHON
    pythons: tuple[str, ...] = ()
    with_triton: str | None = None
    git: str = ""
    note: str = ""
    remarks: tuple[str, ...] = ()


def releases_of(files: Iterable[IndexFile]) -> dict[Version, Release]:
    """The final releases among the files, oldest first. Names that are no wheel of ours are passed over."""
    found = grouped(wheels_in(files), lambda wheel: wheel[1].version)
    final = (each for each in found if not (each.is_prerelease or each.is_postrelease or each.local))
    releases = (_release(version, found[version]) for version in sorted(final))
    return {release.version: release for release in releases if release.wheels}


def _release(version: Version, wheels: Sequence[tuple[IndexFile, WheelRelease]]) -> Release:
    ours = {file: _pythons(wheel) for file, wheel in wheels if _pythons(wheel)}
    available = [file for file in ours if file.yanked is None]
    # A wheel of the stable ABI gives way to one for that very Python.
    widest_first = sorted(available or ours, key=lambda file: -len(ours[file]))
    return Release(
        version=version,
        wheels={python: file for file in widest_first for python in ours[file]},
        released=min((file.uploaded.date() for file in ours if file.uploaded is not None), default=None),
        yanked=None if available else next((file.yanked for file in ours if file.yanked), ""),
    )


def _pythons(wheel: WheelRelease) -> list[str]:
    return [python for python in wheel.pythons(LINUX) if not python.endswith("t")]


def new_releases(
    releases: Mapping[Version, Release], builds: Iterable[Build], since: Version | None = None
) -> tuple[tuple[Release, ...], tuple[Release, ...]]:
    """(new ones, older ones that the catalogue leaves out), yanked ones in neither.

    New is what is newer than every release of the catalogue, or came out later than all of them: the patch of an older
    minor. With `since`, whatever of that version and later is not there.
    """
    line = [build for build in builds if is_release(build)]
    known = {Version(build.requirement) for build in line}
    newest = max(known, default=Version("0"))
    last_day = max((build.released for build in line if build.released is not None), default=None)
    fresh: list[Release] = []
    older: list[Release] = []
    for version, release in releases.items():
        if version in known or release.yanked is not None:
            continue
        is_later = release.released is not None and last_day is not None and release.released > last_day
        is_wanted = version >= since if since is not None else version > newest or is_later
        (fresh if is_wanted else older).append(release)
    oldest = min(known, default=Version("0"))
    return tuple(fresh), tuple(release for release in older if release.version > oldest)


def read_wheel_facts(metadata: str, version_py: str, python: str) -> WheelFacts:
    """Facts from a wheel's METADATA, and its `torch/version.py` where that could be read, on Linux and `python`.

    The CUDA of the import outweighs the one that follows from the pins; that they differ is a remark.
    """
    requirements = _requirements(metadata, python)
    pinned = next((cuda for name, spec in requirements if _CUDA_NAMES.fullmatch(name) and (cuda := _cuda(spec))), None)
    stated = {line["name"]: line["value"] for line in _VERSION_LINE.finditer(version_py)}
    cuda = stated.get("cuda") if stated else pinned  # it may say `cuda = None`, whatever it requires
    cuda = cuda if cuda is None or re.fullmatch(r"\d{1,2}\.\d{1,2}", cuda) else pinned
    git = stated.get("git_version", "")
    remark = f"its import says CUDA {cuda or 'none'}, its requirements {pinned}" if pinned not in {None, cuda} else ""
    return WheelFacts(
        local=_local(stated.get("__version__", ""), cuda),
        cuda=cuda,
        triton=next((spec for name, spec in requirements if name == "triton"), None),
        git=git if _GIT.fullmatch(git) else "",
        remark=remark,
    )


def _requirements(metadata: str, python: str) -> list[tuple[str, SpecifierSet]]:
    """(name, specifier) of each requirement that holds there; lines that are none are passed over."""
    where = {
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "sys_platform": "linux",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_version": python,
        "python_full_version": f"{python}.0",
        "extra": "",
    }
    requirements = []
    for line in parse_email(metadata)[0].get("requires_dist", ()):
        try:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate(where):
                requirements.append((str(canonicalize_name(requirement.name)), requirement.specifier))
        except (InvalidRequirement, ValueError):  # also a marker about what we do not know
            continue
    return requirements


def _cuda(specifier: SpecifierSet) -> str | None:
    """`12.4` of `==12.4.127`; None of anything but one exact version."""
    version = exact(specifier)
    return f"{version.release[0]}.{version.release[1]}" if version and len(version.release) > 1 else None


def exact(specifier: SpecifierSet) -> Version | None:
    """The one version that a specifier names; None where it names several or none."""
    named = list(specifier)
    if len(named) != 1 or named[0].operator not in {"==", "==="} or named[0].version.endswith(".*"):
        return None
    try:
        return Version(named[0].version)
    except InvalidVersion:
        return None


def _local(imported: str, cuda: str | None) -> str:
    local = imported.partition("+")[2]
    if _LOCAL.fullmatch(local):
        return local
    return f"cu{cuda.replace('.', '')}" if cuda else "cpu"


def propose_build(
    release: Release, facts: WheelFacts, tritons: Mapping[Version, Release], usual: Sequence[str], today: date
) -> BuildProposal | str:
    """The table for a release; a sentence where none can be written. `usual` are the other Pythons of the catalogue."""
    python, _ = main_wheel(release, usual)
    released = release.released
    as_of = max(min(today, released + _SETTLED), released) if released else today
    triton = None
    if facts.triton is not None:
        triton = pinned_triton(facts.triton, tritons, python, as_of)
        if triton is None:
            return f"torch {release.version} asks for triton{facts.triton}, and the index has none for Python {python}"
    others = tuple(
        other
        for other in usual
        if other != python
        and other in release.wheels
        and (triton is None or (triton in tritons and other in tritons[triton].wheels))
    )
    return BuildProposal(
        torch=str(release.version),
        local=facts.local,
        cuda=facts.cuda,
        triton=str(triton) if triton else None,
        as_of=as_of,
        released=released,
        python=python,
        pythons=others,
        git=facts.git,
        remarks=_remarks(release, facts, (python, *others)),
    )


def main_wheel(release: Release, usual: Sequence[str]) -> tuple[str, IndexFile]:
    """The default Python where there is a wheel for it, and that wheel; else the first of the usual ones, else the
    lowest.
    """
    tried = (DEFAULT_PYTHON, *usual, *release.pythons)
    return next((python, release.wheels[python]) for python in tried if python in release.wheels)


def pinned_triton(
    specifier: SpecifierSet, tritons: Mapping[Version, Release], python: str, as_of: date
) -> Version | None:
    """The Triton that is installed beside that torch: the version named, else the newest that fits and was there by
    `as_of`.
    """
    named = exact(specifier)
    if named is not None:
        return named
    fitting = [
        version
        for version, release in tritons.items()
        if version in specifier
        and release.yanked is None
        and python in release.wheels
        and (release.released is None or release.released <= as_of)
    ]
    return max(fitting, default=None)


def _remarks(release: Release, facts: WheelFacts, pythons: Sequence[str]) -> tuple[str, ...]:
    more = [python for python in release.pythons if python not in pythons]
    left_out = f"left out: {', '.join(more)} (no Python of the catalogue's newest build, or no Triton for it)"
    remarks = (
        f"wheels for {', '.join(release.pythons)} on Linux x86-64",
        left_out if more else "",
        facts.remark,
        "the index tells no day of release: as_of is today" if release.released is None else "",
        "torch.version.git_version could not be read" if not facts.git else "",
    )
    return tuple(filter(None, remarks))


def foreign_triton(
    builds: Sequence[Build], additions: Sequence[BuildProposal], tritons: Mapping[Version, Release], today: date
) -> BuildProposal | None:
    """The newest release of torch with a Triton that no build has yet, forced past the pin; None without such a one."""
    texts = [text for build in builds for text in (build.triton, build.pinned_triton) if text]
    known = {Version(text) for text in (*texts, *(addition.triton for addition in additions if addition.triton))}
    fresh = [
        version
        for version, release in tritons.items()
        if release.yanked is None and version > max(known, default=version)
    ]
    host = _newest_host(builds, additions)
    if not fresh or host is None or host.triton is None or host.python not in tritons[fresh[-1]].wheels:
        return None
    triton = tritons[fresh[-1]]
    settled = triton.released + _SETTLED if triton.released else today
    as_of = max(min(today, settled), host.as_of, triton.released or host.as_of)
    return BuildProposal(
        torch=host.torch,
        local=host.local,
        cuda=host.cuda,
        triton=host.triton,
        with_triton=str(triton.version),
        as_of=as_of,
        released=host.released,
        python=host.python,
        pythons=tuple(python for python in host.pythons if python in triton.wheels),
        git=host.git,
        note="A Triton newer than the pin, forced past it.",
        remarks=(f"triton {triton.version} is new; no torch of the catalogue pins it",),
    )


def _newest_host(builds: Sequence[Build], additions: Sequence[BuildProposal]) -> BuildProposal | None:
    line = [build for build in builds if is_release(build)]
    newest = max(line, key=lambda build: (build.build_id.version, build.python == DEFAULT_PYTHON), default=None)
    added = max(additions, key=lambda addition: Version(addition.torch), default=None)
    if newest is None or (added is not None and Version(added.torch) > Version(newest.requirement)):
        return added
    twins = sorted({build.python for build in line if build.torch == newest.torch} - {newest.python}, key=minor_of)
    return BuildProposal(
        torch=newest.requirement,
        local=newest.torch.partition("+")[2],
        cuda=newest.cuda,
        triton=newest.pinned_triton,
        as_of=newest.as_of,
        released=newest.released,
        python=newest.python,
        pythons=tuple(twins),
        git=newest.git,
    )


def usual_pythons(builds: Iterable[Build]) -> tuple[str, ...]:
    """The other Pythons that the newest release of the catalogue is measured with."""
    line = [build for build in builds if is_release(build)]
    newest = max((build.build_id.version for build in line), default=None)
    return tuple(
        sorted({build.python for build in line if build.build_id.version == newest} - {DEFAULT_PYTHON}, key=minor_of)
    )
