"""A package index as its pages tell it: which files there are of a project, and what a wheel says of itself.

Speaks PEP 691 (JSON) and PEP 503 (HTML), whichever the index answers with, and reads a wheel's METADATA from beside it
(PEP 658) or, where the index serves parts of files, out of the wheel itself without fetching it. What an index sends is
a stranger's text: sizes and times are limited, and what cannot be read is refused with a sentence that names no host.
"""

import hashlib
import io
import json
import re
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit, urlunsplit

from packaging.utils import canonicalize_name

from knowngood.domain.builds.packages import IndexFile
from knowngood.domain.errors import IndexUnusable, KnownGoodError
from knowngood_workers.provision.index_config import Index, open_url

_DEFAULT = "https://pypi.org/simple"
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_TIMEOUT_S = 60
_PAGE_BYTES = 32 << 20  # torch's page has 0.4 MB as HTML (2026-11)
_METADATA_BYTES = 1 << 20
_WHEEL_BYTES = 16 << 20  # of one wheel: its list of 13,000 files has 1.3 MB (torch 2.15.0, 2026-11)
_CHUNK_BYTES = 1 << 16
_MOST_FILES = 50_000
_NOT_FOUND = 404
_PARTIAL = 206


class UnreadableWheel(KnownGoodError):
    """A wheel whose own words cannot be had: the index serves neither its metadata nor parts of it, or they are bad."""


