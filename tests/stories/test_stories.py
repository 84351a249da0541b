"""A run is watched as it fills cells, on any screen, with scripts and without; and two stories by keys alone.

The other stories: test_browser.py (an issue), test_paste_in_browser.py, test_compare_browser.py, test_upgrade_story.py.
"""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from knowngood.domain.measuring.job import ArmSpec, JobEnded, JobSpec
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine, connect, unit_of_work
from knowngood.store.jobs.event_recorder import record_event
from knowngood.web.urls import MATRIX
from tests.fixtures.databases import NewStore
from tests.web import given
from tests.web.browsing import SCREENS, WIDTHS, reading_with, served
from tests.web.given import BAD, DYNAMO, GOOD, NOW, Asked

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Page, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

SNIPPET = "mask = make()"


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with served(notebook) as address:
        yield address


@pytest.fixture(scope="module")
def running(new_store: NewStore) -> Iterator[tuple[Engine, str]]:
    """A store in which nothing is measured yet, and its server."""
    engine = connect(new_store())
    given.save(engine, given.ISSUES, given.BUILDS)
    with served(engine) as address:
        yield engine, address
    engine.dispose()


def test_an_issue_is_read_and_its_workaround_copied_by_keys(browser: Browser, site: str) -> None:
    with reading_with(browser, permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        page.goto(f"{site}/issues/pytorch-151290")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        button = page.locator(".box").first.get_by_role("button", name="copy")
        _tab_to(page, ".box .copy")
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".box").first.get_by_role("button", name="copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == SNIPPET


@pytest.mark.parametrize(("width", "has_scripts"), SCREENS)
def test_a_run_is_watched_as_it_fills_cells(
    browser: Browser, running: tuple[Engine, str], width: str, *, has_scripts: bool
) -> None:
    """With scripts the page follows by itself; without, it loads itself anew, or by its link."""
    engine, site = running
    at = NOW - timedelta(minutes=1)
    run = given.queue(engine, Asked([GOOD], at, issues=[DYNAMO], wanted=PlanRequest(force=True)))
    with reading_with(browser, viewport=WIDTHS[width], java_script_enabled=has_scripts) as context:
        page = context.new_page()
        page.goto(f"{site}/runs")
        page.get_by_role("link", name=run).click()
        expect(page.locator("h1")).to_contain_text("waiting · 0 of 2 attempts done")
        spec = given.claim(engine, at)
        assert spec is not None
        given.begin(engine, spec, at)
        given.start(engine, spec, spec.arms[0], at)
        _look_again(page, has_scripts=has_scripts)
        expect(page.locator("table").first).to_contain_text("fla-160 control")
        _finish(engine, spec, spec.arms)
        _look_again(page, has_scripts=has_scripts)
        expect(page.locator("h1")).to_contain_text("done · 2 of 2 attempts")
        expect(page.locator("[data-live]")).to_have_count(0)
        page.locator(".results a.quiet").first.click()
        expect(page.locator(".lead").first).to_contain_text("passes")
        page.goto(f"{site}{MATRIX}?view=squares")
        expect(page.get_by_role("link", name=f"passes: fla-160 on {GOOD.id}", exact=True)).to_be_visible()
        page.goto("about:blank")


def test_a_run_is_watched_by_keys(browser: Browser, running: tuple[Engine, str]) -> None:
    engine, site = running
    at = NOW - timedelta(minutes=1)
    given.queue(engine, Asked([BAD], at, issues=[DYNAMO], wanted=PlanRequest(force=True)))
    with reading_with(browser) as context:
        page = context.new_page()
        page.goto(site + MATRIX)
        _tab_to(page, ".banner a")  # "Watch the run"
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text("waiting · 0 of 2 attempts done")
        spec = given.claim(engine, at)
        assert spec is not None
        given.begin(engine, spec, at)
        _finish(engine, spec, spec.arms)
        expect(page.locator("h1")).to_contain_text("done · 2 of 2 attempts")
        _tab_to(page, ".results a.quiet")
        page.keyboard.press("Enter")
        expect(page.locator(".lead").first).to_contain_text("passes")
        page.goto("about:blank")


def _finish(engine: Engine, spec: JobSpec, arms: tuple[ArmSpec, ...]) -> None:
    at = NOW - timedelta(minutes=1)
    for arm in arms:
        given.finish(engine, spec, arm, Outcome.PASS, at)
    with unit_of_work(engine) as s:
        record_event(s, JobEnded(spec.job, spec.try_no), at)


def _look_again(page: Page, *, has_scripts: bool) -> None:
    if not has_scripts:
        assert page.locator('noscript meta[http-equiv="refresh"]').count() == 1
        page.get_by_role("link", name="Load it now").click()


def _tab_to(page: Page, selector: str) -> None:
    """Tab until the focus is on what `selector` names; no more often than a person would."""
    for _ in range(60):
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached by Tab")
