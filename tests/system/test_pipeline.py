"""Toy repros, one per outcome, through the real command: catalogue, plan, uv, processes, database, pages, bundles.

Their matrix is golden data. Where a difference is meant, accept it:

    KNOWNGOOD_ACCEPT=1 make test-system
"""

import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from knowngood.domain.verdicts.verdict import FAILING
from tests.fixtures.databases import NewStore
from tests.given_toys import TOYS, Installation, make_installation

GOLDEN = TOYS / "expected_matrix.json"

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def matrix(installation: Installation) -> dict[str, Any]:
    """Arms side by side, more than there are cores: some wait."""
    ran = installation.command("run", "--builds", "all", "--issues", "all", "--json", KNOWNGOOD_SLOTS="4")
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
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
    failed = {cell["issue"] for cell in matrix["cells"] if cell["verdict"] in FAILING}
    passed = {cell["issue"] for cell in matrix["cells"] if cell["verdict"] == "not_affected"}
    assert never == passed - failed
    assert "toy-passes-1" in never
    assert "toy-passes-1: passes on" in installation.command("hygiene", "--all").stdout
    assert installation.command("hygiene", "--issues", "toy-crashes-1").returncode == 0


def cell_of(matrix: dict[str, Any], issue: str, build: str = "torch-0.0.1+mini") -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in matrix["cells"] if (c["issue"], c["build"]) == (issue, build))
    return found


@pytest.mark.parametrize(
    ("issue", "build", "words"),
    [
        ("toy-passes-1", "torch-0.0.3+mini", "0.0.3 (CPU) was imported where 0.0.3 (mini) was asked for"),
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
