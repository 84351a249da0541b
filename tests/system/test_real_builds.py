"""The whole way on real torch builds from the package index, and on machines that lack something: there it is never
affected, never not_affected, and a sentence says what to do. One file, so that each build is installed once.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from knowngood.catalogue.loader import read_catalogue, shipped_catalogue
from knowngood.domain.builds.build import parse_build_id
from knowngood.domain.issue import EnvironmentRequest
from knowngood.domain.measuring.job import ArmSpec
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome, classify
from knowngood_workers.agent.arm_runner import Limits, RunLocation, arm_environment, execute, scratch_folder
from knowngood_workers.provision.index_config import read_index
from knowngood_workers.provision.provisioner import Environment, Provisioner, host_trouble
from tests.system.real_builds import MARKS, NEW, OLD, OLDER, ROOT, data_folder, run

pytestmark = MARKS

TOYS = {"KNOWNGOOD_CATALOGUE": str(ROOT / "tests" / "mini_repros")}
COMPILES = {"KNOWNGOOD_CATALOGUE": str(ROOT / "tests" / "real_repros")}
FIXED, TEMPTING = "pytorch-152012", "pytorch-133063"  # the first between the two; each arm costs a second or less
TRICKS, ONE_HONEST_VARIANT = "toy-tricks-1", ("inconclusive", {"pass": 1, "harness_error": 13})


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    with data_folder() as folder:
        yield folder


def store(data: Path, name: str) -> dict[str, str]:
    """A store of its own beside the environments of all."""
    address = {"KNOWNGOOD_DATABASE_URL": f"sqlite:///{data}/{name}.sqlite3"}
    subprocess.run([sys.executable, "-m", "knowngood", "migrate"], env={**os.environ, **address}, cwd=ROOT, check=True)
    return address


def cells_of(builds: str, issues: str, data: Path, **more: str) -> dict[tuple[str, str], Any]:
    answer = run(data, "--builds", builds, "--issues", issues, **more)
    return {(cell["issue"], cell["build"]): cell for cell in answer["cells"] if cell["hardware"] == "cpu-x86_64"}


@pytest.fixture(scope="module")
def measured(data: Path) -> Any:
    return (
        cells_of(OLD, FIXED, data)
        | cells_of(NEW, f"{FIXED},{TEMPTING},pytorch-193793", data)
        | cells_of(NEW, TRICKS, data, **TOYS, **store(data, "tricks"))
    )


def test_a_bug_that_was_fixed_between_two_releases_is_seen_on_one_and_gone_on_the_other(measured: Any) -> None:
    before, after = measured[FIXED, OLD], measured[FIXED, NEW]
    assert (before["verdict"], after["verdict"]) == ("affected", "not_affected")
    assert "'NoneType' object has no attribute 'is_python_constant'" in before["signature_line"]


@pytest.mark.usefixtures("measured")
def test_a_script_that_is_tried_fails_where_its_row_does(data: Path, tmp_path: Path) -> None:
    bug = tmp_path / "bug.py"
    bug.write_text(told("issue", FIXED, "--script", data=data), encoding="utf-8")
    fails, runs = (parse_build_id(build).release for build in (OLD, NEW))
    answer = f"Fails on torch {fails}, runs on {runs}; stops failing on {runs} ({fails} fails)"
    assert told("try", str(bug), "--builds", f"{OLD},{NEW}", data=data).startswith(answer)


def told(*command: str, data: Path) -> str:
    environ = {**os.environ, "KNOWNGOOD_DATA_DIR": str(data)}
    asked = [sys.executable, "-m", "knowngood", *command]
    return subprocess.run(asked, env=environ, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_workarounds_are_told_apart_from_tempting_ideas(measured: Any) -> None:
    assert measured[TEMPTING, NEW]["workarounds"] == {
        **dict.fromkeys(("append", "last_kept"), "effective"),
        "comprehension": "ineffective",
    }


@pytest.mark.soak
def test_a_bug_of_a_package_beside_torch_is_measured_with_that_package() -> None:
    """Its arms start fresh: a minute of processor."""
    with data_folder() as data:
        cells = cells_of(f"{OLDER},{NEW}", "xla-8464", data)
    before, after = cells["xla-8464", OLDER], cells["xla-8464", NEW]
    assert (before["verdict"], after["verdict"]) == ("affected", "not_affected")
    assert "called on deleted or donated buffer" in before["signature_line"]
    assert before["workarounds"]["clone"] == "ineffective"


def test_of_what_may_pass_for_a_compiled_suspect_only_the_honest_variant_passes(measured: Any) -> None:
    """The same tricks as in tests/workers/agent."""
    cell = measured[TRICKS, NEW]
    assert (cell["verdict"], cell["attempts"]) == ONE_HONEST_VARIANT


@pytest.mark.soak
def test_an_older_dynamo_is_seen_through_as_well() -> None:
    """Fourteen variants, each a process that compiles: two minutes of processor."""
    with data_folder() as data:
        cell = cells_of(OLDER, TRICKS, data, **TOYS)[TRICKS, OLDER]
    assert (cell["verdict"], cell["attempts"]) == ONE_HONEST_VARIANT


def test_a_row_that_names_its_suspect_has_proof_of_the_call(measured: Any) -> None:
    cell = measured["pytorch-193793", NEW]
    assert (cell["verdict"], cell["proof"]) == ("not_affected", "call")


@pytest.mark.soak
def test_an_operator_that_ignores_strides_is_wrong_on_every_torch() -> None:
    """It builds a C++ extension in every arm: a minute and a half of processor for each build."""
    with data_folder() as data:
        cells = cells_of(f"{OLDER},{NEW}", "deepmd-kit-3910", data)
    assert {build: cells["deepmd-kit-3910", build]["verdict"] for build in (OLDER, NEW)} == dict.fromkeys(
        (OLDER, NEW), "affected"
    )
    assert {cells["deepmd-kit-3910", build]["workarounds"]["caller_contiguous"] for build in (OLDER, NEW)} == {
        "effective"
    }


def test_a_second_environment_of_a_build_shares_the_files_of_the_first(measured: Any, data: Path) -> None:
    build = next(one for one in read_catalogue([shipped_catalogue()]).builds if one.id == NEW)
    files = "environments/*/lib/python*/site-packages/torch"
    first = next(torch for torch in data.glob(files) if list(torch.parent.glob("torch-2.7.1*.dist-info")))
    request = EnvironmentRequest(NEW, ("einops==0.8.1",), (), mutates=False)
    with Provisioner(data, limit_bytes=1 << 60).provision(build, request, lambda *_: None) as second:
        torch = next(second.root.glob("lib/python*/site-packages/torch"))
        assert torch != first
        assert (torch / "__init__.py").samefile(first / "__init__.py")
        assert list(torch.glob("__pycache__/__init__.*.pyc"))


# -- machines that lack something ------------------------------------------------------------------------------------


def compiled(data: Path, **more: str) -> dict[str, Any]:
    answer = run(data, "--builds", OLD, "--issues", "compile-1", "--force", **COMPILES, **more)
    found: dict[str, Any] = next(cell for cell in answer["cells"] if cell["hardware"] == "cpu-x86_64")
    return found


def without(program_prefixes: tuple[str, ...], folder: Path) -> str:
    """A PATH with everything but some programs."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(place).glob("*")):
            if not program.name.startswith(program_prefixes) and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def test_without_a_compiler_nothing_is_said_of_torch(data: Path, tmp_path: Path) -> None:
    compilers = ("g++", "c++", "gcc", "cc", "clang", "x86_64-linux-gnu-g", "c89", "c99")
    cell = compiled(data, PATH=without(compilers, tmp_path / "bin"), **store(data, "without"))
    assert (cell["verdict"], set(cell["attempts"])) == ("inconclusive", {"env_error"})
    assert "apt-get install g++" in cell["reason"]


