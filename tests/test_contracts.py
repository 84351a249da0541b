"""The contracts of pyproject.toml hold the rooms apart: `make check` sees that none is broken, this that one can be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("gate/rules.py", "from knowngood.ask.front import page", "knowngood.gate.rules -> knowngood.ask.front.page"),
        ("../../workers/knowngood_workers/host/nvml.py", "import knowngood.settings", "nvml -> knowngood.settings"),
        ("domain/issue.py", "import sqlalchemy", "knowngood.domain.issue -> sqlalchemy"),
    ],
)
def test_an_import_against_a_contract_is_refused_and_named(tmp_path: Path, file: str, line: str, said: str) -> None:
    for name in ("app", "workers"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    changed = tmp_path / "app" / "knowngood" / file
    changed.write_text(f"{changed.read_text()}\n{line}\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'app'}:{tmp_path / 'workers'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert said in done.stdout
