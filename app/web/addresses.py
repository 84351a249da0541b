"""Addresses of our own pages, so that no template builds one by hand. A `+` in a build id goes out as %2B."""

from functools import lru_cache
from urllib.parse import quote, urlencode


@lru_cache(maxsize=4096)
def _part(text: str) -> str:
    return quote(text, safe="")


def issue_address(issue: str, build: str = "", hardware: str = "") -> str:
    asked = {name: value for name, value in (("build", build), ("hardware", hardware)) if value}
    query = f"?{urlencode(asked)}" if asked else ""
    return f"/issues/{_part(issue)}{query}"


def build_address(build: str, hardware: str = "") -> str:
    return f"/builds/{_part(build)}" + (f"?hardware={_part(hardware)}" if hardware else "")


def cell_address(issue: str, build: str, hardware: str) -> str:
    return f"/cells/{_part(issue)}/{_part(build)}?hardware={_part(hardware)}"


def attempt_address(attempt: str) -> str:
    return f"/attempts/{_part(attempt)}"


def run_address(run: str) -> str:
    return f"/runs/{_part(run)}"
