"""The GitHub Action without a server, as its runner calls it: an empty HOME, the package from the checkout."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.given_toys import ROOT

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

AFFECTED = "numpy==2.2.0\n--index-url https://download.pytorch.org/whl/cu126\ntorch==2.7.1\n"
UNTESTED = "torch==1.9.0\n"
WATCHED = {"GATE_ISSUES": "pytorch-151290"}

MODULES = (
    "venv",
    "pip",
    "logging",
    "sitecustomize",
    "usercustomize",
    "json",
    "ensurepip",
    "knowngood",
    "app",
    "setuptools",
)
LEADING = {
    "PYTHONPATH": ".",
    "PYTHONSTARTUP": "logging.py",
    "PYTHONHOME": ".",
    "PYTHONUSERBASE": ".",
    "PIP_CONFIG_FILE": "{project}/pip.conf",
    "PIP_CONSTRAINT": "pip.conf",
    "PIP_TARGET": "{project}",
}
"""Variables that lead Python and pip to files of the workspace."""


Step = Callable[[str, bool], tuple[Path, subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def first_step(tmp_path_factory: pytest.TempPathFactory) -> Step:
    """The first step of a job in a hostile checkout, with a server or variables that lead into it; tells the folder of
    the checkout and what came of it. One that installs takes 20 s: each is taken once.
    """

    @cache
    def take(server: str, has_variables: bool) -> tuple[Path, subprocess.CompletedProcess[str]]:
        folder = tmp_path_factory.mktemp("first")
        led = {name: value.format(project=folder / "project") for name, value in LEADING.items() if has_variables}
        return folder, act(hostile_in(folder), folder / "temp", {**WATCHED, **led, "GATE_SERVER": server})

    return take


@pytest.fixture(scope="module")
def runner(first_step: Step) -> Path:
    """What a runner keeps from step to step of a job: the package is installed once."""
    return first_step("", True)[0] / "temp"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "requirements.txt").write_text(AFFECTED)
    return project


def act(project: Path, runner: Path, inputs: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """The step of the job, in a project whose file requirements.txt counts unless `inputs` say another environment."""
    bash = shutil.which("bash")
    assert bash is not None
    kept = ("PATH", "PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    environ |= {
        "HOME": str(project.parent),
        "RUNNER_TEMP": str(runner),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(project.parent / "summary.md"),
        "GITHUB_OUTPUT": str(project.parent / "output"),
        "GATE_REQUIREMENTS": "requirements.txt",
        "GATE_HARDWARE": "cpu-x86_64",
        "GATE_ENFORCE": "true",
        **inputs,
    }
    runner.mkdir(exist_ok=True)
    script = [bash, str(ROOT / "ci" / "gate.sh")]
    # In bytes: the line ends of the log are what some of these tests are about.
    done = subprocess.run(script, cwd=project, env=environ, capture_output=True, check=False)
    return subprocess.CompletedProcess(script, done.returncode, done.stdout.decode(), done.stderr.decode())


def commands_in(log: str) -> list[str]:
    """Lines that GitHub's runner takes for commands, less the annotations that the gate writes."""
    lines = [line.strip() for line in re.split(r"\r\n|\r|\n", log)]
    return [line for line in lines if "##[" in line or re.match(r"::(?!(error|warning|notice) (file=|title=))", line)]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    return hostile_in(tmp_path)


