"""The command that times workarounds: its price, and what it refuses."""

from pathlib import Path

import pytest

from tests.given_toys import Installation, make_installation, make_python


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Installation:
    return make_installation(tmp_path_factory.mktemp("home"), wheels)


@pytest.fixture(scope="module")
def column(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    return make_python(tmp_path_factory.mktemp("column") / "venv", wheels, "torch==0.0.1", "numpy", "setuptools")


def test_the_price_comes_first_and_scripts_of_a_team_are_not_run(
    home: Installation, column: Path, tmp_path: Path
) -> None:
    file = tmp_path / "costs.gz"
    told = home.command("costs", "--python", str(column), "--issues", "toy-passes-1", "--dry-run", "-o", str(file))
    assert told.returncode == 0, told.stderr
    assert "0 arms, 30 to 120 processes each: 0 to 0 min" in told.stderr
    assert not file.exists()


def test_a_core_that_is_none_is_refused_with_those_there_are(home: Installation, column: Path, tmp_path: Path) -> None:
    named = ("costs", "--python", str(column), "--issues", "toy-passes-1", "-o", str(tmp_path / "costs.gz"))
    for core in ("x", "4096"):
        told = home.command(*named, "--cores", core)
        assert told.returncode == 2
        assert f'--cores names "{core}"; this process may use 0' in told.stderr
