"""A first-time reader at the front door: the answers lie where they are seen, nothing moves, and nobody is kept out."""

from collections.abc import Iterator

import pytest

from knowngood.store.engine import Engine, connect
from tests.fixtures.databases import NewStore
from tests.web import browsing
from tests.web.browsing import SCREENS, WIDTHS, kept_out_by, reading_with

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Page, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

ANSWERS = {
    "what is this": "#what",
    "where do I paste": "#ask button",
    "which releases are there": "#recent",
    "what is new": "#new",
    "what is still wrong": "#wrong",
}
SEEN = {1440: 900, 390: 1600}
"""How far down the first screen goes, by width."""

_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({ type: "layout-shift", buffered: true });
"""


@pytest.fixture(scope="module")
def site(shipped_store: str, new_store: NewStore) -> Iterator[str]:
    """With all shipped evidence: what lies where depends on how much there is."""
    engine: Engine = connect(new_store(shipped_store))
    with browsing.served(engine) as address:
        yield address
    engine.dispose()


def bottom(page: Page, place: str) -> float:
    found: float = page.locator(place).evaluate("(one) => one.getBoundingClientRect().bottom + window.scrollY")
    return found


@pytest.mark.parametrize(
    ("address", "width"),
    [
        ("/?mine=2.7.1&gpu=H100", 390),
        ("/?mine=2.7.1&gpu=H100", 1440),
        ("/?mine=2.5.1&lang=zh", 390),
        *(
            pytest.param(*one, marks=pytest.mark.soak)
            for one in (
                ("/", 390),
                ("/", 1440),
                ("/?mine=2.7.1", 390),
                ("/?mine=2.7.1", 1440),
                ("/?mine=2.5.1&lang=zh", 1440),
            )
        ),
    ],
)
def test_what_a_stranger_asks_is_answered_on_the_first_screen(
    browser: Browser, site: str, width: int, address: str
) -> None:
    with reading_with(browser, viewport={"width": width, "height": 900}) as context:
        context.add_init_script(_SHIFTS)
        page = context.new_page()
        page.goto(site + address)
        page.wait_for_load_state("networkidle")
        assert {
            question: bottom(page, place) for question, place in ANSWERS.items() if bottom(page, place) > SEEN[width]
        } == {}
        assert page.evaluate("window.shifted") < 0.001  # a line that comes in two pieces may move by a pixel
        assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["360", pytest.param("1280", marks=pytest.mark.soak)])
def test_nobody_is_kept_out(browser: Browser, site: str, scheme: str, width: str) -> None:
    with reading_with(browser, color_scheme=scheme, viewport=WIDTHS[width]) as context:
        page = context.new_page()
        page.goto(f"{site}/my-build")
        assert kept_out_by(page) == []
        page.goto(f"{site}/?mine=2.7.1&gpu=H100")
        page.locator("details.more summary").click()  # the menu lies over what is under it
        assert kept_out_by(page) == []


def test_the_header_is_one_line_and_two_short_ones_on_a_phone(browser: Browser, site: str) -> None:
    with reading_with(browser) as context:
        page = context.new_page()
        for address in (
            "/",
            "/?mine=torch-2.7.1%2Bcu126&gpu=cuda-sm_90",
            "/?lang=zh&mine=torch-2.7.1%2Bcu126&gpu=H100",
        ):
            page.goto(site + address)
            for width, most in ((1280, 60), (1440, 60), (768, 84), (360, 84)):
                page.set_viewport_size({"width": width, "height": 900})
                assert bottom(page, "header.top") <= most, (address, width)


@pytest.mark.parametrize(("width", "scripts"), SCREENS)
def test_say_what_you_have_and_read_where_to_go(browser: Browser, site: str, width: str, scripts: bool) -> None:
    with reading_with(browser, viewport=WIDTHS[width], java_script_enabled=scripts) as context:
        page = context.new_page()
        page.goto(site)
        page.locator("header").get_by_role("link", name="choose your build").click()
        page.get_by_role("combobox", name="Build").fill("2.5.1")
        page.get_by_role("button", name="Keep it").click()
        page.get_by_role("link", name="Your environment (").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("known issues fail here")
        expect(page.locator("main")).to_contain_text("torch 2.5.1 (CUDA 12.4)")
        expect(page.locator("header")).to_contain_text("torch 2.5.1 cu124")
        page.locator("details.more summary").click()
        page.get_by_role("navigation").get_by_role("link", name="Runs").click()
        expect(page.locator("header")).to_contain_text("torch 2.5.1 cu124")


def test_enter_sends_the_box_and_a_paste_keeps_its_lines(browser: Browser, site: str) -> None:
    with reading_with(browser) as context:
        page = context.new_page()
        page.goto(site)
        expect(page.locator("#q")).to_be_focused()
        page.keyboard.type("one")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("two")
        expect(page.locator("#q")).to_have_value("one\ntwo")
        with page.expect_request(lambda request: request.method == "POST") as sent:
            page.keyboard.press("Enter")
        assert sent.value.url == f"{site}/search"
        assert sent.value.post_data == "q=one%0D%0Atwo"


def test_the_rest_of_the_navigation_opens_and_closes_by_keyboard(browser: Browser, site: str) -> None:
    with reading_with(browser) as context:
        page = context.new_page()
        page.goto(site + "/runs")
        more = page.locator("details.more")
        more.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(more.get_by_role("link", name="Coverage")).to_be_visible()
        page.keyboard.press("Escape")
        expect(more.get_by_role("link", name="Coverage")).to_be_hidden()
        expect(more.locator("summary")).to_be_focused()
