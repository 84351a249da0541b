"""Toy repros, one per outcome, through the real command: catalogue, plan, uv, processes, database, pages, bundles.

Their matrix is golden data. Where a difference is meant, accept it:

    KNOWNGOOD_ACCEPT=1 make test-system
"""

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
from typing import Any

import psutil
import pytest

from knowngood.app.catalogue.loader import read_catalogue
from knowngood.app.domain.errors import StoreUnusable
from knowngood.app.domain.measuring.planning import KnownAttempts, PlanRequest, plan_jobs
from knowngood.app.domain.verdicts.verdict import INFRASTRUCTURE
from knowngood.app.store.catalogue import save_catalogue
from knowngood.app.store.engine import connect, reading, unit_of_work
from knowngood.app.store.jobs.job_queue import DISPATCHER, cancel_run, create_run, give_lease_back, take_lease
from knowngood.app.store.queries import load_known_attempts, load_lease, load_runs
from knowngood.app.store.state.migrations import migrate
from tests.fixtures.databases import NewStore
from tests.given_toys import ROOT, TOYS, Installation, make_installation
from tests.waiting import eventually

GOLDEN = TOYS / "expected_matrix.json"
PATIENCE_S = 240.0  # whole runs are waited for

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def matrix(installation: Installation) -> dict[str, Any]:
    answer: dict[str, Any] = installation.answer("run", "--builds", "all", "--issues", "all", "--json")
    return answer


def told(cell: dict[str, Any]) -> dict[str, Any]:
    """The part that must not change by itself: words, not times, digests or addresses."""
    return {
        "verdict": cell["verdict"],
        "control": cell["control"],
        "attempts": cell["attempts"],
        "workarounds": cell["workarounds"],
    }


def test_each_toy_gets_the_verdict_it_was_made_for(matrix: dict[str, Any]) -> None:
    found: dict[str, dict[str, Any]] = {}
    for cell in matrix["cells"]:
        found.setdefault(cell["issue"], {})[cell["build"]] = told(cell)
    if os.environ.get("KNOWNGOOD_ACCEPT"):
        GOLDEN.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    assert found == json.loads(GOLDEN.read_text())


def test_hygiene_names_the_rows_that_never_failed_and_ends_in_one(
    installation: Installation, matrix: dict[str, Any]
) -> None:
    told = installation.command("hygiene", "--json")
    assert told.returncode == 1, told.stderr
    never = {remark["issue"] for remark in json.loads(told.stdout) if remark["trouble"] == "never_failed"}
    failed = {cell["issue"] for cell in matrix["cells"] if cell["verdict"] in {"affected", "flaky"}}
    passed = {cell["issue"] for cell in matrix["cells"] if cell["verdict"] == "not_affected"}
    assert never == passed - failed
    assert "toy-passes-1" in never
    assert "toy-passes-1: passes on" in installation.command("hygiene").stdout
    assert installation.command("hygiene", "--issues", "toy-crashes-1").returncode == 0


def cell_of(matrix: dict[str, Any], issue: str, build: str = "torch-0.0.1+mini") -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in matrix["cells"] if (c["issue"], c["build"]) == (issue, build))
    return found


@pytest.mark.parametrize(
    ("issue", "build", "words"),
    [
        ("toy-passes-1", "torch-0.0.3+mini", "0.0.3+cpu was imported where 0.0.3+mini was asked for"),
        ("toy-passes-1", "torch-9.9.9+mini", "no version of torch==9.9.9"),
        ("toy-eats-memory-1", "torch-0.0.1+mini", "memory"),
        ("toy-exits-silently-1", "torch-0.0.1+mini", "proves nothing"),
        ("toy-silent-return-1", "torch-0.0.1+mini", "proves nothing"),
        ("toy-unproven-1", "torch-0.0.1+mini", "nothing shows that it exercised"),
        ("toy-control-fails-1", "torch-0.0.1+mini", "control failed"),
        ("toy-differs-1", "torch-0.0.1+mini", "its values differ from the control's: total is 7, the control's 6"),
        ("toy-missing-package-1", "torch-0.0.1+mini", "not in the environment"),
    ],
)
def test_a_cell_that_gives_no_answer_says_why(matrix: dict[str, Any], issue: str, build: str, words: str) -> None:
    assert words in cell_of(matrix, issue, build)["reason"]


def test_what_is_known_is_not_run_again(installation: Installation, matrix: dict[str, Any]) -> None:
    again = installation.command("run", "--builds", "torch-0.0.1+mini", "--issues", "toy-fixed-1")
    assert "nothing to run" in again.stderr


