"""The catalogue: every issue and build of the folders given, or every problem of them at once."""

import filecmp
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from knowngood.catalogue.issue_loader import read_issue
from knowngood.catalogue.models import BuildsFile, BuildTable, ReleasedPackageTable, read_document
from knowngood.catalogue.text_files import CatalogueProblems, FileProblem, collected, read_toml
from knowngood.catalogue.warnings.rows import open_warnings
from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.builds.build import Build, BuildId, Companion
from knowngood.domain.builds.packages import release_for
from knowngood.domain.issue import Issue
from knowngood.serialization.toml_models import Finding

__all__ = ["Catalogue", "CatalogueProblems", "FileProblem", "read_builds", "read_catalogue", "shipped_catalogue"]

_CUDA_LOCAL = re.compile(r"cu(\d+)(\d)")
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
    is wrong. Without `with_drafts`, an issue that has places to fill in, or lacks a file, is left out: while somebody
    writes it, the others can be measured and looked at.
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
        for build, line in placed or ():
            if build.id in builds:
                problems.append(_already_there(file, line, build, str(owners[build.id])))
            builds.setdefault(build.id, build)
            owners.setdefault(build.id, file)
    return list(builds.values())


# -- `builds.toml` becomes builds: the columns of the matrix -----------------------------------------------------------


def read_builds(file: Path) -> tuple[Build, ...]:
    """The builds of a `builds.toml`, oldest first. Raises CatalogueProblems."""
    return tuple(sorted((build for build, _ in read_placed_builds(file)), key=lambda build: build.build_id))


def read_placed_builds(file: Path) -> tuple[tuple[Build, int], ...]:
    """The builds of a file as they stand in it, each with the line of its table. Raises CatalogueProblems."""
    toml = read_toml(file)
    document, findings = read_document(BuildsFile, toml.data)
    problems = [toml.problem(finding) for finding in findings]
    placed: dict[str, tuple[Build, int]] = {}
    document = document or BuildsFile()
    for at, table in enumerate(document.build):
        problems.extend(toml.problem((("build", at, *path), words)) for path, words in _findings(table))
        for build in _builds(table):
            line = toml.lines.line_of(("build", at))
            if build.id in placed:
                problems.append(_already_there(file, line, build, f"line {placed[build.id][1]}"))
            placed[build.id] = _accompanied(build, document.packages), line
    if problems:
        raise CatalogueProblems(problems)
    return tuple(placed.values())


def _already_there(file: Path, line: int, build: Build, where: str) -> FileProblem:
    return FileProblem(file, line, f"{build.id} is there already: {where}")


def _builds(table: BuildTable) -> Iterator[Build]:
    """The build of a table, and its twins with other Pythons."""
    yield _build(table, table.python)
    for python in table.pythons:
        yield replace(_build(table, python), default=False)


def _accompanied(build: Build, packages: Mapping[str, ReleasedPackageTable]) -> Build:
    companions = (
        Companion(name, release_for(build, table.releases), table.claim.source, table.asked)
        for name, table in sorted(packages.items())
    )
    return replace(build, companions=tuple(companions))


def _build(table: BuildTable, python: str) -> Build:
    torch = f"{table.torch}+{table.local}" if table.local else table.torch
    return Build(
        id=str(BuildId(torch=torch, triton=table.with_triton, python=python)),
        torch=torch,
        requirement=table.torch,
        cuda=table.cuda,
        triton=table.with_triton or table.triton,
        pinned_triton=table.triton,
        python=python,
        origin=table.origin,
        as_of=table.as_of,
        released=table.released,
        default=table.default,
        note=table.note,
        git=table.git or "",
    )


def _findings(table: BuildTable) -> Iterator[Finding]:
    local = _CUDA_LOCAL.fullmatch(table.local)
    if local and table.cuda != f"{local[1]}.{local[2]}":
        yield ("cuda",), f'"cuda" is {table.cuda or "missing"}, and "{table.local}" says {local[1]}.{local[2]}'
    if table.local == "cpu" and table.cuda is not None:
        yield ("cuda",), f'"cuda" is {table.cuda}, and a +cpu wheel has none'
    if table.with_triton is not None and table.with_triton == table.triton:
        yield ("with_triton",), f'"with_triton" is {table.triton}, which is the pin; leave it out'
    if table.released is not None and table.as_of < table.released:
        yield ("as_of",), f'"as_of" ({table.as_of}) is before the release ({table.released}): torch would not be found'
