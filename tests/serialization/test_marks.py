"""Marks for cells where there is text alone."""

import pytest

from knowngood.domain.message import quoted
from knowngood.domain.verdicts.verdict import (
    NOT_RUN,
    Cell,
    VariantFinding,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
)
from knowngood.serialization.marks import MARKS, legend_of, mark_of, sign_of
from tests.share.exports.given import cell, inferred

FAILS, PASSES = Verdict.AFFECTED, Verdict.NOT_AFFECTED
NONE_FOUND, NOT_TRIED = "fails, no workaround found", "fails, workaround not verified here"
AS_REPORTED = "passes as reported, fails in a variant"
EFFECTIVE, PARTIAL, USELESS = (
    {kind.value: WorkaroundFinding(kind)}
    for kind in (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL, WorkaroundVerdict.INEFFECTIVE)
)
UNTRIED = {"untried": WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, NOT_RUN)}
ABSENT = {
    "absent": WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, quoted("does not apply to this build"), applies=False)
}
HARMFUL = {"harmful": WorkaroundFinding(WorkaroundVerdict.HARMFUL)}
TWO = (VariantFinding("n2", PASSES, quoted("passed"), 0, 1), VariantFinding("one_sum", FAILS, quoted("failed"), 1, 1))


@pytest.mark.parametrize(
    ("found", "sign", "word"),
    [
        pytest.param(cell(Verdict.NOT_AFFECTED), "✓", "passes", id="passes"),
        pytest.param(cell(FAILS), "✕", NONE_FOUND, id="there is nothing to try"),
        pytest.param(cell(FAILS, workarounds=USELESS), "✕", NONE_FOUND, id="nothing helps"),
        pytest.param(
            cell(FAILS, workarounds=USELESS | HARMFUL), "✕", NONE_FOUND, id="one does not help, one does harm"
        ),
        pytest.param(cell(FAILS, workarounds=USELESS | ABSENT), "✕", NONE_FOUND, id="what applies does not help"),
        pytest.param(cell(FAILS, workarounds=UNTRIED), "✕?", NOT_TRIED, id="nothing was tried"),
        pytest.param(cell(FAILS, workarounds=USELESS | UNTRIED), "✕?", NOT_TRIED, id="not all were tried"),
        pytest.param(
            cell(FAILS, workarounds=UNTRIED | EFFECTIVE),
            "✕'",
            "fails, has a workaround",
            id="one works, one was not tried",
        ),
        pytest.param(
            cell(FAILS, workarounds=UNTRIED | PARTIAL),
            "✕½",
            "fails, workaround helps in part",
            id="one helps in part, one was not tried",
        ),
        pytest.param(cell(FAILS, variants=TWO, reported="n2"), "✓✕", AS_REPORTED, id="passes as reported"),
        pytest.param(
            cell(FAILS, variants=TWO, reported="n2", workarounds=EFFECTIVE),
            "✓✕",
            AS_REPORTED,
            id="so with a workaround",
        ),
        pytest.param(cell(FAILS, variants=TWO, reported="one_sum"), "✕", NONE_FOUND, id="fails as reported"),
        pytest.param(cell(FAILS, variants=TWO), "✕", NONE_FOUND, id="nobody knows which the report ran"),
        pytest.param(cell(Verdict.FLAKY, variants=TWO, reported="n2"), "~", "flaky", id="flaky is not a pass"),
        pytest.param(
            cell(Verdict.AFFECTED, workarounds=USELESS | PARTIAL),
            "✕½",
            "fails, workaround helps in part",
            id="one helps with some variants",
        ),
        pytest.param(
            cell(Verdict.AFFECTED, workarounds=PARTIAL | EFFECTIVE),
            "✕'",
            "fails, has a workaround",
            id="one helps with all variants, another with some",
        ),
        pytest.param(cell(Verdict.FLAKY, workarounds=EFFECTIVE), "~", "flaky", id="flaky stays flaky"),
        pytest.param(inferred(Verdict.NOT_AFFECTED), "(✓)", "passes", id="an inferred pass"),
        pytest.param(
            inferred(Verdict.AFFECTED, workarounds=PARTIAL),
            "(✕½)",
            "fails, workaround helps in part",
            id="an inferred failure",
        ),
    ],
)
def test_a_cell_has_one_sign_and_one_word(found: Cell, sign: str, word: str) -> None:
    assert (sign_of(found), mark_of(found).word) == (sign, word)


def test_no_two_marks_look_alike_or_have_the_same_word() -> None:
    every = legend_of(
        [
            *(cell(verdict) for verdict in Verdict),
            cell(Verdict.AFFECTED, workarounds=EFFECTIVE),
            cell(Verdict.AFFECTED, workarounds=PARTIAL),
            cell(FAILS, workarounds=UNTRIED),
            cell(FAILS, variants=TWO, reported="n2"),
            inferred(Verdict.FLAKY),
        ]
    )
    assert len(every) == len(MARKS) + 5 == len({mark.sign for mark in every}) == len({mark.word for mark in every})


def test_a_legend_explains_what_is_there_and_nothing_else() -> None:
    assert [mark.sign for mark in legend_of([cell(Verdict.NOT_AFFECTED)])] == ["✓"]
    assert [mark.sign for mark in legend_of([inferred(Verdict.NOT_AFFECTED)])] == ["✓", "( )"]
    assert legend_of([]) == []
