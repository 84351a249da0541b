"""The links of a page that becomes a file: relative, to other files of the site, or none; and its size."""

import posixpath
import re
from collections.abc import Collection, Container, Iterable, Mapping
from functools import lru_cache
from html import escape, unescape
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from knowngood.commands.site.pages import SitePage
from knowngood.web.html.i18n import Language
from knowngood.web.urls import cell_anchor

FOLDERS = {Language.ENGLISH: "", Language.CHINESE: "zh/"}

# Ways to look at a matrix, of which its file has but one.
_VIEWS = frozenset({"fold", "fold_minors"})

Key = tuple[str, tuple[tuple[str, str], ...]]


def key_of(address: str) -> Key:
    """The same for every way to write an address."""
    parts = urlsplit(address)
    query = tuple(sorted((name, value) for name, value in parse_qsl(parts.query) if name not in _VIEWS))
    return unquote(parts.path), query


class SiteLinks(Container[str]):
    """Where the application's addresses are found among the files. `builds` and `classes` are those that the page of an
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
            self._pages.setdefault(key, page.file)
            self._pages.setdefault((key[0], ()), page.file)  # where no class is named, the first one's
        self._builds, self._classes = frozenset(builds), frozenset(classes)
        self._find_cached = lru_cache(maxsize=65_536)(self._find)
        self._linked = lru_cache(maxsize=65_536)(self._link)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, str) and self._find_cached(address) is not None

    def relative(self, address: str, file: str, language: Language) -> str | None:
        """The link from a file of a language to what the address shows; None where the site lacks it."""
        folder = posixpath.dirname(FOLDERS[language] + file) or "."
        if address.startswith("/preferences?"):
            wanted = dict(parse_qsl(urlsplit(address).query)).get("lang", "")
            return _between(folder, FOLDERS[Language(wanted)] + file) if wanted in set(Language) else None
        return self._linked(address, folder, FOLDERS[language])

    def _link(self, address: str, folder: str, below: str) -> str | None:
        """The link from any file of a folder to what is below the folder of a language."""
        target = self._find_cached(address)
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
        path, query = key
        match path.split("/")[1:], dict(query):
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
