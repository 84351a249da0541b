"""A real browser: judging cells, with and without scripts, and what keeps nobody out."""

from collections.abc import Iterator

import pytest

from knowngood.domain.access import Scope
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine
from knowngood.web.urls import notes_address
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.browsing import NARROW, SCHEMES, kept_out_by, reading_with, served
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
        page.goto(site + NOTES)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        assert kept_out_by(page) == []
        assert complaints == []
