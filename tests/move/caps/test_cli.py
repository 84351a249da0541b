"""`knowngood caps` in a real repository, over the shipped results."""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.commands.given import Call, Done

INDEX = "https://pypi.org/simple"
PYPROJECT = (
    '[project]\nname = "x"\ndependencies = [\n  "torch>=2.4,<2.10",\n  "torch!=2.6.*",  # CUDA graphs hang\n'
    '  "triton<9",\n]\n'
)
LOCK = (
    'version = 1\nrequires-python = ">=3.11"\n\n[[package]]\nname = "x"\nversion = "0"\nsource = { virtual = "." }\n'
    'dependencies = [{ name = "torch" }, { name = "torchvision" }, { name = "vllm" }]\n'
)


def locked(**versions: str) -> str:
    packages = (
        f'\n[[package]]\nname = "{name}"\nversion = "{version}"\nsource = {{ registry = "{INDEX}" }}\n'
        for name, version in versions.items()
    )
    return LOCK + "".join(packages)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PYPROJECT)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path / "data"))
    return folder


@pytest.fixture(params=[".", ".."], ids=["the whole repository", "a folder of it"])
def committed(project: Path, request: pytest.FixtureRequest) -> Path:
    git = partial(subprocess.run, check=True, capture_output=True, cwd=project / request.param)
    when = {"GIT_AUTHOR_DATE": "2025-08-01T12:00:00Z", "GIT_COMMITTER_DATE": "2025-08-01T12:00:00Z"}
    who = {f"GIT_{role}_{part}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "wait for 2.10 (#3)"]):
        git(["git", *words], env={**when, **who, "PATH": "/usr/bin:/bin", "HOME": str(project)})
    return project


def caps(command: Call, *words: str) -> Done:
    return command("caps", "--hardware", "cpu-x86_64", *words)


def test_the_first_line_is_the_answer_and_each_bound_says_since_when_and_why(committed: Path, command: Call) -> None:
    done = caps(command)
    first, *rest = done.out.splitlines()
    assert done.code == 0
    assert first == ("3 bounds on torch, triton: 1 has no known reason, 1 was not measured, 1 keeps nothing out.")
    assert len(rest) < 25
    assert 'pyproject.toml:4         torch<2.10             since 2025-08-01, "wait for 2.10 (#3)"' in done.out
    assert 'pyproject.toml:5         torch!=2.6.*           since 2025-08-01, "CUDA graphs hang"' in done.out
    assert "can move to <2.15" in done.out
    assert "what would settle it: knowngood try bug.py --builds 2.6.0" in done.out


@pytest.mark.parametrize(
    ("words", "code"), [((), 0), (("--fail-on", "removable"), 1), (("--fail-on", "needed"), 0), (("--removable",), 0)]
)
def test_it_ends_in_1_only_where_that_is_asked_for(
    words: tuple[str, ...], code: int, project: Path, command: Call
) -> None:
    assert caps(command, *words).code == code


def test_json_and_markdown_say_the_same(committed: Path, command: Call) -> None:
    told = json.loads(caps(command, "--json").out)
    assert [(cap["line"], cap["status"], cap["to"]) for cap in told] == [
        (4, "removable", "<2.15"),
        (5, "not_measured", ""),
        (6, "idle", ""),
    ]
    assert "| pyproject.toml:4 | torch&lt;2.10 |" in caps(command, "--format", "markdown").out
    assert [cap["line"] for cap in json.loads(caps(command, "--removable", "--json").out)] == [4]


def test_without_git_a_bound_has_no_date(project: Path, command: Call) -> None:
    assert {cap["since"] for cap in json.loads(caps(command, "--json").out)} == {""}


def test_a_dependency_that_holds_torch_back_is_not_yours(project: Path, command: Call) -> None:
    (project / "uv.lock").write_text(locked(torch="2.8.0", torchvision="0.23.0", vllm="0.11.0"))
    told = json.loads(caps(command, "--deps", "uv.lock", "--json").out)
    held = {cap["package"]: (cap["file"], cap["bound"]) for cap in told if cap["status"] == "dependency"}
    assert held == {
        "torchvision 0.23.0": ("uv.lock", "torch==2.8.0"),
        "vllm 0.11.0": ("uv.lock", "torch==2.8.0"),
    }


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (Path.exists, "File 'uv.lock' does not exist"),
        (lambda lock: lock.write_text(locked(torchvision="0.23.0")), "--deps uv.lock states no torch"),
        (lambda lock: lock.write_text("["), "uv.lock"),
    ],
)
def test_a_lock_that_says_nothing_of_torch_is_refused(
    prepare: Callable[[Path], object], says: str, project: Path, command: Call
) -> None:
    prepare(project / "uv.lock")
    done = caps(command, "--deps", "uv.lock")
    assert (done.code, done.out, says in done.err) == (2, "", True), done.err


def test_a_project_without_a_bound_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Call) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("caps").out == "No bound on torch, Triton, or what is built on them.\n"


def test_what_a_file_says_is_obeyed_by_no_terminal_and_no_page(project: Path, command: Call) -> None:
    hostile = "\x1b[31m breaks ![x](https://a.example/x.png) | `id` <b>"
    (project / "requirements.txt").write_text(f"torch<2.4  # {hostile}\n")
    assert "\x1b" not in caps(command).out
    told = caps(command, "--format", "markdown").out
    assert "\x1b" not in told
    assert "![x](" not in told.partition("What would settle")[0]
    assert "<b>" not in told.partition("What would settle")[0]
