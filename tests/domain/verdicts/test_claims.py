"""Claims held against measurements: agreed, contradicted, not measured, or not such that a cell could say. And against
intervals, which speak of releases that nobody measured.
"""

from dataclasses import replace
from datetime import date

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Claim, Issue
from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.claims import ClaimStanding, Standing, doubts_about, doubts_about_fix, held_claims
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from tests.domain.given_claims import known_of
from tests.make import HARDWARE, make_build, make_issue

BUILDS = [make_build(f"{release}+cu124") for release in ("2.1.0", "2.2.0", "2.3.0")]
_VERDICTS = {"x": Verdict.AFFECTED, "~": Verdict.FLAKY, "o": Verdict.NOT_AFFECTED, "?": Verdict.INCONCLUSIVE}


def cells(row: str, hardware: str = HARDWARE, cures: str = "") -> list[tuple[Build, Cell]]:
    """One sign per build; `cures` likewise: + effective, / partial, - ineffective, ! harmful."""
    kinds = {
        "+": WorkaroundVerdict.EFFECTIVE,
        "/": WorkaroundVerdict.PARTIAL,
        "-": WorkaroundVerdict.INEFFECTIVE,
        "!": WorkaroundVerdict.HARMFUL,
    }
    said = [{"clone": WorkaroundFinding(kinds[sign])} if sign in kinds else {} for sign in cures.ljust(len(row))]
    return [
        (build, Cell("toy-1", build.id, hardware, _VERDICTS[sign], quoted("because"), workarounds=found))
        for build, sign, found in zip(BUILDS, row, said, strict=True)
        if sign in _VERDICTS
    ]


def held(claim: Claim, *rows: list[tuple[Build, Cell]]) -> tuple[ClaimStanding, ...]:
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
    assert (found.standing, english(found.sentence)) == (standing, sentence)
    assert found.hardware == (HARDWARE if sentence else "")


@pytest.mark.parametrize(
    ("cures", "standing", "sentence"),
    [
        ("++ ", Standing.AGREES, "cured 2.1.0, 2.2.0"),
        ("+- ", Standing.AGREES, "cured 2.1.0, and not 2.2.0"),
        ("--!", Standing.CONTRADICTED, "did not cure 2.1.0, 2.2.0, 2.3.0"),
        ("//-", Standing.IN_PART, "helped with some variants on 2.1.0, 2.2.0, and did not cure 2.3.0"),
        ("+/ ", Standing.AGREES, "cured 2.1.0, and helped with some variants on 2.2.0"),
        ("+/-", Standing.AGREES, "cured 2.1.0, and helped with some variants on 2.2.0, and not 2.3.0"),
        ("   ", Standing.NOT_MEASURED, ""),
    ],
)
def test_a_cure(cures: str, standing: Standing, sentence: str) -> None:
    (found,) = held(Claim("Clone it.", "toy#1", says="cure", workaround="clone"), cells("xxx", cures=cures))
    assert (found.standing, english(found.sentence)) == (standing, sentence)


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
    assert [(one.standing, english(one.sentence), one.hardware) for one in held(claim, *rows)] == [
        (Standing.AGREES, "2.3.0 passes here", HARDWARE),
        (Standing.CONTRADICTED, "2.3.0 fails here", "cuda-sm_90"),
    ]
    assert held(claim) == (ClaimStanding(Standing.NOT_MEASURED),)


# -- against intervals -------------------------------------------------------------------------------------------------

OUT = {1: date(2026, 1, 1), 2: date(2026, 2, 1), 3: date(2026, 3, 1), 4: date(2026, 4, 1), 5: date(2026, 5, 1)}
LINE = [make_build(f"2.{minor}.0+cu124", released=day) for minor, day in OUT.items()]
SIGNS = {**_VERDICTS, "d": Verdict.DIFFERENT_FAILURE}


def stored(row: str, *claims: Claim) -> tuple[Issue, Known]:
    issue = replace(make_issue(), claims=claims)
    found = [
        Cell(issue.id, build.id, HARDWARE, SIGNS[sign], quoted(""))
        for build, sign in zip(LINE, row, strict=True)
        if sign in SIGNS
    ]
    return issue, known_of(found, [issue], {build.id: build for build in LINE})


def said(says: str, about: str, dated: date | None = None) -> Claim:
    return Claim("Said so.", "toy#1, the report", dated, says=says, about=about)


LATE = date(2026, 6, 1)


