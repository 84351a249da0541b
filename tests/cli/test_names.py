"""Builds and issues are read alike by every command, and `all` means every issue wherever issues are chosen."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.commands.given import Call
from tests.web.given import BAD, GOOD, ISSUES, MASK, OLD


@pytest.fixture
def ask(call_notebook: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("KNOWNGOOD_SHIPPED", "false")
    return call_notebook


GATE = ("gate", "--format", "json", "--hardware", "cpu-x86_64")


@pytest.mark.parametrize("name", ["2.7.1", "torch 2.7.1", "torch==2.7.1", "2.7.1+cu126", "torch-2.7.1 cu126", BAD.id])
def test_a_name_is_the_same_build_in_every_command_that_reads(ask: Call, name: str) -> None:
    assert json.loads(ask(*GATE, "--issues", "fla-160", "--build", name).out)["build"] == BAD.id
    meant = BAD.id if name.startswith("torch-") else BAD.wheel.id  # an id means Python 3.11, a version the wheel
    compared = json.loads(ask("compare", name, "2.8.0", "--json").out)
    assert (compared["a"]["id"], compared["b"]["id"]) == (meant, GOOD.wheel.id)
    assert json.loads(ask("upgrade", "--from", name, "--json").out)["start"] == meant
    based = ask(*GATE, "--issues", "fla-160", "--build", "2.8.0", "--base", name)
    assert "the base build" not in " ".join(json.loads(based.out)["notes"]).replace("the base build is assumed", "")


def test_all_issues_are_watched_where_that_is_said(ask: Call, tmp_path: Path) -> None:
    watched = json.loads(ask(*GATE, "--build", BAD.id, "--issues", "all").out)["reasons"]
    assert {one["issue"] for one in watched} == {issue.id for issue in ISSUES}
    policy = tmp_path / "knowngood.toml"
    policy.write_text('[watch]\nissues = ["all"]\n')
    by_policy = json.loads(ask(*GATE, "--build", BAD.id, "--policy", str(policy)).out)["reasons"]
    assert [one["issue"] for one in by_policy] == [one["issue"] for one in watched]
    unwatched = json.loads(ask(*GATE, "--build", BAD.id).out)
    assert (unwatched["decision"], unwatched["reasons"]) == ("pass", [])


def test_compare_and_upgrade_take_all_issues_too(ask: Call) -> None:
    assert ask("compare", "2.7.1", "2.8.0", "--issues", "all").out == ask("compare", "2.7.1", "2.8.0").out
    assert ask("upgrade", "--from", BAD.id, "--issues", "all").out == ask("upgrade", "--from", BAD.id).out
    named = ask("compare", "2.7.1", "2.8.0", "--issues", "pytorch/pytorch#151290", "--json")
    assert [pair["issue"] for pair in json.loads(named.out)["pairs"]] == [MASK.id]


def test_the_candidate_of_a_note_is_named_as_any_build(ask: Call) -> None:
    asked = ("upgrade", "--from", "2.7.1", "--watch", "vision-team", "--format", "markdown", "--to")
    assert ask(*asked, "2.9.0").out.startswith("## Upgrade torch 2.7.1 (CUDA 12.6) to torch 2.9.0 (CUDA 12.8)\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--build", BAD.id, "--python", "3.11"), 1, ""),
        (("--build", "2.7.1", "--python", "3.12"), 3, "for Python 3.11, not for Python 3.12"),
        (("--build", BAD.id, "--python", "3.12"), 2, "is for Python 3.11, and Python 3.12 was stated"),
        (("--build", "2.7.1", "--python", "three"), 2, 'python: Python "three" is none'),
    ],
)
def test_the_gate_takes_the_python_of_the_environment(
    ask: Call, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = ask(*GATE, "--issues", MASK.id, *arguments)
    assert done.code == code
    assert words in done.out + done.err


def test_a_policy_may_say_the_python_and_is_told_where_a_file_says_another(ask: Call, tmp_path: Path) -> None:
    policy, lock = tmp_path / "knowngood.toml", tmp_path / "uv.lock"
    policy.write_text('python = "3.12"\n[watch]\nissues = ["fla-160"]\n')
    lock.write_text("version = 1\nrequires-python = '>=3.13'\n[[package]]\nname = 'torch'\nversion = '2.7.1'\n")
    asked = ("--policy", str(policy), "--lock", str(lock))
    done = ask(*GATE, *asked)
    assert (done.code, "policy: uv.lock: is for Python >=3.13, and Python 3.12 was stated" in done.err) == (2, True)
    assert ask(*GATE, *asked, "--python", "3.13").code == 3


@pytest.fixture
def toys(call: Call) -> Call:
    return partial(call, "matrix", "--json")


@pytest.mark.parametrize(
    "name",
    [
        "torch==0.0.2",
        *(pytest.param(one, marks=pytest.mark.soak) for one in ("0.0.2", "0.0.2+mini", "torch-0.0.2 mini")),
        "torch-0.0.2+mini",
    ],
)
def test_the_commands_that_take_builds_read_them_alike(toys: Call, call: Call, name: str, tmp_path: Path) -> None:
    shown = json.loads(toys("--builds", f"{name},0.0.3").out)["builds"]
    assert [build["id"] for build in shown] == ["torch-0.0.2+mini", "torch-0.0.3+mini"]
    planned = call("run", "--builds", name, "--issues", "toy-fixed-1", "--dry-run", "--json")
    assert (planned.code, json.loads(planned.out)["jobs"]) == (0, 1)
    export = ("export", "--format", "csv", "-o", str(tmp_path / "table.csv"), "--builds")
    assert call(*export, name).code == 0
    assert "nearest: torch-0.0.3+mini" in call(*export, "0.0.9").err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("matrix", "--builds", "0.0.9"), 'no build is called "0.0.9" here; nearest: torch-0.0.3+mini'),
        (("run", "--builds", "newest"), '"newest" names no build'),
        (("recheck", "--builds", "0.0.9"), "nearest: torch-0.0.3+mini"),
        (("pack", "-o", "x", "--builds", "0.0.9"), "nearest: torch-0.0.3+mini"),
        (("bisect", "toy-fixed-1", "--from", "0.0.1", "--to", "0.0.9"), "nearest: torch-0.0.3+mini"),
        (("bisect", "all", "--from", "0.0.1", "--to", "0.0.3"), '"all" is every issue here; name one'),
        (("matrix", "--issues", "toy-fixed-2"), 'no issue is called "toy-fixed-2" here; nearest: toy-fixed-1'),
    ],
)
def test_what_is_not_here_names_the_nearest(call: Call, arguments: tuple[str, ...], words: str) -> None:
    done = call(*arguments)
    assert (done.code, words in done.err) == (2, True), done.err


def test_all_stands_beside_other_names(toys: Call) -> None:
    every = json.loads(toys("--builds", "all").out)
    assert json.loads(toys("--builds", "0.0.2,all", "--issues", "toy-fixed-1,all").out) == every
    assert OLD.id not in {build["id"] for build in every["builds"]}
