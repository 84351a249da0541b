"""Claims held against measurements: agreed, contradicted, not measured, or not such that a cell could say."""

from dataclasses import replace

import pytest

from app.domain.build import Build
from app.domain.claims import Held, Standing, held_claims
from app.domain.issue import Claim
from app.domain.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from tests.make import HARDWARE, make_build, make_issue

BUILDS = [make_build(f"{release}+cu124") for release in ("2.1.0", "2.2.0", "2.3.0")]
_VERDICTS = {"x": Verdict.AFFECTED, "~": Verdict.FLAKY, "o": Verdict.NOT_AFFECTED, "?": Verdict.INCONCLUSIVE}


def cells(row: str, hardware: str = HARDWARE, cures: str = "") -> list[tuple[Build, Cell]]:
    """One sign per build; `cures` likewise: + effective, - ineffective, ! harmful."""
    kinds = {"+": WorkaroundVerdict.EFFECTIVE, "-": WorkaroundVerdict.INEFFECTIVE, "!": WorkaroundVerdict.HARMFUL}
    said = [{"clone": WorkaroundFinding(kinds[sign])} if sign in kinds else {} for sign in cures.ljust(len(row))]
    return [
        (build, Cell("toy-1", build.id, hardware, _VERDICTS[sign], "because", workarounds=found))
        for build, sign, found in zip(BUILDS, row, said, strict=True)
        if sign in _VERDICTS
    ]


def held(claim: Claim, *rows: list[tuple[Build, Cell]]) -> tuple[Held, ...]:
    issue = replace(make_issue(), claims=(claim,))
    (one,) = held_claims(issue, [pair for row in rows for pair in row])
    assert one.claim == claim
    return one.held


@pytest.mark.parametrize(
    ("says", "about", "row", "standing", "sentence"),
    [
        ("fixed", "==2.3.0", "xxo", Standing.AGREES, "2.3.0 passes here"),
        ("fixed", ">=2.2", "xxo", Standing.CONTRADICTED, "2.2.0 fails here"),
        ("fixed", "==2.3.0", "xx~", Standing.CONTRADICTED, "2.3.0 fails here"),
        ("fixed", "==2.3.0", "xx?", Standing.NOT_MEASURED, ""),
        ("fixed", "==2.9.0", "xxo", Standing.NOT_MEASURED, ""),
        ("affected", "<2.3", "xxo", Standing.AGREES, "2.1.0, 2.2.0 fails here"),
        ("affected", "==2.1.0", "oxx", Standing.CONTRADICTED, "2.1.0 passes here"),
        ("affected", "==2.1.0", " xx", Standing.NOT_MEASURED, ""),
    ],
)
def test_a_word_on_releases(says: str, about: str, row: str, standing: Standing, sentence: str) -> None:
    (found,) = held(Claim("Said so.", "toy#1", says=says, about=about), cells(row))
    assert (found.standing, found.sentence) == (standing, sentence)
    assert found.hardware == (HARDWARE if sentence else "")


@pytest.mark.parametrize(
    ("cures", "standing", "sentence"),
    [
        ("++ ", Standing.AGREES, "cured 2.1.0, 2.2.0"),
        ("+- ", Standing.AGREES, "cured 2.1.0, and not 2.2.0"),
        ("--!", Standing.CONTRADICTED, "did not cure 2.1.0, 2.2.0, 2.3.0"),
        ("   ", Standing.NOT_MEASURED, ""),
    ],
)
def test_a_cure(cures: str, standing: Standing, sentence: str) -> None:
    (found,) = held(Claim("Clone it.", "toy#1", says="cure", workaround="clone"), cells("xxx", cures=cures))
    assert (found.standing, found.sentence) == (standing, sentence)


@pytest.mark.parametrize(
    "claim",
    [
        Claim("It is a race.", "toy#1", says="cause"),
        Claim("It fails.", "toy#1", says="affected"),
        Claim("Fixed.", "toy#1", says="fixed"),
        Claim("Something helps.", "toy#1", says="cure"),
        Claim("So it is.", "toy#1", about="==2.1.0"),
    ],
)
def test_what_no_cell_can_contradict_is_not_held(claim: Claim) -> None:
    assert held(claim, cells("xxx")) == ()


def test_each_hardware_class_answers_for_itself_and_silent_ones_are_left_out() -> None:
    claim = Claim("Fixed.", "toy#1", says="fixed", about="==2.3.0")
    rows = (cells("xxo"), cells("xxx", "cuda-sm_90"), cells("xx?", "cuda-sm_80"))
    assert held(claim, *rows) == (
        Held(Standing.AGREES, "2.3.0 passes here", HARDWARE),
        Held(Standing.CONTRADICTED, "2.3.0 fails here", "cuda-sm_90"),
    )
    assert held(claim) == (Held(Standing.NOT_MEASURED),)