@pytest.mark.parametrize(
    ("row", "claim", "doubt"),
    [
        pytest.param(
            "xo...",
            said("affected", ">=2.4,<2.6", LATE),
            "but upstream says that 2.4.0 and 2.5.0 are affected (toy#1, the report, 2026-06-01; not measured here)",
            id="unmeasured after the fix",
        ),
        pytest.param(
            "xo.o.",
            said("affected", ">=2.4", LATE),
            "but upstream says that 2.4.0 and 2.5.0 are affected "
            "(toy#1, the report, 2026-06-01; 2.4.0 passes here, the rest was not measured)",
            id="partly measured",
        ),
        pytest.param(
            "xo.oo",
            said("affected", ">=2.4"),
            "but upstream says that 2.4.0 and 2.5.0 are affected (toy#1, the report; 2.4.0, 2.5.0 pass here)",
            id="measured, and no date",
        ),
        pytest.param(
            "xo...",
            said("affected", ">=2.3", OUT[4]),
            "but upstream says that 2.3.0 and 2.4.0 are affected (toy#1, the report, 2026-04-01; not measured here)",
            id="of what was out on that day",
        ),
        pytest.param("xo...", said("affected", ">=2.3", OUT[2]), None, id="of nothing that is out since"),
        pytest.param(
            "xo...",
            said("affected", "==2.4.1", LATE),
            "but upstream says that 2.4.1 is affected (toy#1, the report, 2026-06-01; not measured here)",
            id="of a release that the catalogue does not have",
        ),
        pytest.param("xo...", said("affected", "==2.0.1", LATE), None, id="before what fails"),
        pytest.param("x.o..", said("affected", "==2.2.0", LATE), None, id="inside the interval"),
        pytest.param("xo.x.", said("affected", ">=2.4", LATE), None, id="where it fails again"),
        pytest.param(
            "o..x.",
            said("affected", "==2.1.0", LATE),
            "but upstream says that 2.1.0 is affected (toy#1, the report, 2026-06-01; 2.1.0 passes here)",
            id="before it broke",
        ),
        pytest.param(
            "oo...",
            said("affected", "==2.4.0", LATE),
            "but upstream says that 2.4.0 is affected (toy#1, the report, 2026-06-01; not measured here)",
            id="where nothing failed",
        ),
        pytest.param(
            "x....",
            said("fixed", ">=2.4", OUT[1]),
            "but upstream says that 2.4.0 and 2.5.0 are fixed (toy#1, the report, 2026-01-01; not measured here)",
            id="a fix may be foretold",
        ),
        pytest.param("xo...", said("fixed", ">=2.2", LATE), None, id="what agrees"),
        pytest.param(
            "xd...",
            said("fixed", "==2.1.0", LATE),
            "but upstream says that 2.1.0 is fixed (toy#1, the report, 2026-06-01; 2.1.0 fails here)",
            id="what fails all the same",
        ),
        pytest.param(".....", said("affected", ">=2.1", LATE), None, id="nothing measured"),
        pytest.param("xo...", said("affected", "", LATE), None, id="of no release"),
        pytest.param("xo...", said("cause", ">=2.4", LATE), None, id="a cause"),
    ],
)
def test_a_claim_stands_beside_a_history_that_says_otherwise(row: str, claim: Claim, doubt: str | None) -> None:
    issue, known = stored(row, claim)
    assert list(map(english, doubts_about(issue, known.history(issue.id, HARDWARE)))) == ([doubt] if doubt else [])


_BOTH = (
    "but upstream says that 2.3.0 and 2.5.0 are affected "
    "(toy#1, the report; 2.5.0 passes here, the rest was not measured)"
)


@pytest.mark.parametrize(
    ("row", "doubts"),
    [
        (
            "xo...",
            ["but upstream says that 2.3.0, 2.4.0 and 2.5.0 are affected (toy#1, the report; not measured here)"],
        ),
        ("xox..", ["but later it fails since 2.3.0 (newer than 2.3.0 not known)"]),
        (
            "xo.xo",
            [
                "but later it broke after 2.2.0, by 2.4.0 (2.3.0 not run), fixed in 2.5.0",
                _BOTH,
            ],
        ),
        ("x.xxo", ["but upstream says that 2.5.0 is affected (toy#1, the report; 2.5.0 passes here)"]),
    ],
)
def test_beside_a_fix_stands_who_says_that_it_does_not_hold(row: str, doubts: list[str]) -> None:
    issue, known = stored(row, said("affected", ">=2.3"))
    fix = known.fix_of(issue.id, LINE[0], HARDWARE)
    assert fix is not None
    assert list(map(english, doubts_about_fix(issue, fix, known, HARDWARE))) == doubts


def test_another_class_is_not_what_a_fix_was_measured_on() -> None:
    issue, known = stored("xo...", said("affected", "==2.4.0"))
    assert doubts_about(issue, known.history(issue.id, "cuda-sm_90")) == ()
