"""`knowngood compare --from-diff` in a real repository."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.commands.given import Call
from tests.web.given import BAD, GOOD, OLD


@pytest.fixture
def call(call_notebook: Call) -> Call:
    return partial(call_notebook, "compare")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose branch `main` states an old torch; the working tree is that of `main`."""
    project = tmp_path / "project"
    (project / "service").mkdir(parents=True)
    monkeypatch.chdir(project / "service")
    state(project, "requirements.txt", OLD.torch)
    state(project, "service/requirements-dev.txt", OLD.torch)
    (project / "notes.txt").write_text("torch==1.0\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "begin"], ["switch", "-qc", "bump"]):
        run_git(project, *words)
    return project


def state(project: Path, path: str, torch: str) -> None:
    (project / path).write_text(f"numpy==2.2.0\ntorch=={torch}\n")


def run_git(project: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(project), *who, *words], check=True, capture_output=True)


def test_a_bump_is_compared_once_however_many_files_state_it(checkout: Path, call: Call) -> None:
    for path in ("requirements.txt", "service/requirements-dev.txt"):
        state(checkout, path, BAD.torch)
    (checkout / "notes.txt").write_text("torch==2.0\n")
    run_git(checkout, "commit", "-qam", "Bump torch")

    done, direct = call("--from-diff", "main"), call(OLD.id, BAD.id)

    assert (done.code, done.out) == (0, direct.out)
    assert done.err.count("becomes torch") == 2
    assert "notes.txt" not in done.err


def test_two_bumps_are_two_comparisons_and_json_is_a_list(checkout: Path, call: Call) -> None:
    state(checkout, "requirements.txt", BAD.torch)
    state(checkout, "service/requirements-dev.txt", GOOD.torch)

    told = json.loads(call("--from-diff", "main", "--json").out)

    assert [(one["a"]["id"], one["b"]["id"]) for one in told] == [(OLD.id, BAD.id), (OLD.id, GOOD.id)]
    assert call("--from-diff", "main", "--fail-on", "regressed").code == 1


def test_what_cannot_be_compared_is_named_and_ends_in_3(checkout: Path, call: Call) -> None:
    state(checkout, "requirements.txt", "1.9.0")
    (checkout / "service/requirements-dev.txt").write_text("torch==\n")

    done = call("--from-diff", "main")

    assert (done.code, done.out) == (3, "")
    assert "torch 1.9.0, Python not stated cannot be compared" in done.err
    assert "requirements-dev.txt is left out: requirements-dev.txt, line 1" in done.err.replace(
        ": left out", " is left out"
    )


def test_nothing_to_compare_is_said(checkout: Path, call: Call) -> None:
    (checkout / "requirements.txt").write_text((checkout / "requirements.txt").read_text() + "click==8\n")

    done = call("--from-diff", "main")

    assert (done.code, done.out) == (0, "")
    assert "no file that differs from main states another torch" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from-diff", "nowhere"), "git, which says: fatal: Not a valid object name nowhere"),
        (("--from-diff", "--output=x"), "is no revision"),
        (("2.5.1",), "name two builds"),
        (("2.5.1", "2.6.0", "--from-diff", "main"), "name two builds"),
        ((), "name two builds"),
    ],
)
def test_what_makes_no_sense_is_refused(checkout: Path, call: Call, arguments: tuple[str, ...], said: str) -> None:
    done = call(*arguments)
    assert done.code == 2, done
    assert said in done.err
    assert checkout.is_dir()


def test_outside_of_a_repository_git_says_so(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("--from-diff", "main")
    assert done.code == 2
    assert "not a git repository" in done.err
