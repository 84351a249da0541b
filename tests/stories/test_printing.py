"""Pages on paper: light, whole, and without what only a screen can do."""

import re
from collections.abc import Iterator

import pytest

from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX
from tests.web.browsing import reading_with, served
from tests.web.given import BAD, GOOD, OLD

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

PAGES = {
    "front": f"/?mine={BAD.id}",
    "matrix": MATRIX,
    "issue": "/issues/pytorch-151290",
    "build": f"/releases/{BAD.id}",
    "cell": f"/cells/pytorch-151290/{BAD.id}",
    "compare": f"/compare?a={BAD.id}&b={GOOD.id}",
    "upgrade": f"/upgrade?from={OLD.id}",
    "errors": f"/errors?issue=pytorch-151290&build={BAD.id}",
    "my build": "/my-build",
    "search": "/search?q=2.7.1+create_block_mask",
    "charts": "/charts",
    "changes": "/changes",
    "coverage": "/coverage",
    "hygiene": "/hygiene",
    "quality": "/quality",
    "signs": "/signs",
}
PAPER = {"width": 1047, "height": 718}  # A4 on its side without margins, in CSS pixels

_FAULTS = """() => {
  const found = [], width = document.documentElement.clientWidth;
  const rgb = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => { const [r, g, b] = rgb(colour); return 0.3 * r + 0.6 * g + 0.1 * b; };
  if (light(getComputedStyle(document.body).backgroundColor) < 250) found.push("dark paper");
  if (light(getComputedStyle(document.body).color) > 90) found.push("pale ink");
  if (document.documentElement.scrollWidth > width) found.push("wider than the paper");
  for (const one of document.querySelectorAll("body *")) {
    if (!one.checkVisibility() || one.closest("svg")) continue;
    const style = getComputedStyle(one), name = `${one.tagName}.${one.className}`;
    if (one.matches("nav, button, input, textarea, select")) found.push(`for a screen: ${name}`);
    if (["sticky", "fixed"].includes(style.position)) found.push(`not in its place: ${name}`);
    if (style.overflowX !== "visible" && one.clientWidth && one.scrollWidth > one.clientWidth + 2
        && style.textOverflow !== "ellipsis") found.push(`cut off at the side: ${name}`);
    if (["auto", "scroll"].includes(style.overflowY) && one.scrollHeight > one.clientHeight + 2)
      found.push(`cut off below: ${name}`);
  }
  return [...new Set(found)];
}"""


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with served(notebook) as address:
        yield address


def test_pages_are_printed_light_and_whole(browser: Browser, site: str) -> None:
    found: dict[str, list[str]] = {}
    with reading_with(browser, viewport=PAPER, color_scheme="dark") as context:
        page = context.new_page()
        for name, address in PAGES.items():
            page.goto(site + address)
            page.emulate_media(media="print", color_scheme="dark")
            found[name] = page.evaluate(_FAULTS)
            assert re.search(rb"/MediaBox", page.pdf(prefer_css_page_size=True))
            page.emulate_media(media="screen")
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_addresses_of_evidence_can_be_read_on_paper(browser: Browser, site: str) -> None:
    with reading_with(browser, viewport=PAPER) as context:
        page = context.new_page()
        page.goto(site + PAGES["issue"])
        page.emulate_media(media="print")
        told = page.locator(".links a[href^=http]").first.evaluate("(one) => getComputedStyle(one, '::after').content")
        assert "https://" in told
