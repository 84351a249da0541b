"""Constraints for pip: the packages that a build was measured among, and those whose metadata asks for its torch alone.

Source: `repros/locks.tsv`, which `tools/locks.py` writes from the shipped evidence.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.builds.build import Build, parse_build_id
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.errors import UnknownBuild
from knowngood.environments.wheels.refusals import packages_beside
from knowngood.environments.wheels.table import WheelTable

FILE = SHIPPED / "locks.tsv"


@cache
def shipped_locks() -> Mapping[str, tuple[str, str]]:
    """The digest of a lock and its packages (`torch==2.8.0 triton==3.4.0`), by build."""
    lines = (line.split("\t") for line in FILE.read_text(encoding="utf-8").splitlines())
    return {build: (digest, packages) for build, digest, packages in lines}


def locked_name(build: Build) -> str:
    """The build, of a wheel with the usual Python if it can be, of which an environment comes with this release; empty
    where none does.
    """
    own, locks = str(build.build_id), shipped_locks()
    same = (id_ for id_ in locks if parse_build_id(id_).apart_from_python == build.build_id.apart_from_python)
    return own if own in locks else "" if build.python else next(same, "")


def constraints_of(build: Build, names: BuildNames, table: WheelTable) -> str:
    """The file, the same for the same build and table: a line for a package, whose comment says how it is known.

    Raises UnknownBuild, with the nearest, for a build of which no environment comes with this release.
    """
    found = locked_name(build)
    if not found:
        near = names.nearest(build.build_id.version, python=build.python, among=shipped_locks())
        raise UnknownBuild(f'no environment of "{build.id}" was resolved and measured here', near)
    return "\n".join([*_head(found), *sorted(_lines(found, table)), ""])


def _head(build: str) -> Iterator[str]:
    digest, python = shipped_locks()[build][0], parse_build_id(build).python
    yield f"# {build}: pip install -c THIS torch, with Python {python} on {LINUX}"
    yield f"# measured together: one environment in which issues were run on it (lock {digest})"
    yield "# asks for it: never run here beside it; the newest release whose metadata asks for this torch alone"


def _lines(build: str, table: WheelTable) -> Iterator[str]:
    pins = shipped_locks()[build][1].split(" ")
    yield from (f"{pin}  # measured together" for pin in pins)
    named = {pin.partition("==")[0] for pin in pins}
    for package, version in packages_beside(parse_build_id(build).version, table)[0].items():
        releases = [each for each in table.releases(package) if str(each.version) == version]
        specifier = str(releases[0].specifier("torch", ""))
        if package not in named and specifier.startswith("=="):
            yield f"{package}=={version}  # asks for it (torch{specifier}; index read on {table.read_on})"
