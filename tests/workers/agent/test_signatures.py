"""Ways to look like an issue without having failed of it: each is seen through, as the harness records it."""

from pathlib import Path

import pytest

from knowngood.domain.issue import BASELINE, Issue, Signature, SignatureKind
from knowngood.domain.measuring.job import ArmSpec
from knowngood.domain.verdicts.outcome import Outcome, classify
from knowngood_workers.agent.arm_runner import Limits, RunLocation, execute, scratch_folder
from tests.make import make_build, make_issue
from tests.workers.toy_environment import make_toy_python

SCRIPT = '''"""toy: ways to have the words of a failure somewhere."""
import torch


def _refuse(words):
    raise ValueError(words)


def baseline(way="raised"):
    if way == "raised":
        _refuse("the kernel broke in 3 places")
    if way == "caused":
        try:
            _refuse("the kernel broke in 3 places")
        except ValueError as cause:
            raise RuntimeError("compilation failed") from cause
    if way == "handled":
        try:
            _refuse("the kernel broke in 3 places")
        except ValueError:
            raise KeyError("a mistake in the handler")
    if way == "quoted":
        _refuse("no")  # upstream: the kernel broke in 3 places
    if way == "printed":
        print("warning: the kernel broke in 3 places")
        _refuse("no")
    if way == "quoted in the log":
        import traceback
        try:
            _refuse("no")  # upstream: the kernel broke in 3 places
        except ValueError:
            traceback.print_exc()
        _refuse("no")
'''
SIGNATURE = Signature(SignatureKind.MESSAGE, r"the kernel broke in \d+ places")
ISSUE = make_issue(signature=SIGNATURE, script=SCRIPT)
LOGGED = make_issue(signature=Signature(SignatureKind.MESSAGE, SIGNATURE.pattern, log=True), script=SCRIPT)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> RunLocation:
    python = make_toy_python(tmp_path_factory.mktemp("toy"), "torch==0.0.2", "numpy")
    return RunLocation(python, (), Limits(memory_bytes=300 << 20, grace_s=0.3))


@pytest.mark.parametrize(
    ("way", "issue", "expected"),
    [
        ("raised", ISSUE, Outcome.MATCH),
        ("caused", ISSUE, Outcome.MATCH),
        ("handled", ISSUE, Outcome.OTHER_FAILURE),
        ("quoted", ISSUE, Outcome.OTHER_FAILURE),
        ("quoted", LOGGED, Outcome.OTHER_FAILURE),
        ("quoted in the log", LOGGED, Outcome.OTHER_FAILURE),
        ("printed", ISSUE, Outcome.OTHER_FAILURE),
        ("printed", LOGGED, Outcome.MATCH),  # the row trusts its log: `check` warns of a script that prints the words
    ],
)
def test_an_issue_is_told_by_what_was_raised(
    way: str, issue: Issue, expected: Outcome, place: RunLocation, tmp_path: Path
) -> None:
    arm = issue.arm(BASELINE)
    spec = ArmSpec("a", issue.id, arm.id, "v", 1, "b", "s", {"way": way}, {}, ("eager",), 20.0)
    with scratch_folder(tmp_path / "scratch") as scratch:
        done = execute(spec, issue.script, place=place, scratch=scratch, fork_server=None, is_cancelled=lambda: False)
    build = make_build(done.record.imported["torch"], cuda=None, triton=None)
    assert classify(done.record, issue, BASELINE, build, done.log).outcome is expected, done.record.raised
