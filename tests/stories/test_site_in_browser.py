"""The pages as files, opened from disk in a browser: five stories, axe, and nothing asked outside of the folder."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from knowngood.commands.site.command import write_site
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known
from knowngood.store.knowledge.model import Recorded
from tests.make import HARDWARE
from tests.web.browsing import NARROW, WIDE, WIDTHS, keep_picture, kept_out_by, reading_with
from tests.web.given import BAD, GOOD, MASK, NOW, OLD

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Page, Request, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(notebook: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a site") / "50 % of all + more"  # a path that has to be written otherwise
    folder.mkdir()
    with reading(notebook) as s:
        known = load_known(s, NOW)
    with ThreadPoolExecutor() as aside:  # Playwright has a loop of its own in this thread
        aside.submit(write_site, known, Recorded(), folder, lambda _: None).result()
    return folder


@pytest.fixture(params=[pytest.param(True, id="scripts"), pytest.param(False, id="no scripts", marks=pytest.mark.soak)])
def page(request: pytest.FixtureRequest, browser: Browser, folder: Path) -> Iterator[Page]:
    yield from looking(browser, folder, java_script_enabled=request.param)


@pytest.fixture
def page_with_scripts(browser: Browser, folder: Path) -> Iterator[Page]:
    yield from looking(browser, folder)


def looking(browser: Browser, folder: Path, **settings: object) -> Iterator[Page]:
    """The matrix. Fails where the browser complains, or asks for anything outside of the folder."""
    complaints: list[str] = []
    with reading_with(browser, **settings) as context:
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda asked: complaints.extend(_failed(asked)))
        page.on("request", lambda asked: complaints.extend(_foreign(asked.url, folder)))
        page.goto((folder / "matrix.html").as_uri())
        yield page
    assert complaints == []


def _failed(asked: Request) -> Iterator[str]:
    if asked.failure != "net::ERR_ABORTED":  # the page was left before all of it had come
        yield f"{asked.url}: {asked.failure}"


def _foreign(address: str, folder: Path) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.scheme != "file" or folder not in Path(unquote(parts.path)).parents:
        yield f"{address} was asked for"


def test_an_issue_is_found_by_words(page_with_scripts: Page) -> None:
    page = page_with_scripts
    rows = page.locator("tr.row:visible, .elsewhere li:visible")
    all_ = rows.count()
    assert all_ > 2
    page.keyboard.press("/")
    page.keyboard.type("create_block c++")  # of the title, and of the summary
    expect(page.get_by_role("search").get_by_role("status")).to_have_text(f"1 of {all_} issues")
    expect(rows).to_have_count(1)
    page.get_by_role("searchbox").fill("")
    expect(rows).to_have_count(all_)
    page.get_by_role("searchbox").fill("pytorch-151290")
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="create_block_mask fails").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("create_block_mask fails")


def test_without_scripts_the_whole_list_is_there(browser: Browser, folder: Path) -> None:
    for page in looking(browser, folder, java_script_enabled=False):
        expect(page.get_by_role("searchbox")).to_be_hidden()
        page.get_by_role("link", name="create_block_mask fails").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("create_block_mask fails")


def test_a_cell_of_the_matrix_leads_to_its_section_and_to_the_snippet(page: Page) -> None:
    page.get_by_role("link", name=f"{MASK.id} on {BAD.id}").first.click()
    section = page.locator("section:target")
    expect(section).to_contain_text(f"Fails on {BAD.in_words} (CPU)")
    expect(section).to_be_in_viewport()
    section.get_by_role("link").filter(has_text=MASK.workarounds[0].title).click()
    expect(page.locator("#cure-eager_mask pre")).to_be_visible()
    expect(page.locator("#cure-eager_mask pre")).to_have_text("mask = make()")


def test_two_neighbours_are_compared(page: Page) -> None:
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_role("link", name=f"{BAD.in_words} → {GOOD.in_words}".replace("torch ", "")).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"From {BAD.in_words} to {GOOD.in_words} on CPU")
    fixed = page.locator("section").filter(has=page.locator("h2#fixed"))
    fixed.get_by_role("link", name="create_block_mask fails").click()
    expect(page.locator("section:target h3")).to_contain_text(GOOD.id)


def test_an_upgrade_is_asked_for_from_a_base_on_a_class(page: Page) -> None:
    page.get_by_role("link", name="Upgrade", exact=True).click()
    page.get_by_role("main").get_by_role("link", name=BAD.in_words).click()
    expect(page.locator(".kicker")).to_contain_text(f"You are on {BAD.wheel.in_words}")
    everything = page.get_by_role("heading", level=1).inner_text()
    page.get_by_role("group", name="components").first.get_by_role("link", name=MASK.component, exact=True).click()
    expect(page.locator(".kicker")).to_contain_text(f"({MASK.component})")
    page.get_by_role("group", name="components").first.get_by_role("link", name="all").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(everything)
    page.get_by_role("link", name=BAD.wheel.in_words.removeprefix("torch ")).first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("2.7.1")


def test_a_reader_goes_over_to_chinese_and_back(page: Page) -> None:
    page.get_by_role("link", name="create_block_mask fails").click()
    page.get_by_role("link", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    expect(page.get_by_role("heading", level=1)).to_have_text("create_block_mask 编译失败")
    page.get_by_role("link", name="矩阵").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    page.get_by_role("link", name="create_block_mask 编译失败").click()
    page.get_by_role("link", name="English").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("create_block_mask fails")


def test_keys_move_and_fold_and_ask_nothing(page_with_scripts: Page) -> None:
    page = page_with_scripts
    page.locator("tbody a.q").first.focus()
    page.keyboard.press("c")
    expect(page.locator("[data-status]")).to_have_text("")
    page.keyboard.press("f")
    expect(page.locator("tbody.folded")).to_have_count(1)
    expect(page.locator("tbody .turn").first).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("f")
    page.locator("tbody:not(.folded) a.q").first.hover()
    expect(page.locator("#card")).to_be_visible()
    page.wait_for_timeout(400)  # a card of the server has asked by now


PAGES = {
    "front": "index.html",
    "matrix": "matrix.html",
    "charts": "charts.html",
    "issue": f"issues/{MASK.id}.html",
    "release": "releases/2.7.1.html",
    "comparisons": "compare.html",
    "comparison": f"compare/{BAD.id}.{GOOD.id}.{HARDWARE}.html",
    "upgrades": "upgrade.html",
    "upgrade": f"upgrade/{OLD.id}.{HARDWARE}.html",
    "upgrade of a component": f"upgrade/{OLD.id}.{HARDWARE}.inductor-c.html",
}


def test_no_page_keeps_anybody_out_or_is_wider_than_a_telephone(browser: Browser, folder: Path) -> None:
    found: dict[str, object] = {}
    for page in looking(browser, folder):
        for name, file in PAGES.items():
            page.set_viewport_size(WIDE)
            page.goto((folder / file).as_uri())
            if told := kept_out_by(page):
                found[name] = told
            page.set_viewport_size(NARROW)
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], name
    assert found == {}


@pytest.mark.soak
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_keeps_anybody_out_on_any_screen(browser: Browser, folder: Path, width: str, scheme: str) -> None:
    found: dict[str, object] = {}
    for page in looking(browser, folder, viewport=WIDTHS[width], color_scheme=scheme):
        for name, file in PAGES.items():
            for below in ("", "zh/"):
                page.goto((folder / below / file).as_uri())
                found |= {f"{below}{name}": told for told in [kept_out_by(page)] if told}
                assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]["width"], name
                keep_picture(page, f"site {name} {below.strip('/') or 'en'} {width} {scheme}")
    assert found == {}
