"""The matrix in a real browser: by keys alone, by pointer, by finger, without scripts, on any width, and on paper."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine, connect
from knowngood.web.urls import MATRIX
from tests.fixtures.databases import NewStore
from tests.make import HARDWARE, make_build, make_issue
from tests.web import given
from tests.web.browsing import HUGE, NARROW, WIDE, WIDTHS, kept_out_by, reading_with, served
from tests.web.given import BAD, BUILDS, DYNAMO, GOOD, NEW, NOW, OLD, Asked

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Locator, Page, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

CELL = f"/cells/pytorch-151290/{BAD.id.replace('+', '%2B')}?hardware={HARDWARE}"
HEAD, BAD_HEAD = f"{NEW.id}: 2.9.0", f"{BAD.id}: 2.7.1"
MORE = "More filters, columns and orders"
CURED = f"fails, has a workaround: pytorch-151290 on {BAD.id}"


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with served(notebook) as address:
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails its test where the browser complains: of a script, of the policy, of a missing file."""
    complaints: list[str] = []
    with reading_with(browser, permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
    assert [one for one in complaints if "404" not in one] == []


def cell(page: Page, name: str) -> Locator:
    return page.get_by_role("link", name=name, exact=True)


def focused(page: Page) -> str:
    """The focused element, as it is read out."""
    name: str = page.evaluate(
        "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"
    )
    return name


def test_keys_alone_lead_through_the_whole_matrix(page: Page, site: str) -> None:
    page.goto(f"{site}{MATRIX}?columns=releases&sort=component")
    first = page.locator("tbody a.q").first
    page.locator("#matrix").focus()
    page.keyboard.press("Tab")
    expect(first).to_be_focused()  # one stop for Tab, whatever the number of cells
    told = []
    for key in ("Home", "End", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown", "PageDown", "Control+Home", "PageUp"):
        page.keyboard.press(key)
        told.append(focused(page))
    assert told == [
        "NameError: name 's2' is not defined",  # Home: the issue
        f"not run: fla-160 on {NEW.id}",  # End: the last build
        "Dynamo 1",  # up: the head of the group
        HEAD,  # up: the head of the column
        "Dynamo 1",
        f"not run: fla-160 on {NEW.id}",  # the column is remembered past the group's head
        f"not run: pytorch-154771 on {NEW.id}",  # as far as there is
        "Dynamo 1",
        HEAD,
    ]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('[data-grid]')") is None
    page.keyboard.press("Shift+Tab")
    assert focused(page) == HEAD


def test_enter_opens_the_cell_the_issue_and_the_build(page: Page, site: str) -> None:
    for name, address in (
        (CURED, CELL),
        ('create_block_mask fails: "conflicting declaration"', f"/issues/pytorch-151290?hardware={HARDWARE}"),
        (BAD_HEAD, "/releases/2.7.1"),
    ):
        page.goto(site + MATRIX)
        cell(page, name).focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(site + address)


def test_the_keys_are_told_by_a_key_and_escape_closes_them(page: Page, site: str) -> None:
    page.goto(site + MATRIX)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys in the matrix")
    expect(keys).to_be_visible()
    expect(keys).to_contain_text("PgDn")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    expect(page.locator("dialog:focus-within")).to_have_count(0)  # given back a moment after it is hidden
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("a?b/c")
    expect(page.get_by_role("searchbox")).to_have_value("a?b/c")
    expect(keys).to_be_hidden()


def test_a_card_tells_what_and_when_and_what_helps(page: Page, site: str) -> None:
    page.goto(site + MATRIX)
    card = page.get_by_role("tooltip")
    cell(page, CURED).hover()
    expect(card).to_contain_text("conflicting declaration")
    expect(card).to_contain_text("Make it eagerly")
    expect(card).to_contain_text("ago")
    card.hover()  # whoever wants to read it longer may go there
    page.wait_for_timeout(300)
    expect(card).to_be_visible()
    page.mouse.move(1, 1)
    expect(card).to_be_hidden()


def test_a_card_comes_with_the_focus_describes_the_cell_and_goes_with_escape(page: Page, site: str) -> None:
    page.goto(f"{site}{MATRIX}?sort=component")
    page.locator("#matrix").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(cell(page, CURED)).to_be_focused()
    expect(page.get_by_role("tooltip")).to_contain_text("2 of 2 attempts ended with the issue's own signature")
    expect(cell(page, CURED)).to_have_accessible_description(re.compile("conflicting declaration"))
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_be_hidden()


def test_a_finger_sees_the_card_first_and_opens_the_cell_with_a_second_touch(browser: Browser, site: str) -> None:
    with reading_with(browser, viewport=NARROW, has_touch=True, is_mobile=True) as context:
        page = context.new_page()
        page.goto(f"{site}{MATRIX}?view=squares")
        cell(page, CURED).tap()
        card = page.get_by_role("tooltip")
        expect(card).to_contain_text("conflicting declaration")
        assert page.url == f"{site}{MATRIX}?view=squares"
        page.locator("h1").tap()
        expect(card).to_be_hidden()
        cell(page, CURED).tap()
        expect(card).to_be_visible()
        cell(page, CURED).tap()
        expect(page).to_have_url(site + CELL)


def test_a_group_folds_to_a_strip_and_the_address_says_so(page: Page, site: str) -> None:
    page.goto(f"{site}{MATRIX}?columns=releases&sort=component")
    row = page.get_by_role("link", name="bmm gives wrong numbers")
    expect(row).to_be_visible()
    turn = page.locator("#matrix").get_by_role("link", name="Inductor C++")
    expect(turn).to_have_attribute("aria-expanded", "true")
    turn.click()
    expect(row).to_be_hidden()
    expect(turn).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".folded .stack").first).to_be_visible()
    expect(page).to_have_url(f"{site}{MATRIX}?columns=releases&sort=component&fold=Inductor+C%2B%2B")
    assert "fold=Inductor" in (page.locator(".switches a", has_text="minors").get_attribute("href") or "")
    page.reload()
    expect(row).to_be_hidden()
    page.locator("#matrix").get_by_role("link", name="Inductor C++").click()  # now its rows are asked of the server
    expect(row).to_be_visible()
    expect(page).to_have_url(re.compile(r"/matrix\?columns=releases&sort=component#group-2$"))


