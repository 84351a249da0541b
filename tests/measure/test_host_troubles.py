"""A host that cannot measure says so: no arm that could run is no result, and no range that was narrowed."""

import json
import shutil
from pathlib import Path

import pytest

from tests.given_toys import TOYS, Installation, make_installation

FAILING, PASSING = "torch-0.0.1+mini", "torch-0.0.2+mini"
BETWEEN = """
[[build]]
torch = "0.0.1.1"
local = "mini"
origin = "default"
as_of = 2026-11-01
"""
DEAD = {
    "PIP_NO_INDEX": "",
    "PIP_FIND_LINKS": "",
    "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
    "UV_HTTP_RETRIES": "0",
}
TROUBLE = "the package index cannot be reached; check network, proxy and credentials"
LACKING = {"PIP_FIND_LINKS": ""}
LACKS = "this machine takes packages from local folders only (no-index), and they lack one"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Installation:
    """Of the toys one that 0.0.2 mends, and a build between its two; `FAILING` and `PASSING` were measured."""
    folder = tmp_path_factory.mktemp("troubles")
    catalogue = folder / "catalogue"
    shutil.copytree(TOYS / "toy-fixed-1", catalogue / "toy-fixed-1")
    (catalogue / "builds.toml").write_text((TOYS / "builds.toml").read_text() + BETWEEN)
    return make_installation(folder, wheels, catalogue=catalogue)


@pytest.fixture(scope="module")
def measured(fresh: Installation) -> Installation:
    done = fresh.command("run", "--builds", f"{FAILING},{PASSING}", "--issues", "all", "--no-workarounds")
    assert (done.returncode, "could not run" in done.stderr) == (0, False), done.stderr
    return fresh


@pytest.mark.system
def test_without_an_index_a_run_and_a_bisection_end_at_the_first_environment_in_4(fresh: Installation) -> None:
    run = ("run", "--builds", "torch-0.0.1.1+mini,torch-0.0.3+mini", "--issues", "all", "--json")
    for asked in (run, ("bisect", "toy-fixed-1", "--from", FAILING, "--to", PASSING)):
        done = fresh.command(*asked, **DEAD)
        assert (done.returncode, done.stdout) == (4, ""), done.stderr
        assert done.stderr.splitlines()[-1].startswith(f"knowngood: {TROUBLE}: ")
        assert len([line for line in done.stderr.splitlines() if line.endswith(": environment, resolve")]) == 1


def test_a_run_of_which_nothing_could_run_ends_in_4_and_says_why_first(fresh: Installation) -> None:
    done = fresh.command("run", "--builds", "torch-0.0.1.1+mini", "--issues", "all", "--json", **LACKING)
    assert done.returncode == 4, done.stderr
    said = done.stderr.splitlines()
    assert any(line.startswith(f"torch-0.0.1.1+mini: {LACKS}; ") for line in said), said
    assert [line for line in said if line.startswith("found in")] == ["found in 1 cell: 1 cannot say"]
    at = next(at for at, line in enumerate(said) if line.startswith(f"no arm could run: {LACKS}: "))
    assert at < said.index("found in 1 cell: 1 cannot say")
    assert [cell["verdict"] for cell in json.loads(done.stdout)["cells"]] == ["inconclusive"]


@pytest.mark.system
def test_what_is_here_already_needs_no_index(measured: Installation) -> None:
    asked = ("run", "--builds", f"{FAILING},{PASSING}", "--issues", "all", "--no-workarounds")
    known = measured.command(*asked, **DEAD)
    assert (known.returncode, "nothing to run" in known.stderr) == (0, True), known.stderr
    again = measured.command(*asked, "--force", **DEAD)
    assert (again.returncode, "could" in again.stderr) == (0, False), again.stderr


def test_a_run_of_which_something_ran_ends_in_0_and_says_what_did_not(measured: Installation) -> None:
    asked = ("run", "--builds", f"{FAILING},torch-0.0.1.1+mini", "--issues", "all", "--no-workarounds", "--force")
    done = measured.command(*asked, **LACKING)
    assert done.returncode == 0, done.stderr
    assert f"\n2 of 4 arms could not run: {LACKS}: " in done.stderr


def test_a_range_that_could_not_be_narrowed_is_no_answer(measured: Installation) -> None:
    asked = ("bisect", "toy-fixed-1", "--from", FAILING, "--to", PASSING)
    done = measured.command(*asked, **LACKING)
    assert done.returncode == 3, done.stderr
    assert f"\nnot narrowed, for nothing in between could be run: {LACKS}: " in done.stdout
    assert f"torch-0.0.1.1+mini: {LACKS}; " in done.stderr
    body = json.loads(measured.command(*asked, "--json", **LACKING).stdout)
    assert body["kept_from_running"]["torch-0.0.1.1+mini"].startswith(LACKS)
    assert (body["answer"], body["boundary"]["interval"]) == ("found", "(0.0.1, 0.0.2]")


def test_ends_that_could_not_be_run_are_no_answer(tmp_path: Path, wheels: Path) -> None:
    empty = make_installation(tmp_path, wheels)
    done = empty.command("bisect", "toy-fixed-1", "--from", FAILING, "--to", PASSING, **LACKING)
    assert done.returncode == 3, done.stderr
    assert f"0.0.1 gives no answer (inconclusive: {LACKS}: " in done.stdout
    assert done.stdout.count("could not be run") == 2