@dataclass(frozen=True)
class SimpleIndex:
    """The indexes that this machine is told of, asked in their order; `only` is asked in place of them."""

    settings: Index
    only: str = ""

    def files_of(self, project: str) -> tuple[IndexFile, ...]:
        """Every file of a project, each once: the first index that has it counts.

        Raises IndexUnusable where an index cannot be asked, where none knows the project, or where pages make no sense.
        """
        files: dict[str, IndexFile] = {}
        default = "the index" if self.only else "the default index"
        for number, address in enumerate(self._addresses()):
            page = self._page(address, project, f"extra index {number}" if number else default)
            for file in page:
                files.setdefault(file.name, file)
        if not files:
            raise IndexUnusable(f"the package index lists no file of {project}; is its address right?")
        return tuple(files.values())

    def metadata_of(self, file: IndexFile) -> tuple[str, str]:
        """A wheel's METADATA, and the text of its `torch/version.py`: what its torch will say on import ("" where there
        is none, or the index serves no parts of files). Raises UnreadableWheel.
        """
        beside = self._beside(file) if file.metadata is not None else None
        try:
            metadata, version_py = self._inside(file)
        except UnreadableWheel:
            if beside is None:
                raise
            return beside, ""
        return beside or metadata, version_py

    def _addresses(self) -> Iterator[str]:
        if self.only:
            yield self.only
            return
        if self.settings.no_index:
            raise IndexUnusable("this machine is told to use no package index; name one with --index")
        variables = self.settings.variables
        yield _named(variables.get("UV_DEFAULT_INDEX") or variables.get("UV_INDEX_URL") or _DEFAULT, variables)
        for part in f"{variables.get('UV_INDEX', '')} {variables.get('UV_EXTRA_INDEX_URL', '')}".split():
            if not part.partition("=")[2].startswith("file:") and not part.startswith("file:"):
                yield _named(part, variables)  # a folder of this machine has no news of upstream

    def _page(self, address: str, project: str, what: str) -> tuple[IndexFile, ...]:
        url = f"{address.rstrip('/')}/{quote(canonicalize_name(project))}/"
        try:
            with self.open(url, {"Accept": _ACCEPT}) as answer:
                body, kind, place = limited(answer, _PAGE_BYTES), answer.headers.get_content_type(), answer.url
        except urllib.error.HTTPError as error:
            if error.code == _NOT_FOUND:
                return ()
            raise IndexUnusable(f"{what} answers {error.code} ({error.reason}) for {project}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise IndexUnusable(f"{what} cannot be asked: {self._hidden(error)}") from None
        base = _with_login(place, url)
        return tuple(_readable(read_page(body, kind, what), base, canonicalize_name(project)))

    def _beside(self, file: IndexFile) -> str | None:
        """The METADATA beside a wheel; None where it is not there after all, or is not what the index says it is."""
        try:
            with self.open(f"{file.url}.metadata", {}) as answer:
                content = limited(answer, _METADATA_BYTES)
        except (OSError, HTTPException, ValueError):
            return None
        if file.metadata and hashlib.sha256(content).hexdigest() != file.metadata:
            return None
        return content.decode("utf-8", errors="replace")

    def _inside(self, file: IndexFile) -> tuple[str, str]:
        """METADATA and `torch/version.py`, read out of the wheel without fetching it."""
        try:
            with zipfile.ZipFile(io.BufferedReader(_RemoteFile(self, file), _CHUNK_BYTES)) as wheel:
                named = [
                    name for name in wheel.namelist() if name.endswith(".dist-info/METADATA") and name.count("/") == 1
                ]
                if not named:
                    raise UnreadableWheel(f"{file.name} holds no METADATA")
                version = _member(wheel, "torch/version.py") if "torch/version.py" in wheel.namelist() else ""
                return _member(wheel, named[0]), version
        except (OSError, HTTPException, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
            raise UnreadableWheel(f"what {file.name} says of itself cannot be read: {self._hidden(error)}") from None

    def open(self, url: str, headers: Mapping[str, str]) -> Any:  # noqa: ANN401 - urllib's own
        return open_url(url, self.settings.variables, headers=headers, timeout_s=_TIMEOUT_S)

    def _hidden(self, error: Exception) -> str:
        """An error without addresses and control characters, on one line."""
        reason = str(getattr(error, "reason", None) or error)
        own = urlsplit(self.only).hostname
        hidden = self.settings.hide(reason.replace(own, "<index>") if own else reason)
        return printable(hidden, 200) or type(error).__name__


def limited(answer: Any, most: int) -> bytes:  # noqa: ANN401 - urllib's own
    content: bytes = answer.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it sends more than {most >> 20} MB")
    return content


def _named(address: str, variables: Mapping[str, str]) -> str:
    """uv's `name=address` with the login that uv's variables hold for that name."""
    name, sep, url = address.partition("=")
    if not sep or "://" in name:
        return address
    key = re.sub(r"[^A-Z0-9]", "_", name.upper())
    user, password = variables.get(f"UV_INDEX_{key}_USERNAME", ""), variables.get(f"UV_INDEX_{key}_PASSWORD", "")
    parts = urlsplit(url)
    if not (user or password) or parts.username is not None:
        return url
    return urlunsplit(parts._replace(netloc=f"{quote(user, safe='')}:{quote(password, safe='')}@{parts.netloc}"))


def _with_login(place: str, address: str) -> str:
    """Where the page came from, with the login it was asked with, if it is still the same host."""
    here, there = urlsplit(place), urlsplit(address)
    login = there.netloc.rpartition("@")[0]
    same = (here.scheme, here.netloc) == (there.scheme, there.netloc.rpartition("@")[2])
    return urlunsplit(here._replace(netloc=f"{login}@{here.netloc}")) if login and same else place


# -- pages -------------------------------------------------------------------------------------------------------------


def read_page(body: bytes, kind: str, what: str) -> tuple[IndexFile, ...]:
    """The files of a page, JSON or HTML. Raises IndexUnusable where it is neither, or of a newer version of the API."""
    is_json = kind.endswith("+json") or kind == "application/json" or body.lstrip()[:1] == b"{"
    links = _read_json(body, what) if is_json else _read_html(body, what)
    if len(links) > _MOST_FILES:
        raise IndexUnusable(f"{what} lists more than {_MOST_FILES} files")
    return links


def _read_json(body: bytes, what: str) -> tuple[IndexFile, ...]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise IndexUnusable(f"{what} sends JSON that cannot be read") from None
    files = document.get("files") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(files, list):
        raise IndexUnusable(f"{what} sends JSON that is no list of files (PEP 691)")
    meta = document.get("meta")
    _refuse_newer(str(meta.get("api-version", "1.0")) if isinstance(meta, dict) else "1.0", what)
    return tuple(
        _link(file)
        for file in files
        if isinstance(file, dict) and isinstance(file.get("filename"), str) and isinstance(file.get("url"), str)
    )


def _link(file: Mapping[str, Any]) -> IndexFile:
    yanked = file.get("yanked", False)
    beside = file.get("core-metadata", file.get("dist-info-metadata", False))
    return IndexFile(
        name=file["filename"],
        url=file["url"],
        uploaded=_moment(str(file.get("upload-time") or "")),
        yanked=None if yanked is False or yanked is None else yanked if isinstance(yanked, str) else "",
        metadata=str(beside.get("sha256", "")) if isinstance(beside, dict) else "" if beside is True else None,
        requires_python=str(file.get("requires-python") or ""),
    )


def _refuse_newer(version: str, what: str) -> None:
    if version.partition(".")[0] != "1":
        raise IndexUnusable(f"{what} speaks version {printable(version, 20)} of the simple API; known is 1")


def _read_html(body: bytes, what: str) -> tuple[IndexFile, ...]:
    parser = _Anchors()
    parser.feed(body.decode("utf-8", errors="replace"))
    _refuse_newer(parser.version, what)
    if not parser.links and b"<a" not in body.lower() and b"links for" not in body.lower():
        raise IndexUnusable(f"{what} sends a page that is no list of files")
    return tuple(parser.links)


@dataclass
class _Anchors(HTMLParser):
    """The anchors of a page as PEP 503 has it, with the attributes of PEP 592, 658 and of upload times."""

    links: list[IndexFile] = field(default_factory=list)
    version: str = "1.0"

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "meta" and attributes.get("name") == "pypi:repository-version":
            self.version = attributes.get("content") or "1.0"
        href = attributes.get("href")
        if tag != "a" or not href:
            return
        beside = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
        hashed = re.fullmatch(r"sha256=([0-9a-f]{64})", beside or "")
        self.links.append(
            IndexFile(
                name=unquote(urlsplit(href).path.rpartition("/")[2]),
                url=href,
                uploaded=_moment(attributes.get("data-upload-time") or ""),
                yanked=(attributes["data-yanked"] or "") if "data-yanked" in attributes else None,
                metadata=hashed[1] if hashed else "" if beside else None,
                requires_python=attributes.get("data-requires-python") or "",
            )
        )


def _readable(links: tuple[IndexFile, ...], base: str, project: str) -> Iterator[IndexFile]:
    """The files of this very project at addresses that can be asked; what else a page lists is passed over."""
    here = urlsplit(base)
    for link in links:
        url = urldefrag(urljoin(base, link.url)).url
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or canonicalize_name(link.name.partition("-")[0]) != project:
            continue
        if parts.netloc == here.netloc.rpartition("@")[2] and parts.scheme == here.scheme:
            url = urlunsplit(parts._replace(netloc=here.netloc))
        yanked = None if link.yanked is None else printable(link.yanked, 200)
        yield replace(link, url=url, yanked=yanked)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def printable(text: str, most: int) -> str:
    """A stranger's text on one line, without control characters, cut to `most` characters."""
    shown = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return shown if len(shown) <= most else f"{shown[:most]}..."


# -- a wheel without fetching it ---------------------------------------------------------------------------------------


def _member(wheel: zipfile.ZipFile, name: str) -> str:
    if wheel.getinfo(name).file_size > _METADATA_BYTES:
        raise ValueError(f"its {name.rpartition('/')[2]} is larger than {_METADATA_BYTES >> 20} MB")
    return wheel.read(name).decode("utf-8", errors="replace")


class _RemoteFile(io.RawIOBase):
    """A file of an index, read in parts. An index that sends whole files instead is refused before it does."""

    def __init__(self, index: SimpleIndex, file: IndexFile) -> None:
        self._index = index
        self._url = file.url
        self._at = 0
        self._left = _WHEEL_BYTES
        self._size = self._total()

    def _total(self) -> int:
        with self._index.open(self._url, {"Range": "bytes=0-0"}) as answer:
            match = re.fullmatch(r"bytes 0-0/(\d{1,15})", answer.headers.get("Content-Range", ""))
            if answer.status != _PARTIAL or match is None:
                raise ValueError("the index serves no parts of files")
            return int(match[1])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a writable buffer
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        if wanted > self._left:
            raise ValueError(f"more than {_WHEEL_BYTES >> 20} MB of it would have to be read")
        span = {"Range": f"bytes={self._at}-{self._at + wanted - 1}"}
        with self._index.open(self._url, span) as answer:
            content: bytes = answer.read(wanted) if answer.status == _PARTIAL else b""
        if len(content) != wanted:
            raise ValueError("the index sent another part than was asked for")
        buffer[:wanted] = content
        self._at += wanted
        self._left -= wanted
        return wanted
