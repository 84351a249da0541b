"""The catalogue inside an environment as it is, through the real command over the toy repros."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from knowngood.domain.message import quoted
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.measure.here import as_body, print_cells
from knowngood_workers.provision.adopted_env import AdoptedEnvironment
from tests.given_toys import Installation, make_installation, make_python
from tests.make import HARDWARE, NOON, make_build, make_issue

TOYS = "toy-passes-1,toy-aborts-1,toy-fixed-1,toy-packages-1"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Installation:
    return make_installation(tmp_path_factory.mktemp("home"), wheels)


@pytest.fixture(scope="module")
def column(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    return make_python(tmp_path_factory.mktemp("column") / "venv", wheels, "torch==0.0.1", "numpy", "setuptools")


@pytest.mark.system
def test_what_fails_in_an_environment_is_told_with_what_cures_it_there(home: Installation, column: Path) -> None:
    told = home.command("here", "--python", str(column), "--issues", TOYS)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("2 issues fail here (1 with a workaround), 1 pass on cpu-x86_64: torch 0.0.1+mini")
    assert "use eager: " in told.stdout
    assert "toy-passes-1" not in told.stdout
    assert "need packages that an adopted interpreter" in told.stderr
    assert told.stderr.index("time:  ") < told.stderr.index("torch-0.0.1+mini: ")
    assert "[warning" not in told.stderr + told.stdout


def test_a_workaround_that_helps_in_part_is_told_apart_with_its_variants_and_the_thread() -> None:
    imported = {"torch": "2.6.0", "triton": "3.2.0", "cuda": "12.4", "python": "3.11.2"}
    here = AdoptedEnvironment(Path("/venv/bin/python"), imported, {})
    halves = {"aot_eager": WorkaroundFinding(WorkaroundVerdict.PARTIAL, quoted("helps with small; fails with big"))}
    found = Cell("toy-1", make_build().id, HARDWARE, Verdict.AFFECTED, quoted("2 of 2"), NOON, workarounds=halves)
    out = io.StringIO()
    print_cells(Console(file=out, width=200), here, [make_issue()], [found])
    assert out.getvalue().splitlines() == [
        "1 issue fails here (0 with a workaround, 1 with one that helps in part) on cpu-x86_64: " + here.in_words,
        "  ✕½ toy-1: toy-1 fails to compile (fails, workaround helps in part)",
        "      helps in part: aot_eager: aot_eager (helps with small; fails with big)",
        "      https://github.com/pytorch/pytorch/issues/1",
    ]
    (row,) = as_body(here, make_build(), [found])["cells"]
    assert (row["effective_workarounds"], row["partial_workarounds"]) == ([], ["aot_eager"])


@pytest.mark.system
def test_it_is_asked_once_and_again_when_something_was_installed(
    home: Installation, column: Path, wheels: Path, tmp_path: Path
) -> None:
    asked = ("here", "--issues", "toy-passes-1", "--python")
    home.command(*asked, str(column))
    again = home.command(*asked, str(column))
    assert "running" not in again.stderr.casefold()
    other = make_python(tmp_path / "venv", wheels, "torch==0.0.1", "numpy", "setuptools", "mini-extra")
    before = set((home.data / "here").iterdir())
    assert home.command(*asked, str(other)).returncode == 0
    assert set((home.data / "here").iterdir()) != before, "a store of its own"


@pytest.mark.system
def test_a_torch_that_no_catalogue_has_is_measured_and_kept_apart(
    home: Installation, wheels: Path, tmp_path: Path
) -> None:
    python = make_python(tmp_path / "venv", wheels, "torch==0.0.3", "numpy", "setuptools")
    told = home.answer("here", "--python", str(python), "--issues", "toy-passes-1", "--json")
    assert not told["is_column"]
    assert told["cells"], "the environment was asked"
    known = home.answer("matrix", "--json")
    assert told["build"] not in {build["id"] for build in known["builds"]}
    assert not [cell for cell in known["cells"] if cell["verdict"] not in {"not_run", "not_applicable"}]


@pytest.mark.parametrize("python", ["/nowhere/python", sys.executable])
def test_an_environment_without_torch_is_refused_with_what_to_do(home: Installation, python: str) -> None:
    refused = home.command("here", "--python", python)
    assert refused.returncode == 2
    assert ("is no program here" if python.startswith("/nowhere") else "name the environment's interpreter") in (
        refused.stderr
    )
