"""A fleet on five hosts fills a matrix while all of it is killed, frozen and cut off: nothing is lost or doubled.

Hosts are network namespaces (`hosts`), services are docker-compose.yml's own commands (`fleet`), faults are drawn from
a seed (`faults`), and somebody reads the dashboard all the while (`reader`). In the end every planned arm has exactly
one counted result, the cells are those of a calm run by the local transport, and no process, lease, mount or namespace
is left. KNOWNGOOD_SOAK_FAULTS says how many faults there are at least and KNOWNGOOD_SOAK_MINUTES how long they go on;
without, it is a small matrix and a fault of each target. KNOWNGOOD_SOAK_SEED repeats a run: the seed is printed.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa

from knowngood.catalogue.loader import Catalogue, read_catalogue
from knowngood.domain.errors import StoreUnusable
from knowngood.domain.issue import BASELINE
from knowngood.domain.measuring.planning import PlanRequest, plan_jobs
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.gate.request import read_request, rule
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.jobs.job_queue import create_run
from knowngood.store.knowledge.loader import load_knowledge
from knowngood.store.maintenance import reclassify
from knowngood.store.queries import load_known_attempts
from knowngood.store.records import JobState
from knowngood.store.tables import attempts, jobs, leases, runs
from tests.given_toys import make_installation
from tests.make import HARDWARE
from tests.soak.faults import Progress, Storm, lanes_of, report
from tests.soak.fleet import WORKERS, Fleet, a_fleet, make_catalogue, make_packages, tear_down
from tests.soak.hosts import Service, held, why_no_hosts
from tests.soak.reader import Calm, Reader
from tests.soak.seed import SEED
from tests.soak.test_kill import doubles, results_per_planned_arm, unfinished, with_mark
from tests.store.given import planned
from tests.waiting import eventually

FAULTS = int(os.environ.get("KNOWNGOOD_SOAK_FAULTS", "0"))
MINUTES = float(os.environ.get("KNOWNGOOD_SOAK_MINUTES", "10"))
ISSUES, BUILDS = (60, 12) if FAULTS else (4, 2)
PAUSE_S = 3.0 if FAULTS else 1.0
PATIENCE_S = 3600.0 if FAULTS else 600.0

# What has its place in a worker that measures nothing: its init, the command itself, and Ray.
_AT_REST = ("sh -c mount", "bin/knowngood", "knowngood_workers.ray.node", "ray.scripts", "/ray/", "ray::")
_OWN_MOUNTS = {"/proc", "/dev/shm"}  # noqa: S108 - a container's
_BESIDE_CELLS = ("issue", "build", "hardware", "measured_at", "runs", "evidence_url")

Cells = dict[tuple[str, str], dict[str, Any]]
Lost = Counter[tuple[str, ...]]
"""How often each (issue, build, arm, variant) was given up."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's: PostgreSQL is another user there, and the paths of Ray's sockets may have 107 signs."""
    with tempfile.TemporaryDirectory(prefix="kg-", ignore_cleanup_errors=True) as made:
        yield Path(made)


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.system
@pytest.mark.timeout(10800 if FAULTS else 1800)
def test_a_fleet_under_fire_measures_what_a_calm_one_does(folder: Path) -> None:
    if reason := why_no_hosts():
        pytest.skip(reason)
    print(f"KNOWNGOOD_SOAK_SEED={SEED}")  # noqa: T201 - shown with every failure, and by -s
    catalogue = make_catalogue(folder / "catalogue", ISSUES, BUILDS)
    wheels = make_packages(folder / "wheels", BUILDS)
    cells, calm = measured_calmly(folder / "calm", catalogue, wheels)
    devices = set(Path("/sys/class/net").iterdir())
    with a_fleet(folder, catalogue, wheels) as fleet:
        store = connect(fleet.database)
        weather(fleet, store, calm, read_catalogue([catalogue]))
        rounds, lost = rounds_of(store), given_up(store)
        ask_again(store, read_catalogue([catalogue]), rounds, lost)
        assert_whole(store)
        assert_same(matrix_of(fleet), cells, rounds, lost)
        assert_at_rest(fleet)
        assert_stopped_well(fleet, store)
        store.dispose()
        tear_down(fleet, "postgres")
        namespaces = fleet.network.namespaces
    assert eventually(lambda: not with_mark(str(folder)), PATIENCE_S), with_mark(str(folder))
    assert not held(namespaces)
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    assert set(Path("/sys/class/net").iterdir()) == devices


