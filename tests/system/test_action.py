"""The GitHub Action without a server, as its runner calls it: an empty HOME, the package from the checkout."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.given_toys import ROOT

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

AFFECTED = "numpy==2.2.0\n--index-url https://download.pytorch.org/whl/cu126\ntorch==2.7.1\n"
UNTESTED = "torch==1.9.0\n"


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a runner keeps from step to step of a job: the package is installed once."""
    return tmp_path_factory.mktemp("runner")


@pytest.mark.parametrize(
    ("requirements", "inputs", "code", "said"),
    [
        (AFFECTED, {"GATE_ISSUES": "pytorch-151290"}, 1, "::error title=pytorch-151290 blocks on torch-2.7.1+cu126"),
        (AFFECTED, {"GATE_ISSUES": "pytorch-151290", "GATE_ENFORCE": ""}, 0, "::warning title=pytorch-151290 blocks"),
        ("torch==2.15.0\n", {"GATE_ISSUES": "pytorch-151290"}, 0, "::notice title=Known Good%3A Pass"),
        (AFFECTED, {"GATE_ISSUES": "pytorch-1512900"}, 2, "pytorch-1512900"),
        (UNTESTED, {"GATE_ISSUES": "pytorch-151290"}, 3, "::error title=Known Good%3A Cannot say"),
        (AFFECTED, {"GATE_ISSUES": "pytorch-151290", "GATE_SNAPSHOT": "requirements.txt"}, 4, "no Known Good snapshot"),
    ],
)
def test_the_action_answers_without_a_server(
    runner: Path, tmp_path: Path, requirements: str, inputs: dict[str, str], code: int, said: str
) -> None:
    project = tmp_path / "project"
    (project / "app").mkdir(parents=True)
    (project / "app" / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    (project / "requirements.txt").write_text(requirements)
    bash = shutil.which("bash")
    assert bash is not None
    kept = ("PATH", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    environ |= {
        "HOME": str(tmp_path),
        "RUNNER_TEMP": str(runner),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GATE_REQUIREMENTS": "requirements.txt",
        "GATE_HARDWARE": "cpu-x86_64",
        "GATE_ENFORCE": "true",
        **inputs,
    }
    done = subprocess.run(
        [bash, str(ROOT / "ci" / "gate.sh")], cwd=project, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if said.startswith("::") and requirements != "torch==2.15.0\n":
        assert f"file=requirements.txt,line={requirements.count(chr(10))}::" in done.stdout
    summary = tmp_path / "summary.md"
    has_note = summary.exists() and "## Upgrade torch: torch-2.7.1+cu126 to torch-2." in summary.read_text()
    assert has_note == ("blocks" in said)
    assert not (tmp_path / ".local").exists(), "a data folder was made"
