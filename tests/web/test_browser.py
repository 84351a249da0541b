"""A real browser: keys, cards, live regions, themes, small screens, and what assistive technology is told."""

import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
import uvicorn

from app.domain.access import Scope
from app.domain.job import JobEnded
from app.domain.outcome import Outcome
from app.store import writes
from app.store.session import Engine, unit_of_work
from app.web.application import create_app, end_streams
from app.web.reader import Rules
from tests.make import HARDWARE
from tests.web import given
from tests.web.given import BAD, DYNAMO, GOOD, NOW, Asked

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 360, "height": 740}
CELL = f"/cells/pytorch-151290/{BAD.id.replace('+', '%2B')}?hardware={HARDWARE}"


@contextmanager
def served(engine: Engine, rules: Rules | None = None) -> Iterator[str]:
    """The application behind a real server on a free port."""
    app = create_app(engine, clock=lambda: NOW, rules=rules)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        end_streams(app)
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with served(notebook) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


@contextmanager
def reading_with(browser: Browser, **settings: object) -> Iterator[BrowserContext]:
    context = browser.new_context(**{"viewport": WIDE, **settings})  # type: ignore[arg-type]
    context.set_default_timeout(10_000)
    yield context
    context.close()


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


@pytest.fixture(scope="module")
def addresses(client: object, site: str, browser: Browser) -> dict[str, str]:
    with reading_with(browser) as context:
        api = context.request
        attempt = api.get(f"{site}/api/v1{CELL}").json()["evidence_url"]
        run = api.get(f"{site}/api/v1/runs").json()["runs"][0]["url"]
    return {
        "matrix": "/?columns=all",
        "issue": "/issues/pytorch-151290",
        "cell": CELL,
        "attempt": attempt,
        "build": f"/builds/{BAD.id.replace('+', '%2B')}",
        "runs": "/runs",
        "run": run,
        "hygiene": "/hygiene",
        "watch_lists": "/watchlists",
        "watch_list": "/watchlists/vision-team",
        "sign_in": "/sign-in",
        "changes": "/changes",
        "coverage": "/coverage",
        "quality": "/quality",
        "reference": "/api/docs",
        "error": "/issues/nothing-like-it",
    }


