"""`knowngood upgrade` as people call it: the answer in the first line, three forms, and what is refused."""

import json
from functools import partial
from pathlib import Path

import pytest

from knowngood.cli.encoding import SCREEN
from tests.commands.given import Call
from tests.web.given import BAD, GOOD, NEW


@pytest.fixture
def call(call_notebook: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("KNOWNGOOD_SHIPPED", "false")
    return partial(call_notebook, "upgrade")


def test_the_answer_is_the_first_line(call: Call) -> None:
    done = call("--from", "2.7.1", "--watch", "vision-team", "--driver", "550")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(
        "Go to torch 2.8.0 (CUDA 12.8). 1 gained, none lost. Measured: 2 of 2 there, 2 of 2 where you\nare.\n"
        "    pip install torch==2.8.0\n"
    )
    assert "You are on torch 2.7.1 (CUDA 12.6). You watch 2 issues. Must have: CPU, driver 550." in done.out
    first, second = (line.split() for line in done.out.splitlines() if line.endswith(("where you are", "recommended")))
    assert first == ["2.7.1", "(CUDA", "12.6)", "1", "0", "0", "0", "0", "?", "where", "you", "are"]
    assert second == ["2.8.0", "(CUDA", "12.8)", "0", "0", "0", "1", "0", "?", "recommended"]
    assert len(done.out.splitlines()) <= SCREEN
    full = call("--from", "2.7.1", "--watch", "vision-team", "--driver", "550", "--all").out
    assert "In words: knowngood compare 2.7.1+cu126 2.8.0+cu128 --hardware cpu-x86_64 --all\n" in full
    assert "Gained: failed, and passes there (1)" in full


def test_programs_and_pull_requests_have_their_own_forms(call: Call) -> None:
    asked = ("--from", BAD.id, "--watch", "vision-team")
    told = json.loads(call(*asked, "--json").out)
    assert (told["decision"], told["build"]) == ("go", GOOD.id)
    assert told == json.loads(call(*asked, "--format", "json").out)
    note = call(*asked, "--format", "markdown").out
    assert note.startswith(f"## Upgrade {BAD.in_words} to {GOOD.in_words}\n")
    other = call(*asked, "--format", "markdown", "--to", NEW.id).out
    assert other.startswith(f"## Upgrade {BAD.in_words} to {NEW.in_words}\n\n**Not recommended: ")


def test_what_cannot_be_said_has_its_price_and_no_upgrade(call: Call) -> None:
    done = call("--from", "2.7.1", "--all")
    assert (done.code, done.out.splitlines()[0][:15]) == (0, "Cannot say yet.")
    assert ": --all has the command." in call("--from", "2.7.1").out
    assert f"knowngood run --builds {GOOD.wheel.id} --issues " in done.out
    note = call("--from", "2.7.1", "--format", "markdown").out
    assert note.startswith("**Cannot say yet.")
    assert f"knowngood run --builds {GOOD.wheel.id} --issues " in note
    for told in (done.out, note):
        assert "torch==" not in told


def test_an_environment_stands_for_its_build(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("torch==2.7.1\nnvidia-cuda-runtime-cu12==12.6.77\n")
    assert call("-r", str(file), "--watch", "vision-team").out.startswith("Go to torch 2.8.0 (CUDA 12.8).")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say which build you are on"),
        (("--from", "2.7.0"), "nearest: torch-2.7.1+cu126"),
        (("--from", "2.7.1", "--watch", "vision"), 'no watch list is called "vision" here; nearest: vision-team'),
        (("--from", "2.7.1", "--issues", "pytorch-1"), 'no issue is called "pytorch-1" here'),
        (("--from", "2.7.1", "--pin", "numpy<2"), "cannot be held against a build"),
        (("--from", "2.7.1", "--format", "markdown", "--to", "torch-9"), "is no candidate; candidates: "),
        (("--from", "2.7.1", "--enough", "49"), "'--enough': 49 is not in the range 50<=x<=100"),
        (("-r", "nowhere.txt"), "nowhere.txt cannot be read"),
    ],
)
def test_what_means_nothing_ends_in_usage_with_a_sentence(call: Call, arguments: tuple[str, ...], said: str) -> None:
    done = call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in " ".join(done.err.split())
