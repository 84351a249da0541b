"""Marks for cells where there is text alone."""

import pytest

from knowngood.app.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.app.serialization.marks import MARKS, legend_of, mark_of, sign_of
from tests.features.exports.given import cell, inferred

EFFECTIVE, PARTIAL, USELESS = (
    {kind.value: WorkaroundFinding(kind)}
    for kind in (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL, WorkaroundVerdict.INEFFECTIVE)
)


@pytest.mark.parametrize(
    ("found", "sign", "word"),
    [
        pytest.param(cell(Verdict.NOT_AFFECTED), "✓", "passes", id="passes"),
        pytest.param(cell(Verdict.AFFECTED), "✕", "fails", id="nothing was tried"),
        pytest.param(cell(Verdict.AFFECTED, workarounds=USELESS), "✕", "fails", id="nothing helps"),
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
            inferred(Verdict.FLAKY),
        ]
    )
    assert len(every) == len(MARKS) + 3 == len({mark.sign for mark in every}) == len({mark.word for mark in every})


def test_a_legend_explains_what_is_there_and_nothing_else() -> None:
    assert [mark.sign for mark in legend_of([cell(Verdict.NOT_AFFECTED)])] == ["✓"]
    assert [mark.sign for mark in legend_of([inferred(Verdict.NOT_AFFECTED)])] == ["✓", "( )"]
    assert legend_of([]) == []