PAGES = [
    "matrix",
    "issue",
    "cell",
    "attempt",
    "build",
    "runs",
    "run",
    "hygiene",
    "watch_lists",
    "watch_list",
    "sign_in",
    "changes",
    "coverage",
    "quality",
    "reference",
    "error",
]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_keeps_anybody_out(
    browser: Browser, site: str, addresses: dict[str, str], name: str, scheme: str
) -> None:
    with reading_with(browser, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(site + addresses[name])
        found = axe.Axe().run(page).response["violations"]
    serious = [
        (one["id"], node["html"][:200])
        for one in found
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]
    assert serious == []


@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_a_telephone(browser: Browser, site: str, addresses: dict[str, str], name: str) -> None:
    with reading_with(browser, viewport=NARROW) as context:
        page = context.new_page()
        page.goto(site + addresses[name])
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


@pytest.mark.parametrize("name", [name for name in PAGES if name != "error"])
def test_the_browser_has_nothing_to_complain_of(page: Page, site: str, addresses: dict[str, str], name: str) -> None:
    page.goto(site + addresses[name])
    expect(page.locator("html.js")).to_be_attached()


def test_cells_are_reached_moved_among_and_opened_by_keys(page: Page, site: str) -> None:
    page.goto(site)
    page.locator(".scroller").focus()
    page.keyboard.press("Tab")  # the head of the first column
    for _ in range(20):
        if page.evaluate("document.activeElement.matches('a.q')"):
            break
        page.keyboard.press("Tab")
    first = page.locator("tr.row a.q").first
    expect(first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    target = page.get_by_role("link", name=f"fails, has a cure: pytorch-151290 on {BAD.id}", exact=True)
    expect(target).to_be_focused()
    expect(page.locator(".card")).to_contain_text("2 of 2 attempts ended with the issue's own signature")
    page.keyboard.press("Escape")
    expect(page.locator(".card")).to_be_hidden()
    page.keyboard.press("Tab")
    expect(page.locator("tr.row a.q:focus")).to_have_count(0)  # one stop for the whole grid
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(site + CELL)


def test_pointing_at_a_cell_shows_why_and_what_helps(page: Page, site: str) -> None:
    page.goto(site)
    page.get_by_role("link", name=f"fails, has a cure: pytorch-151290 on {BAD.id}", exact=True).hover()
    card = page.locator(".card")
    expect(card).to_contain_text("conflicting declaration")
    expect(card).to_contain_text("eager_mask")
    page.mouse.move(1, 1)
    expect(card).to_be_hidden()


def test_a_group_folds_to_a_heat_strip(page: Page, site: str) -> None:
    page.goto(site)
    row = page.get_by_role("link", name="bmm gives wrong numbers")
    expect(row).to_be_visible()
    page.get_by_role("checkbox", name="Inductor C++").check()
    expect(row).to_be_hidden()
    expect(page.locator(".heat.fails").first).to_be_visible()


def test_a_snippet_is_copied(browser: Browser, site: str) -> None:
    with reading_with(browser, permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        page.goto(f"{site}/issues/pytorch-151290")
        page.locator(".remedy").first.get_by_role("button", name="copy").click()
        expect(page.locator(".remedy").first.get_by_role("button", name="copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == "mask = make()"


def test_everything_is_readable_without_scripts(browser: Browser, site: str) -> None:
    with reading_with(browser, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(site)
        page.get_by_role("link", name="Dark theme").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.get_by_role("link", name="中文").click()
        expect(page.locator("html")).to_have_attribute("lang", "zh")
        page.get_by_role("link", name="English").click()
        page.get_by_role("searchbox").fill("bmm")
        page.get_by_role("button", name="Filter").click()
        expect(page).to_have_url(re.compile(r"/\?q=bmm&"))
        expect(page.get_by_role("link", name="bmm gives wrong numbers")).to_be_visible()
        page.get_by_role("link", name=f"flaky: pytorch-154771 on {BAD.id}", exact=True).click()
        expect(page.locator(".lead")).to_contain_text("1 of 2 attempts ended with the issue's own signature")


def test_a_run_is_followed_as_it_goes(page: Page, sqlite_engine: Engine) -> None:
    at = NOW - timedelta(minutes=1)
    given.save(sqlite_engine, given.ISSUES, given.BUILDS)
    run = given.queue(sqlite_engine, Asked([BAD], at, issues=[DYNAMO]))
    with served(sqlite_engine) as site:
        page.goto(f"{site}/runs/{run}")
        expect(page.locator("h1")).to_contain_text("waiting 0 of 2 attempts done")
        spec = given.claim(sqlite_engine, at)
        assert spec is not None
        given.begin(sqlite_engine, spec, at)
        given.start(sqlite_engine, spec, spec.arms[0], at)
        expect(page.locator("table")).to_contain_text("running fla-160 control")
        for arm in spec.arms:
            given.finish(sqlite_engine, spec, arm, Outcome.PASS, at)
        with unit_of_work(sqlite_engine) as s:
            writes.record_event(s, JobEnded(spec.job, spec.try_no), at)
        expect(page.locator("h1")).to_contain_text("done 2 of 2 attempts done")
        expect(page.locator("[data-live]")).to_have_count(0)


def test_the_matrix_fills_while_it_is_looked_at(page: Page, sqlite_engine: Engine) -> None:
    at = NOW - timedelta(minutes=1)
    given.save(sqlite_engine, given.ISSUES, given.BUILDS)
    given.queue(sqlite_engine, Asked([GOOD], at, issues=[DYNAMO]))
    with served(sqlite_engine) as site:
        page.goto(site)
        expect(page.get_by_role("link", name=f"not run: fla-160 on {GOOD.id}", exact=True)).to_be_visible()
        spec = given.claim(sqlite_engine, at)
        assert spec is not None
        given.begin(sqlite_engine, spec, at)
        for arm in spec.arms:
            given.finish(sqlite_engine, spec, arm, Outcome.PASS, at)
        expect(page.get_by_role("link", name=f"passes: fla-160 on {GOOD.id}", exact=True)).to_be_visible()
        page.goto("about:blank")


def test_a_person_signs_in_and_out_in_a_browser(sqlite_engine: Engine, page: Page) -> None:
    """Real browsers decide by themselves which headers a form is sent with, and which cookies."""
    given.save(sqlite_engine, given.ISSUES, given.BUILDS)
    secret = given.make_token(sqlite_engine, Scope.READ, name="ada")
    with served(sqlite_engine, Rules(reads_need_token=True)) as site:
        page.goto(f"{site}/runs")
        expect(page).to_have_url(re.compile(r"/sign-in\?to=%2Fruns$"))
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{site}/runs")
        page.get_by_role("link", name="ada").click()
        expect(page.get_by_role("heading", name="Signed in as ada")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        page.goto(site)
        expect(page).to_have_url(re.compile(r"/sign-in"))
