"""Seven questions that people come with, asked by somebody who was never here, and counted in actions: a click, a paste
or an Enter each. Over all shipped evidence, at three widths, with scripts and without.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from knowngood.store.engine import connect
from tests.fixtures.databases import NewStore
from tests.web import browsing
from tests.web.browsing import reading_with

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Locator, Page, expect  # noqa: E402 - after the skip

pytestmark = pytest.mark.browser

ERROR = """
torch._inductor.exc.InductorError: CppCompileError: C++ compile error
/tmp/torchinductor_me/x.cpp:26:49: error: conflicting declaration 'int64_t tmp_acc0_arr [8]'
Versions: torch 2.7.1+cu126, Python 3.11
"""
FROZEN = "filelock==3.16.1\nnumpy==2.1.3\ntorch==2.7.1\ntriton==3.3.1\nsympy==1.14.0\n"


@dataclass
class Reader:
    """Somebody with a fresh profile at the front door; `actions` is what they did so far."""

    page: Page
    has_scripts: bool
    actions: int = 0

    @property
    def box(self) -> Locator:
        return self.page.locator("#q")

    def ask(self, text: str) -> None:
        """Writing costs no action; an Enter does, and where no script hears it the button."""
        self.box.fill(text)
        self.send()

    def paste(self, text: str) -> None:
        self.box.fill(text)
        self.actions += 1
        self.click(self.page.get_by_role("button", name="Answer"))

    def send(self) -> None:
        if self.has_scripts:
            self.box.press("Enter")
            self.actions += 1
        else:
            self.click(self.page.get_by_role("button", name="Answer"))

    def click(self, what: Locator) -> None:
        what.click()
        self.actions += 1
        self.page.wait_for_load_state()


@pytest.fixture(scope="module")
def site(shipped_store: str, new_store: NewStore) -> Iterator[str]:
    engine = connect(new_store(shipped_store))
    with browsing.served(engine) as address:
        yield address
    engine.dispose()


SCREENS = [
    (360, True),
    (768, True),
    (1440, True),
    (360, False),
    *(pytest.param((width, False), marks=pytest.mark.soak) for width in (768, 1440)),  # what scripts add needs no room
]


@pytest.fixture(params=SCREENS, ids=str)
def reader(request: pytest.FixtureRequest, browser: Browser, site: str) -> Iterator[Reader]:
    width, scripts = request.param
    with reading_with(browser, viewport={"width": width, "height": 900}, java_script_enabled=scripts) as context:
        page = context.new_page()
        page.goto(site)
        yield Reader(page, scripts)


def test_an_error_with_a_version_is_answered_by_code_that_works(reader: Reader) -> None:
    reader.paste(ERROR)
    page = reader.page
    expect(page.get_by_role("heading", level=1)).to_contain_text("We know this one")
    expect(page.locator("main")).to_contain_text("torch-2.7.1+cu126")
    expect(page.locator("pre.code").first).to_contain_text("torch")
    assert reader.actions <= 2


def test_a_number_is_answered_by_what_to_do_on_my_build(reader: Reader) -> None:
    reader.ask("#151290 2.7.1")
    page = reader.page
    if "/search" in page.url:
        reader.click(page.locator("main a[href^='/issues/pytorch-151290']").first)
    expect(page.get_by_role("heading", level=1)).to_contain_text("conflicting declaration")
    expect(page.locator("main")).to_contain_text("torch-2.7.1+cu126")
    expect(page.locator("pre.code").first).to_be_visible()
    assert reader.actions <= 2


def test_a_build_a_gpu_and_a_component_lead_to_the_next_build_and_the_note(reader: Reader) -> None:
    """Where too little was measured the honest answer is which runs would tell."""
    reader.ask("2.5.1 H100 flex_attention")
    page = reader.page
    reader.click(page.locator("main a[href^='/upgrade']").first)
    said = page.get_by_role("heading", level=1).inner_text()
    assert said.startswith(("Go to torch ", "Stay on torch ", "Cannot say yet")), said
    if said.startswith("Go to"):
        expect(page.locator(".note").first).to_contain_text("torch 2.5.1 (CUDA 12.4)")
    else:
        expect(page.locator("main")).to_contain_text("knowngood run")
    assert reader.actions <= 4


def test_the_form_asks_for_a_build_a_gpu_a_component_and_a_package_at_once(reader: Reader) -> None:
    page = reader.page
    reader.click(page.get_by_role("link", name="Upgrade", exact=True).first)
    page.get_by_label("You are on").fill("2.5.1")
    page.get_by_label("Hardware").select_option("H100")
    page.get_by_label("What you use").fill("flex_attention, torch_xla")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("with torch-xla")
    expect(page.locator(".kicker")).to_contain_text("FlexAttention, torch-xla")
    expect(page.locator(".kicker")).to_contain_text("H100")
    expect(page.locator(".lead")).to_contain_text("There is no torch-xla for torch 2.10 and newer")
    assert reader.actions + len(["the GPU is chosen", "Enter"]) <= 4


def test_a_build_and_a_component_lead_to_the_next_build_and_the_note(reader: Reader) -> None:
    reader.ask("2.5.1 cpu inductor")
    page = reader.page
    reader.click(page.locator("main a[href^='/upgrade']").first)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Go to torch ")
    expect(page.locator(".note").first).to_contain_text("torch 2.5.1 (CUDA 12.4)")
    assert reader.actions <= 4


def test_two_versions_are_answered_by_what_changed(reader: Reader) -> None:
    reader.ask("2.7.1 -> 2.8.0")
    page = reader.page
    expect(page).to_have_url(re.compile(r"/compare\?a=torch-2\.7\.1.*b=torch-2\.8\.0"))
    expect(page.locator("main")).to_contain_text("Fixed")
    assert reader.actions <= 3


def test_what_fails_on_a_gpu_without_a_workaround_is_told(reader: Reader) -> None:
    reader.ask("fails H100 2.11 no workaround")
    page = reader.page
    if "/search" in page.url:
        reader.click(page.locator("main a[href^='/matrix']").first)
    expect(page).to_have_url(re.compile("hardware=cuda-sm_90"))
    expect(page.locator("main")).not_to_contain_text("Nothing is measured")
    assert page.locator("main").inner_text()
    assert reader.actions <= 3


def test_the_answer_for_my_build_is_shared_from_its_page(reader: Reader, site: str) -> None:
    page = reader.page
    page.goto(f"{site}/?mine=2.7.1")
    reader.click(page.get_by_role("link", name="Your environment"))
    link = page.get_by_role("link", name="copy link")
    address = link.get_attribute("href") or ""
    reader.click(link)
    assert address.startswith("/environment?")
    assert "2.7.1" in address
    assert reader.actions <= 2


def test_my_environment_is_judged_by_its_pip_freeze(reader: Reader) -> None:
    reader.paste(FROZEN)
    page = reader.page
    expect(page.locator("h1")).to_contain_text("fail")
    expect(page.locator(".parts")).to_contain_text("torch 2.7.1 (CUDA 12.6)")
    expect(page.locator("ol.todo pre").first).to_be_visible()
    assert reader.actions <= 2
