"""Addresses of our own pages, so that no template builds one by hand. A `+` in a build id goes out as %2B."""

from functools import lru_cache
from urllib.parse import quote, urlencode


@lru_cache(maxsize=4096)
def part(text: str) -> str:
    return quote(text, safe="")


def issue_address(issue: str, build: str = "", hardware: str = "") -> str:
    asked = {name: value for name, value in (("build", build), ("hardware", hardware)) if value}
    query = f"?{urlencode(asked)}" if asked else ""
    return f"/issues/{part(issue)}{query}"


def build_address(build: str, hardware: str = "") -> str:
    return f"/builds/{part(build)}" + (f"?hardware={part(hardware)}" if hardware else "")


def cell_address(issue: str, build: str, hardware: str) -> str:
    return f"/cells/{part(issue)}/{part(build)}?hardware={part(hardware)}"


def attempt_address(attempt: str) -> str:
    return f"/attempts/{part(attempt)}"


def run_address(run: str) -> str:
    return f"/runs/{part(run)}"


def watch_list_address(name: str) -> str:
    return f"/watchlists/{part(name)}"
