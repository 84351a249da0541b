"""Packages of an environment: which rows concern whoever has them, and which are built for one minor release of torch,
so that they cannot come along to every build.

Source: docs/decisions/018-the-gate-never-guesses.md.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import Names, Watch, meant_by


def concerns(issue: Issue, packages: Mapping[str, str] | None, *, named: bool) -> bool:
    """Whether a watched row counts. `packages` are those of the environment by canonical name (None: not known);
    `named` is true if the question names this very row.
    """
    package = issue.requires.package
    if not package:
        return True
    return named if packages is None else package in packages


def named_by(watch: Watch, issues: Iterable[Issue], names: Names) -> frozenset[str]:
    """The ids of those `issues` that `watch`, its lists filled in, names by themselves or by the package that they
    concern.
    """
    ids = {id_ for text in watch.issues for id_ in meant_by(text, names)}
    packages = {canonicalize_name(text.strip()) for text in watch.packages}
    return frozenset(issue.id for issue in issues if issue.id in ids or issue.requires.package in packages)


def release_for(build: Build, releases: Mapping[str, Collection[str]]) -> str:
    """From a package's `releases`, with their Pythons, the one for the build's minor release of torch: the one with the
    same number if there is one, else the newest. Empty where there is none.
    """
    fitting = [
        release for release, pythons in releases.items() if build.python in pythons and _minor(release) == build.minor
    ]
    return max(fitting, key=lambda release: (release == build.build_id.release, Version(release)), default="")


def built_for_another(build: Build, packages: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each package of an environment that is built for another minor release of torch than its own."""
    for companion in build.companions:
        version = packages.get(companion.package, "")
        if _minor(version) not in {"", build.minor}:
            goes = (
                f"{companion.release} goes with {build.torch}"
                if companion.release
                else f"PyPI has none for torch {build.minor}"
            )
            yield (
                f"{companion.package} {version} is built for torch {_minor(version)}, and torch is {build.torch}: "
                f"{goes} (PyPI, asked {companion.asked}; a claim, not measured: {companion.source})"
            )


def _minor(version: str) -> str:
    try:
        major, minor, *_ = (*Version(version).release, 0)
    except InvalidVersion:
        return ""
    return f"{major}.{minor}"


# -- A package index, as values: its files, and whether a build can be installed from it -------------------------------


@dataclass(frozen=True)
class IndexFile:
    """One file of a project. `uploaded` is None where the index does not tell; `yanked` is None where it is not, else
    the reason, which may be empty. `metadata` is None where it has no METADATA beside it, else its SHA-256 or "".
    `requires_python` is a specifier; empty where the index tells none.
    """

    name: str
    url: str
    uploaded: datetime | None = None
    yanked: str | None = None
    metadata: str | None = None
    requires_python: str = ""


@dataclass(frozen=True)
class BuildCheck:
    """Whether a build can be installed; None where nobody could be asked. `why` is empty where it can."""

    build: str
    is_installable: bool | None
    why: str = ""
