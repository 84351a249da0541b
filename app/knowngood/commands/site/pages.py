"""The pages of a site, as addresses of the application with the files that they become."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import urlencode

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.issue import inapplicable
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import measured_line, shown_builds
from knowngood.matrix.overview.selection import one_class
from knowngood.web.urls import FRONT, MATRIX, build_address, compare_address, issue_address


@dataclass(frozen=True)
class SitePage:
    """`file` is its path in the folder of its language. `kind` is what it is counted among."""

    address: str
    file: str
    kind: str


def pages_of(known: Known) -> Iterator[SitePage]:
    """Every page, in the order in which they are made. The first file of a kind is that of the class that a page shows
    where none is asked for.
    """
    first = one_class("", known.hardware)
    classes = dict.fromkeys([first, *known.hardware])
    yield SitePage(FRONT, "index.html", "front")
    for hardware in classes:
        # Every group open: one that is folded here could not be asked for.
        yield SitePage(
            f"{MATRIX}?{urlencode({'hardware': hardware, 'fold': 'none'})}", _of("matrix", hardware, first), "matrix"
        )
    for issue in known.issues:
        yield SitePage(issue_address(issue), f"issues/{issue}.html", "issues")
    for build in shown_builds(known):
        for hardware in (class_ for class_ in classes if class_ == first or _says_something(known, build, class_)):
            yield SitePage(build_address(_name(build), hardware), f"builds/{build.id}.{hardware}.html", "builds")
    yield SitePage("/charts", "charts.html", "charts")
    for hardware in classes:
        yield SitePage(compare_address(hardware=hardware), _of("compare", hardware, first), "comparisons")
        yield from _comparisons(known, hardware)
    for hardware in classes:
        yield SitePage(_upgrade(hardware=hardware), _of("upgrade", hardware, first), "upgrades")
        yield from _upgrades(known, hardware)


def _name(build: Build) -> str:
    """A wheel and its build with the usual Python have one page."""
    return build.wheel.id if build.python == DEFAULT_PYTHON else build.id


def _says_something(known: Known, build: Build, hardware: str) -> bool:
    return any(known.cell(issue, build, hardware).measured_at for issue in known.issues.values())


def _of(name: str, hardware: str, first: str) -> str:
    return f"{name}.html" if hardware == first else f"{name}.{hardware}.html"


def _line(known: Known, hardware: str) -> list[str]:
    measured = {build for _, build, class_ in known.cells if class_ == hardware}
    return [build.id for build in measured_line(tuple(known.builds.values()), measured)]


def _comparisons(known: Known, hardware: str) -> Iterator[SitePage]:
    line = _line(known, hardware)
    for before, after in pairwise(line):
        address = compare_address(before, after, hardware=hardware)
        yield SitePage(address, f"compare/{before}.{after}.{hardware}.html", "comparisons")


def _upgrades(known: Known, hardware: str) -> Iterator[SitePage]:
    # Rows that concern a package alone are asked about by who has it.
    asked_of = [issue for issue in known.issues.values() if not issue.is_smoke and not issue.requires.package]
    names = file_names(issue.component for issue in asked_of)
    for start in _line(known, hardware):
        build = known.builds[start]
        fields = {"from": _name(build), "hardware": hardware}
        yield SitePage(_upgrade(**fields), f"upgrade/{start}.{hardware}.html", "upgrades")
        existing = {issue.component for issue in asked_of if inapplicable(issue, build, hardware) is None}
        for component, name in names.items():
            if component not in existing:  # the page could say no more than that
                continue
            address = _upgrade(**fields, component=component)
            yield SitePage(address, f"upgrade/{start}.{hardware}.{name}.html", "upgrades")


def _upgrade(**fields: str) -> str:
    return f"/upgrade?{urlencode(fields)}"


def file_names(names: Iterable[str]) -> Mapping[str, str]:
    """Each name as a part of a file's: `Inductor C++` is `inductor-c`; where two are alike, the second has a number."""
    parts: dict[str, str] = {}
    for name in sorted(set(names)):
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "other"
        alike = sum(1 for other in parts.values() if other == plain or other.startswith(f"{plain}~"))
        parts[name] = f"{plain}~{alike + 1}" if alike else plain
    return parts