# -- on a calm day -----------------------------------------------------------------------------------------------------


def measured_calmly(folder: Path, catalogue: Path, wheels: Path) -> tuple[Cells, Calm]:
    """By the local transport, on SQLite: one process after the other, and nobody strikes."""
    made = make_installation(folder, wheels, catalogue=catalogue).environment
    environment = {name: value for name, value in made.items() if name != "KNOWNGOOD_MAX_ISOLATION"}

    command = [
        sys.executable,
        "-m",
        "knowngood",
        "run",
        "--builds",
        "all",
        "--issues",
        "all",
        "--hardware",
        HARDWARE,
        "--json",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=7200, check=False)
    assert done.returncode == 0, done.stderr
    cells = by_name(json.loads(done.stdout))
    assert len(cells) == ISSUES * BUILDS
    asked = random.Random(SEED).sample(sorted(cells), 6)  # noqa: S311 - no secret
    return cells, Calm({name: cell["verdict"] for name, cell in cells.items()}, decided(folder, asked))


def decided(folder: Path, asked: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The gate's answers on some builds with one issue each, where everything is known."""
    store, now = connect(f"sqlite:///{folder / 'data' / 'knowngood.sqlite3'}"), datetime.now(UTC)
    with reading(store) as s:
        knowledge = load_knowledge(s, now).knowledge
    store.dispose()
    return {
        (issue, build): rule(
            read_request({"build": build, "issues": [issue], "hardware": [HARDWARE]}), knowledge, now
        ).decision
        for issue, build in asked
    }


def by_name(matrix: Mapping[str, Any]) -> Cells:
    """The cells by name, less when, where and in how many runs each was measured."""
    return {
        (cell["issue"], cell["build"]): {name: told for name, told in cell.items() if name not in _BESIDE_CELLS}
        for cell in matrix["cells"]
    }


# -- under fire --------------------------------------------------------------------------------------------------------


def weather(fleet: Fleet, store: Engine, calm: Calm, catalogue: Catalogue) -> None:
    """Have the matrix measured, and strike meanwhile; then let it finish. Prints what there was to be borne."""
    queue(store, catalogue)
    progress, reader = Progress(fleet.database), Reader(fleet.network, fleet.address, calm)
    progress.start()
    reader.start()
    lanes = lanes_of(fleet, progress, reader, PAUSE_S)
    storm = Storm(lanes, SEED, progress, of_each=0 if FAULTS else 1)
    began = time.monotonic()
    with storm.raging() as is_raging:
        while is_raging() and not is_enough(storm, time.monotonic() - began):
            if not progress.unfinished:
                queue(store, catalogue)
                eventually(lambda: bool(progress.unfinished), 30.0)
            time.sleep(0.2)
    raged_s = time.monotonic() - began
    print(report(storm.faults))  # noqa: T201
    assert eventually(lambda: not unfinished(store), PATIENCE_S), "it does not come to its end"
    over = time.time()
    assert eventually(lambda: reader.good_at > over, PATIENCE_S), "nobody answers"
    progress.stop()
    reader.stop()
    starts = {name: service.starts for name, service in fleet.services.items()}
    print(f"{raged_s:.0f} s of faults, all done after {time.monotonic() - began:.0f} s; services were started {starts}")  # noqa: T201
    print(f"the reader had {dict(reader.answers)}")  # noqa: T201
    assert reader.wrong == []
    assert [fault for fault in storm.faults if fault.recovered_s is None] == []
    assert len(storm.faults) >= (FAULTS or len(lanes))


def is_enough(storm: Storm, seconds: float) -> bool:
    """A storm that is too weak for its number ends too, and then fails for it."""
    return bool(FAULTS) and ((len(storm.faults) >= FAULTS and seconds >= MINUTES * 60) or seconds >= MINUTES * 180)


def queue(store: Engine, catalogue: Catalogue) -> None:
    """All of the matrix once more, at whatever moment."""
    arms = planned(catalogue.issues, catalogue.builds)
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with unit_of_work(store) as s:
                create_run(s, arms, {"by": "soak"}, datetime.now(UTC))
        except StoreUnusable:
            assert time.monotonic() < until
            time.sleep(0.2)
        else:
            return


# -- in the end --------------------------------------------------------------------------------------------------------


def assert_whole(store: Engine) -> None:
    assert set(results_per_planned_arm(store)) == {1}
    assert doubles(store) == []
    with unit_of_work(store) as s:
        assert reclassify(s, datetime.now(UTC)) == ()


def rounds_of(store: Engine) -> int:
    with reading(store) as s:
        return int(s.execute(sa.select(sa.func.count()).select_from(runs)).scalar_one())


def given_up(store: Engine) -> Lost:
    """Arms whose workers died three times in a row: by the rule they have a result that says nothing."""
    a = attempts.c
    said_so = a.record.like("%given up: the worker died%")
    with reading(store) as s:
        return Counter(map(tuple, s.execute(sa.select(a.issue, a.build, a.arm, a.variant).where(said_so))))


def ask_again(store: Engine, catalogue: Catalogue, rounds: int, lost: Lost) -> None:
    """Run what was given up: the planner, which knows nothing of the storm, asks each of these arms anew."""
    if not lost:
        return
    print(f"{lost.total()} arms were given up after three deaths in a row, and are asked again")  # noqa: T201
    with reading(store) as s:
        known = load_known_attempts(s)
    left, jobs_again = lost.copy(), []
    for job in plan_jobs(catalogue.issues, catalogue.builds, [HARDWARE], known, PlanRequest(repeat=rounds)):
        again = []
        for arm in job.arms:
            key = (arm.issue, job.build.id, arm.arm, arm.variant)
            if left[key]:
                left[key] -= 1
                again.append(arm)
        jobs_again += [replace(job, arms=tuple(again))] if again else []
    assert not left.total(), left
    with unit_of_work(store) as s:
        create_run(s, jobs_again, {"by": "soak"}, datetime.now(UTC))
    assert eventually(lambda: not unfinished(store), PATIENCE_S), "what was given up does not come to its end"


def matrix_of(fleet: Fleet) -> Cells:
    told = fleet.run("web", "matrix", "--json")
    assert told.returncode == 0, told.stderr
    return by_name(json.loads(told.stdout))


def assert_same(found: Cells, calm: Cells, rounds: int, lost: Lost) -> None:
    """Every cell says what it said on the calm day; what was given up is counted beside it, and no more than that."""
    baselines = Counter({key: n for key, n in lost.items() if key[2] == BASELINE})
    beside = {name: sum(n for key, n in baselines.items() if key[:2] == name) for name in calm}
    for name, cell in calm.items():
        times = Counter({outcome: n * rounds for outcome, n in cell["attempts"].items()})
        expected = {
            **cell,
            "attempts": times + Counter({Outcome.HARNESS_ERROR.value: beside[name]}),
            "workaround_findings": {
                id_: {**one, "runs": one["runs"] * rounds} for id_, one in cell["workaround_findings"].items()
            },
        }
        if rounds > 1:
            expected["reason"] = found[name]["reason"]  # which says of how many attempts it speaks
        assert found[name] == expected, name
    assert found.keys() == calm.keys()


def assert_at_rest(fleet: Fleet) -> None:
    """Where nothing is measured any more there is nothing of what was, in a worker that was struck and lived on too."""
    for name in WORKERS:
        worker = fleet.services[name]
        assert eventually(lambda worker=worker: not left_in(worker), PATIENCE_S), left_in(worker)  # type: ignore[misc]
        assert worker.mounts == own_mounts() | _OWN_MOUNTS


def left_in(worker: Service) -> list[str]:
    found = []
    for process in worker.processes():
        with suppress(psutil.Error):
            words = " ".join(process.cmdline())
            if words and not any(known in words for known in _AT_REST):
                found.append(words)
    return found


def own_mounts() -> set[str]:
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def assert_stopped_well(fleet: Fleet, store: Engine) -> None:
    """Asked to, everything ends by itself, and gives back what it held."""
    ends = tear_down(fleet, "dispatcher", *WORKERS, "web")
    assert set(ends.values()) == {0}, ends
    tear_down(fleet, "ray-head")
    with reading(store) as s:
        assert list(s.execute(sa.select(jobs.c.id).where(jobs.c.state == JobState.LEASED))) == []
        held_still = s.execute(sa.select(leases.c.name).where(leases.c.until > datetime.now(UTC))).scalars()
        assert [name for name in held_still if name in {"dispatcher", "courier"}] == []