def test_a_large_view_is_opened_whole_and_its_address_keeps_saying_so(page: Page, own_engine: Engine) -> None:
    issues = [make_issue(f"toy-{name}-{n}", component=name) for name in ("Export", "Inductor") for n in range(42)]
    given.save(own_engine, issues, [make_build(f"2.{minor}.0+cu124") for minor in range(100)])
    with served(own_engine) as site:
        page.goto(f"{site}{MATRIX}?columns=all&sort=component")
        turn = page.locator('.turn[data-name="Inductor"]')  # by its name it would be sought among 8,400 links
        expect(turn).to_have_attribute("aria-expanded", "false")
        page.get_by_text(MORE).click()
        page.locator("a[data-folds]", has_text="open all groups").click()
        page.wait_for_url(f"{site}{MATRIX}?columns=all&fold=none&sort=component")
        expect(turn).to_have_attribute("aria-expanded", "true")
        turn.click()
        expect(page).to_have_url(f"{site}{MATRIX}?columns=all&sort=component&fold=Inductor")
        turn.click()
        expect(page).to_have_url(f"{site}{MATRIX}?columns=all&sort=component&fold=none")
        expect(page.locator('input[name="fold"]')).to_have_value("none")


def test_a_group_is_folded_and_opened_by_keys(page: Page, site: str) -> None:
    page.goto(f"{site}{MATRIX}?sort=component")
    cell(page, CURED).focus()
    page.keyboard.press("f")
    turn = page.locator("#matrix").get_by_role("link", name="Inductor C++")
    expect(turn).to_be_focused()
    expect(cell(page, CURED)).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(cell(page, CURED)).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(cell(page, CURED)).to_be_hidden()
    page.keyboard.press("ArrowUp")
    assert focused(page).endswith("fla-160 on " + BAD.id)


def test_two_columns_are_compared_by_shift_and_click_or_by_keys(page: Page, site: str) -> None:
    compared = re.compile(
        rf"/compare\?a={re.escape(OLD.id.replace('+', '%2B'))}&b={re.escape(GOOD.id.replace('+', '%2B'))}&hardware="
    )
    page.goto(site + MATRIX)
    page.locator(f'th[data-build="{OLD.id}"] a.head').click(modifiers=["Shift"])
    expect(page.get_by_role("status")).to_contain_text(f"{OLD.id} is one of two to compare")
    page.locator(f'th[data-build="{GOOD.id}"] a.head').click(modifiers=["Shift"])
    expect(page).to_have_url(compared)
    page.goto(site + MATRIX)
    cell(page, f"passes: fla-160 on {GOOD.id}").focus()
    page.keyboard.press("c")
    page.keyboard.press("Escape")
    expect(page.locator("[data-status]")).to_be_empty()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("c")
    page.keyboard.press("End")
    page.keyboard.press("c")
    expect(page).to_have_url(compared)