def test_a_flaky_toy_is_told_by_repetition(installation: Installation, matrix: dict[str, Any]) -> None:
    where = ("--builds", "torch-0.0.1+mini", "--issues", "toy-flaky-1")
    cell = installation.answer("run", *where, "--repeat", "4", "--json")["cells"][0]
    assert (cell["verdict"], sum(cell["attempts"].values())) == ("flaky", 4)


def test_deriving_every_verdict_anew_changes_nothing(installation: Installation, matrix: dict[str, Any]) -> None:
    assert installation.answer("reclassify", "--json") == {"changed": []}


def test_evidence_travels_to_another_installation_unchanged(
    installation: Installation, matrix: dict[str, Any], wheels: Path, tmp_path: Path, new_setting: NewStore
) -> None:
    bundle = tmp_path / "toys.jsonl.gz"
    assert installation.command("export", "-o", str(bundle)).returncode == 0
    other = make_installation(tmp_path, wheels, store=new_setting())
    first, second = (other.command("import", str(bundle)) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert ": 0 attempts added" in second.stdout
    here, there = (i.answer("matrix", "--builds", "all", "--json")["cells"] for i in (installation, other))
    assert [told(cell) for cell in there] == [told(cell) for cell in here]


def test_a_damaged_bundle_is_refused_whole(installation: Installation, matrix: dict[str, Any], tmp_path: Path) -> None:
    bundle = tmp_path / "toys.jsonl.gz"
    installation.command("export", "-o", str(bundle))
    data = bytearray(bundle.read_bytes())
    data[len(data) // 2] ^= 1
    bundle.write_bytes(data)
    refused = installation.command("import", str(bundle))
    assert refused.returncode == 4
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(("verdict", "code"), [("affected", 1), ("flaky", 0)])
def test_fail_on_turns_a_verdict_into_an_exit_code(
    installation: Installation, matrix: dict[str, Any], verdict: str, code: int
) -> None:
    where = ("--builds", "torch-0.0.1+mini", "--issues", "toy-fixed-1")
    assert installation.command("matrix", *where, "--fail-on", verdict).returncode == code


def test_a_run_beside_another_goes_on_when_that_one_has_ended(
    wheels: Path, tmp_path: Path, new_setting: NewStore
) -> None:
    here = make_installation(tmp_path, wheels, store=new_setting())
    first = [
        sys.executable,
        "-m",
        "knowngood",
        "run",
        "--builds",
        "torch-0.0.1+mini",
        "--issues",
        "toy-hangs-1",
        "--json",
    ]
    with (tmp_path / "first.log").open("w") as said:
        slow = subprocess.Popen(first, env=dict(here.environment), cwd=ROOT, stderr=said, stdout=subprocess.PIPE)
    assert eventually(lambda: here.data.exists() and _is_led(here), PATIENCE_S)
    second = here.command("run", "--builds", "torch-0.0.1+mini", "--issues", "toy-fixed-1", "--json")
    assert "measures on this store already" in second.stderr
    assert [cell["verdict"] for cell in json.loads(second.stdout)["cells"]] == ["affected"]
    told_first, _ = slow.communicate(timeout=PATIENCE_S)
    assert [cell["verdict"] for cell in json.loads(told_first)["cells"]] == ["affected"]


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


def test_on_postgresql_and_shut_off_as_far_as_this_kernel_allows_cells_are_the_same(
    wheels: Path, tmp_path: Path, empty_postgres_url: str
) -> None:
    here = make_installation(tmp_path, wheels, store=empty_postgres_url)
    assert here.command("migrate").returncode == 0
    asked = ("--builds", "default", "--issues", "toy-passes-1,toy-fixed-1,toy-crashes-1")
    ran = here.command("run", *asked, "--json", KNOWNGOOD_MAX_ISOLATION="filtered")
    assert ran.returncode == 0, ran.stderr
    golden = json.loads(GOLDEN.read_text())
    cells = json.loads(ran.stdout)["cells"]
    assert len({cell["issue"] for cell in cells}) == 3
    for cell in cells:
        assert told(cell) == golden[cell["issue"]][cell["build"]]


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


def test_no_process_of_a_toy_survives(installation: Installation, matrix: dict[str, Any]) -> None:
    mark = str(installation.data)
    left = []
    for process in psutil.process_iter():
        try:
            if mark in " ".join([*process.environ().values(), *process.cmdline()]):
                left.append(process)
        except psutil.Error:
            continue
    assert not left
