"""Jobs per minute with 1, 2, 4 and 8 workers, through the real dispatcher, the local transport and a real store.

Each job is one agent process with six arms that sleep for a second: what is measured is what stands between them, not
what they compute. Linear would be as many times the jobs of one worker, until the cores are the limit: an agent takes
most of a second of one core to start. The dispatcher's own time is that of its process alone: claiming, recording,
deriving cells, telling events.
"""

import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.ingest import new_file
from benchmarks.sizes import size
from knowngood.domain.issue import Issue, Variant
from knowngood.domain.measuring.planning import KnownAttempts, PlanRequest, plan_jobs
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.job_queue import create_run
from knowngood.store.queries import load_run
from knowngood_workers.dispatch.dispatcher import DispatchOptions, dispatch
from knowngood_workers.dispatch.local_transport import LocalTransport
from tests.make import HARDWARE, NOON, make_build, make_issue

WORKERS = size((1, 2, 4, 8), (1, 2))
JOBS_EACH, ARM_S = size((2, 1.0), (1, 0.1))
_CURES = ("one", "two", "three", "four")


@dataclass(frozen=True)
class Took:
    """`own_s` is the dispatcher's processor time; `arms` how many there were in `jobs`."""

    wall_s: float
    own_s: float
    jobs: int
    arms: int

    @property
    def per_minute(self) -> float:
        return self.jobs / self.wall_s * 60


def run() -> None:
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    measured = {workers: _measure(workers) for workers in WORKERS}
    alone = measured[WORKERS[0]]
    for workers, one in measured.items():
        share = one.per_minute / alone.per_minute / workers
        print(
            f"{workers} workers: {one.per_minute:.1f} jobs a minute ({one.jobs} jobs of {one.arms // one.jobs} arms in "
            f"{one.wall_s:.1f} s), {share:.0%} of linear; the dispatcher's own time: "
            f"{one.own_s / one.arms * 1000:.0f} ms an arm",
            flush=True,
        )
    beyond = (alone.wall_s - alone.arms * ARM_S) / alone.arms
    print(f"one worker: {beyond * 1000:.0f} ms an arm beyond its own second, the agent's start included", flush=True)
    own = statistics.median(one.own_s / one.arms for one in measured.values())
    print(f"dispatcher: {own * 1000:.0f} ms of one core an arm, {1 / own:.0f} arms a second at most", flush=True)


def _measure(workers: int) -> Took:
    with tempfile.TemporaryDirectory() as folder:
        engine = new_file(Path(folder))
        run_id = _queue(engine, workers * JOBS_EACH)
        transport = LocalTransport({"ledger": os.devnull}, (sys.executable, "-m", "tests.workers.toy_agent"))
        how = DispatchOptions(hardware=(HARDWARE,), jobs=workers, until_idle=True, poll_s=0.05)
        begun, own = time.perf_counter(), time.process_time()
        dispatch(engine, transport, how, stop=lambda: False)
        wall_s, own_s = time.perf_counter() - begun, time.process_time() - own
        with reading(engine) as s:
            row = load_run(s, run_id)
        engine.dispose()
    assert row.arms_done == row.arms_total
    return Took(wall_s, own_s, len(row.jobs), row.arms_total)


def _queue(engine: Engine, jobs: int) -> str:
    slow: Issue = make_issue("toy-1", workarounds=_CURES)
    slow = replace(slow, variants=(Variant("default", "", {"does": "pass", "takes_s": ARM_S}),))
    builds = [make_build(f"2.{minor}.0+cu124") for minor in range(1, jobs + 1)]
    planned = plan_jobs([slow], builds, [HARDWARE], KnownAttempts(), PlanRequest())
    assert len(planned) == jobs
    with unit_of_work(engine) as s:
        save_catalogue(s, [slow], builds, NOON)
        return create_run(s, planned, {"by": "benchmark"}, NOON)
