"""`builds.toml` becomes builds: the columns of the matrix."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from knowngood.catalogue.models import BuildsFile, BuildTable, ReleasedPackageTable, read_document
from knowngood.catalogue.problems import CatalogueProblems, FileProblem
from knowngood.catalogue.text_files import read_toml
from knowngood.domain.builds.build import Build, BuildId, Companion
from knowngood.domain.builds.packages import release_for
from knowngood.serialization.toml_models import Finding

_CUDA_LOCAL = re.compile(r"cu(\d+)(\d)")


@dataclass(frozen=True)
class PlacedBuild:
    """A build and the line of its table, for whoever finds something wrong with it later."""

    build: Build
    line: int


def read_builds(file: Path) -> tuple[Build, ...]:
    """The builds of a `builds.toml`, oldest first. Raises CatalogueProblems."""
    return tuple(sorted((placed.build for placed in read_placed_builds(file)), key=lambda build: build.build_id))


def read_placed_builds(file: Path) -> tuple[PlacedBuild, ...]:
    """The builds of a file as they stand in it. Raises CatalogueProblems."""
    toml = read_toml(file)
    document, findings = read_document(BuildsFile, toml.data)
    problems = [toml.problem(finding) for finding in findings]
    placed: dict[str, PlacedBuild] = {}
    document = document or BuildsFile()
    for at, table in enumerate(document.build):
        problems.extend(toml.problem((("build", at, *path), words)) for path, words in _findings(table))
        for build in _builds(table):
            entry = PlacedBuild(_accompanied(build, document.packages), toml.lines.line_of(("build", at)))
            if build.id in placed:
                problems.append(already_there(file, entry, f"line {placed[build.id].line}"))
            placed[build.id] = entry
    if problems:
        raise CatalogueProblems(problems)
    return tuple(placed.values())


def already_there(file: Path, placed: PlacedBuild, where: str) -> FileProblem:
    return FileProblem(file, placed.line, f"{placed.build.id} is there already: {where}")


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
