"""Addresses of our own pages, so that no template builds one by hand. A `+` in a build id goes out as %2B."""

from functools import lru_cache
from urllib.parse import quote, urlencode

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.verdict import Cell

DECISION = "Knowngood-Decision"

FRONT = "/"
MATRIX = "/matrix"  # the grid; until 0.2 it stood at `/`
API = "/api/v1"
RESULTS = f"{API}/results"
SEARCH, ERRORS, ENVIRONMENT = "/search", "/errors", "/environment"

# Of pages that are files alone (`knowngood site`): the data beside them, and the words that issues are found by.
SITE_DATA = "/data/knowngood.json"
SITE_SEARCH = "/data/search.js"


@lru_cache(maxsize=4096)
def part(text: str) -> str:
    return quote(text, safe="")


def asking(address: str, /, **parameters: str) -> str:
    """The address with the parameters that are not empty."""
    query = {name: value for name, value in parameters.items() if value}
    return f"{address}?{urlencode(query)}" if query else address


def constraints_address(build: str) -> str:
    return f"/constraints/{part(build)}.txt"


def issue_address(issue: str, build: str = "", hardware: str = "") -> str:
    return asking(f"/issues/{part(issue)}", build=build, hardware=hardware)


def badge_address(issue: str, build: str = "", hardware: str = "", *, kind: str = "svg") -> str:
    """`kind` is `svg`, or `json` for shields.io."""
    return asking(f"/badge/{part(issue)}.{kind}", build=build, hardware=hardware)


def list_badge_address(name: str, build: str = "", hardware: str = "", *, kind: str = "svg") -> str:
    """The address of a watch list's badge."""
    return f"/badge/watchlists{badge_address(name, build, hardware, kind=kind).removeprefix('/badge')}"


def build_address(build: str, hardware: str = "") -> str:
    return f"/builds/{part(build)}" + (f"?hardware={part(hardware)}" if hardware else "")


def release_address(release: str, **parameters: str) -> str:
    """The page of a release of torch (`2.15.0`), of the newest patch of one (`2.15`), or of any other build."""
    return asking(f"/releases/{part(release)}", **parameters)


def page_of_build(build: Build, hardware: str = "") -> str:
    """The page of a build: the default wheel, with any Python or the usual one, is a release."""
    is_line = is_release(build) and build.python in {"", DEFAULT_PYTHON}
    return release_address(build.build_id.release if is_line else build.id, hardware=hardware)


def cell_address(issue: str, build: str, hardware: str) -> str:
    return f"/cells/{part(issue)}/{part(build)}?hardware={part(hardware)}"


def costs_address(issue: str, build: str, hardware: str) -> str:
    """The costs of a cell's workarounds, as CSV."""
    return f"/cells/{part(issue)}/{part(build)}/costs.csv?hardware={part(hardware)}"


def ground_address(cell: Cell) -> str:
    """The measured cell that an inferred one is inferred from; empty where none is."""
    return cell_address(cell.issue, cell.basis.build, cell.basis.hardware) if cell.basis else ""


def cell_anchor(build: str, hardware: str) -> str:
    """The anchor of a cell among the sections of its issue, in pages that are files."""
    return f"{build.removeprefix('torch-')}.{hardware}"


def attempt_address(attempt: str) -> str:
    return f"/attempts/{part(attempt)}"


def pins_address(attempt: str) -> str:
    """The address of an attempt's lock as hashed requirements."""
    return f"{attempt_address(attempt)}/requirements.txt"


def run_address(run: str) -> str:
    return f"/runs/{part(run)}"


def watch_list_address(name: str) -> str:
    return f"/watchlists/{part(name)}"


def notes_address(issue: str, build: str, hardware: str) -> str:
    """The address where people comment on a cell."""
    return f"/cells/{part(issue)}/{part(build)}/notes?hardware={part(hardware)}"


CHANGES_FEED = "/feeds/changes.atom"


def feed_address(kind: str, name: str) -> str:
    """The feed of one of the `issues`, `components` or `watchlists`, or of one of the `lines` of torch (`2.8`)."""
    return f"/feeds/{kind}/{part(name)}.atom"


def compare_address(before: str = "", after: str = "", **parameters: str) -> str:
    """The address of a comparison. Without one of the two builds the page asks for it."""
    return asking("/compare", a=before, b=after, **parameters)


def matrix_address(**parameters: str) -> str:
    """A part of the matrix."""
    return asking(MATRIX, **parameters)


def upgrade_address(start: str, **parameters: str) -> str:
    return asking("/upgrade", **{"from": start, **parameters})


def search_address(text: str) -> str:
    return f"{SEARCH}?{urlencode({'q': text})}"
