"""Charts in a real browser: seen on the first screen, reached by keys, sound for who cannot see them."""

from collections.abc import Iterable, Iterator

import pytest

from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX
from tests.web.browsing import NARROW, SCHEMES, keep_picture, kept_out_by, reading_with, served
from tests.web.given import BAD, MASK, OLD

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, ViewportSize, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

DESK = ViewportSize(width=1440, height=900)
PHONE = ViewportSize(width=390, height=844)
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"target-size": {"enabled": True}, "label-content-name-mismatch": {"enabled": True}},
}


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with served(notebook) as address:
        yield address


PLACES = {
    "charts": "/charts",
    "lifespans": f"{MATRIX}?view=lifespans",
    "issue": f"/issues/{MASK.id}",
    "upgrade": "/upgrade?from=2.7.1&watch=vision-team",
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("screen", "names"),
    [
        pytest.param(DESK, ("charts", "lifespans"), id="desk"),
        *(
            pytest.param(screen, PLACES, id=f"{screen['width']}, all", marks=pytest.mark.soak)
            for screen in (DESK, PHONE)
        ),
    ],
)
def test_charts_and_lifespans_are_sound_at_every_width(
    browser: Browser, site: str, scheme: str, screen: ViewportSize, names: Iterable[str]
) -> None:
    with reading_with(browser, viewport=screen, color_scheme=scheme) as context:
        page = context.new_page()
        for name in names:
            page.goto(site + PLACES[name])
            assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"], name
            assert kept_out_by(page, **RULES) == [], name
            keep_picture(page, f"{name}-{screen['width']}-{scheme}")
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], name
            page.set_viewport_size(screen)


def test_a_bar_is_a_link_that_keys_reach(browser: Browser, site: str) -> None:
    with reading_with(browser, viewport=DESK, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{site}/charts")
        bar = page.get_by_role("link", name=f"{BAD.id}: passes 1")
        expect(bar).to_be_visible()
        bar.focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site}/releases/2.7.1?hardware=cpu-x86_64")
        page.go_back()
        page.get_by_text("The numbers as a table").first.click()
        table = page.get_by_role("table").first
        expect(table.get_by_role("row", name=OLD.id)).to_be_visible()


def test_narrow_screens_begin_with_bars_and_wide_ones_with_squares(browser: Browser, site: str) -> None:
    for screen, bars in ((DESK, False), (NARROW, True)):
        with reading_with(browser, viewport=screen, java_script_enabled=False) as context:
            page = context.new_page()
            page.goto(site + MATRIX)
            expect(page.locator(".lifespan").first).to_be_visible(visible=bars)
            expect(page.locator("table.matrix")).to_be_visible(visible=not bars)
            page.get_by_role("link", name="squares").click()
            expect(page.locator("table.matrix")).to_be_visible()
            page.get_by_role("link", name="lifespans").click()
            expect(page.locator(".lifespan").first).to_be_visible()


def test_the_picture_the_requirements_and_the_note_are_on_the_first_screen(browser: Browser, site: str) -> None:
    with reading_with(browser, viewport=DESK) as context:
        page = context.new_page()
        page.goto(f"{site}/upgrade?from=2.7.1&watch=vision-team")
        for seen in (page.locator("svg.bar").first, page.get_by_text("torch==2.8.0").first, page.locator(".note pre")):
            box = seen.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= DESK["height"]
        for copied in (page.locator("section:has(> #requirements)"), page.locator(".note")):
            expect(copied.get_by_role("button", name="copy")).to_be_in_viewport()
