"""Several commands that measure on one store, side by side and one after the other, as people start them."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from knowngood.catalogue.loader import read_catalogue
from knowngood.domain.errors import StoreUnusable
from knowngood.domain.measuring.planning import KnownAttempts, PlanRequest, plan_jobs
from knowngood.domain.verdicts.verdict import INFRASTRUCTURE
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import connect, reading, unit_of_work
from knowngood.store.jobs.job_queue import DISPATCHER, cancel_run, create_run, give_lease_back, take_lease
from knowngood.store.migrations import migrate
from knowngood.store.queries import load_known_attempts, load_lease, load_runs
from tests.fixtures.databases import NewStore
from tests.given_toys import ROOT, TOYS, Installation, make_installation
from tests.waiting import eventually

PATIENCE_S = 240.0  # whole runs are waited for

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


def test_a_run_beside_another_goes_on_when_that_one_has_ended(
    wheels: Path, tmp_path: Path, new_setting: NewStore
) -> None:
    here = make_installation(tmp_path, wheels, store=new_setting())
    run = [sys.executable, "-m", "knowngood", "run", "--builds", "torch-0.0.1+mini", "--json", "--issues"]
    environment, told = {**here.environment, "KNOWNGOOD_LEASE_S": "600"}, tmp_path / "second.log"
    with (tmp_path / "first.log").open("w") as said, told.open("w") as heard:
        first = subprocess.Popen([*run, "toy-hangs-1"], env=environment, cwd=ROOT, stderr=said, stdout=subprocess.PIPE)
        assert eventually(lambda: here.data.exists() and _is_led(here), PATIENCE_S)
        # However slow the second starts, it finds the first at work, and no write of it half done.
        assert eventually(lambda: _is_stopped_between_writes(first, here), PATIENCE_S)
        second = subprocess.Popen(
            [*run, "toy-fixed-1"], env=environment, cwd=ROOT, stderr=heard, stdout=subprocess.PIPE
        )
        waits = eventually(lambda: "measures on this store already" in told.read_text(), PATIENCE_S)
        first.send_signal(signal.SIGCONT)
        answers = [one.communicate(timeout=PATIENCE_S)[0] for one in (first, second)]
    assert waits, told.read_text()
    assert all(answers), [told.read_text(), (tmp_path / "first.log").read_text()]
    assert [[cell["verdict"] for cell in json.loads(answer)["cells"]] for answer in answers] == [
        ["affected"],
        ["affected"],
    ]


def _is_stopped_between_writes(run: subprocess.Popen[bytes], here: Installation) -> bool:
    run.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, run.pid, os.WSTOPPED)  # a thread that waited for a processor goes on until it gets one
    engine = connect(here.database)
    try:
        with unit_of_work(engine, wait_s=1.0) as s:
            load_lease(s, DISPATCHER)  # a unit of work begins with its first statement
            return True
    except StoreUnusable:  # it was stopped in the midst of a write, and would keep everybody out
        run.send_signal(signal.SIGCONT)
        return False
    finally:
        engine.dispose()


def _is_led(here: Installation) -> bool:
    engine = connect(here.database)
    try:
        with reading(engine) as s:
            return load_lease(s, DISPATCHER) is not None
    except StoreUnusable:
        return False  # the first command is still making its tables
    finally:
        engine.dispose()


def test_up_fills_the_matrix_live_and_goes_on_where_it_was_stopped(
    wheels: Path, tmp_path: Path, new_setting: NewStore
) -> None:
    small = _catalogue_of(tmp_path, "toy-passes-1", "toy-fixed-1", "toy-hangs-1")
    here = make_installation(tmp_path, wheels, catalogue=small, store=new_setting())
    with _up(here) as address:
        assert eventually(lambda: _measured(address) >= 1, PATIENCE_S)
    before = +_conclusive(here)
    assert before
    again = here.command("up", "--port", "0", "--once")
    assert again.returncode == 0, again.stderr
    verdicts = {(c["issue"], c["verdict"]) for c in here.answer("matrix", "--builds", "default", "--json")["cells"]}
    assert ("toy-hangs-1", "affected") in verdicts
    assert not any(verdict == "not_run" for _, verdict in verdicts)
    after = _conclusive(here)
    assert before <= after
    assert set(after.values()) == {1}, "no answer was asked for twice"
    assert "nothing to run" in here.command("up", "--port", "0", "--once").stderr


def test_the_first_page_is_right_before_the_shipped_results_are_loaded(wheels: Path, tmp_path: Path) -> None:
    here = make_installation(tmp_path, wheels, catalogue=tmp_path)
    here = replace(here, environment={**here.environment, "KNOWNGOOD_SHIPPED": "true", "KNOWNGOOD_CATALOGUE": ""})
    log = here.data.with_name("up.log")
    with _up(here) as address:
        first = _verdicts(address)
        assert "are loaded" not in log.read_text(), "this machine is too quick for this test"
        assert eventually(lambda: "results of this release are loaded" in log.read_text(), PATIENCE_S)
        assert first == _verdicts(address) != {}
    with _up(here) as address:
        assert first == _verdicts(address)
    assert "loaded" not in log.read_text()


def _verdicts(address: str) -> dict[tuple[str, ...], str]:
    with urllib.request.urlopen(f"{address}api/v1/matrix", timeout=PATIENCE_S) as answer:
        cells = json.load(answer)["cells"]
    return {(cell["issue"], cell["build"], cell["assurance"]): cell["verdict"] for cell in cells}


def test_two_ups_at_once_measure_everything_once(wheels: Path, tmp_path: Path, new_setting: NewStore) -> None:
    small = _catalogue_of(tmp_path, "toy-passes-1", "toy-fixed-1")
    here = make_installation(tmp_path, wheels, catalogue=small, store=new_setting())
    assert here.command("migrate").returncode == 0
    command = [sys.executable, "-m", "knowngood", "up", "--port", "0", "--once"]
    both = [
        subprocess.Popen(command, env=dict(here.environment), cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [one.communicate(timeout=100)[1] for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    found = _conclusive(here)
    assert len(found) > 4
    assert set(found.values()) == {1}, said


@pytest.mark.parametrize("by_another", ["died with jobs for another class", "cancelled ours as left behind"])
def test_an_up_measures_all_whatever_became_of_another(
    wheels: Path, tmp_path: Path, new_setting: NewStore, by_another: str
) -> None:
    toy = _catalogue_of(tmp_path, "toy-passes-1")
    here = make_installation(tmp_path, wheels, catalogue=toy, store=new_setting())
    here.data.mkdir()
    engine, now = connect(here.database), datetime.now(UTC)
    migrate(engine)
    known, is_dead = read_catalogue([toy]), by_another.startswith("died")
    build = next(build for build in known.builds if build.id == "torch-0.0.1+mini")
    planned = plan_jobs(known.issues, [build], ["cpu-x86_64"], KnownAttempts(), PlanRequest())
    with unit_of_work(engine) as s:
        save_catalogue(s, known.issues, known.builds, now)
        take_lease(s, DISPATCHER, "another", now, 3600)
        if is_dead:
            create_run(s, [replace(job, hardware="cuda-sm_90") for job in planned], {"by": "up"}, now)
    said = tmp_path / "up.log"
    with said.open("w") as stderr:
        command = [sys.executable, "-m", "knowngood", "up", "--port", "0", "--once", "--builds", build.id]
        up = subprocess.Popen(command, env=dict(here.environment), cwd=ROOT, stderr=stderr)
    try:
        assert eventually(lambda: "measures on this store already" in said.read_text(), PATIENCE_S), said.read_text()
        with unit_of_work(engine) as s:
            if not is_dead:
                cancel_run(s, load_runs(s, 1)[0].id, now)
            give_lease_back(s, DISPATCHER, "another")
        assert up.wait(PATIENCE_S) == 0, said.read_text()
    finally:
        up.kill()
        up.wait()
        engine.dispose()
    assert said.read_text().count("another `up` measures this already") == is_dead
    assert {key[2]: tried for key, tried in _conclusive(here).items()} == {"control": 1, "baseline": 1}


def _catalogue_of(folder: Path, *toys: str) -> Path:
    small = folder / "catalogue"
    small.mkdir()
    (small / "builds.toml").write_text((TOYS / "builds.toml").read_text())
    for toy in toys:
        (small / toy).symlink_to(TOYS / toy)
    return small


@contextmanager
def _up(here: Installation) -> Iterator[str]:
    """`knowngood up` as a person starts it; tells its address, and stops it by Ctrl-C."""
    command = [sys.executable, "-m", "knowngood", "up", "--port", "0"]
    said = here.data.with_name("up.log")
    with said.open("w") as stderr:
        up = subprocess.Popen(command, env=dict(here.environment), cwd=ROOT, stderr=stderr, stdout=stderr)
    try:
        assert eventually(lambda: "Known Good is at " in said.read_text(), PATIENCE_S), said.read_text()
        yield said.read_text().partition("Known Good is at ")[2].split()[0]
    finally:
        up.send_signal(signal.SIGINT)
        assert up.wait(PATIENCE_S) == 0, said.read_text()


def _measured(address: str) -> int:
    try:
        with urllib.request.urlopen(f"{address}api/v1/matrix?columns=all", timeout=PATIENCE_S) as answer:
            cells = json.load(answer)["cells"]
    except urllib.error.URLError:
        return 0
    return sum(1 for cell in cells if cell["verdict"] not in {"not_run", "not_applicable"})


def _conclusive(here: Installation) -> Counter[tuple[str, ...]]:
    """How many attempts gave an answer, for each arm of each cell."""
    engine = connect(here.database)
    with reading(engine) as s:
        known = load_known_attempts(s)
    engine.dispose()
    return Counter(
        {
            (key.issue, key.build, key.arm, key.variant): sum(1 for one in outcomes if one not in INFRASTRUCTURE)
            for key, outcomes in known.outcomes.items()
        }
    )
