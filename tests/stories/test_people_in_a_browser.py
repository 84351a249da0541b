"""A real browser: keeping watch lists and judging cells, with and without scripts, and what keeps nobody out."""

import re
from collections.abc import Iterator

import pytest

from knowngood.app.domain.access import Scope
from knowngood.app.domain.verdicts.outcome import Outcome
from knowngood.app.store.engine import Engine
from knowngood.app.web.urls import notes_address
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.browsing import NARROW, SCHEMES, SCREENS, WIDTHS, kept_out_by, reading_with, served
from tests.web.given import BAD, MASK, Asked, make_token

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Page, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

NOTES = notes_address(MASK.id, BAD.id, HARDWARE)


@pytest.fixture
def site(own_engine: Engine) -> Iterator[str]:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    given.run(own_engine, Asked([BAD], NOON, issues=[MASK]), lambda _, __: Outcome.PASS)
    with served(own_engine) as address:
        yield address


@pytest.fixture
def secret(own_engine: Engine) -> str:
    return make_token(own_engine, Scope.ADMIN, name="ada")


def sign_in(page: Page, site: str, secret: str) -> None:
    page.goto(f"{site}/sign-in?to=/watchlists")
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{site}/watchlists")


@pytest.mark.parametrize(("width", "scripts"), SCREENS)
def test_a_watch_list_is_made_changed_and_removed(
    browser: Browser,
    site: str,
    secret: str,
    scripts: bool,
    width: str,
) -> None:
    with reading_with(browser, java_script_enabled=scripts, viewport=WIDTHS[width]) as context:
        page = context.new_page()
        sign_in(page, site, secret)
        page.get_by_role("link", name="New watch list").click()
        page.get_by_role("textbox", name="Name").fill("mine")
        page.get_by_label("What it is for").fill("What we compile")
        page.get_by_role("checkbox", name="Dynamo").first.check()
        if scripts:
            page.get_by_role("searchbox", name="Find").fill("bmm wrong")
            expect(page.locator(".picker .tick:visible")).to_have_count(1)
        else:
            expect(page.get_by_role("searchbox", name="Find")).to_be_hidden()
            page.locator(".picker summary", has_text="Inductor C++").click()
        page.get_by_role("checkbox", name="pytorch-154771").check()
        if scripts:
            expect(page.locator("[data-picker-count]")).to_have_text("1 shown, 1 ticked")
        page.get_by_label("More issues").fill("pytorch-15129")
        page.get_by_role("button", name="Keep this list").click()
        expect(page.get_by_text("no issue is called")).to_be_visible()  # what was typed wrong is said where it is typed
        page.get_by_label("More issues").fill("pytorch-151290")
        page.get_by_role("button", name="Keep this list").click()
        expect(page).to_have_url(f"{site}/watchlists/mine")
        expect(page.locator("main")).to_contain_text("Watches 3 issues.")
        page.get_by_role("link", name="Change this list").click()
        expect(page.get_by_role("checkbox", name="pytorch-154771")).to_be_checked()
        expect(page.get_by_role("checkbox", name="pytorch-151290")).to_be_checked()
        page.get_by_role("checkbox", name="pytorch-154771").uncheck()
        page.get_by_role("button", name="Keep this list").click()
        expect(page.locator("main")).to_contain_text("Watches 2 issues.")
        page.get_by_role("link", name="Change this list").click()
        page.get_by_label("I mean it").check()
        page.get_by_role("button", name="Remove").click()
        expect(page).to_have_url(f"{site}/watchlists")
        expect(page.get_by_text("Nobody keeps a watch list here yet.")).to_be_visible()


@pytest.mark.parametrize(
    "scripts", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["with scripts", "without scripts"]
)
def test_a_cell_is_voided_and_restored(
    browser: Browser,
    site: str,
    secret: str,
    scripts: bool,
) -> None:
    with reading_with(browser, java_script_enabled=scripts) as context:
        page = context.new_page()
        sign_in(page, site, secret)
        page.goto(site + NOTES)
        page.get_by_label("Void it").check()
        page.get_by_label("Why, in one line").fill("the host overheats")
        page.get_by_role("button", name="Say it").click()
        expect(page.locator(".lead")).to_contain_text("voided by ada: the host overheats")
        page.get_by_label("Restore it").check()
        page.get_by_label("Why, in one line").fill("it was cooled")
        page.get_by_role("button", name="Say it").click()
        expect(page.locator(".lead")).to_contain_text("passes")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_page_of_signed_in_people_keeps_anybody_out_or_is_wider_than_a_telephone(
    browser: Browser,
    site: str,
    secret: str,
    scheme: str,
) -> None:
    with reading_with(browser, color_scheme=scheme, viewport=NARROW) as context:
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        sign_in(page, site, secret)
        for address in ("/watchlists/~new", NOTES):
            page.goto(site + address)
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], address
            assert kept_out_by(page) == [], address
        assert complaints == []


def test_the_whole_form_is_filled_by_the_keyboard_alone(
    browser: Browser,
    site: str,
    secret: str,
) -> None:
    with reading_with(browser) as context:
        page = context.new_page()
        sign_in(page, site, secret)
        page.goto(f"{site}/watchlists/~new")
        page.get_by_role("textbox", name="Name").focus()
        page.keyboard.type("keys")
        for _ in range(2):
            page.keyboard.press("Tab")
        page.keyboard.press("Space")  # the first component
        for _ in range(40):
            if page.evaluate("document.activeElement.matches('[data-picker-find]')"):
                break
            page.keyboard.press("Tab")
        page.keyboard.type("fla")
        page.keyboard.press("Enter")  # finds, and does not send the form
        expect(page).to_have_url(f"{site}/watchlists/~new")
        page.keyboard.press("Tab")  # the group
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        for _ in range(20):
            if page.evaluate("document.activeElement.textContent") == "Keep this list":
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site}/watchlists/keys")
        expect(page.locator("main")).to_contain_text(re.compile("fla-160"))
