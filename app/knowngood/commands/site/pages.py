"""The pages of a site, as addresses of the application with the files that they become."""

import posixpath
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape, unescape
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from fastapi import FastAPI

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.grouping import grouped
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import measured_line, shown_builds
from knowngood.domain.verdicts.verdict import CONCLUSIVE
from knowngood.matrix.overview.selection import one_class
from knowngood.web.html.i18n import Language
from knowngood.web.request_context import LANGUAGE_COOKIE
from knowngood.web.urls import FRONT, MATRIX, build_address, cell_anchor, compare_address, issue_address, page_of_build


@dataclass(frozen=True)
class SitePage:
    """`file` is its path in the folder of its language. `kind` is what it is counted among; `also` are other addresses
    that lead there.
    """

    address: str
    file: str
    kind: str
    also: tuple[str, ...] = ()


def pages_of(known: Known) -> Iterator[SitePage]:
    """Every page, in the order in which they are made. The first file of a kind is that of the class that a page shows
    where none is chosen.
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
    yield SitePage("/releases", "releases.html", "releases")
    for page, builds in grouped(shown_builds(known), page_of_build).items():
        also = [address for build in builds for address in _addresses(build, classes)]
        yield SitePage(page, f"releases/{unquote(page.rpartition('/')[2])}.html", "releases", tuple(also))
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


def _addresses(build: Build, classes: Iterable[str]) -> Iterator[str]:
    """The addresses of a build on each class."""
    for class_ in ("", *classes):
        yield from (page_of_build(build, class_), build_address(build.id, class_), build_address(_name(build), class_))


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
        answered = [issue.component for issue in asked_of if known.cell(issue, build, hardware).verdict in CONCLUSIVE]
        for component, name in names.items():
            # Of less than an average share of the answers the pages of its issues tell as much: a tenth of a site.
            if answered.count(component) * len(names) >= max(1, len(answered)):
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


# Asking the application in this very process: no socket, no client.


_OK = 200


async def ask(app: FastAPI, address: str, language: Language) -> bytes:
    """The answer to a GET by ASGI 3.0. Raises RuntimeError for any other than 200: a fault of ours."""
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
        raise RuntimeError(f"{address} answered {answered[0]['status']}")
    return b"".join(message.get("body", b"") for message in answered)


# The links of a page that becomes a file: relative, to other files of the site, or none; and its size.


FOLDERS = {Language.ENGLISH: "", Language.CHINESE: "zh/"}

# Ways to look at a matrix, of which its file has but one.
_VIEWS = frozenset({"fold"})

Key = tuple[str, tuple[tuple[str, str], ...]]


def key_of(address: str) -> Key:
    """The key of a page, the same for every way to write its address."""
    parts = urlsplit(address)
    parameters = tuple(sorted((name, value) for name, value in parse_qsl(parts.query) if name not in _VIEWS))
    return unquote(parts.path), parameters


class SiteLinks(Container[str]):
    """The places of the application's addresses among the files. `builds` and `classes` are those that the page of an
    issue has sections of; `shared` are the files that both languages have in common, by their addresses.
    """

    def __init__(
        self,
        pages: Iterable[SitePage],
        shared: Mapping[str, str],
        *,
        builds: Collection[str],
        classes: Collection[str],
    ) -> None:
        self._shared = {key_of(address): file for address, file in shared.items()}
        self._pages: dict[Key, str] = {}
        for page in pages:
            key = key_of(page.address)
            for address in (page.address, *page.also):
                self._pages.setdefault(key_of(address), page.file)
            self._pages.setdefault((key[0], ()), page.file)  # where no class is named, the first one's
        self._builds, self._classes = frozenset(builds), frozenset(classes)
        self._cached_find = lru_cache(maxsize=65_536)(self._find)
        self._linked = lru_cache(maxsize=65_536)(self._link)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, str) and self._cached_find(address) is not None

    def relative(self, address: str, file: str, language: Language) -> str | None:
        """The link from a file of a language to what the address shows; None where the site lacks it."""
        folder = posixpath.dirname(FOLDERS[language] + file) or "."
        if address.startswith("/preferences?"):
            code = dict(parse_qsl(urlsplit(address).query)).get("lang", "")
            return _between(folder, FOLDERS[Language(code)] + file) if code in set(Language) else None
        return self._linked(address, folder, FOLDERS[language])

    def _link(self, address: str, folder: str, below: str) -> str | None:
        """The link from any file of a folder to a file below the folder of a language; None where the site lacks it."""
        target = self._cached_find(address)
        if target is None:
            return None
        to, fragment, is_shared = target
        return _between(folder, to if is_shared else below + to) + (f"#{quote(fragment, safe='+')}" if fragment else "")

    def _find(self, address: str) -> tuple[str, str, bool] | None:
        """The file, the place in it, and whether both languages have it in common."""
        key, fragment = key_of(address), unquote(urlsplit(address).fragment)
        if key in self._shared:
            return self._shared[key], fragment, True
        if key in self._pages:
            return self._pages[key], fragment, False
        path, parameters = key
        match path.split("/")[1:], dict(parameters):
            case ["cells", issue, build], {"hardware": hardware, **more} if not more:
                return self._cell(issue, build, hardware, "")
            case ["builds", build], _ if build.startswith("torch-"):
                return self._find(address.replace("torch-", "", 1))
            case ["upgrade"], {"from": start} if start.startswith("torch-"):
                return self._find(address.replace("from=torch-", "from=", 1))
            case ["issues", issue], {"hardware": hardware, **more} if not more.keys() - {"build"}:
                return self._cell(issue, more.get("build", ""), hardware, fragment)
        return None

    def _cell(self, issue: str, build: str, hardware: str, fragment: str) -> tuple[str, str, bool] | None:
        """Among the sections of its issue. A workaround's text stands in the same page, once for all builds."""
        file = self._pages.get((f"/issues/{issue}", ()))
        if file is None:
            return None
        has_section = build in self._builds and hardware in self._classes
        place = fragment or (cell_anchor(build, hardware) if has_section else "")
        return file, place, False


def _between(folder: str, there: str) -> str:
    return quote(posixpath.relpath(there, folder))


# Of HTML that we wrote: in texts a quotation mark is escaped, and in attributes what ends a tag.
_LINK = re.compile(r' (href|src|data-find)="(/[^"]*)"')
_NOWHERE = "\0"
_UNLINKED = re.compile(rf'<a(?: class="([^"]*)")?[^>]*{_NOWHERE}[^>]*>(.*?)</a>', re.DOTALL)


def relinked(html: str, file: str, language: Language, links: SiteLinks) -> str:
    """The page with links to other files; one to what the site lacks is text."""

    def link(match: re.Match[str]) -> str:
        to = links.relative(unescape(match[2]), file, language)
        return _NOWHERE if to is None else f' {match[1]}="{escape(to)}"'

    return _UNLINKED.sub(r'<span class="\1">\2</span>', _LINK.sub(link, html))


_SYMBOL = re.compile(r'<symbol id="([^"]*)"[^>]*?(?:/>|>.*?</symbol>)\n?', re.DOTALL)
_INDENT = re.compile(r"(<pre.*?</pre>)|\n\s+", re.DOTALL)


def compacted(html: str) -> str:
    """The page without indentation, and without the symbols that nothing in it refers to."""
    used = _SYMBOL.sub(lambda match: match[0] if f'"#{match[1]}"' in html else "", html)
    return _INDENT.sub(lambda match: match[1] or "\n", used)
