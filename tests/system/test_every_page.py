"""Every page there is, at every edge: sound HTML, nothing of what people wrote is executed, nothing overflows, and
nobody is kept out by a theme.

Pages are found in the application, so that one which is added later is looked at too.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from starlette.testclient import TestClient

from knowngood.store.engine import Engine, connect
from knowngood.web.request_context import LANGUAGE_COOKIE
from knowngood.web.urls import MATRIX
from tests.fixtures.databases import NewStore
from tests.web.asking import client_of
from tests.web.browsing import NARROW, WIDE, keep_picture, kept_out_by, reading_with, served, signed_in
from tests.web.notebooks import HOSTILE, NOTEBOOKS, Notebook, addresses_of, sign_in
from tests.web.soundness import faults

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Dialog, Page

# Pages by their paths, for whoever adds one: `KNOWNGOOD_PAGES=/quality,/hygiene`. All of them where it is not set.
ONLY = [path for path in os.environ.get("KNOWNGOOD_PAGES", "").split(",") if path]

pytestmark = [pytest.mark.browser, pytest.mark.system]


@dataclass(frozen=True)
class Opened:
    """One notebook in a store of its own, and somebody signed in who may do everything."""

    notebook: Notebook
    engine: Engine
    client: TestClient
    token: str
    addresses: dict[str, str]
    _texts: dict[tuple[str, str], str] = field(default_factory=dict)

    def text(self, path: str, language: str) -> str:
        """The page at `path`, which is asked for once."""
        if (path, language) not in self._texts:
            self.client.cookies.set(LANGUAGE_COOKIE, language)
            self._texts[path, language] = self.client.get(self.addresses[path]).text
        return self._texts[path, language]


@pytest.fixture(scope="module", params=NOTEBOOKS.values(), ids=list(NOTEBOOKS))
def opened(request: pytest.FixtureRequest, new_store: NewStore) -> Iterator[Opened]:
    engine = connect(new_store())
    notebook: Notebook = request.param
    notebook.fill(engine)
    token = sign_in(engine)
    client = _signed_in(engine, token)
    found = addresses_of(client)
    yield Opened(notebook, engine, client, token, {path: found[path] for path in found if not ONLY or path in ONLY})
    engine.dispose()


def _signed_in(engine: Engine, token: str) -> TestClient:
    client = client_of(engine)
    client.post("/sign-in", data={"token": token}, headers={"Sec-Fetch-Site": "same-origin"})
    assert client.cookies
    return client


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_is_sound_html(opened: Opened, language: str) -> None:
    found = {path: faults(opened.text(path, language)) for path in opened.addresses}
    assert not any(found.values()), "\n".join(f"{path}: {told}" for path, all_ in found.items() for told in all_)


@pytest.mark.skipif(bool(ONLY), reason="KNOWNGOOD_PAGES asks for some alone")
def test_every_page_is_found(opened: Opened) -> None:
    """The pages looked at here, by notebook: an empty one has no issue to show."""
    always = {
        "/",
        "/my-build",
        "/environment",
        MATRIX,
        "/runs",
        "/changes",
        "/charts",
        "/coverage",
        "/releases",
        "/hygiene",
        "/quality",
        "/watchlists",
        "/signs",
        "error",
    }
    about = {"/issues/{issue}", "/releases/{release}", "/cells/{issue}/{build}", "/attempts/{attempt}", "/runs/{run}"}
    assert set(opened.addresses) >= always
    assert (set(opened.addresses) >= about) is (opened.notebook.name != "empty")


def test_titles_name_the_thing(opened: Opened) -> None:
    """No two pages share a title: a tab, a bookmark or a line of a history names what it is."""
    titles: dict[str, list[str]] = {}
    for path in opened.addresses:
        title = re.search(r"<title>(.*?) · Known Good</title>", opened.text(path, "en"), re.DOTALL)
        assert title, path
        titles.setdefault(title[1], []).append(path)
    assert {title: paths for title, paths in titles.items() if len(paths) > 1} == {}


# Pages of these look like those of the usual notebook, which a browser sees below.
_AS_USUAL = ("one cell", "only failures")


@pytest.mark.parametrize(
    "opened",
    [
        pytest.param(one, id=name, marks=pytest.mark.soak if name in _AS_USUAL else ())
        for name, one in NOTEBOOKS.items()
    ],
    indirect=True,
    scope="module",
)
def test_nothing_executes_and_nothing_overflows(browser: Browser, opened: Opened) -> None:
    """At the width of a telephone, in a browser that tells of every dialog, fault and broken rule of the policy."""
    found: list[str] = []
    with served(opened.engine) as site, reading_with(browser, viewport=NARROW) as context:
        page = signed_in(context, site, opened.token).new_page()
        _listen(page, found)
        for path, address in opened.addresses.items():
            page.goto(site + address)
            found += [f"{path}: {told}" for told in page.evaluate(_LOOK)]
            found += [f"{path}: {told}" for told in page.evaluate("window.told")]
            if opened.notebook.text == HOSTILE:
                assert "alert(1)" not in page.evaluate("[...document.scripts].map(one => one.text).join()")
    found = [one for one in found if "404" not in one]  # of the page that tells of an address that leads nowhere
    assert not found, "\n".join(found)


_LOOK = """() => {
  const found = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) {
    const far = [...document.querySelectorAll('body *')].filter((one) => {
      const at = one.getBoundingClientRect();
      return at.width && at.right > innerWidth + 1 && !one.closest('.scroller, pre, .sprite');
    });
    found.push(`is ${wide} wide: ${far.slice(0, 3).map((one) => one.outerHTML.slice(0, 120)).join(' | ')}`);
  }
  for (const one of document.querySelectorAll('iframe, script:not([src]), img[src="x"], style, [onerror], [onload]')) {
    found.push(one.outerHTML.slice(0, 120));
  }
  return found;
}"""


def _listen(page: Page, found: list[str]) -> None:
    page.add_init_script(
        "window.told = []; addEventListener('securitypolicyviolation', (event) =>"
        " window.told.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`))"
    )

    def dismiss(dialog: Dialog) -> None:
        found.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("pageerror", lambda error: found.append(f"script: {error}"))
    page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)


_SCREEN = {"color_scheme": "light", "contrast": "no-preference", "media": "screen"}
# Only these rules can find anything new in a theme that changes nothing but colours. Forced colours are not looked at:
# there axe holds the ink that a page asked for against the paper of the system (Chromium 2026-11), which nobody sees.
_OF_COLOUR: dict[str, object] = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
THEMES: dict[str, tuple[dict[str, str], dict[str, object]]] = {
    "light": ({}, {}),
    "dark": ({"color_scheme": "dark"}, _OF_COLOUR),
    "high contrast": ({"contrast": "more"}, _OF_COLOUR),
    "high contrast in the dark": ({"contrast": "more", "color_scheme": "dark"}, _OF_COLOUR),
    # Where other things are shown, and others not; nobody touches paper.
    "print": ({"media": "print"}, {"rules": {"target-size": {"enabled": False}}}),
}
_PICTURED = ("light", "dark")


@pytest.mark.timeout(1200)  # up to 160 looks of axe
@pytest.mark.parametrize(
    "themes",
    [
        pytest.param(_PICTURED, id="light and dark"),
        pytest.param([one for one in THEMES if one not in _PICTURED], id="contrast and print", marks=pytest.mark.soak),
    ],
)
def test_no_page_keeps_anybody_out_in_any_theme_or_is_wider_than_a_telephone(
    browser: Browser, own_notebook: Engine, themes: Sequence[str]
) -> None:
    """axe finds nothing at all, minor things included, in the usual notebook and for somebody who is signed in; the
    browser has no complaint. Pictures are kept where KNOWNGOOD_PICTURES says, for people to look at.
    """
    found: list[str] = []
    token = sign_in(own_notebook)
    addresses = addresses_of(_signed_in(own_notebook, token))
    with served(own_notebook) as site, reading_with(browser, viewport=NARROW) as context:
        page = signed_in(context, site, token).new_page()
        _listen(page, found)
        for path, address in addresses.items():
            page.set_viewport_size(NARROW)
            page.goto(site + address)
            found += [f"{path}: {told}" for told in page.evaluate(_LOOK)]
            keep_picture(page, f"{_name(path)} narrow")
            page.set_viewport_size(WIDE)
            for theme in themes:
                settings, options = THEMES[theme]
                page.emulate_media(**{**_SCREEN, **settings})  # type: ignore[arg-type]
                found += [f"{path} in {theme}: {told}" for told in kept_out_by(page, **options)]
                if theme in _PICTURED:
                    keep_picture(page, f"{_name(path)} {theme}")
            page.emulate_media(**_SCREEN)  # type: ignore[arg-type]
            if "light" not in themes:  # Chinese changes neither colours nor structure: with the rarer themes
                context.add_cookies([{"name": LANGUAGE_COOKIE, "value": "zh", "url": site}])
                page.goto(site + address)
                found += [f"{path} in Chinese: {told}" for told in kept_out_by(page)]
                keep_picture(page, f"{_name(path)} Chinese")
                context.clear_cookies(name=LANGUAGE_COOKIE)
    found = [one for one in found if "404" not in one]
    assert not found, "\n".join(found)


def _name(path: str) -> str:
    return path.strip("/").replace("/", "-").replace("{", "").replace("}", "").replace(":path", "")
