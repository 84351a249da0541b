"""A real browser: keys, cards, live regions, themes and small screens.

What holds for every page there is (axe, widths, nothing that the browser complains of) is in test_every_page.py.
"""

import re
from collections.abc import Iterator

import pytest

from knowngood.domain.access import Scope
from knowngood.store.engine import Engine
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.urls import MATRIX
from tests.make import HARDWARE
from tests.web import given
from tests.web.browsing import SCREENS, WIDTHS, reading_with, served
from tests.web.given import BAD

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Page, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

CELL = f"/cells/pytorch-151290/{BAD.id.replace('+', '%2B')}?hardware={HARDWARE}"


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with served(notebook) as address:
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails its test where the browser complains: of a script, of the policy, of a missing file."""
    complaints: list[str] = []
    with reading_with(browser) as context:
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
    assert complaints == []


@pytest.mark.parametrize(("width", "scripts"), SCREENS)
def test_a_reader_finds_an_issue_names_their_build_and_takes_its_workaround(
    browser: Browser, site: str, width: str, *, scripts: bool
) -> None:
    """The story of whoever sits before a failing build: from the matrix to the snippet, and to the clipboard."""
    settings = {
        "viewport": WIDTHS[width],
        "java_script_enabled": scripts,
        "permissions": ["clipboard-read", "clipboard-write"],
    }
    with reading_with(browser, **settings) as context:
        page = context.new_page()
        page.goto(site + MATRIX)
        page.get_by_role("link", name="create_block_mask fails").first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("create_block_mask fails")
        expect(page.locator(".standing")).to_contain_text("fails in 2.7.1, fixed in 2.8.0")

        page.get_by_label("Your build").select_option("2.8.0 (CUDA 12.8)")
        page.get_by_role("button", name="Show").click()
        expect(page).to_have_url(re.compile(r"\?build=torch-2\.8\.0%2Bcu128&hardware=cpu-x86_64#use$"))
        expect(page.locator("#use")).to_contain_text("Nothing to do on 2.8.0.")

        page.get_by_label("Your build").select_option("2.7.1 (CUDA 12.6)")
        page.get_by_role("button", name="Show").click()
        box = page.locator(".box")
        expect(box).to_contain_text("Works on 2.7.1")
        expect(box.locator("pre")).to_have_text("mask = make()")
        page.get_by_text("1 of 2 workarounds work here").click()
        first = page.locator(".remedy").first
        expect(first).to_contain_text("works")
        expect(first).to_contain_text("4.0 s, 512 MB for one first call")
        expect(first.locator("pre")).to_have_text("mask = make()")
        second = page.locator(".remedy").nth(1)
        expect(second).to_contain_text("does not help")
        expect(second.locator("pre")).to_be_hidden()
        second.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(second.locator("pre")).to_be_visible()

        if scripts:
            box.get_by_role("button", name="copy").click()
            expect(box.get_by_role("button", name="copied")).to_be_visible()
            assert page.evaluate("navigator.clipboard.readText()") == "mask = make()"
        page.goto(f"{site}/issues/fla-160")  # the build is remembered from one issue to the next
        expect(page.locator("#use .chip").first).to_contain_text("on torch 2.7.1")


def test_a_link_to_a_cure_opens_it(page: Page, site: str) -> None:
    page.goto(f"{site}/issues/pytorch-151290?build={BAD.id.replace('+', '%2B')}#cure-flags")
    expect(page.locator("#cure-flags pre")).to_be_visible()


def test_everything_is_readable_without_scripts(browser: Browser, site: str) -> None:
    with reading_with(browser, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(site + MATRIX)
        page.get_by_role("link", name="Dark theme").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.get_by_role("link", name="中文").click()
        expect(page.locator("html")).to_have_attribute("lang", "zh")
        page.get_by_role("link", name="English").click()
        page.get_by_role("searchbox").fill("bmm")
        page.get_by_role("button", name="Show").click()
        expect(page).to_have_url(re.compile(r"/matrix\?q=bmm$"))
        expect(page.get_by_role("link", name="bmm gives wrong numbers")).to_be_visible()
        page.get_by_role("link", name=f"flaky: pytorch-154771 on {BAD.id}", exact=True).click()
        expect(page.locator(".lead")).to_contain_text("1 of 2 attempts ended with the issue's own signature")


def test_a_person_signs_in_and_out_in_a_browser(own_engine: Engine, page: Page) -> None:
    """Real browsers decide by themselves which headers a form is sent with, and which cookies."""
    given.save(own_engine, given.ISSUES, given.BUILDS)
    secret = given.make_token(own_engine, Scope.READ, name="ada")
    with served(own_engine, AccessPolicy(reads_need_token=True)) as site:
        page.goto(f"{site}/runs")
        expect(page).to_have_url(re.compile(r"/sign-in\?to=%2Fruns$"))
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{site}/runs")
        page.locator("details.more summary").click()
        page.get_by_role("link", name="ada").click()
        expect(page.get_by_role("heading", name="Signed in as ada")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        page.goto(site + MATRIX)
        expect(page).to_have_url(re.compile(r"/sign-in"))
