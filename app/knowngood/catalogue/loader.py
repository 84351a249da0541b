"""The catalogue: every issue and build of the folders given, or every problem of them at once."""

import filecmp
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from knowngood.catalogue.build_loader import already_there, read_builds, read_placed_builds
from knowngood.catalogue.issue_loader import read_issue
from knowngood.catalogue.problems import CatalogueProblems, FileProblem, collected
from knowngood.catalogue.warnings.rows import open_warnings
from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue

__all__ = ["Catalogue", "CatalogueProblems", "FileProblem", "read_builds", "read_catalogue", "shipped_catalogue"]

# Measured results shipped with the project stand beside the issues.
_NO_ISSUES = frozenset({"evidence"})

_FILES = ("issue.toml", "repro.py")  # all that an issue is read from


@dataclass(frozen=True)
class Catalogue:
    """Issues by id, builds from oldest to newest; `drafts` are folders of issues that were left out."""

    issues: tuple[Issue, ...]
    builds: tuple[Build, ...]
    drafts: tuple[Path, ...] = ()


def shipped_catalogue() -> Path:
    """The folder of issues and builds that comes with this release: `repros`, beside our own package."""
    return SHIPPED


def read_catalogue(folders: Sequence[Path], *, with_drafts: bool = True) -> Catalogue:
    """Read the folders: one issue a folder, and one `builds.toml` where there is one.

    All of them are one catalogue: an id stands in it once. What stands in another folder than the shipped one is a
    team's own, unless it is the shipped one word for word, as in a pack. Raises CatalogueProblems, which holds all that
    is wrong. Without `with_drafts`, an issue that has places to fill in is left out: while somebody writes it, the
    others can be measured and looked at.
    """
    problems: list[FileProblem] = []
    catalogue = read_what_is_sound(folders, problems, with_drafts=with_drafts)
    if problems:
        raise CatalogueProblems(problems)
    return catalogue


def read_what_is_sound(folders: Sequence[Path], problems: list[FileProblem], *, with_drafts: bool = True) -> Catalogue:
    """Read the folders as `read_catalogue` does, but leave out what is wrong and add it to `problems`."""
    faults: list[FileProblem] = []
    issues = _read_issues(folders, faults)
    drafts = () if with_drafts else tuple(sorted({problem.file.parent for problem in faults if problem.is_placeholder}))
    problems += [problem for problem in faults if problem.file.parent not in drafts]
    builds = _read_builds(folders, problems)
    return Catalogue(
        issues=tuple(sorted(issues, key=lambda issue: issue.id)),
        builds=tuple(sorted(builds, key=lambda build: build.build_id)),
        drafts=drafts,
    )


def _read_issues(folders: Sequence[Path], problems: list[FileProblem]) -> list[Issue]:
    issues: list[Issue] = []
    places: dict[str, Path] = {}
    shipped = shipped_catalogue().resolve()
    for owner, place in ((folder, place) for folder in folders for place in _issue_folders(folder, problems)):
        first = places.setdefault(place.name, place)
        if first is not place:
            problems.append(FileProblem(place / "issue.toml", 1, f'issue "{place.name}" is there already: {first}'))
        issue = collected(problems, read_issue, place)
        if issue is not None:
            is_of_team = owner.resolve() != shipped and not _is_copy(place)
            issues.append(replace(issue, is_of_team=True, warnings=open_warnings(place)) if is_of_team else issue)
    return issues


def _is_copy(place: Path) -> bool:
    ours = shipped_catalogue() / place.name
    return ours.is_dir() and all(filecmp.cmp(place / name, ours / name, shallow=False) for name in _FILES)


def _issue_folders(folder: Path, problems: list[FileProblem]) -> list[Path]:
    """The folders of issues in a folder; one that is an issue's own is asked for alone."""
    if (folder / "issue.toml").exists():
        return [folder]
    try:
        places = sorted(place for place in folder.iterdir() if place.is_dir())
    except OSError as error:
        problems.append(FileProblem(folder, 1, f"is no folder of issues: {error.strerror}"))
        return []
    return [place for place in places if place.name not in _NO_ISSUES and not place.name.startswith((".", "_"))]


def _read_builds(folders: Sequence[Path], problems: list[FileProblem]) -> list[Build]:
    builds: dict[str, Build] = {}
    owners: dict[str, Path] = {}
    for file in (folder / "builds.toml" for folder in folders):
        placed = collected(problems, read_placed_builds, file) if file.exists() else None
        for entry in placed or ():
            if entry.build.id in builds:
                problems.append(already_there(file, entry, str(owners[entry.build.id])))
            builds.setdefault(entry.build.id, entry.build)
            owners.setdefault(entry.build.id, file)
    return list(builds.values())
