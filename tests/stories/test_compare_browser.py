"""The story "compare two builds", in a real browser: from the choice of two builds to a note that can be pasted."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX
from tests.web.browsing import NARROW, SCREENS, WIDTHS, keep_picture, reading_with, served
from tests.web.given import BAD, GOOD, GPU_CLASS, MASK, OLD

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Page, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with served(notebook) as address:
        yield address


@pytest.mark.parametrize(("width", "has_scripts"), SCREENS)
def test_two_builds_are_chosen_compared_and_told_to_others(
    browser: Browser, site: str, width: str, *, has_scripts: bool
) -> None:
    with reading_with(browser, viewport=WIDTHS[width], java_script_enabled=has_scripts) as context:
        page = context.new_page()
        page.goto(site + MATRIX)
        page.get_by_role("navigation", name="Main").get_by_role("link", name="Compare").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Compare two builds")
        page.get_by_role("combobox", name="from", exact=True).fill(OLD.id)
        page.get_by_role("combobox", name="to", exact=True).fill(BAD.id)
        page.get_by_role("button", name="Compare").click()
        _read_the_answer(page)
        keep_picture(page, f"compare-{width}-{'scripts' if has_scripts else 'plain'}")
        _open_both_cells(page)
        page.get_by_role("link", name="the other way round").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"From {BAD.in_words} to {OLD.in_words}")
        page.get_by_text("As Markdown, for an issue or a pull request").click()
        expect(page.locator(".snippet pre")).to_contain_text(f"**From {BAD.in_words} to {OLD.in_words}")
        if width == "360":
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


def _read_the_answer(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"From {OLD.in_words} to {BAD.in_words} on CPU")
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 newly broken")
    broken = page.get_by_role("region", name="Newly broken", exact=True)
    expect(broken).to_contain_text(MASK.id)
    expect(broken).to_contain_text("measured to help: Make it eagerly")
    page.get_by_role("heading", level=2, name="Still fails").click()
    expect(page.get_by_role("region", name="Still fails", exact=True)).to_contain_text("wrong numbers without an error")


def _open_both_cells(page: Page) -> None:
    here = page.url
    for build in (OLD, BAD):
        page.get_by_role("region", name="Newly broken", exact=True).locator(
            f'.side a[href*="{quote(build.id)}"]'
        ).click()
        expect(page.locator(".kicker")).to_contain_text(build.id)
        page.goto(here)


def test_the_note_is_copied_by_a_button(browser: Browser, site: str) -> None:
    with reading_with(browser, permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        page.goto(f"{site}/compare?a={BAD.id}&b={GOOD.id}")
        page.get_by_text("As Markdown, for an issue or a pull request").click()
        page.locator(".copyable:has(pre)").filter(has_text="**From").get_by_role("button", name="copy").click()
        copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("**From torch 2.7.1 (CUDA 12.6) to torch 2.8.0 (CUDA 12.8)")


def test_keys_alone_lead_from_the_choice_to_the_answer(browser: Browser, site: str) -> None:
    with reading_with(browser) as context:
        page = context.new_page()
        page.goto(f"{site}/compare?hardware={GPU_CLASS}")
        page.get_by_role("combobox", name="from", exact=True).focus()
        page.keyboard.type("torch-2.5.1")
        page.keyboard.press("Tab")
        page.keyboard.type("torch-2.7.1+cu126")
        page.get_by_role("button", name="Compare").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"From {OLD.in_words} to torch 2.7.1 (CUDA 12.6)")
        expect(page.get_by_role("heading", level=1)).to_contain_text("H100")
