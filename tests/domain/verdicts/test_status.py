"""What a reader is told to do about a cell: which workaround, and how well it helps."""

from dataclasses import replace

import pytest

from knowngood.domain.issue import Workaround
from knowngood.domain.message import Message
from knowngood.domain.verdicts.status import help_on, ranked
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.domain.vocabulary import StatusLabel
from tests.make import HARDWARE, make_build, make_issue

BUILD = make_build("2.7.1+cu126")
TWIN = make_build("2.7.1+cu126", python="3.12").id
_OF = {
    "+": WorkaroundVerdict.EFFECTIVE,
    "/": WorkaroundVerdict.PARTIAL,
    "-": WorkaroundVerdict.INEFFECTIVE,
    "!": WorkaroundVerdict.HARMFUL,
    "?": WorkaroundVerdict.UNVERIFIED,
}


def cell_with(found: dict[str, str], verdict: Verdict = Verdict.AFFECTED) -> Cell:
    """`found` has what was found of each workaround, with a `~` behind it where it was with another Python."""
    findings = {
        id_: WorkaroundFinding(_OF[sign[0]], Message("not_run"), ground=TWIN if sign.endswith("~") else "")
        for id_, sign in found.items()
    }
    return Cell("toy-1", BUILD.id, HARDWARE, verdict, Message("not_run"), workarounds=findings)


@pytest.mark.parametrize(
    ("found", "order"),
    [
        pytest.param({"a": "+", "b": "+"}, "ab", id="of two that work, the one that the row lists first"),
        pytest.param({"a": "/", "b": "+"}, "ba", id="what works before what helps in part"),
        pytest.param({"a": "+~", "b": "+"}, "ba", id="what works here before what worked with another Python"),
        pytest.param({"a": "/", "b": "+~"}, "ba", id="and that before what helps in part here"),
        pytest.param({"a": "?", "b": "-", "c": "/"}, "cab", id="what nobody tried before what does not help"),
        pytest.param({"a": "!", "b": "-"}, "ba", id="what does harm last"),
        pytest.param({"b": "+"}, "b", id="what the cell says nothing of is left out"),
    ],
)
def test_the_recommended_workaround_comes_first(found: dict[str, str], order: str) -> None:
    issue = replace(make_issue("toy-1"), workarounds=tuple(Workaround(id_, id_, "", "") for id_ in "abc"))
    assert "".join(workaround.id for workaround, _ in ranked(issue, cell_with(found))) == order


@pytest.mark.parametrize(
    ("verdict", "found", "help_"),
    [
        (Verdict.AFFECTED, {"a": "-", "b": "+"}, StatusLabel.WORKAROUND),
        (Verdict.FLAKY, {"a": "+"}, StatusLabel.WORKAROUND),
        (Verdict.AFFECTED, {"a": "-", "b": "/"}, StatusLabel.PARTIAL),
        (Verdict.AFFECTED, {"a": "-", "b": "?"}, StatusLabel.UNTRIED),
        (Verdict.AFFECTED, {"a": "-", "b": "!"}, StatusLabel.FAILS),
        (Verdict.AFFECTED, {}, StatusLabel.FAILS),
        (Verdict.DIFFERENT_FAILURE, {"a": "+"}, StatusLabel.DIFFERENT),
        (Verdict.NOT_AFFECTED, {"a": "+"}, StatusLabel.PASSES),
        (Verdict.NOT_RUN, {}, StatusLabel.NOT_RUN),
    ],
)
def test_the_answer_has_the_form_of_what_helps(verdict: Verdict, found: dict[str, str], help_: StatusLabel) -> None:
    assert help_on(cell_with(found, verdict)) is help_
