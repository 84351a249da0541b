"""What is said of a bound by what is measured above it, and by the reason that somebody gave."""

from collections.abc import Callable

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.message import english
from knowngood.move.caps.bounds import find_declared
from knowngood.move.caps.rules import Cap, Origin
from tests.move.caps.test_bounds import PACKAGES, judge_of, known_where

ROW = "pytorch-1234567"
LATER = ROW.replace("pytorch-", "pytorch#")


def cap_of(line: str, sign: Callable[[Build], str], subject: str = "", body: str = "") -> Cap:
    """The bound of one line, where one row has these signs: o passes, x fails, a blank is not run."""
    declared = list(find_declared("requirements.txt", line, PACKAGES))
    judge = judge_of(known_where({ROW: sign}), ROW)
    return next(judge.caps(declared, {("requirements.txt", 1): Origin("1f0c2aa", "2025-08-01", subject, body)}))


def fails_from(release: str, to: str = "9") -> Callable[[Build], str]:
    bounds = [tuple(map(int, text.split("."))) for text in (release, to)]
    return lambda build: "x" if bounds[0] <= build.build_id.version.release < bounds[1] else "o"


def passes_up_to(minor: int) -> Callable[[Build], str]:
    return lambda build: "o" if build.build_id.version.minor <= minor else " "


@pytest.mark.parametrize(
    ("line", "sign", "status", "said"),
    [
        pytest.param("torch<2.9", fails_from("9"), "removable", "none", id="all passes"),
        pytest.param("torch!=2.9.*", fails_from("9"), "removable", "on 2.9.1 after 2.8.0", id="an exclusion"),
        pytest.param("torch<2.14", fails_from("9"), "not_measured", "too new to judge", id="only young ones are above"),
        pytest.param("torch<2.9", passes_up_to(8), "not_measured", "too little is measured", id="nothing is measured"),
        pytest.param("torch<2.9", lambda _: " ", "not_measured", "too little is measured", id="nothing at all"),
        pytest.param("torch<2.9", fails_from("2.13"), "needed", f"{ROW}: passes on 2.8.0", id="it loses"),
        pytest.param("torch<2", fails_from("9"), "not_measured", "nothing is measured of torch", id="older than all"),
        pytest.param("torch<3", fails_from("9"), "idle", "the newest is 2.15.0", id="none is above"),
        pytest.param("triton<3.4", fails_from("9"), "removable", "after 2.7.1", id="Triton, by the torch it is of"),
        pytest.param("torchvision<0.20", fails_from("9"), "not_measured", "torch and Triton are", id="another package"),
        pytest.param(
            "torchvision<0.24",
            fails_from("9"),
            "not_measured",
            "it holds torch back: torchvision 0.23.0, the newest that it allows, asks for torch==2.8.0; torch and",
            id="another package that goes with one torch",
        ),
        pytest.param(
            "torch<2.9; sys_platform == 'win32'", fails_from("9"), "not_measured", "it holds where", id="Windows"
        ),
        pytest.param("torch<2.9; nonsense", fails_from("9"), "not_measured", "it holds where", id="no marker"),
    ],
)
def test_only_what_is_settled_and_measured_removes_a_bound(
    line: str, sign: Callable[[Build], str], status: str, said: str
) -> None:
    cap = cap_of(line, sign)
    assert (cap.status, said in english(cap.said)) == (status, True), english(cap.said)


@pytest.mark.parametrize(
    ("comment", "subject", "status"),
    [
        pytest.param("", "wait for 2.9", "removable", id="no reason"),
        pytest.param("", "Pin torch (#12)", "removable", id="the number of its pull request"),
        pytest.param("", "Add a training script", "removable", id="about something else"),
        pytest.param("", "chore(deps): bump torch from 2.7.0 to 2.8.0", "removable", id="a bump"),
        pytest.param("# TODO: unpin", "", "removable", id="a wish"),
        pytest.param("# 2.9 breaks export", "", "not_measured", id="a reason on the line"),
        pytest.param("# onnx", "", "not_measured", id="any other word on the line"),
        pytest.param("", "Fix CI", "not_measured", id="some trouble"),
        pytest.param("", "Cap torch for the H100 nodes", "not_measured", id="more than the bound"),
        pytest.param("", "Cap torch, see #512", "not_measured", id="a thread of the project itself"),
        pytest.param("# pytorch/pytorch#1", "", "not_measured", id="a thread that no issue is about"),
        pytest.param("", "\u56fa\u5b9a\u7248\u672c", "not_measured", id="words that nobody reads here"),
        pytest.param(f"# {LATER}", "", "removable", id="an issue that passes on all"),
        pytest.param(f"# https://github.com/pytorch/pytorch/issues/{ROW[8:]}", "", "removable", id="by its address"),
    ],
)
def test_a_reason_that_nobody_measured_keeps_a_bound(comment: str, subject: str, status: str) -> None:
    cap = cap_of(f"torch<2.9  {comment}", fails_from("9"), subject)
    assert cap.status == status, english(cap.said)


@pytest.mark.parametrize(
    ("sign", "status", "said", "to"),
    [
        pytest.param(fails_from("2.12", "2.13"), "needed", "it passes on 2.13.0", "!=2.12.*", id="fixed later"),
        pytest.param(fails_from("2.12"), "needed", f"{ROW} fails on 2.12.0", "", id="not fixed"),
        pytest.param(passes_up_to(12), "not_measured", f"whether {ROW} fails on 2.13.0", "", id="not measured"),
    ],
)
def test_the_issue_that_a_bound_names_decides(sign: Callable[[Build], str], status: str, said: str, to: str) -> None:
    cap = cap_of(f"torch<2.12  # {LATER}", sign)
    assert (cap.status, cap.to, said in english(cap.said)) == (status, to, True), english(cap.said)


def test_a_reason_in_the_body_of_a_commit_counts_too() -> None:
    assert cap_of("torch<2.9", fails_from("9"), "Pin torch", "torch 2.9 hangs in NCCL").status == "not_measured"
