"""The story of an engineer with a stack trace: paste it, read what it is, take the workaround along, read the issue."""

from collections.abc import Iterator

import pytest

from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX
from tests.web.browsing import NARROW, SCHEMES, SCREENS, WIDTHS, keep_picture, kept_out_by, reading_with, served
from tests.web.given import BAD, GOOD, LINE
from tests.web.notebooks import NOTEBOOKS, Notebook

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

REPORT = f"""\
> [rank0]: Traceback (most recent call last):
> [rank0]:   File "/u/lib/python3.11/site-packages/torch/_inductor/codecache.py", line 7, in load
> [rank0]: \x1b[31m{LINE}\x1b[0m
PyTorch version: 2.7.1+cu126
CUDA used to build PyTorch: 12.6
"""


@pytest.fixture(scope="module")
def site(notebook: Engine) -> Iterator[str]:
    with served(notebook) as address:
        yield address


@pytest.mark.parametrize(("width", "has_scripts"), SCREENS)
def test_a_pasted_error_leads_to_its_workaround_and_its_issue(
    browser: Browser, site: str, width: str, *, has_scripts: bool
) -> None:
    with reading_with(browser, viewport=WIDTHS[width], java_script_enabled=has_scripts) as context:
        if has_scripts:
            context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.goto(site + MATRIX)
        page.locator("details.more summary").click()
        page.get_by_role("link", name="Paste an error").click()
        page.get_by_label("Traceback or log").fill(REPORT)
        page.get_by_role("button", name="Look it up").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("We know this one")
        expect(page.locator(".lead")).to_contain_text(BAD.id)
        known = page.locator("section.known", has_text="pytorch-151290")
        expect(known.locator("mark")).to_have_text(LINE)
        first = known.locator(".remedy").first
        expect(first).to_contain_text("Make it eagerly")
        expect(first).to_contain_text("works")
        expect(first.locator("pre")).to_be_visible()  # the one that works stands open, also without scripts
        if has_scripts:
            first.get_by_role("button", name="copy").click()
            assert page.evaluate("navigator.clipboard.readText()") == "mask = make()"
            assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]["width"]
        keep_picture(page, f"paste-{width}-{'scripts' if has_scripts else 'plain'}")

        known.get_by_role("heading", level=2).get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("create_block_mask fails")
        assert page.url.startswith(f"{site}/issues/pytorch-151290")


@pytest.mark.parametrize("has_scripts", [pytest.param(True, marks=pytest.mark.soak), False])
@pytest.mark.parametrize(
    ("path", "form", "text"),
    [
        ("/errors", "form.paste", REPORT),
        ("/", "form.ask", REPORT),
        ("/", "form.ask", "torch==9.9.9\nnumpy==2.0.0\n"),
        ("/upgrade", "form.pasted", "torch==9.9.9\nnumpy==2.0.0\n"),
    ],
)
def test_the_language_can_be_changed_without_pasting_again(
    browser: Browser, site: str, path: str, form: str, text: str, *, has_scripts: bool
) -> None:
    with reading_with(browser, java_script_enabled=has_scripts, locale="en") as context:
        page = context.new_page()
        page.goto(f"{site}{path}")
        page.locator(f"{form} textarea").fill(text)
        page.locator(f"{form} button").first.click()
        told = page.locator("mark, .banner").first
        english = told.inner_text()
        page.get_by_role("button", name="中文").click()
        expect(page.locator("html")).to_have_attribute("lang", "zh")
        assert (told.inner_text() == english) is (english == LINE)
        page.get_by_role("button", name="English").click()
        expect(told).to_contain_text(english.splitlines()[0])
        page.goto(f"{site}/matrix")
        expect(page.locator("html")).to_have_attribute("lang", "en")


def test_the_build_can_be_changed_without_pasting_again(browser: Browser, site: str) -> None:
    with reading_with(browser) as context:
        page = context.new_page()
        page.goto(f"{site}/errors")
        page.get_by_label("Traceback or log").fill(REPORT)
        page.get_by_role("button", name="Look it up").click()
        expect(page.get_by_label("Traceback or log")).to_have_value(REPORT)
        page.get_by_label("Your build").fill(GOOD.id)
        page.get_by_role("button", name="Look it up").click()
        expect(page.locator(".lead")).to_contain_text(GOOD.id)
        expect(page.locator("section.known", has_text="pytorch-151290")).to_contain_text("passes")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_answer_keeps_anybody_out(browser: Browser, site: str, scheme: str) -> None:
    with reading_with(browser, color_scheme=scheme, viewport=NARROW) as context:
        page = context.new_page()
        for text in (REPORT, "my sums are wrong once compiled", "KeyError: 'x'"):
            page.goto(f"{site}/errors")
            page.get_by_label("Traceback or log").fill(text)
            page.get_by_role("button", name="Look it up").click()
            expect(page.get_by_role("heading", name="Paste another")).to_be_visible()
            assert kept_out_by(page) == [], text
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], text


@pytest.mark.parametrize("notebook", NOTEBOOKS.values(), ids=list(NOTEBOOKS))
def test_whatever_an_issue_says_overflows_nothing(browser: Browser, own_engine: Engine, notebook: Notebook) -> None:
    notebook.fill(own_engine)
    with served(own_engine) as address, reading_with(browser, viewport=NARROW) as context:
        page = context.new_page()
        page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
        page.goto(f"{address}/errors")
        page.get_by_label("Traceback or log").fill(
            f"{REPORT}{'x' * 10_000}\n<script>alert(1)</script>\u202e{'y ' * 500}"
        )
        page.get_by_role("button", name="Look it up").click()
        expect(page.get_by_role("heading", name="Paste another")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


def test_keys_alone_are_enough(browser: Browser, site: str) -> None:
    with reading_with(browser) as context:
        page = context.new_page()
        page.goto(f"{site}/errors")
        page.get_by_label("Traceback or log").focus()
        page.keyboard.insert_text(REPORT)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("We know this one")
