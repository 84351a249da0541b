"""What is said of an issue and of an environment is what the gate says: over the results that come with the release."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from knowngood.ask.lookup.service import answer_environment, answer_issue, has_workaround
from knowngood.ask.lookup.text import environment_text, issue_text
from knowngood.cli.encoding import SCREEN
from knowngood.domain.errors import UnknownIssue
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import SEVERITY_RANK, find_issue
from knowngood.domain.verdicts.verdict import FAILING, Verdict
from knowngood.gate.renderers.text import answer_text
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.store.knowledge.snapshot import read_shipped

NOW = datetime(2026, 11, 23, tzinfo=UTC)
KNOWLEDGE = read_shipped().knowledge
KNOWN = KNOWLEDGE.known
MASK = KNOWN.issues["pytorch-151290"]
BAD = "torch-2.7.1+cu126"


def test_a_workaround_that_was_run_on_another_python_alone_says_where() -> None:
    assert "that works, run on torch 2.7.1 (CUDA 12.6) (1 run)" in {
        one.how
        for reason in answer_environment(GateRequest(build=f"{BAD}~py312"), KNOWLEDGE, NOW).failing
        if reason.issue == "pytorch-196570"
        for one in reason.workarounds
    }


@pytest.mark.parametrize(
    "written",
    [
        "pytorch-151290",
        "PyTorch-151290",
        "151290",
        "#151290",
        "pytorch#151290",
        "pytorch/pytorch#151290",
        "https://github.com/pytorch/pytorch/issues/151290",
        "github.com/pytorch/pytorch/issues/151290#issuecomment-1",
        " 151290 ",
    ],
)
def test_an_issue_is_meant_by_every_notation(written: str) -> None:
    assert find_issue(written, KNOWN.issues) is MASK


@pytest.mark.parametrize("written", ["", "15129", "1512900", "pytorch", "①"])
def test_what_is_none_is_refused(written: str) -> None:
    with pytest.raises(UnknownIssue):
        find_issue(written, KNOWN.issues)


@pytest.mark.parametrize("id_", sorted(KNOWN.issues))
def test_each_issue_is_told_on_the_newest_build_that_is_affected(id_: str) -> None:
    issue = KNOWN.issues[id_]
    answer = answer_issue(issue, None, KNOWLEDGE, NOW)
    cells = KNOWN.stored(id_)
    failing = {cell.build for cell in cells if cell.verdict in FAILING}
    assert answer.is_example
    assert not failing or answer.ruling.build in failing
    assert {one.issue for one in answer.ruling.reasons} == {id_}
    assert list(answer.histories) == sorted({cell.hardware for cell in cells})
    assert issue.id in issue_text(answer)


@pytest.mark.parametrize("build", ["2.7.1", "2.11.0"])
def test_every_issue_is_told_on_one_screen_with_all_of_it_on_demand(build: str) -> None:
    for issue in KNOWN.issues.values():
        answer = answer_issue(issue, GateRequest(build=build), KNOWLEDGE, NOW)
        short, full = issue_text(answer, in_full=False), issue_text(answer)
        assert len(short.splitlines()) <= SCREEN, issue.id
        assert ("Everything: --all" in short) == (len(full.splitlines()) > len(short.splitlines())), issue.id
        assert short.splitlines()[0] == full.splitlines()[0]


LEFT = [issue for issue in KNOWN.issues.values() if issue.left]


@pytest.mark.parametrize("issue", LEFT, ids=lambda issue: issue.id)
def test_what_is_left_wrong_stands_in_the_first_ten_lines_and_in_the_passes(issue: Issue) -> None:
    answer = answer_issue(issue, GateRequest(build="torch-2.15.0+cu132"), KNOWLEDGE, NOW)
    head = " ".join(" ".join(issue_text(answer).splitlines()[:10]).split())
    for left in issue.left:
        assert f"{left.what} (" in head
    for reason in answer.ruling.reasons:
        uncovered = [one.what for one in issue.left if not one.variant]
        assert all(what in reason.why for what in uncovered) or reason.verdict is not Verdict.NOT_AFFECTED


def test_the_gate_says_what_a_pass_does_not_cover() -> None:
    passing = (
        (issue, cell)
        for issue in LEFT
        for cell in KNOWN.stored(issue.id)
        if cell.verdict is Verdict.NOT_AFFECTED and cell.not_covered and cell.hardware == "cpu-x86_64"
    )
    issue, cell = next(passing)
    told = " ".join(answer_text(rule(GateRequest(build=cell.build, issues=(issue.id,)), KNOWLEDGE, NOW)).split())
    assert f"({issue.id}): CPU passes as reported; not covered: {cell.not_covered[0]}" in told


def test_on_a_named_environment_it_says_what_the_gate_says() -> None:
    asked = GateRequest(build=BAD, issues=(MASK.id,))
    answer = answer_issue(MASK, replace(asked, issues=()), KNOWLEDGE, NOW)
    assert answer.ruling.reasons == rule(asked, KNOWLEDGE, NOW).reasons
    told = issue_text(answer)
    assert told.startswith("Passes as reported, fails in a variant, on torch 2.7.1 (CUDA 12.6); fixed in torch 2.8.0.")
    assert 'torch.compile(create_block_mask, backend="aot_eager")' in told
    assert "upstream: https://github.com/pytorch/pytorch/issues/151290 (closed, looked at on 20" in told


def test_an_environment_is_every_issue_of_the_gate_and_the_worst_come_first() -> None:
    answer = answer_environment(GateRequest(build=BAD), KNOWLEDGE, NOW)
    every = rule(GateRequest(build=BAD, issues=("all",)), KNOWLEDGE, NOW).reasons
    smoke = {id_ for id_, issue in KNOWN.issues.items() if issue.is_smoke}
    assert set(answer.ruling.reasons) == {one for one in every if one.issue not in smoke}
    failing = answer.of(Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE)
    ranks = [(-SEVERITY_RANK[one.severity], not one.silent, has_workaround(one)) for one in failing]
    assert ranks == sorted(ranks)
    assert answer.ruling.reasons[: len(failing)] == failing
    told, issues = environment_text(answer, in_full=True), len({one.issue for one in failing})
    assert told.startswith(f"{issues} known issues fail here, ")
    assert [told.index(f" {one.issue} · ") for one in failing] == sorted(
        told.index(f" {one.issue} · ") for one in failing
    )


PROJECT = '[project]\nname = "x"\ndependencies = ["torch==2.6.0"{}]\n'


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("requirements.txt", "torch==2.6.0\nnumpy==1.26\n", "the environment does not"),
        ("pyproject.toml", PROJECT.format(""), "whether its dependencies bring it is not known"),
        (
            "train.py",
            '# /// script\n# dependencies = ["torch==2.6.0"]\n# ///',
            "its dependencies bring it is not known",
        ),
    ],
)
def test_a_project_never_says_that_a_package_is_not_there(name: str, text: str, why: str) -> None:
    answer = answer_environment(GateRequest(environment=AttachedFile(text, name)), KNOWLEDGE, NOW)
    whys = {one.why for one in answer.ruling.reasons if KNOWN.issues[one.issue].requires.package == "torchao"}
    assert whys
    assert all(why in one for one in whys)


def test_a_package_that_a_project_asks_for_is_concerned() -> None:
    text = PROJECT.format(', "torchao==0.9.0"')
    answer = answer_environment(GateRequest(environment=AttachedFile(text, "pyproject.toml")), KNOWLEDGE, NOW)
    assert answer.packages == {"torchao": "0.9.0"}
    assert "issues here concern torchao 0.9.0" in environment_text(answer)


def test_an_environment_that_is_no_tested_build_is_not_known() -> None:
    answer = answer_environment(GateRequest(build="torch-2.5.9+cu124"), KNOWLEDGE, NOW)
    told = environment_text(answer)
    assert answer.ruling.build is None
    assert "What fails here is not known" in told
    assert "nearest   torch 2.5.1 (CUDA 12.4)" in told


def test_on_hardware_that_nobody_ran_anything_on_every_answer_is_said_to_be_the_cpus() -> None:
    answer = answer_environment(GateRequest(build="2.7.1", hardware=("A100",)), KNOWLEDGE, NOW)
    told = " ".join(environment_text(answer).split())
    assert answer.counts["run"] == 0
    assert re.match(r"\d+ known issues fail here, by what the CPU does: nothing was run on this hardware, ", told)
    assert f"{answer.counts['from_cpu']} of the answers come from the CPU" in told


def test_what_fails_is_told_on_one_screen_each_issue_once_and_silent_ones_first() -> None:
    answer = answer_environment(GateRequest(build=BAD), KNOWLEDGE, NOW)
    lines = environment_text(answer).splitlines()
    failing = {one.issue: one for one in answer.of(Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE)}
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 110
    assert lines[0].startswith(f"{len(failing)} known issues fail here, ")
    shown = re.findall(r"^(\S+) .*\n?.*\(([\w-]+)\)$", "\n".join(lines), re.MULTILINE)
    left = next(int(line.split()[0]) for line in lines if "more: --all" in line)
    assert len(shown) + left == len(failing)
    assert {sign for sign, _ in shown} == {"∆"}