@pytest.mark.soak
def test_where_every_compiled_kernel_dies_nothing_is_said_of_torch(data: Path, tmp_path: Path) -> None:
    """A compiler that makes working programs, and libraries that die when they are loaded."""
    dies = "#include <csignal>\n__attribute__((constructor)) static void die() { std::raise(SIGSEGV); }\n"
    (tmp_path / "dies.cpp").write_text(dies)
    wrapper = tmp_path / "g++"
    real = shutil.which("g++")
    wrapper.write_text(
        f'#!/bin/sh\ncase " $* " in *" -shared "*) exec {real} "$@" {tmp_path}/dies.cpp;; esac\nexec {real} "$@"\n'
    )
    wrapper.chmod(0o755)
    cell = compiled(data, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", **store(data, "dying"))
    assert (cell["verdict"], set(cell["attempts"])) == ("inconclusive", {"env_error"})
    assert "even the smallest function that Inductor compiles for the CPU dies by SIGSEGV" in cell["reason"]


@pytest.mark.soak
def test_without_setuptools_nothing_is_said_of_torch(tmp_path: Path) -> None:
    """Our provisioner always installs it, so this environment is made by hand: torch up to 2.6 needs it at run time."""
    catalogue = read_catalogue([shipped_catalogue(), ROOT / "tests" / "real_repros"])
    issue = next(one for one in catalogue.issues if one.id == "compile-1")
    build = next(one for one in catalogue.builds if one.id == OLDER)
    python = Path.home() / ".cache" / "knowngood-tests" / f"bare-{os.getpid()}" / "bin" / "python"
    environ = {**os.environ, **read_index(os.environ).variables}
    for command in (
        ["venv", "-q", "--no-project", "--python", build.python, str(python.parents[1])],
        ["pip", "install", "-q", "--python", str(python), f"torch==={build.requirement}", "numpy"],
    ):
        subprocess.run([find_uv_bin(), *command], env=environ, check=True)
    try:
        place = RunLocation(python, (), Limits(memory_bytes=8 << 30))
        environment = Environment(python, python.parents[1], "", "", {}, {"torch": build.torch}, 0.0, reused=False)
        with scratch_folder(tmp_path) as scratch:
            arm = ArmSpec(
                "a", issue.id, "baseline", "default", 1, "", "s", {}, {}, issue.arm("baseline").exercises, 300
            )
            done = execute(
                arm, issue.script, place=place, scratch=scratch, fork_server=None, is_cancelled=lambda: False
            )
            trouble = host_trouble(environment, scratch, arm.exercises, arm_environment(place, scratch, {}))
    finally:
        shutil.rmtree(python.parents[1])
    assert done.record.raised is not None, done.log
    judged = classify(replace(done.record, trouble=trouble), issue, "baseline", build, done.log)
    assert judged.outcome is Outcome.ENV_ERROR
    assert "setuptools" in english(judged.reason)


def test_on_a_full_disk_nothing_is_said_of_torch(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small file system")
    small = tmp_path / "small"
    small.mkdir()
    command = [sys.executable, "-m", "knowngood", "run", "--builds", OLD, "--issues", "compile-1", "--json"]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64m none "$0" && exec "$@"', small, *command],
        env={**os.environ, **COMPILES, "KNOWNGOOD_DATA_DIR": str(small)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "no arm could run: this environment needs" in done.stderr
    cell = json.loads(done.stdout)["cells"][0]
    assert (cell["verdict"], set(cell["attempts"])) == ("inconclusive", {"env_error"})
    assert "free" in cell["reason"]


@pytest.mark.soak
def test_a_compilation_on_a_sound_machine_passes_with_proof(data: Path) -> None:
    cell = compiled(data, **store(data, "sound"))
    assert cell["verdict"] == "not_affected"
    assert "inductor_cpp" in cell["reason"]
