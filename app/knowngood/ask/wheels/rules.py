"""Whether a build can still be installed, by what its index lists: pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.packages import BuildCheck, IndexFile
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.grouping import grouped
from knowngood.environments.wheels.table import WheelRelease

DEFAULT_ORIGIN = "default"

Listing = Mapping[Version, Sequence[WheelRelease]]
"""The wheels that an index lists of one project, by version; each alone, since one may be yanked and others not."""


def listing_of(files: Iterable[IndexFile]) -> Listing:
    """Names that are no wheel, and wheels that ask for a Python in no known way, are passed over."""
    return grouped((wheel for _, wheel in wheels_in(files)), lambda wheel: wheel.version)


def wheels_in(files: Iterable[IndexFile]) -> Iterator[tuple[IndexFile, WheelRelease]]:
    """The wheels among files, each as a release of its own."""
    for file in files:
        try:
            _, version, _, tags = parse_wheel_filename(file.name)
            requires = SpecifierSet(file.requires_python)
        except (InvalidWheelFilename, InvalidVersion, InvalidSpecifier):
            continue
        yanked = "" if file.yanked is None else file.yanked or "no reason given"
        yield file, WheelRelease(version, date.min, yanked, requires, " ".join(map(str, tags)))


def check_build(build: Build, torch: Listing, triton: Listing) -> BuildCheck:
    """Whether torch and the Triton beside it are listed for the build's Python on Linux x86-64, and not yanked."""
    wanted = build.requirement if build.origin == DEFAULT_ORIGIN else build.torch
    lacking = _lacking("torch", wanted, build.python, torch)
    if not lacking and build.triton is not None:
        lacking = _lacking("triton", build.triton, build.python, triton)
    return BuildCheck(build.id, not lacking, lacking)


def _lacking(name: str, version: str, python: str, listing: Listing) -> str:
    fitting = [wheel for wheel in listing.get(Version(version), ()) if wheel.has(python, LINUX)]
    if not fitting:
        return f"the index lists no wheel of {name} {version} for Python {python} on Linux x86-64"
    if all(wheel.yanked for wheel in fitting):
        return f"{name} {version} was withdrawn from the index (yanked): {fitting[0].yanked}"
    return ""
