"""The story of somebody who writes into the one box: an issue's number, words, with the keyboard alone."""

from collections.abc import Iterator

import pytest

from knowngood.store.engine import Engine
from tests.web.browsing import NARROW, SCHEMES, SCREENS, WIDTHS, keep_picture, kept_out_by, reading_with, served
from tests.web.given import BAD, LINE

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

TRACE = f"Traceback (most recent call last):\n{LINE}\nPyTorch version: 2.7.1+cu126\n"


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with served(notebook) as address:
        yield address


@pytest.mark.parametrize(("width", "has_scripts"), SCREENS)
def test_a_number_leads_to_its_issue(browser: Browser, site: str, width: str, *, has_scripts: bool) -> None:
    with reading_with(browser, viewport=WIDTHS[width], java_script_enabled=has_scripts) as context:
        page = context.new_page()
        page.goto(f"{site}/search")
        box = page.get_by_role("textbox")
        expect(box).to_be_focused()
        box.fill("#151290")
        if has_scripts:
            page.keyboard.press("Enter")
        else:
            page.get_by_role("button", name="Answer").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("create_block_mask fails")
        assert page.url == f"{site}/issues/pytorch-151290"


def test_suggestions_are_reached_by_arrows_and_move_nothing(browser: Browser, site: str) -> None:
    with reading_with(browser) as context:
        page = context.new_page()
        page.goto(f"{site}/search")
        before = page.get_by_role("heading", level=2).first.bounding_box()
        page.keyboard.type("create_blok")
        suggested = page.locator(".suggestions a")
        expect(suggested.first).to_contain_text("create_block_mask fails")
        expect(page.get_by_role("status")).to_contain_text("suggestions")
        assert page.get_by_role("heading", level=2).first.bounding_box() == before
        keep_picture(page, "search-suggestions")
        page.keyboard.press("ArrowDown")
        expect(suggested.first).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(page.get_by_role("textbox")).to_be_focused()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Escape")
        expect(suggested.first).to_be_hidden()
        expect(page.get_by_role("textbox")).to_be_focused()
        page.keyboard.type("_mask")
        expect(suggested.first).to_be_visible()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("create_block_mask fails")


def test_a_paste_is_answered_under_an_address_that_can_be_loaded_again(browser: Browser, site: str) -> None:
    with reading_with(browser) as context:
        page = context.new_page()
        page.goto(f"{site}/search")
        page.get_by_role("textbox").fill(TRACE)
        page.get_by_role("button", name="Answer").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("We know this one")
        expect(page.locator("mark").first).to_have_text(LINE)
        assert page.url.startswith(f"{site}/errors?issue=")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("We know this one")
        expect(page.locator(".lead")).to_contain_text(BAD.id)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_answer_keeps_anybody_out(browser: Browser, site: str, scheme: str) -> None:
    with reading_with(browser, color_scheme=scheme, viewport=NARROW) as context:
        page = context.new_page()
        for asked in ("", "?q=zzzqq", "?q=2.7.1+fails", "?q=A100", "?q=999999"):
            page.goto(f"{site}/search{asked}")
            assert kept_out_by(page) == [], asked
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], asked
