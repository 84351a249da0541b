"""A real browser and a real server, for tests of what readers see."""

import os
import shutil
from asyncio import _set_running_loop, get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from knowngood.store.engine import Engine
from knowngood.web.auth.principal import SESSION_COOKIE, AccessPolicy
from tests import serving
from tests.waiting import PATIENCE_S
from tests.web.asking import app_over

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, ViewportSize, expect, sync_playwright  # noqa: E402 - after the skip

expect.set_options(timeout=1000 * PATIENCE_S)

WIDE, NARROW, HUGE = (
    ViewportSize(width=width, height=height) for width, height in ((1280, 900), (360, 740), (2560, 1300))
)
WIDTHS = {"360": NARROW, "1280": WIDE, "2560": HUGE}
SCREENS = [
    pytest.param(
        width,
        has_scripts,
        id=f"{width}, {'with' if has_scripts else 'without'} scripts",
        marks=() if has_scripts or width != "360" else pytest.mark.soak,
    )
    for width in WIDTHS
    for has_scripts in (True, False)
]
"""The screens of stories; one that is like the others is left to `make soak`."""
SCHEMES = ("light", "dark")

PICTURES = "KNOWNGOOD_PICTURES"
"""The environment variable that names the folder for pictures of every page; unset: none are kept."""


@contextmanager
def served(engine: Engine, rules: AccessPolicy | None = None) -> Iterator[str]:
    """The application behind a real server on a free port."""
    with serving.served(app_over(engine, rules=rules)) as site:
        yield site


class Chromium:
    """The browser of a test process. One that crashed (seen on a full machine, 2026-11) is started anew."""

    def __init__(self, driver: Playwright, executable: str) -> None:
        self._kind, self._executable = driver.chromium, executable
        self._loop = get_running_loop()
        self._browser = self._started()

    def _started(self) -> Browser:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        arguments += ["--in-process-gpu", "--renderer-process-limit=1"]  # a new process for each page costs more
        return self._kind.launch(executable_path=self._executable, args=arguments)

    @contextmanager
    def at_hand(self) -> Iterator[Browser]:
        """Playwright leaves its loop behind as the one that runs; a test without a browser may want one of its own."""
        _set_running_loop(self._loop)
        try:
            if not self._browser.is_connected():
                self._browser = self._started()
            yield self._browser
        finally:
            _set_running_loop(None)

    def close(self) -> None:
        _set_running_loop(self._loop)
        self._browser.close()


# The first is the same engine without the windows that nobody sees: half the processor (Debian 12, 2026-11).
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")


@contextmanager
def opened_chromium() -> Iterator[Chromium]:
    executable = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if executable is None:
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as driver:
        chromium = Chromium(driver, executable)
        _set_running_loop(None)
        yield chromium
        chromium.close()


@contextmanager
def reading_with(browser: Browser, **settings: object) -> Iterator[BrowserContext]:
    context = browser.new_context(**{"viewport": WIDE, **settings})  # type: ignore[arg-type]
    context.set_default_timeout(1000 * PATIENCE_S)
    yield context
    context.close()


def signed_in(context: BrowserContext, site: str, token: str) -> BrowserContext:
    """The same reader after the sign-in form."""
    page = context.new_page()
    page.goto(f"{site}/sign-in")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()  # a page that is closed while it loads may never say that it is closed
    assert any(one.get("name") == SESSION_COOKIE for one in context.cookies()), page.inner_text("main")
    page.goto("about:blank")
    page.close()
    return context


_AXE = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
# Of what it found sound axe tells nothing, which is most of its work.
_TELL = {"resultTypes": ["violations"], "selectors": False, "preload": False}
# Off in axe unless asked for.
_MORE_RULES = {"target-size": {"enabled": True}, "label-content-name-mismatch": {"enabled": True}}


def kept_out_by(page: Page, **options: object) -> list[str]:
    """What axe finds on the page as it stands, minor things included; by all its rules unless `options` name some."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE)
    options = _TELL | {"rules": _MORE_RULES} | options if "runOnly" not in options else _TELL | options
    violations = page.evaluate("async (options) => (await axe.run(document, options)).violations", options)
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:160]} {_colours(node)}"
        for one in violations
        for node in one["nodes"]
    ]


def _colours(node: dict[str, list[dict[str, dict[str, object]]]]) -> str:
    data = next((check["data"] for check in node["any"] if check.get("data")), None) or {}
    return " ".join(f"{name}={data[name]}" for name in ("fgColor", "bgColor", "contrastRatio") if name in data)


def keep_picture(page: Page, name: str) -> None:
    """A picture of the whole page in the folder that KNOWNGOOD_PICTURES names; a PNG takes more than twice the time."""
    folder = os.environ.get(PICTURES)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.jpeg", type="jpeg", full_page=True)
