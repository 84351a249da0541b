"""Where packages come from: what pip is told on this machine, said again to uv, and kept out of what people read.

uv reads neither pip.conf nor PIP_* (uv docs, "Compatibility with pip"), so a mirror that serves pip would be invisible
to it. Nothing here runs uv. Index addresses may hold credentials: they live in memory, in uv's variables, nowhere else.
"""

import base64
import os
import re
import shutil
import ssl
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import url2pathname

# What of the user's own uv settings reaches our uv: where packages are and how to get there. All that would change what
# is resolved (UV_TORCH_BACKEND, UV_PRERELEASE, UV_EXCLUDE_NEWER, UV_OVERRIDE, ...) is the build's to say.
_UV_VARIABLES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX",  # also UV_INDEX_URL, and the credentials UV_INDEX_<NAME>_USERNAME and _PASSWORD
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_INSECURE_HOST",
    "UV_KEYRING_PROVIDER",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "UV_OFFLINE",
    "UV_HTTP_",
    "UV_REQUEST_TIMEOUT",
    "UV_CONCURRENT_",
    "UV_CACHE_DIR",
    "UV_PYTHON_INSTALL_DIR",
)
_DROPPED = ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "PYTHONHOME")

_ADDRESS = re.compile(r"\b(?:https?|file|ssh|git\+\w+)://[^\s`'\"<>(),]*")


@dataclass(frozen=True)
class Index:
    """uv's variables for this machine. `sources` names them in words fit to ship, without host names and credentials.

    `wheel_folders` are the local folders among the find-links; `hosts` is what must never be shown.
    """

    variables: Mapping[str, str]
    sources: tuple[str, ...]
    no_index: bool = False
    wheel_folders: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()

    def hide(self, text: str) -> str:
        """`text` without addresses: `https://user:secret@host/simple/torch/` becomes `<index>/torch`."""
        masked = _ADDRESS.sub(_last_part, text)
        for host in sorted(self.hosts, key=len, reverse=True):
            masked = masked.replace(host, "<index>")
        return masked


def _last_part(match: re.Match[str]) -> str:
    path = urlsplit(match[0]).path.strip("/") if match[0].count("[") == match[0].count("]") else ""
    return f"<index>/{path.rpartition('/')[2]}" if path else "<index>"


def read_index(environ: Mapping[str, str] = os.environ) -> Index:
    """uv's index settings on this machine."""
    return bridge(read_pip_settings(environ), environ)


def read_pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """pip's settings, by name, without asking pip, which takes 0.7 s. A variable outranks `[install]`, which outranks
    `[global]`, and of several files the later one, as in pip; a file that cannot be read is passed over.
    """
    files = RawConfigParser()
    for path in _pip_files(environ):
        with suppress(OSError, ValueError, ConfigParserError):
            files.read_string(path.read_text(encoding="utf-8"))
    variables = [(name.removeprefix("PIP_"), value) for name, value in environ.items() if name.startswith("PIP_")]
    settings = (*(files.items(section) for section in ("global", "install") if section in files), variables)
    return {name.lower().replace("_", "-"): value for some in settings for name, value in some}


def _pip_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where pip looks for its configuration, those that outrank others last (pip docs, "Configuration", Linux)."""
    named, home = environ.get("PIP_CONFIG_FILE", ""), Path(environ.get("HOME", "/"))
    if named == os.devnull:
        return
    yield from (Path(folder, "pip/pip.conf") for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"))
    yield Path("/etc/pip.conf")
    if not os.path.exists(named):  # noqa: PTH110 - False where it must not be looked at
        yield home / ".pip/pip.conf"
        yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "pip/pip.conf")
    for python in (shutil.which("python3", path=environ.get("PATH")), sys.executable):
        yield Path(python or "").parent.parent / "pip.conf"
    yield Path(named)


def bridge(pip: Mapping[str, str], environ: Mapping[str, str]) -> Index:
    """pip's settings as uv's variables, each unless the user already told uv.

    With an extra index the strategy is `unsafe-best-match`, which is pip's rule; uv's own would take an old version
    from a stale extra index (measured 2026-11: celery 5.6.3 where pip chose 5.7.0).
    """
    dropped = {*_DROPPED, *(name for name in environ if name.startswith(("UV_", "PIP_")))}
    others = {name: value for name, value in environ.items() if name not in dropped}
    variables = {**others, **_places(pip, environ), **_access(pip, environ)}
    if variables.get("UV_INDEX") or variables.get("UV_EXTRA_INDEX_URL"):
        variables["UV_INDEX_STRATEGY"] = environ.get("UV_INDEX_STRATEGY", "unsafe-best-match")
    no_index = pip.get("no-index", "").lower() in {"1", "true", "yes", "on"} and "UV_DEFAULT_INDEX" not in environ
    return Index(
        variables=variables,
        sources=_sources(variables, no_index=no_index),
        no_index=no_index,
        wheel_folders=_local_folders(variables.get("UV_FIND_LINKS", "")),
        hosts=_hosts(variables),
    )


def _places(pip: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Where packages are. A local index or folder that does not exist is dropped: pip ignores it, uv would refuse."""
    variables = {name: value for name, value in environ.items() if name.startswith(_UV_VARIABLES)}
    default = [url for url in pip.get("index-url", "").split()[:1] if _is_there(url)]
    extra = [url for url in pip.get("extra-index-url", "").split() if _is_there(url)]
    links = [_absolute(place) for place in pip.get("find-links", "").split() if _is_there(place)]
    if default and "UV_INDEX_URL" not in variables:
        variables.setdefault("UV_DEFAULT_INDEX", default[0])
    if extra and "UV_EXTRA_INDEX_URL" not in variables:
        variables.setdefault("UV_INDEX", " ".join(extra))
    if links:
        variables.setdefault("UV_FIND_LINKS", ",".join(links))
    return variables


