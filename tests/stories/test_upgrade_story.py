"""A team lead with a deadline: chooses an upgrade and copies the note, on any screen, with scripts and without."""

import re
from collections.abc import Iterator

import pytest

from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX
from tests.web import browsing
from tests.web.browsing import SCREENS, WIDTHS
from tests.web.given import BAD, GOOD, NEW

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with browsing.served(notebook) as address:
        yield address


@pytest.mark.parametrize(("width", "scripts"), SCREENS)
def test_choose_an_upgrade_and_copy_the_note(browser: Browser, site: str, width: str, scripts: bool) -> None:
    allowed = ["clipboard-read", "clipboard-write"] if scripts else []
    with browsing.reading_with(
        browser, viewport=WIDTHS[width], java_script_enabled=scripts, permissions=allowed
    ) as context:
        page = context.new_page()
        page.goto(site + MATRIX)
        page.get_by_role("navigation", name="Main").get_by_role("link", name="Upgrade").click()
        page.get_by_label("You are on").fill("2.7.1")
        page.get_by_label("Watch list").select_option("vision-team")
        page.get_by_text("What it must have").click()
        page.get_by_label("NVIDIA driver").fill("550")
        page.get_by_role("button", name="Choose").click()
        expect(page).to_have_url(re.compile(r"/upgrade\?from=2\.7\.1&.*watch=vision-team"))
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Go to {GOOD.wheel.in_words}.")
        expect(page.locator(".lead")).to_contain_text("1 gained, none lost.")
        expect(page.locator(".kicker")).to_contain_text("driver 550")
        page.get_by_text(re.compile("newer builds? left out, and why")).click()
        expect(page.get_by_text("needs driver 580").or_(page.get_by_text("in place of its own")).first).to_be_visible()
        page.get_by_role("link", name="The note for the pull request").click()
        note = page.locator(".note pre")
        expect(note).to_be_in_viewport()
        expect(note).to_contain_text(f"## Upgrade {BAD.wheel.in_words} to {GOOD.wheel.in_words}")
        if scripts:
            page.locator(".note").get_by_role("button", name="copy").click()
            expect(page.locator(".note").get_by_role("button", name="copied")).to_be_visible()
            copied = page.evaluate("navigator.clipboard.readText()")
        else:
            with page.expect_download() as download:
                page.get_by_role("link", name="Download", exact=True).click()
            copied = download.value.path().read_text(encoding="utf-8").rstrip("\n")
        assert copied.startswith(
            f"## Upgrade {BAD.wheel.in_words} to {GOOD.wheel.in_words}\n\n**Go to {GOOD.wheel.in_words}."
        )
        assert "+torch==2.8.0" in copied
        wide = page.evaluate("document.documentElement.scrollWidth") if scripts else 0
        assert wide <= WIDTHS[width]["width"]


def test_the_whole_of_it_is_done_with_keys(browser: Browser, site: str) -> None:
    with browsing.reading_with(browser, permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        page.goto(f"{site}/upgrade")
        page.get_by_label("You are on").focus()
        page.keyboard.type("2.7.1")
        for _ in ("hardware", "what you use", "watch list"):
            page.keyboard.press("Tab")
        page.keyboard.type("vision-team")
        page.keyboard.press("Enter")
        if page.get_by_role("heading", level=1).inner_text() != f"Go to {GOOD.wheel.in_words}.":
            page.get_by_role("button", name="Choose").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Go to {GOOD.wheel.in_words}.")
        page.locator(".note").get_by_role("button", name="copy").press("Enter")
        expect(page.locator(".note").get_by_role("button", name="copied")).to_be_visible()


def test_another_candidate_is_one_click_away(browser: Browser, site: str) -> None:
    with browsing.reading_with(browser) as context:
        page = context.new_page()
        page.goto(f"{site}/upgrade?from=2.7.1&watch=vision-team")
        page.get_by_text("candidate of which nothing is known").click()
        page.get_by_role("link", name=NEW.wheel.in_words.removeprefix("torch ")).first.click()
        expect(page.get_by_role("heading", name=f"What it would mean to go to {NEW.wheel.in_words}")).to_be_visible()
        expect(page.locator(".banner")).to_contain_text("Not recommended")


def test_a_pasted_environment_finds_its_build(browser: Browser, site: str) -> None:
    with browsing.reading_with(browser, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{site}/upgrade")
        page.get_by_label("Environment").fill("torch==2.7.1\nnvidia-cuda-runtime-cu12==12.6.77\n")
        page.get_by_role("button", name="Find its build").click()
        expect(page).to_have_url(re.compile(r"/upgrade\?from=torch-2\.7\.1%2Bcu126"))
        expect(page.get_by_role("heading", level=1)).to_have_text("Cannot say yet.")
