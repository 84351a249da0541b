"""Pages as wide as a telephone, a tablet and a desk, with all shipped evidence: texts as long as they are, and many."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from knowngood.domain.issue import Device
from knowngood.store.engine import Engine, connect, reading
from knowngood.store.queries import load_builds, load_issues
from tests.fixtures.databases import NewStore
from tests.web import given
from tests.web.browsing import reading_with, served

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

BUILD = "torch-2.7.1%2Bcu126"
PAGES = (
    *(
        "/",
        "/my-build",
        "/environment?build=2.7.1",
        "/matrix",
        "/charts",
        "/coverage",
        "/hygiene",
        "/quality",
        "/workers",
        "/changes",
        "/signs",
    ),
    "/runs",
    *("/issues/pytorch-151290", "/releases/2.7", f"/cells/pytorch-151290/{BUILD}", "/compare?a=2.7.1&b=2.8.0"),
    *(f"/upgrade?from={BUILD}&component=Inductor", f"/errors?issue=pytorch-151290&build={BUILD}", "/api/docs"),
    "/upgrade?from=2.7.1",
)

_FAULTS = """() => {
  const found = [], wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) found.push(`${wide} wide`);
  if (document.documentElement.scrollHeight > 40000) found.push("endless");
  for (const one of document.querySelectorAll("main .scroller:has(> .list), main .chart.of-few .scroller"))
    if (one.checkVisibility() && one.scrollWidth > one.clientWidth + 2) found.push(`cut off: ${one.ariaLabel}`);
  for (const one of document.querySelectorAll("main .beside"))
    if (one.getClientRects().length > 1) found.push(`broken in two: ${one.innerText}`);
  return found;
}"""


@pytest.fixture(scope="module")
def site(shipped_store: str, new_store: NewStore) -> Iterator[str]:
    """With a run in it, so that what moves is seen too."""
    engine: Engine = connect(new_store(shipped_store))
    with reading(engine) as s:
        builds = [build for build in load_builds(s) if build.build_id.release in {"2.6.0", "2.7.1", "2.8.0"}][:3]
        issues = [issue for issue in load_issues(s) if issue.requires.device is not Device.CUDA][:3]
    at = datetime.now(UTC) - timedelta(minutes=150)
    given.queue(engine, given.Asked(builds, at, issues=issues))
    spec = given.claim(engine, at)
    assert spec is not None
    given.begin(engine, spec, at)
    given.start(engine, spec, spec.arms[0], at)
    with served(engine) as address:
        yield address
    engine.dispose()


@pytest.mark.parametrize(
    ("widths", "language"),
    [
        ([360, 768, 1200, 1440], "en"),
        ([360], "zh"),
        pytest.param([768, 1440], "zh", marks=pytest.mark.soak),
    ],
)
def test_no_page_is_cut_off_or_wider_than_its_window(
    browser: Browser, site: str, widths: list[int], language: str
) -> None:
    """Each is loaded once and made wider: the server's part of it is most of what this takes."""
    found: dict[tuple[str, int], list[str]] = {}
    with reading_with(browser) as context:
        page = context.new_page()
        for address in PAGES:
            page.set_viewport_size({"width": widths[0], "height": 900})
            page.goto(f"{site}{address}{'&' if '?' in address else '?'}lang={language}")
            for width in widths:
                page.set_viewport_size({"width": width, "height": 900})
                found[address, width] = page.evaluate(_FAULTS)
    assert {at: faults for at, faults in found.items() if faults} == {}