def _access(pip: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """How to get there: certificates, trusted hosts, proxy."""
    cert = pip.get("cert", "")
    variables = {
        "SSL_CERT_FILE": cert if Path(cert).is_file() else "",
        "UV_INSECURE_HOST": " ".join(pip.get("trusted-host", "").split()),
        "ALL_PROXY": pip.get("proxy", ""),
    }
    return {name: value for name, value in variables.items() if value and name not in environ}


def _is_there(place: str) -> bool:
    path = _local_path(place)
    return path is None or path.exists()


def _local_path(place: str) -> Path | None:
    if place.startswith("file:"):
        return Path(url2pathname(urlsplit(place).path))
    return None if "://" in place else Path(place).expanduser()


def _absolute(place: str) -> str:
    return place if "://" in place or place.startswith("file:") else str(Path(place).expanduser().absolute())


def _local_folders(find_links: str) -> tuple[Path, ...]:
    paths = (_local_path(place.strip()) for place in find_links.split(",") if place.strip())
    return tuple(path for path in paths if path is not None and path.is_dir())


def _addresses(variables: Mapping[str, str]) -> Iterator[str]:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"):
        yield from (part.partition("=")[2] if "=" in part.split("://")[0] else part for part in _words(variables, name))
    yield from variables.get("UV_FIND_LINKS", "").split(",")
    yield from (
        variables.get(name, "") for name in ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")
    )


def _words(variables: Mapping[str, str], name: str) -> list[str]:
    return variables.get(name, "").split()


def _hosts(variables: Mapping[str, str]) -> tuple[str, ...]:
    named = {urlsplit(address).hostname for address in _addresses(variables) if "://" in address}
    return tuple(sorted(host for host in named if host))


def _sources(variables: Mapping[str, str], *, no_index: bool) -> tuple[str, ...]:
    is_best_match = variables.get("UV_INDEX_STRATEGY") == "unsafe-best-match"
    extra = len(_words(variables, "UV_INDEX")) + len(_words(variables, "UV_EXTRA_INDEX_URL"))
    named = (
        "" if no_index else "default index",
        *(f"extra index {number}" for number in range(1, extra + 1)),
        "find-links" if variables.get("UV_FIND_LINKS", "").strip() else "",
        "best match over all indexes" if is_best_match else "",
    )
    return tuple(filter(None, named))


# -- asking an index ourselves -----------------------------------------------------------------------------------------


def open_url(
    url: str,
    variables: Mapping[str, str],
    *,
    headers: Mapping[str, str] = {},
    method: str = "GET",
    timeout_s: float,
    token: str = "",
) -> Any:  # noqa: ANN401 - urllib's own
    """An address of an index, with the login that stands in it or a token, and this machine's certificates. Raises
    OSError, HTTPException, ValueError.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("its address is none of http or https")
    named = {"User-Agent": "knowngood", **headers}
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    request = urllib.request.Request(bare, headers=named, method=method)  # noqa: S310 - checked above
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        # Unredirected: the login is for this host, and a redirect may lead to another.
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login).decode()}")
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    context = ssl.create_default_context(cafile=variables.get("SSL_CERT_FILE") or None)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _Redirects())
    return opener.open(request, timeout=timeout_s)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Only to http and https; urllib would follow to ftp too."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: HTTPMessage, newurl: str) -> Any:  # noqa: ANN401 - urllib's
        if urlsplit(newurl).scheme not in {"http", "https"}:
            raise ValueError("it redirects to an address that is none of http or https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
