"""The pages of a site, as addresses of the application with the files that they become."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from fastapi import FastAPI

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.issue import inapplicable
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import measured_line, told_builds
from knowngood.matrix.overview.selection import one_class
from knowngood.web.html.i18n import Language
from knowngood.web.request_context import LANGUAGE_COOKIE
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
    for build in told_builds(known):
        for hardware in (one for one in classes if one == first or _says_something(known, build, one)):
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
        asked = {"from": _name(build), "hardware": hardware}
        yield SitePage(_upgrade(**asked), f"upgrade/{start}.{hardware}.html", "upgrades")
        existing = {issue.component for issue in asked_of if inapplicable(issue, build, hardware) is None}
        for component, name in names.items():
            if component not in existing:  # the page could say no more than that
                continue
            address = _upgrade(**asked, component=component)
            yield SitePage(address, f"upgrade/{start}.{hardware}.{name}.html", "upgrades")


def _upgrade(**asked: str) -> str:
    return f"/upgrade?{urlencode(asked)}"


def file_names(names: Iterable[str]) -> Mapping[str, str]:
    """Each name as a part of a file's: `Inductor C++` is `inductor-c`; where two are alike, the second has a number."""
    found: dict[str, str] = {}
    for name in sorted(set(names)):
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "other"
        alike = sum(1 for other in found.values() if other == plain or other.startswith(f"{plain}~"))
        found[name] = f"{plain}~{alike + 1}" if alike else plain
    return found


# Asking the application in this very process: no socket, no client.


_OK = 200


class NoPage(RuntimeError):
    """A page of the site that the application refuses to make: a fault of ours."""


async def ask(app: FastAPI, address: str, language: Language) -> bytes:
    """The answer to a GET by ASGI 3.0. Raises NoPage for any other than 200."""
    parts = urlsplit(address)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 0),
        "root_path": "",
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "headers": [(b"host", b"localhost"), (b"cookie", f"{LANGUAGE_COOKIE}={language}".encode())],
    }
    answered: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401 - ASGI's
        answered.append(message)

    await app(scope, receive, send)
    if answered[0]["status"] != _OK:
        raise NoPage(f"{address} answered {answered[0]['status']}")
    return b"".join(message.get("body", b"") for message in answered)
