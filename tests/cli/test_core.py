"""Whoever only asks needs seven packages, and what these need: every other one is refused here."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.domain.errors import NotInstalled
from knowngood.installation import how_to_install

CORE = ("click", "cryptography", "demangle", "packaging", "pydantic", "regex", "yaml")
NEEDED_BY_THEM = ("annotated_types", "cffi", "pydantic_core", "typing_extensions", "typing_inspection")
GUARDED = """
import json, sys
from importlib.abc import MetaPathFinder

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top.startswith("_") or top in {allowed}:
            return None
        raise ModuleNotFoundError(f"not of the core: {{name}}", name=name)

sys.meta_path.insert(0, Refuse())
from knowngood.main import main
for asked in json.load(sys.stdin):
    sys.argv = ["knowngood", *asked.split()]
    try:
        main()
    except SystemExit as ended:
        print(f"{{asked}}: {{ended.code}}", file=sys.stderr)
"""
GATE = "gate --build torch-2.5.1+cu124 --issues xla-8464"
ASKED = {
    **{
        f"{GATE} --format {form}": 1 for form in ("text", "json", "junit", "sarif", "codequality", "github", "markdown")
    },
    "gate -r ENVIRONMENT --issues xla-8464 --policy POLICY": 1,
    "gate --here --issues xla-8464": 3,
    **{f"compare 2.5.1 2.7.1 --format {form}": 0 for form in ("text", "json", "markdown")},
    **{f"upgrade --from 2.5.1 --issues xla-8464 --format {form}": 0 for form in ("text", "json", "markdown")},
    "explain LOG": 3,
    "explain LOG --json": 3,
    "issue 151290": 0,
    "issue pytorch-151290 -r ENVIRONMENT": 0,
    "issue xla-8464 --json": 0,
    "issue xla-8464 --script": 0,
    "find stride status:affected": 0,
    "find stride --json": 0,
    "env -r ENVIRONMENT": 0,
    "env -r PROJECT --json": 0,
    "env -r SCRIPT": 0,
    "env": 3,
    "status": 0,
    "status --json": 0,
    "constraints 2.8.0": 0,
    "caps": 0,
    "caps --json --fail-on removable": 0,
}
LACKING = ("matrix", "hygiene", "run --dry-run", "serve", "up", "check", "doctor", "token list", "dispatch")
NOT_OF_A_QUESTION = {"cryptography", "logging.handlers", "packaging.pylock", "pydantic", "sqlite3", "yaml"}


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "ENVIRONMENT": "torch==2.5.1+cu124\n",
        "POLICY": 'python = "3.11"\nhardware = ["cpu-x86_64"]\n',
        "PROJECT": '[project]\nname = "x"\ndependencies = ["torch==2.6.0"]\n',
        "SCRIPT": '# /// script\n# dependencies = ["torch==2.6.0"]\n# ///\n',
        "LOG": "KeyError: 'x'\nPyTorch version: 2.6.0+cu124\n",
    }
    files = {
        "ENVIRONMENT": "requirements.txt",
        "POLICY": "knowngood.toml",
        "PROJECT": "pyproject.toml",
        "SCRIPT": "train.py",
        "LOG": "log.txt",
    }
    for name, text in texts.items():
        (tmp_path / files[name]).write_text(text)
    return {name: tmp_path / file for name, file in files.items()}


def with_the_core(asked: Iterable[str], cwd: Path, then: str = "") -> subprocess.CompletedProcess[str]:
    """These commands one after the other in one process, where no other package is to be found."""
    code = GUARDED.format(allowed={*CORE, *NEEDED_BY_THEM, "knowngood"})
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd / "nobody")}
    return subprocess.run(
        [sys.executable, "-c", code + then],
        input=json.dumps(list(asked)),
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_asking_imports_the_core_alone(places: dict[str, Path], tmp_path: Path) -> None:
    asked = {" ".join(str(places.get(word, word)) for word in one.split()): end for one, end in ASKED.items()}
    done = with_the_core(asked, tmp_path)
    told = ("knowngood: answered from", "knowngood: whether this machine has a GPU")
    ended = [line for line in done.stderr.splitlines() if not line.startswith(told)]
    assert ended == [f"{one}: {end}" for one, end in asked.items()]


def test_beside_a_store_that_the_core_cannot_read_the_shipped_results_answer_and_it_is_said(tmp_path: Path) -> None:
    store = tmp_path / "nobody" / ".local" / "share" / "knowngood" / "knowngood.sqlite3"
    store.parent.mkdir(parents=True)
    store.touch()
    done = with_the_core([GATE, "find stride", "status"], tmp_path)
    told = done.stderr.splitlines()
    assert told[1::2][:2] == [f"{GATE}: 1", "find stride: 0"], done.stderr
    assert told[-1] == "status: 0"
    for sentence in told[0:4:2]:
        assert f"the store {store} was not asked, which needs " in sentence
        assert how_to_install("server") in sentence
    assert f"store    {store}: not looked into here" in done.stdout


def test_what_the_core_lacks_is_said_with_the_extra_that_brings_it(tmp_path: Path) -> None:
    done = with_the_core(LACKING, tmp_path)
    told = done.stderr.splitlines()
    assert told[1::2] == [f"{one}: {Exit.UNUSABLE}" for one in LACKING], done.stderr
    for one, sentence in zip(LACKING, told[::2], strict=True):
        name = one.removesuffix(" --dry-run").partition(" ")[0]
        how = re.escape(how_to_install("server"))
        assert re.fullmatch(rf"knowngood: knowngood {name} needs \w+, which is not installed; {how}", sentence)


@pytest.mark.parametrize(
    ("missing", "extra"),
    [
        ("sqlalchemy.orm", "server"),
        ("uv", "server"),
        ("ray", "ray"),
        ("psycopg.rows", "postgres"),
        ("knowngood.nothing", None),
        ("sqlite3", None),  # a Python that was built without it
    ],
)
def test_each_package_has_its_extra_and_what_is_ours_or_pythons_has_none(missing: str, extra: str | None) -> None:
    @command("Ask.", example="ask")
    def ask() -> int:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    with pytest.raises(NotInstalled if extra else ModuleNotFoundError) as ended:
        ask.main([], prog_name="knowngood ask", standalone_mode=False)
    if extra:
        package = missing.partition(".")[0]
        how = how_to_install(extra)
        assert str(ended.value) == f"knowngood ask needs {package}, which is not installed; {how}"


def test_a_question_to_the_gate_imports_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    """Each takes longer to import than the decision; a policy is read with pydantic, and there is none here."""
    (tmp_path / "requirements.txt").write_text("torch==2.5.1+cu124\n")
    asked = "gate -r requirements.txt --issues xla-8464"
    done = with_the_core([asked], tmp_path, "print(json.dumps(sorted(sys.modules)))\n")
    assert sorted(NOT_OF_A_QUESTION.intersection(json.loads(done.stdout.splitlines()[-1]))) == []