def test_a_view_is_copied_as_its_address_and_as_markdown(page: Page, site: str) -> None:
    page.goto(f"{site}{MATRIX}?q=bmm")
    page.get_by_role("link", name="copy link").click()
    expect(page.get_by_role("link", name="copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{site}{MATRIX}?q=bmm&hardware={HARDWARE}"
    page.get_by_role("link", name="copy as Markdown").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.startsWith('**1 issue '))")
    expect(page.get_by_role("link", name="copy link")).to_be_visible()
    expect(page.get_by_role("link", name="copy as Markdown")).to_be_visible()


def test_a_run_fills_cells_under_a_readers_eyes_and_moves_nothing(page: Page, own_engine: Engine) -> None:
    at = NOW - timedelta(minutes=1)
    given.save(own_engine, given.ISSUES, BUILDS)
    given.queue(own_engine, Asked([GOOD], at, issues=[DYNAMO]))
    with served(own_engine) as site:
        page.goto(f"{site}{MATRIX}?columns=releases&sort=component")
        cell(page, f"not run: fla-160 on {GOOD.id}").focus()
        page.evaluate("window.kept = document.activeElement")
        spec = given.claim(own_engine, at)
        assert spec is not None
        given.begin(own_engine, spec, at)
        given.finish(own_engine, spec, spec.arms[0], Outcome.PASS, at)
        expect(page.locator(".banner")).to_contain_text("1 of 2 attempts done")
        given.finish(own_engine, spec, spec.arms[1], Outcome.PASS, at)
        expect(cell(page, f"passes: fla-160 on {GOOD.id}")).to_be_visible()
        assert page.evaluate("document.activeElement === window.kept")
        page.goto("about:blank")


def test_without_scripts_all_of_it_is_links_and_words(browser: Browser, site: str) -> None:
    with reading_with(browser, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{site}{MATRIX}?columns=all&sort=component")
        expect(page.get_by_role("button", name="keys")).to_be_hidden()
        expect(page.get_by_role("dialog")).to_be_hidden()
        page.locator("#matrix").get_by_role("link", name="Inductor C++").click()
        expect(cell(page, CURED)).to_have_count(0)
        expect(page.locator(".folded .stack").first).to_be_visible()
        page.locator("#matrix").get_by_role("link", name="Inductor C++").click()
        target = cell(page, CURED)
        target.focus()
        assert page.evaluate("getComputedStyle(document.activeElement, '::after').content").startswith('"fails')
        with page.expect_download() as download:
            page.get_by_role("link", name="download CSV").click()
        assert download.value.suggested_filename == "knowngood-2026-11-21.csv"
        target.click()
        expect(page).to_have_url(site + CELL)


@pytest.mark.parametrize("width", ["360", *(pytest.param(one, marks=pytest.mark.soak) for one in ("1280", "2560"))])
@pytest.mark.parametrize("view", [f"{MATRIX}?columns=all", f"{MATRIX}?columns=all&fold=all&lang=zh"])
def test_nothing_is_wider_than_the_window(browser: Browser, site: str, width: str, view: str) -> None:
    with reading_with(browser, viewport=WIDTHS[width]) as context:
        page = context.new_page()
        page.goto(site + view)
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]["width"]


def test_on_a_telephone_each_issue_is_a_card_with_its_strip(browser: Browser, site: str) -> None:
    with reading_with(browser, viewport=NARROW) as context:
        page = context.new_page()
        page.goto(f"{site}{MATRIX}?columns=releases&view=squares")
        expect(page.locator("a.head").first).to_be_hidden()
        row = page.locator("tr.row", has_text="bmm gives wrong numbers")
        label, square = row.locator("td").first, row.locator("a.q").first
        assert label.evaluate("one => getComputedStyle(one, '::before').content") == '"2.5.1"'
        row_box, square_box, title_box = row.bounding_box(), square.bounding_box(), row.locator("th").bounding_box()
        assert row_box is not None
        assert square_box is not None
        assert title_box is not None
        assert 320 <= row_box["width"] <= 360  # the whole width but its margins
        assert title_box["y"] < square_box["y"]
        assert square_box["width"] >= 24  # WCAG 2.2, 2.5.8: what a finger is to hit
        assert square_box["height"] >= 24


@pytest.fixture(scope="module")
def wide_site(new_store: NewStore) -> Iterator[str]:
    """40 issues x 40 builds, of which nothing is measured: larger than any window both ways."""
    engine = connect(new_store())
    issues = [make_issue(f"toy-{n}", title=f"An issue with a title of some length, number {n}") for n in range(1, 41)]
    given.save(engine, issues, [make_build(f"2.{minor}.0+cu124") for minor in range(1, 41)])
    with served(engine) as address:
        yield address
    engine.dispose()


def test_heads_and_titles_stay_while_the_rest_is_scrolled(browser: Browser, wide_site: str) -> None:
    with reading_with(browser, viewport=WIDE) as context:
        page = context.new_page()
        page.goto(wide_site + MATRIX)
        places = """() => {
          const box = (found) => {
            const at = document.querySelector(found).getBoundingClientRect();
            return [at.x, at.y];
          };
          return { scroller: box("#matrix"), corner: box(".corner"), head: box("a.head"), title: box("tr.row th") };
        }"""
        before = page.evaluate(places)
        page.locator("#matrix").evaluate("one => one.scrollTo(300, 500)")
        after = page.evaluate(places)
        assert after["corner"] == before["corner"]
        assert after["head"] == [before["head"][0] - 300, before["head"][1]]
        assert after["title"] == [before["title"][0], before["title"][1] - 500]
        # Rows out of sight are left out of the layout, but of paper.
        assert page.locator("tr.row").first.evaluate("one => getComputedStyle(one).contentVisibility") == "auto"
        page.emulate_media(media="print")
        assert page.locator("tr.row").first.evaluate("one => getComputedStyle(one).contentVisibility") == "visible"
        assert page.locator(".matrix thead").evaluate("one => getComputedStyle(one).display") == "table-header-group"


def test_what_the_keys_lead_to_is_never_under_the_frozen_heads(browser: Browser, wide_site: str) -> None:
    with reading_with(browser, viewport=WIDE) as context:
        page = context.new_page()
        page.goto(wide_site + MATRIX)
        page.locator("tbody a.q").first.focus()
        hit = """() => {
          const at = document.activeElement.getBoundingClientRect();
          const hit = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
          return document.activeElement.contains(hit);
        }"""
        for key in ("Control+End", "PageUp", "PageUp", "Home", "End", "ArrowLeft", "Home", "ArrowRight"):
            page.keyboard.press(key)
            page.wait_for_function(hit)  # rows that come into sight are laid out in the next frame


def test_it_is_printed_on_its_side_and_every_sheet_has_the_heads(browser: Browser, wide_site: str) -> None:
    with reading_with(browser, viewport=WIDE) as context:
        page = context.new_page()
        page.goto(f"{wide_site}{MATRIX}?builds={','.join(f'torch-2.{n}.0%2Bcu124' for n in range(1, 13))}")
        sheets = page.pdf(prefer_css_page_size=True)
    sizes = re.findall(rb"/MediaBox \[([0-9. ]+)\]", sheets)
    assert len(sizes) > 1
    for size in sizes:
        _, _, width, height = (float(one) for one in size.split())
        assert width > height


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", [f"{MATRIX}?columns=all", f"{MATRIX}?fold=all"])
def test_nobody_is_kept_out_of_any_view(browser: Browser, site: str, scheme: str, view: str) -> None:
    with reading_with(browser, color_scheme=scheme, viewport=HUGE) as context:
        page = context.new_page()
        page.goto(site + view)
        assert kept_out_by(page) == []


_SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
  }).observe({ type: "layout-shift", buffered: true });
}"""


@pytest.mark.parametrize("width", [360, *(pytest.param(one, marks=pytest.mark.soak) for one in (768, 1440))])
def test_nothing_moves_while_the_matrix_is_loaded_and_scrolled(browser: Browser, wide_site: str, width: int) -> None:
    """On a processor slowed by four; 0.1 is what readers begin to mind."""
    with reading_with(browser, viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        page.add_init_script(f"({_SHIFTS})()")
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
        page.goto(wide_site + MATRIX)
        for _ in range(3):
            page.mouse.wheel(0, 1500)
            page.wait_for_timeout(300)
        assert page.evaluate("window.shifted") < 0.05


@pytest.mark.parametrize("width", ["360", *(pytest.param(one, marks=pytest.mark.soak) for one in ("1280", "2560"))])
def test_the_legend_is_in_sight_from_the_first_moment_and_wherever_one_reads(
    browser: Browser, wide_site: str, width: str
) -> None:
    with reading_with(browser, viewport=WIDTHS[width]) as context:
        page = context.new_page()
        page.goto(wide_site + MATRIX)
        line = page.get_by_role("group", name="Signs")
        expect(line).to_be_in_viewport(ratio=0.9)
        page.mouse.wheel(0, 2000)
        expect(line).to_be_in_viewport(ratio=0.9)
        box = line.bounding_box()
        assert box is not None
        assert box["height"] < (64 if width == "1280" else 48), "one line; two where not all words fit into one"


def test_a_reader_narrows_by_clicks_alone_and_without_scripts(browser: Browser, site: str) -> None:
    with reading_with(browser, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(site + MATRIX)
        page.get_by_text(MORE).click()
        page.get_by_role("group", name="component").get_by_role("link", name="Inductor C++").click()
        page.get_by_role("group", name="status").get_by_role("link", name=re.compile(r"^fails \d")).click()
        assert page.get_by_role("searchbox").input_value() == 'component:"=Inductor C++" status:affected'
        expect(page.locator("tr.row")).to_have_count(2)
        page.get_by_role("group", name="status").get_by_role("link", name=re.compile(r"^fails \d")).click()
        assert page.get_by_role("searchbox").input_value() == 'component:"=Inductor C++"'