def hostile_in(folder: Path) -> Path:
    """A pull request's checkout: each file of it that is run adds its name to `folder/ran`."""
    project = folder / "project"
    project.mkdir()
    for name in MODULES:
        mark = f"open({str(folder / 'ran')!r}, 'a').write({name + ' '!r})\n"
        (project / f"{name}.py").write_text(mark)
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(mark)
        (project / name / "__main__.py").write_text(mark)
    (project / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/\nno-index = true\n")
    (project / "requirements.txt").write_text(AFFECTED)
    return project


# Whichever of the variables are there, the script takes them away first: each step that installs takes 20 s.
@pytest.mark.parametrize(
    "has_variables",
    [pytest.param(False, id="files alone", marks=pytest.mark.soak), pytest.param(True, id="and variables")],
)
@pytest.mark.parametrize(
    "server",
    [
        pytest.param("", id="installed"),
        pytest.param("http://127.0.0.1:9", id="asks a server", marks=pytest.mark.soak),
    ],
)
def test_nothing_of_the_workspace_is_run(first_step: Step, server: str, has_variables: bool) -> None:
    """The runner is new: installing is what ran code of the workspace."""
    folder, done = first_step(server, has_variables)
    assert not (folder / "ran").exists(), (folder / "ran").read_text()
    assert done.returncode == (4 if server else 1), done.stdout + done.stderr
    assert ("http://127.0.0.1:9 cannot be reached" if server else "pytorch-151290 blocks") in done.stdout + done.stderr


@pytest.mark.soak
def test_a_project_that_is_installed_as_it_is_edited_runs_nothing_either(hostile: Path, tmp_path: Path) -> None:
    """Its folder is on the path of every Python there, which `-I` leaves as it is."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "python")], check=True)
    site = next((tmp_path / "python" / "lib").glob("python3*/site-packages"))
    (site / "project.pth").write_text(f"{hostile}\n")
    done = act(hostile, tmp_path / "temp", {**WATCHED, "GATE_PYTHON": str(tmp_path / "python" / "bin" / "python")})
    assert done.returncode == 1, done.stdout + done.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


EVIL = "\n::error::owned"


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        *(({f"GATE_{name}": f"2.7.1{EVIL}"}, 2) for name in ("REQUIREMENTS", "ISSUES", "HARDWARE")),
        *(
            pytest.param({f"GATE_{name}": f"x{EVIL}"}, 2, marks=pytest.mark.soak)
            for name in (
                "POLICY",
                "SEVERITY",
                "LOCK",
                "COMPONENT",
                "APPLIED",
                "WATCH",
                "GROUPS",
                "SNAPSHOT",
                "PUBLIC_KEY",
            )
        ),
        ({"GATE_REQUIREMENTS": "", "GATE_BUILD": f"2.7.1{EVIL}"}, 2),
        ({"GATE_ISSUES": "x\u2028::error::owned"}, 2),
        ({"GATE_ISSUES": "x ##[error]owned"}, 2),
        ({"GATE_ISSUES": "::error::owned"}, 2),
        ({"GATE_SERVER": f"http://127.0.0.1:9{EVIL}"}, 2),
        ({"GATE_SERVER": "http://127.0.0.1:9", "KNOWNGOOD_TOKEN": f"kg_x{EVIL}"}, 2),
        ({"GATE_SERVER": "http://127.0.0.1:9", "KNOWNGOOD_TOKEN": "kg_x\n"}, 4),
        ({"GATE_ISSUES": "pytorch-151290,\npytorch-151290\n", "GATE_REQUIREMENTS": "requirements.txt\n"}, 1),
    ],
)
def test_inputs_with_line_ends_give_no_commands(
    runner: Path, project: Path, tmp_path: Path, inputs: Mapping[str, str], code: int
) -> None:
    done = act(project, runner, {**WATCHED, **inputs})
    assert done.returncode == code, done.stdout + done.stderr
    assert commands_in(done.stdout + done.stderr) == []
    assert "Traceback" not in done.stderr
    told = tmp_path / "output"
    assert (told.read_text() if told.exists() else "") == ("decision=block\n" if code == 1 else "")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("requirements.txt", "torch==##[error]owned\n"),
        ("requirements.txt", "--owned=##[set-env name=PATH]x\n"),
        ("requirements.txt", "torch==2.7.1;##vso[task.setvariable]x\n"),
        ("requirements.txt", "torch==2.7.1 x\r::error::owned\n"),
        ("knowngood.toml", '[watch]\n"##[error]owned" = 1\n'),
        ("knowngood.toml", '[watch]\nissues = ["x\\n::error::owned"]\n'),
    ],
)
def test_files_give_no_commands(runner: Path, project: Path, file: str, text: str) -> None:
    (project / file).write_bytes(text.encode())
    done = act(project, runner, WATCHED if file == "requirements.txt" else {})
    assert done.returncode == 2, done.stdout + done.stderr
    assert commands_in(done.stdout + done.stderr) == []
    assert "##vso[" not in done.stdout + done.stderr


def test_the_hook_for_pre_commit_runs_nothing_of_the_repository(runner: Path, hostile: Path, tmp_path: Path) -> None:
    """Its command from an environment that has the package, as pre-commit makes one."""
    assert act(hostile, runner, WATCHED).returncode == 1
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    command = [*hook["entry"].split(), *hook["args"], "--issues", "pytorch-151290"]
    environ = {"PATH": f"{runner / 'knowngood' / 'venv' / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(["env", *command], cwd=hostile, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, "Blocked" in done.stdout) == (0, True), done.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


@pytest.mark.soak
def test_the_template_for_gitlab_runs_nothing_of_the_project(hostile: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "python")], check=True)
    job = yaml.safe_load((ROOT / "ci" / "gitlab-ci.yml").read_text())["knowngood-gate"]
    environ = {
        **{name: os.environ[name] for name in ("PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE") if name in os.environ},
        "PATH": f"{tmp_path / 'python' / 'bin'}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        **job["variables"],
        "PYTHONPATH": ".",
        "KNOWNGOOD_PACKAGE": str(ROOT),
        "KNOWNGOOD_WATCH": "--issues=pytorch-151290",
        "KNOWNGOOD_MODE": "",
    }
    script = ["bash", "-e", "-c", "\n".join(job["script"])]
    done = subprocess.run(script, cwd=hostile, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, "Blocked" in done.stdout) == (1, True), done.stdout + done.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    assert "pytorch-151290" in (hostile / "gl-code-quality-report.json").read_text()
    assert "pytorch-151290" in (hostile / "knowngood.xml").read_text()


@pytest.mark.parametrize(
    ("requirements", "inputs", "code", "said"),
    [
        (AFFECTED, WATCHED, 1, "::error title=pytorch-151290 blocks on torch 2.7.1 (CUDA 12.6)"),
        (AFFECTED, {**WATCHED, "GATE_ENFORCE": ""}, 0, "::warning title=pytorch-151290 blocks"),
        ("torch==2.15.0\n", WATCHED, 0, "::notice title=Known Good%3A Pass"),
        (AFFECTED, {"GATE_ISSUES": "pytorch-1512900"}, 2, "pytorch-1512900"),
        (UNTESTED, WATCHED, 3, "::error title=Known Good%3A Cannot say"),
        (
            AFFECTED,
            {**WATCHED, "GATE_SNAPSHOT": "requirements.txt", "GATE_UNSIGNED": "true"},
            4,
            "no Known Good snapshot",
        ),
        (AFFECTED, {**WATCHED, "GATE_SNAPSHOT": "requirements.txt"}, 2, "say who must have signed the snapshot"),
        (
            AFFECTED,
            {**WATCHED, "GATE_SNAPSHOT": "x", "GATE_PUBLIC_KEY": " "},
            2,
            "say who must have signed the snapshot",
        ),
    ],
)
def test_the_action_answers_without_a_server(
    runner: Path, project: Path, requirements: str, inputs: dict[str, str], code: int, said: str
) -> None:
    (project / "app").mkdir()
    (project / "app" / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    (project / "requirements.txt").write_text(requirements)
    done = act(project, runner, inputs)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if said.startswith("::") and requirements != "torch==2.15.0\n":
        assert f"file=requirements.txt,line={requirements.count(chr(10))}::" in done.stdout
    noted = "".join(one.read_text() for one in project.parent.glob("summary.md"))
    assert ("## Upgrade torch 2.7.1 (CUDA 12.6) to torch 2." in noted) == ("blocks" in said)
    assert not (project.parent / ".local").exists(), "a data folder was made"
