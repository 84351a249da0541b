"""Whether the matrix page is quick and stays so with history: a real server on loopback, one request at a time.

"Made" is the first answer after a cell was written, "again" what everybody gets who asks before the next write.
"""

import gzip
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from benchmarks.sizes import size
from knowngood.domain.access import Actor
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import BASELINE, CONTROL, Issue
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.domain.verdicts.voids import NoteKind, standing_void
from knowngood.share.bundle import BundleHeader, write_bundle
from knowngood.share.store import take_in_bundle
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, connect, unit_of_work
from knowngood.store.evidence.cells import load_notes
from knowngood.store.evidence.notes import add_note
from knowngood.store.migrations import migrate
from knowngood.web.urls import MATRIX
from tests.make import HARDWARE, NOON, make_attempt, make_build, make_issue


@dataclass(frozen=True)
class Size:
    issues: int
    builds: int

    @property
    def cells(self) -> int:
        return self.issues * self.builds


SIZE, REQUESTS = size((Size(100, 40), 60), (Size(4, 4), 24))
# One attempt per cell is a baseline without its control, which makes every cell "cannot say"; two are the least that a
# cell with an answer has, so that these pages show the same as those with a long history.
HISTORY = size({"bare": 4_000, "short": 8_000, "long": 200_000}, {"short": 32, "long": 64})


def run() -> None:
    measured = {name: _measure(attempts) for name, attempts in HISTORY.items()}
    for name, answers in measured.items():
        for what, times in answers.items():
            print(f"{HISTORY[name]:>7} attempts: {what:<10} {times}")
    long, short = measured["long"]["page made"].p50, measured["short"]["page made"].p50
    print(f"page with long history / with short: {long / short:.2f}x")


class Times:
    """Milliseconds of one address, and its size on the wire and unpacked."""

    def __init__(self, seconds: Sequence[float], sent: int, unpacked: int) -> None:
        self.p50 = statistics.median(seconds) * 1000
        self.p95 = statistics.quantiles(seconds, n=20)[18] * 1000
        self.sent, self.unpacked = sent, unpacked

    def __str__(self) -> str:
        return f"p50 {self.p50:.0f} ms, p95 {self.p95:.0f} ms, {self.sent:,} bytes gzipped, {self.unpacked:,} unpacked"


def _measure(attempts: int) -> dict[str, Times]:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), SIZE, attempts)
        with serving(Path(folder)) as port:
            engine = connect(f"sqlite:///{Path(folder) / 'knowngood.sqlite3'}")
            return {
                "page made": _times(port, f"{MATRIX}?columns=all", lambda: change(engine)),
                "page again": _times(port, f"{MATRIX}?columns=all"),
                "JSON made": _times(port, "/api/v1/matrix", lambda: change(engine)),
                "JSON again": _times(port, "/api/v1/matrix"),
            }


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """A server over the store in `folder`, as everybody starts one; its port."""
    port = _free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "knowngood", "serve", "--port", str(port)],
        env={**os.environ, "KNOWNGOOD_DATA_DIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield port
    finally:
        server.terminate()
        server.wait(timeout=20)


def fill(folder: Path, size: Size, attempts: int) -> None:
    """A store of `size` with so many attempts, a third of the cells failing."""
    issues = [make_issue(f"toy-{n}", component=f"Component {n % 8}") for n in range(1, size.issues + 1)]
    minors = range(1, size.builds // 2 + 1)
    builds = [make_build(f"2.{minor}.{patch}+cu124") for minor in minors for patch in (0, 1)]
    engine = connect(f"sqlite:///{folder / 'knowngood.sqlite3'}")
    migrate(engine)
    begun = time.perf_counter()
    fill_with(engine, folder, issues, builds, attempts)
    print(f"{attempts:>7} attempts imported in {time.perf_counter() - begun:.1f} s", flush=True)
    engine.dispose()


def fill_with(engine: Engine, folder: Path, issues: Sequence[Issue], builds: Sequence[Build], attempts: int) -> None:
    """Import so many attempts, spread over every cell, by way of a bundle in `folder`."""
    with unit_of_work(engine) as s:
        save_catalogue(s, issues, builds, NOON)
    file = folder / "history.jsonl.gz"
    with file.open("wb") as bundle:
        header = BundleHeader(created_at=NOON, origin="benchmark")
        write_bundle(bundle, header, _history(issues, builds, attempts // (len(issues) * len(builds))))
    take_in_bundle(engine, file, NOON + timedelta(days=1), by=Actor("benchmark"))


def _history(issues: Sequence[Issue], builds: Sequence[Build], per_cell: int) -> Iterator[Attempt]:
    for row, issue in enumerate(issues):
        for column, build in enumerate(builds):
            fails = (row + column) % 3 == 0
            for ordinal in range(1, per_cell + 1):
                arm = CONTROL if per_cell > 1 and ordinal == per_cell else BASELINE
                outcome = Outcome.MATCH if fails and arm == BASELINE else Outcome.PASS
                attempt = make_attempt(outcome, issue=issue, build=build, arm=arm, ordinal=ordinal)
                yield replace(attempt, finished_at=NOON + timedelta(seconds=ordinal))


_TURNED = CellKey("toy-1", make_build("2.1.0+cu124").id, HARDWARE)


def change(engine: Engine) -> None:
    """Turn one cell, which is what an attempt does: no page is given again, and one row is another one."""
    with unit_of_work(engine) as s:
        is_void = standing_void(load_notes(s, [_TURNED])[_TURNED]) is not None
        kind = NoteKind.RESTORE if is_void else NoteKind.VOID
        add_note(s, _TURNED, kind, "to be made anew", by=Actor("benchmark"), now=NOON)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the server did not come up within 20 s")


def _times(port: int, path: str, before: Callable[[], None] = lambda: None) -> Times:
    """`before` each request, and not timed."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept-Encoding": "gzip"})
    seconds, body = [], b""
    for _ in range(REQUESTS):
        before()
        begun = time.perf_counter()
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
            body = answer.read()
        seconds.append(time.perf_counter() - begun)
    return Times(seconds[3:], len(body), len(gzip.decompress(body)))
