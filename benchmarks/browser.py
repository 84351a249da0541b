"""Whether the matrix page is quick where it is read: 500 issues x 60 builds in a real Chromium, over loopback.

"Made" is the first answer after a cell was written, "again" what everybody gets who asks before the next write.
Times are milliseconds since the reader asked. The page is interactive when it stands in the window and its script has
run: from then on a key moves through the cells. It is complete when all has come and the first frame after that is
drawn.
"""

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.matrix import Size, change, fill, serving
from benchmarks.sizes import size
from knowngood.store.engine import connect
from knowngood.web.urls import MATRIX

LARGE, USUAL = size((Size(500, 60), Size(100, 40)), (Size(4, 4), Size(4, 4)))
ROUNDS = size(7, 1)
_WINDOW = {"width": 1280, "height": 900}

_WATCH = """
addEventListener("load", () => requestAnimationFrame(() => setTimeout(() => { window.complete = performance.now(); })));
"""
_TOLD = """async () => {
  while (!performance.getEntriesByName("first-contentful-paint").length) await new Promise(requestAnimationFrame);
  const page = performance.getEntriesByType("navigation")[0];
  const painted = performance.getEntriesByName("first-contentful-paint")[0].startTime;
  return {
    answered: page.responseStart, interactive: Math.max(painted, page.domContentLoadedEventEnd), complete,
    bytes: page.encodedBodySize, elements: document.getElementsByTagName("*").length,
  };
}"""
_KEY = """async () => {
  const cell = document.querySelector("tr.row a.q");
  cell.focus();
  const begun = performance.now();
  cell.dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown", bubbles: true, cancelable: true }));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  if (document.activeElement === cell) throw new Error("the key did nothing");
  return performance.now() - begun;
}"""


def run() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("this benchmark needs Debian's Chromium")
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for size in (USUAL, LARGE):
            _measure(browser, size)
        browser.close()
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


def _measure(browser: Browser, size: Size) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), size, 2 * size.cells)
        with serving(Path(folder)) as port:
            engine = connect(f"sqlite:///{Path(folder) / 'knowngood.sqlite3'}")
            address = f"http://127.0.0.1:{port}{MATRIX}?columns=all"
            _visits(browser, address, lambda: None)  # the first page of a server's life fills its caches
            for what, before in (("made", lambda: change(engine)), ("again", lambda: None)):
                print(f"{size.issues} x {size.builds}, {what}: {_visits(browser, address, before)}", flush=True)


def _visits(browser: Browser, address: str, before: Callable[[], None]) -> str:
    """Each in a context of its own, whose cache is empty."""
    told = []
    for _ in range(ROUNDS):
        before()
        with browser.new_context(viewport=_WINDOW) as context:  # type: ignore[arg-type]
            page = context.new_page()
            page.add_init_script(_WATCH)
            page.goto(address)
            page.wait_for_function("window.complete")
            told.append({**page.evaluate(_TOLD), "key": page.evaluate(_KEY)})
    return _summed_up(told)


def _summed_up(told: Sequence[Mapping[str, float]]) -> str:
    times = ", ".join(
        f"{name} p50 {statistics.median(values):.0f} (best {min(values):.0f}, worst {max(values):.0f})"
        for name in ("answered", "interactive", "complete", "key")
        for values in [[one[name] for one in told]]
    )
    return f"{times}; {told[0]['bytes']:,.0f} bytes gzipped, {told[0]['elements']:,.0f} elements"
