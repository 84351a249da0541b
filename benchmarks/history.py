"""Pages and the gate over a short history and over a long one, asked in turns in one run.

Both stores have the same issues, builds and cells; what differs is how many attempts lie behind each cell. The first
few are imported as ever, the rest are copies of their rows made by the database itself, each with an id, an ordinal
and a time of its own. `KNOWNGOOD_BENCH_HISTORY` says how many attempts the long one has. The application answers in
this process, without network; before each request something is written, so that no answer is one that was kept.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from starlette.testclient import TestClient

from benchmarks.ingest import new_file
from benchmarks.matrix import Size, change, fill_with
from benchmarks.sizes import size
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.server import create_app
from knowngood.store.engine import Engine, unit_of_work
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.urls import MATRIX
from tests.make import HARDWARE, make_build, make_issue

SIZE = size(Size(20, 20), Size(4, 8))
SHORT, LONG = size(10_000, 320), int(os.environ.get("KNOWNGOOD_BENCH_HISTORY", size("1000000", "640")))
REQUESTS = size(25, 2)
_PER_CELL = 5
_NOW = datetime.now(UTC)  # no shipped attempt is still to come

_MULTIPLY = """
WITH RECURSIVE turns(n) AS (SELECT :first UNION ALL SELECT n + 1 FROM turns WHERE n < :last)
INSERT INTO attempts (id, job, issue, build, hardware, arm, variant, ordinal, binding, record, log_digest, lock_digest,
    machine, started_at, finished_at, origin, labels, received_at, token, void, counts_as)
SELECT a.id || '-' || turns.n, job, issue, build, hardware, arm, variant, ordinal + turns.n * 10, binding, record,
    log_digest, lock_digest, machine, {started}, {finished}, origin, labels, received_at, token, void, counts_as
FROM originals a CROSS JOIN turns
"""
_AT_ONCE = 500
"""Copies in one transaction: a million rows of 2,000 attempts."""
_EARLIER = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', {}, '-' || turns.n || ' minutes')",
    "postgresql": "{} - make_interval(mins => turns.n)",
}
"""SQLite's times are texts, to be written as SQLAlchemy writes them."""


def run() -> None:
    issues = [make_issue(f"toy-{n}", component=f"Component {n % 8}") for n in range(1, SIZE.issues + 1)]
    builds = [make_build(f"2.{minor}.{patch}+cu124") for minor in range(1, SIZE.builds // 2 + 1) for patch in (0, 1)]
    with tempfile.TemporaryDirectory() as folder:
        measured = [_store(Path(folder), issues, builds, n) for n in (SHORT, LONG)]
        clients = [
            TestClient(create_app(engine, clock=lambda: _NOW, rules=AccessPolicy(requests_per_s=0)))
            for engine in measured
        ]
        print(f"load {os.getloadavg()[0]:.1f}; p50 of {REQUESTS} each, in turns", flush=True)
        for name, address in _questions(issues, builds):
            _compare(name, address, clients, measured)
        for engine in measured:
            engine.dispose()


def _store(folder: Path, issues: Sequence[Issue], builds: Sequence[Build], n: int) -> Engine:
    engine = new_file(folder)
    begun = time.perf_counter()
    fill_with(engine, folder, issues, builds, _PER_CELL * SIZE.cells)
    multiply(engine, n // (_PER_CELL * SIZE.cells) - 1)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT count(*) FROM attempts").scalar_one()
    print(f"{found:,} attempts behind {SIZE.cells} cells in {time.perf_counter() - begun:.0f} s", flush=True)
    return engine


def multiply(engine: Engine, turns: int) -> None:
    """Copy every attempt so many times, each a minute earlier than the last."""
    earlier = _EARLIER[engine.dialect.name]
    statement = sa.text(_MULTIPLY.format(started=earlier.format("started_at"), finished=earlier.format("finished_at")))
    with unit_of_work(engine) as s:
        s.execute(sa.text("CREATE TABLE originals AS SELECT * FROM attempts"))
    for first in range(1, turns + 1, _AT_ONCE):
        with unit_of_work(engine) as s:
            s.execute(statement, {"first": first, "last": min(first + _AT_ONCE - 1, turns)})
    with unit_of_work(engine) as s:
        s.execute(sa.text("DROP TABLE originals"))


def _questions(issues: Sequence[Issue], builds: Sequence[Build]) -> list[tuple[str, Callable[[int], str]]]:
    issue, build = issues[2].id, quote(builds[3].id, safe="")
    watched = ",".join(one.id for one in issues[:10])
    return [
        ("matrix", lambda _: f"{MATRIX}?columns=all"),
        ("gate", lambda n: f"/api/v1/gate?build={quote(builds[n % len(builds)].id)}&issues={watched}"),
        ("issue page", lambda _: f"/issues/{issue}"),
        ("cell page", lambda _: f"/cells/{issue}/{build}?hardware={HARDWARE}"),
        ("attempts JSON", lambda _: f"/api/v1/attempts?issue={issue}"),
        ("changes page", lambda _: "/changes"),
        ("workers page", lambda _: "/workers"),
    ]


def _compare(
    name: str, address: Callable[[int], str], clients: Sequence[TestClient], engines: Sequence[Engine]
) -> None:
    seconds: list[list[float]] = [[], []]
    for n in range(REQUESTS + 1):
        for place in (0, 1):
            change(engines[place])
            begun = time.perf_counter()
            answer = clients[place].get(address(n))
            seconds[place].append(time.perf_counter() - begun)
            assert answer.status_code == 200, answer.text
    short, long = (statistics.median(one[1:]) * 1000 for one in seconds)
    print(f"{name:<14} {short:>7.1f} ms at {SHORT:,}, {long:>7.1f} ms at {LONG:,}: {long / short:.2f}x", flush=True)
