"""Every page over the shipped evidence: first byte, bytes, layout shift and the time of an interaction, in a table.

KNOWNGOOD_BENCH_OLD and KNOWNGOOD_BENCH_STORE are as for `commands`: with another revision its pages stand beside ours,
asked by turns. The first byte is that of the second request that a fresh process answers, after `/healthz`, over
loopback; beside it stands what that took of the server's processor, which a busy machine changes less. With
KNOWNGOOD_BENCH_SERVER_ONLY that is all. All else is what a real Chromium sees at three widths with its processor slowed
by four and nothing kept: the bytes of the page, its style sheet and its script as they were sent; the layout shift from
the first paint until a second after the load; and the longest that a press of the tabulator took until the next frame.
"""

import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.commands import OLD, stores
from benchmarks.sizes import size

PAGES = {
    "front": "/",
    "front, own build": "/?mine=torch-2.7.1%2Bcu126",
    "matrix": "/matrix",
    "matrix, CUDA": "/matrix?hardware=cuda-sm_90",
    "matrix, patches": "/matrix?columns=releases",
    "issue": "/issues/pytorch-151290",
    "cell": "/cells/pytorch-151290/torch-2.7.1%2Bcu126?hardware=cpu-x86_64",
    "release": "/releases/2.15",
    "releases": "/releases",
    "compare": "/compare?a=2.7.1&b=2.8.0",
    "upgrade": "/upgrade?from=2.5.1",
    "charts": "/charts",
    "search": "/search?q=compile",
    "paste": "/errors",
    "changes": "/changes",
    "coverage": "/coverage",
    "mismatches": "/hygiene",
    "reproducibility": "/quality",
    "runs": "/runs",
    "workers": "/workers",
    "watch lists": "/watchlists",
    "my build": "/my-build",
    "API reference": "/api/docs",
    "attempt": "/attempts/01e0286c1c3743ab8afca700cc8a987f",
    "notes": "/cells/pytorch-151290/torch-2.7.1%2Bcu126/notes?hardware=cpu-x86_64",
    "embedded": "/embed/issues/pytorch-151290",
    "sign in": "/sign-in",
    "feed": "/feeds/changes.atom",
}
_MOVED = {"matrix": "/", "matrix, CUDA": "/?hardware=cuda-sm_90", "matrix, patches": "/?columns=releases"}
"""Where a revision has them that has no page there."""

WIDTHS = size((360, 768, 1440), (360,))
ROUNDS = int(os.environ.get("KNOWNGOOD_BENCH_ROUNDS", size("3", "1")))
SERVER_ONLY = bool(os.environ.get("KNOWNGOOD_BENCH_SERVER_ONLY"))
_SLOWER = 4
_CPUCLOCK_SCHED = 2  # as Linux makes a clock's number of a process's (clock_getcpuclockid)
_START_S = 30

_WATCH = """
window.shift = 0; window.slowest = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shift += one.value;
}).observe({ type: "layout-shift", buffered: true });
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.slowest = Math.max(window.slowest, one.duration);
}).observe({ type: "event", durationThreshold: 16, buffered: true });
"""
_BYTES = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, one) => sum + one.encodedBodySize, 0)"""


@dataclass(frozen=True)
class Seen:
    """Of one page: milliseconds until the first byte and of the server's processor for it, bytes as sent, and by width
    the shift and an interaction's ms.
    """

    first_ms: float
    cpu_ms: float
    sent: int = 0
    shifts: tuple[float, ...] = ()
    interactions: tuple[float, ...] = ()

    def __str__(self) -> str:
        shifts = " ".join(f"{one:.3f}" for one in self.shifts)
        interactions = " ".join(f"{one:4.0f}" for one in self.interactions)
        return f"{self.first_ms:6.0f} {self.cpu_ms:6.0f} {self.sent / 1000:7.1f}  {shifts}  {interactions}"


def run() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("this benchmark needs Debian's Chromium")
    ours = str(Path(sys.executable).with_name("knowngood"))
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    widths = " ".join(f"{width:5}" for width in WIDTHS)
    print(f"{'':18} {'ms':>6} {'cpu':>6} {'kB':>7}  shift at {widths}  tab, ms at {widths}", flush=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        programs = [(program, store) for program, store in zip((ours, OLD), stores(Path(folder), ours), strict=True)]
        for name in list(PAGES)[: size(None, 2)]:
            for program, store in programs:
                seen = _seen(browser, program, store, name) if program else None
                if seen is not None:
                    print(f"{name if program == ours else '  before':18} {seen}", flush=True)
        browser.close()
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


def _seen(browser: Browser, program: str, store: Path, name: str) -> Seen | None:
    """None where the revision has no such page."""
    firsts = []
    for address in (PAGES[name], _MOVED.get(name, "")):
        asked = [_asked(program, store, address) for _ in range(ROUNDS)] if address else []
        firsts = [(taken, cpu) for taken, cpu, status in asked if status == HTTPStatus.OK]
        if firsts:
            break
    else:
        return None
    first_ms, cpu_ms = map(min, zip(*firsts, strict=True))
    if SERVER_ONLY:
        return Seen(first_ms, cpu_ms)
    with _served(program, store) as (port, _):
        visits = [_visit(browser, f"http://127.0.0.1:{port}{address}", width) for width in WIDTHS]
    return Seen(
        first_ms,
        cpu_ms,
        sent=visits[-1][0],
        shifts=tuple(shift for _, shift, _ in visits),
        interactions=tuple(taken for _, _, taken in visits),
    )


def _asked(program: str, store: Path, address: str) -> tuple[float, float, int]:
    """As the second request of a process: milliseconds, those of its processor, and the status."""
    with _served(program, store) as (port, clock):
        before = time.clock_gettime(clock)
        taken, status = _first_byte(port, address)
        return taken, (time.clock_gettime(clock) - before) * 1000, status


def _first_byte(port: int, address: str) -> tuple[float, int]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    begun = time.perf_counter()
    connection.request("GET", address, headers={"Accept": "text/html", "Accept-Encoding": "gzip"})
    answer = connection.getresponse()  # when the head of the answer has come
    taken = (time.perf_counter() - begun) * 1000
    answer.read()
    connection.close()
    return taken, answer.status


def _visit(browser: Browser, address: str, width: int) -> tuple[int, float, float]:
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": _SLOWER})
        page.add_init_script(_WATCH)
        page.goto(address, wait_until="load")
        page.wait_for_timeout(1000)
        sent, shift = int(page.evaluate(_BYTES)), float(page.evaluate("window.shift"))
        return sent, shift, _tabbed(page)


def _tabbed(page: Page) -> float:
    for _ in range(5):
        page.keyboard.press("Tab")
    page.wait_for_timeout(300)
    return float(page.evaluate("window.slowest"))


@contextmanager
def _served(program: str, store: Path) -> Iterator[tuple[int, int]]:
    """The port, and the clock of the process's processor time."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    settings = {"PATH": os.environ["PATH"], "KNOWNGOOD_DATA_DIR": str(store)}
    server = subprocess.Popen(
        [program, "serve", "--port", str(port)], env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        yield port, (~server.pid << 3) | _CPUCLOCK_SCHED
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int) -> None:
    """Until it has answered once."""
    until = time.monotonic() + _START_S
    while True:
        try:
            _first_byte(port, "/healthz")
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
