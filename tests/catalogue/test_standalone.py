"""The standalone parts of a repro, really run: exit 0 is good, 1 is the issue, 2 is anything else."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from knowngood.catalogue.loader import shipped_catalogue
from knowngood.catalogue.script_analysis import STANDALONE, STANDALONE_FUNCTIONS, script_of, standalone
from knowngood.domain.errors import BadRequest
from tests.catalogue import arms_without_torch
from tests.catalogue.given import make_toy, shipped
from tests.make import make_issue

BODY = """
import ctypes
import os
import sys
import threading

SIGNATURE = r"kaput \\d+|Aborted"
ENV = {"with_variables": {"PYTHONOPTIMIZE": "2", "TORCHINDUCTOR_FX_GRAPH_CACHE": "0"}}


class WrongResult(Exception):
    pass


class NotApplicable(Exception):
    pass


def _helper(size):
    return {"size": size, "words": "not -1 or 'x'"}


def control(size=3):
    print("said on the way")
    return _helper(size)


def baseline(size=3):
    raise RuntimeError("kaput %d" % size)


def with_variables():
    return {"optimize": sys.flags.optimize, "cache": os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"]}


def caches():
    return {name: os.environ[name] for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}


def aborts():
    os.abort()


def reads_nowhere():
    ctypes.string_at(0)


def exits_with_words():
    os.write(2, b"kaput 7\\n")
    os._exit(3)


def exits_quietly():
    os._exit(0)


def leaves_by_exception():
    raise SystemExit(0)


def returns_nothing():
    print("kaput 1")


def returns_an_empty_dict():
    return {}


def returns_a_list():
    return [1]


def returns_and_crashes():
    threading.Thread(target=lambda: (threading.main_thread().join(), os.abort())).start()
    return {"size": 1}


def fails_otherwise():
    raise ValueError("something else")


def wants_a_package():
    import package_that_is_not_there


def cannot_be_here():
    raise NotApplicable("kaput 3: needs a GPU")


def is_wrong_otherwise():
    raise WrongResult("expected 1, got 2")


def is_wrong_as_signed():
    raise WrongResult("expected 1, got kaput 2")
"""


def _run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(params=["one file", "in a catalogue"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Path]:
    is_one_file = request.param == "one file"
    if not is_one_file:
        shutil.copy(STANDALONE, tmp_path)
    return lambda body: make_toy(tmp_path / "toy-1" / "repro.py", body, is_one_file=is_one_file)


@pytest.fixture
def script(make: Callable[[str], Path]) -> Path:
    return make(BODY)


@pytest.mark.sample(9, "system")
@pytest.mark.parametrize(
    ("arm", "status", "last_line"),
    [
        ("control", 0, "GOOD: control returned what it observed."),
        ("baseline", 1, "THE ISSUE: baseline raised RuntimeError, and its text has the signature."),
        ("with_variables", 0, "GOOD: with_variables returned what it observed."),
        ("aborts", 1, "THE ISSUE: aborts was killed by SIGABRT, and its text has the signature."),
        ("reads_nowhere", 2, "CANNOT SAY: reads_nowhere was killed by SIGSEGV, which is neither good nor the issue."),
        ("exits_with_words", 1, "THE ISSUE: exits_with_words left with status 3, and its text has the signature."),
        ("exits_quietly", 2, "CANNOT SAY: exits_quietly left with status 0, which is neither good nor the issue."),
        ("leaves_by_exception", 2, "left with status 0, which is neither good nor the issue."),
        ("returns_nothing", 2, "returned nothing it observed, which is neither good nor the issue."),
        ("returns_an_empty_dict", 2, "returned nothing it observed, which is neither good nor the issue."),
        ("returns_a_list", 2, "returned nothing it observed, which is neither good nor the issue."),
        ("returns_and_crashes", 1, "returns_and_crashes was killed by SIGABRT, and its text has the signature."),
        ("fails_otherwise", 2, "raised ValueError, which is neither good nor the issue."),
        ("wants_a_package", 2, "raised ModuleNotFoundError, which is neither good nor the issue."),
        ("cannot_be_here", 2, "raised NotApplicable, which is neither good nor the issue."),
        ("is_wrong_otherwise", 2, "raised WrongResult, which is neither good nor the issue."),
        ("is_wrong_as_signed", 1, "raised WrongResult, and its text has the signature."),
    ],
)
def test_an_arm_ends_in_good_the_issue_or_cannot_say(script: Path, arm: str, status: int, last_line: str) -> None:
    done = _run(script, "--arm", arm)

    assert done.stdout.splitlines()[-1].endswith(last_line)
    assert done.returncode == status


def test_without_an_arm_the_baseline_runs(script: Path) -> None:
    assert _run(script).returncode == 1


def test_what_was_observed_and_said_is_printed(script: Path) -> None:
    done = _run(script, "--arm", "control")

    assert done.stdout.splitlines() == [
        "said on the way",
        "observed size = 3",
        "observed words = not -1 or 'x'",
        "GOOD: control returned what it observed.",
    ]


def test_a_crash_shows_where_it_was(script: Path) -> None:
    done = _run(script, "--arm", "aborts")

    assert "Fatal Python error: Aborted" in done.stdout
    assert "in aborts" in done.stdout


def test_parameters_are_literals_where_they_can_be(script: Path) -> None:
    assert "observed size = 7\n" in _run(script, "--arm", "control", "size=7").stdout
    assert "observed size = [1, 2]\n" in _run(script, "size=[1, 2]", "--arm", "control").stdout
    assert "observed size = float32\n" in _run(script, "size=float32", "--arm", "control").stdout
    assert "observed size = a=b\n" in _run(script, "--arm", "control", "size=a=b").stdout


def test_a_parameter_nobody_takes_cannot_be_said(script: Path) -> None:
    done = _run(script, "--arm", "control", "sise=7")

    assert done.returncode == 2
    assert "unexpected keyword argument 'sise'" in done.stdout


def test_arms_are_listed(script: Path) -> None:
    done = _run(script, "--list")

    assert done.stdout.split()[:3] == ["control", "baseline", "with_variables"]
    assert not any(name.startswith("_") for name in done.stdout.split())
    assert done.returncode == 0


def test_an_arm_nobody_knows_is_not_the_issue(script: Path) -> None:
    done = _run(script, "--arm", "contrl")

    assert done.returncode == 2
    assert "invalid choice: 'contrl'" in done.stderr


def test_variables_of_an_arm_are_set_before_its_interpreter_starts(script: Path) -> None:
    done = _run(script, "--arm", "with_variables")

    assert "observed optimize = 2\nobserved cache = 0\n" in done.stdout


def test_caches_are_fresh_and_taken_away(script: Path) -> None:
    runs = [_run(script, "--arm", "caches").stdout for _ in range(2)]
    folders = [re.findall(r"observed \w+_CACHE_DIR = (.+)", run) for run in runs]

    assert len({folder for run in folders for folder in run}) == 4
    assert not any(Path(folder).parent.exists() for run in folders for folder in run)


def test_a_package_missing_at_the_top_of_the_script_is_not_the_issue(make: Callable[[str], Path]) -> None:
    done = _run(make("import package_that_is_not_there\n\nSIGNATURE = r''\n"))

    assert done.returncode == 2
    assert "No module named 'package_that_is_not_there'" in done.stderr


def test_a_wrong_result_needs_no_words_where_the_issue_names_none(make: Callable[[str], Path]) -> None:
    script = make(BODY.replace('r"kaput \\d+|Aborted"', '""'))

    assert _run(script, "--arm", "is_wrong_otherwise").returncode == 1
    assert _run(script, "--arm", "baseline").returncode == 2
    assert _run(script, "--arm", "aborts").returncode == 2


def test_a_hang_ends_as_the_stacks_in_which_it_is_recognised(make: Callable[[str], Path]) -> None:
    body = "import time\n\nSIGNATURE = r'in _waits'\nHANG_S = 3\n\n\ndef _waits():\n    time.sleep(60)\n"
    done = _run(make(f"{body}\n\ndef baseline():\n    _waits()\n"))

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "THE ISSUE: baseline left with status 1, and its text has the signature."


def test_a_script_taken_out_of_its_catalogue_is_not_the_issue(tmp_path: Path) -> None:
    done = _run(make_toy(tmp_path / "toy-1" / "repro.py", BODY, is_one_file=False))

    assert done.returncode == 2
    assert f"No such file or directory: '{tmp_path}/toy-1/../standalone.py'" in done.stderr


def test_every_shipped_script_lists_its_arms_where_it_stands_and_as_one_file(tmp_path: Path) -> None:
    files = {shipped_catalogue() / one.id / "repro.py": one for one in shipped().issues}
    files |= {tmp_path / f"{one.id}.py": one for one in shipped().issues}
    for file in files:
        if file.parent == tmp_path:
            file.write_text(files[file].script, encoding="utf-8")
    asked = [sys.executable, "-I", arms_without_torch.__file__, *map(str, files)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    listed = {Path(file): set(arms) for file, arms in json.loads(done.stdout).items()}
    assert listed == {file: {arm.id for arm in issue.arms} for file, issue in files.items()}


def test_a_script_that_neither_a_snapshot_nor_this_release_has_is_said_to_be_elsewhere() -> None:
    with pytest.raises(BadRequest, match="a snapshot has no script of ours-7; ask where its catalogue is"):
        script_of(make_issue("ours-7", script=""))


def test_the_check_knows_the_functions_of_the_block() -> None:
    assert set(re.findall(r"^def (\w+)", standalone(), re.MULTILINE)) == STANDALONE_FUNCTIONS
