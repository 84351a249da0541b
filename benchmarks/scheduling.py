"""The time of deciding which job is next: 1,000 workers take turns over a queue of 100,000 jobs.

A decision is what a dispatcher does for a worker with room: the lease of one job in a transaction of its own. Most of
the queue waits for a class of hardware that few workers have, as after a new release: what a worker may not run must
not be looked through. Workers are dispatchers by name here and processes by none: a database sees no difference. A
few of them ask at the same time from threads. `KNOWNGOOD_BENCH_QUEUE` says how many jobs are queued.
"""

import os
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from benchmarks.ingest import new_file, postgresql
from benchmarks.sizes import size
from knowngood.domain.issue import Device, Requires
from knowngood.domain.measuring.planning import KnownAttempts, PlanRequest, plan_jobs
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.evidence.cells import touch
from knowngood.store.jobs.job_queue import claim_job, create_run
from tests.make import NOON, make_build, make_issue

QUEUE = int(os.environ.get("KNOWNGOOD_BENCH_QUEUE", size("100000", "1000")))
FEW = size(3000, 500)
WORKERS, AT_ONCE, TURNS = size((1000, 4, 5), (20, 2, 1))
_NOW = datetime.now(UTC)  # no shipped attempt is still to come
_RARE, _COMMON = "cuda-sm_90", "cpu-x86_64"
_BUILDS = 10

_MULTIPLY_JOBS = """
WITH RECURSIVE turns(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM turns WHERE n < :turns)
INSERT INTO jobs (id, run, queued_at, position, build, hardware, request, state, try_no, losses, holder, machine,
    problem)
SELECT substr(j.id, 1, 22) || turns.n, run, queued_at, position + turns.n * :each, build, hardware, request, state,
    try_no, losses, holder, machine, problem
FROM turns CROSS JOIN jobs j WHERE j.hardware = :hardware
"""
_MULTIPLY_ARMS = """
WITH RECURSIVE turns(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM turns WHERE n < :turns)
INSERT INTO arms (attempt, job, position, issue, revision, arm, variant, ordinal, binding, state, losses)
SELECT substr(a.attempt, 1, 22) || turns.n, substr(a.job, 1, 22) || turns.n, a.position, issue, revision, arm, variant,
    ordinal + turns.n, binding, a.state, a.losses
FROM turns CROSS JOIN arms a JOIN jobs j ON j.id = a.job WHERE j.hardware = :hardware AND length(j.id) = 32
"""


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _measure("sqlite", lambda: new_file(Path(folder)))
    with postgresql() as new:
        _measure("postgresql", new)


def _measure(name: str, new: Callable[[], Engine]) -> None:
    engines = {"few": new(), "many": new()}
    queued = {which: fill(engine, QUEUE if which == "many" else FEW) for which, engine in engines.items()}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{name}: nine of ten jobs wait for {_RARE}; load {os.getloadavg()[0]:.1f}", flush=True)
    for classes, who in (((_COMMON,), "CPU"), ((_RARE, _COMMON), "GPU")):
        for at_once in (1, AT_ONCE):
            _compare(f"{name}, {who} workers, {at_once} at once", engines, queued, classes, at_once)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{name}: memory of the process grew by {grown:.0f} MB meanwhile", flush=True)
    for engine in engines.values():
        engine.dispose()


def _compare(
    what: str, engines: Mapping[str, Engine], queued: Mapping[str, int], classes: Sequence[str], at_once: int
) -> None:
    """Over a short queue, over the long one, and nothing but a transaction: some of each, in turns."""
    took: dict[str, list[_Took]] = {"few": [], "many": [], "bare": []}
    for turn in range(TURNS):
        workers = range(turn * WORKERS // TURNS, (turn + 1) * WORKERS // TURNS)
        with ThreadPoolExecutor(at_once) as pool:
            took["bare"] += pool.map(lambda _: _bare(engines["many"]), workers)
            took["few"] += pool.map(lambda one: _decide(engines["few"], classes, one), workers[: len(workers) // 10])
            took["many"] += pool.map(lambda one: _decide(engines["many"], classes, one), workers)
    for which, label in (
        ("bare", "a bare commit"),
        ("few", f"{queued['few']:,} jobs"),
        ("many", f"{queued['many']:,} jobs"),
    ):
        wall = statistics.quantiles((one.wall_s for one in took[which]), n=100)
        own = statistics.median(one.own_s for one in took[which])
        print(
            f"{what}: {label:>13}: p50 {wall[49] * 1000:.1f} ms, p99 {wall[98] * 1000:.1f} ms, "
            f"own time {own * 1000:.1f} ms",
            flush=True,
        )


@dataclass(frozen=True)
class _Took:
    """Seconds as the clock has them, and of the thread's own work on a core: on a busy machine the rest is waiting."""

    wall_s: float
    own_s: float


def _decide(engine: Engine, classes: Sequence[str], worker: int) -> _Took:
    begun, own = time.perf_counter(), time.thread_time()
    with unit_of_work(engine) as s:
        spec = claim_job(s, f"worker-{worker}", _NOW, 60.0, hardware=classes)
    took = _Took(time.perf_counter() - begun, time.thread_time() - own)
    assert spec is not None
    return took


def _bare(engine: Engine) -> _Took:
    begun, own = time.perf_counter(), time.thread_time()
    with unit_of_work(engine) as s:
        touch(s)
    return _Took(time.perf_counter() - begun, time.thread_time() - own)


def fill(engine: Engine, wanted: int) -> int:
    """A run planned as ever for both classes, then copied by the database; the jobs there are."""
    cuda = Requires(Device.CUDA)
    issues = [make_issue("toy-1", workarounds=()), make_issue("toy-2", workarounds=(), requires=cuda)]
    builds = [make_build(f"2.{minor}.0+cu124") for minor in range(1, _BUILDS + 1)]
    planned = plan_jobs(issues, builds, [_RARE, _COMMON], KnownAttempts(), PlanRequest())
    by_class = Counter(job.hardware for job in planned)
    with unit_of_work(engine) as s:
        save_catalogue(s, issues, builds, NOON)
        create_run(s, planned, {"by": "benchmark"}, NOON)
        for hardware, share in ((_RARE, 0.9), (_COMMON, 0.1)):
            each = {"turns": round(wanted * share / by_class[hardware]) - 1, "hardware": hardware}
            s.execute(sa.text(_MULTIPLY_JOBS), {**each, "each": len(planned)})
            s.execute(sa.text(_MULTIPLY_ARMS), each)
        # What waits for the rare class stands before all else.
        s.execute(sa.text("UPDATE jobs SET position = position + 10000000 WHERE hardware = :h"), {"h": _COMMON})
    with engine.connect() as connection:
        found: int = connection.exec_driver_sql("SELECT count(*) FROM jobs WHERE state = 'queued'").scalar_one()
    return found
