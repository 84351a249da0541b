"""What the cells of vector ISAs say together: the worst of them, and which ISA it is."""

from dataclasses import replace

import pytest

from knowngood.domain.issue import Requires
from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import isa_difference
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict, over_isas
from tests.domain.given_claims import made
from tests.make import HARDWARE, NOON, make_build, make_issue

AVX2, AVX512 = f"{HARDWARE}-avx2", f"{HARDWARE}-avx512"
ROW = make_issue(requires=Requires(vector_isas=("avx2", "avx512")))
BUILD, NEXT = make_build("2.6.0+cu124"), make_build("2.7.0+cu126")


def cell(letter: str, hardware: str = HARDWARE) -> Cell | None:
    """As `made` has it; a space is a cell that is not there, and a dot one that was not run."""
    if letter == ".":
        return Cell(ROW.id, BUILD.id, hardware, Verdict.NOT_RUN, quoted(f"this processor has no {hardware}"))
    return made(ROW.id, BUILD, letter, hardware) if letter.strip() else None


@pytest.mark.parametrize(
    ("own", "avx2", "avx512", "verdict", "reason"),
    [
        ("x", " ", " ", Verdict.AFFECTED, "2 of 2"),
        (" ", "x", "o", Verdict.AFFECTED, "on avx2: 2 of 2"),
        (" ", "o", "x", Verdict.AFFECTED, "on avx512: 2 of 2"),
        (" ", "x", "x", Verdict.AFFECTED, "on avx2, avx512: 2 of 2"),
        (" ", "o", "o", Verdict.NOT_AFFECTED, "on avx2, avx512: 2 of 2"),
        (" ", "~", "x", Verdict.AFFECTED, "on avx512: 2 of 2"),
        (" ", "?", "o", Verdict.INCONCLUSIVE, "on avx2: 2 of 2"),
        (" ", "o", " ", Verdict.INCONCLUSIVE, "not measured with avx512 yet"),
        (" ", "o", ".", Verdict.INCONCLUSIVE, "not measured with avx512 yet"),
        (" ", "x", " ", Verdict.AFFECTED, "on avx2: 2 of 2"),
        ("o", "o", " ", Verdict.NOT_AFFECTED, "on avx2: 2 of 2"),
        ("x", "o", "o", Verdict.AFFECTED, "2 of 2"),
        ("x", "x", "o", Verdict.AFFECTED, "on avx2: 2 of 2"),
        ("?", "o", "o", Verdict.INCONCLUSIVE, "2 of 2"),
        ("o", "x", "o", Verdict.AFFECTED, "on avx2: 2 of 2"),
        ("o", " ", ".", Verdict.NOT_AFFECTED, "2 of 2"),
        (" ", " ", ".", Verdict.NOT_RUN, f"this processor has no {AVX512}"),
    ],
)
def test_the_whole_class_says_the_worst_and_names_the_isa(
    own: str, avx2: str, avx512: str, verdict: Verdict, reason: str
) -> None:
    of_isas = [one for one in (cell(avx2, AVX2), cell(avx512, AVX512)) if one]
    found = over_isas(ROW, cell(own), of_isas)
    assert found is not None
    assert (found.hardware, found.verdict, english(found.reason)) == (HARDWARE, verdict, reason)


@pytest.mark.parametrize("own", ["x", "o", "~", "?"])
def test_a_row_without_cells_of_isas_is_as_it_was(own: str) -> None:
    assert over_isas(ROW, cell(own), []) == cell(own)
    assert over_isas(ROW, None, []) is None


def test_what_does_not_count_is_told_once_and_of_the_class_itself() -> None:
    own = replace(made(ROW.id, BUILD, "o"), superseded=3, voided=2)
    failing = replace(made(ROW.id, BUILD, "x", AVX2), superseded=5, voided=7)
    found = over_isas(ROW, own, [failing])
    assert found is not None
    assert (found.superseded, found.voided) == (3, 2)


@pytest.mark.parametrize(
    ("avx2", "avx512", "letters", "said"),
    [
        ("effective", "effective", "xx", "effective"),
        ("effective", "ineffective", "xx", "ineffective"),
        ("effective", "unverified", "xx", "unverified"),
        ("effective", "unverified", "xo", "effective"),
        ("effective", "harmful", "xo", "harmful"),
        ("unnecessary", "unverified", "oo", "unverified"),
    ],
)
def test_a_workaround_has_to_work_with_every_isa_that_fails_and_harm_no_other(
    avx2: str, avx512: str, letters: str, said: str
) -> None:
    cells = [
        made(ROW.id, BUILD, letter, class_, workarounds={"aot_eager": WorkaroundFinding(WorkaroundVerdict(verdict))})
        for letter, class_, verdict in zip(letters, (AVX2, AVX512), (avx2, avx512), strict=True)
    ]
    found = over_isas(ROW, None, cells)
    assert found is not None
    assert found.workarounds["aot_eager"].verdict == said


def test_what_was_tried_where_nothing_fails_says_nothing_of_where_it_fails() -> None:
    cells = [
        made(ROW.id, BUILD, letter, class_, workarounds={"aot_eager": WorkaroundFinding(WorkaroundVerdict(verdict))})
        for letter, class_, verdict in (("x", HARDWARE, "unverified"), ("o", AVX2, "unnecessary"))
    ]
    found = over_isas(
        ROW, cells[0], [cells[1], Cell(ROW.id, BUILD.id, AVX512, Verdict.NOT_APPLICABLE, quoted("not here"))]
    )
    assert found is not None
    assert found.workarounds["aot_eager"].verdict == "unverified"


@pytest.mark.parametrize(
    ("own", "avx2", "avx512", "said"),
    [
        ("effective", "unverified", "effective", "effective"),
        ("partial", "unverified", "effective", "partial"),
        ("unverified", "unverified", "effective", "unverified"),
        ("unverified", "effective", "effective", "effective"),
        ("unverified", "effective", "ineffective", "ineffective"),
    ],
)
def test_a_workaround_has_to_be_tried_on_the_whole_class_or_else_with_each_isa(
    own: str, avx2: str, avx512: str, said: str
) -> None:
    cells = [
        made(ROW.id, BUILD, "x", class_, workarounds={"aot_eager": WorkaroundFinding(WorkaroundVerdict(verdict))})
        for class_, verdict in ((HARDWARE, own), (AVX2, avx2), (AVX512, avx512))
    ]
    half_tried = WorkaroundFinding(WorkaroundVerdict.PARTIAL, helped=("a",), untried=("b",))
    cells.append(replace(cells[2], workarounds={"aot_eager": half_tried}))
    found = over_isas(ROW, cells[0], cells[1:])
    assert found is not None
    assert found.workarounds["aot_eager"].verdict == said


@pytest.mark.parametrize(
    ("avx2", "avx512", "said"),
    [
        ("xo", "oo", "avx2 fails and avx512 passes on 2.6.0"),
        ("xx", "oo", "avx2 fails and avx512 passes on 2.6.0, 2.7.0"),
        ("xo", "ox", "avx2 fails and avx512 passes on 2.6.0; avx2 passes and avx512 fails on 2.7.0"),
        ("xo", "xo", "avx2 and avx512 say the same on 2.6.0, 2.7.0"),
        ("x ", " o", ""),
    ],
)
def test_the_difference_between_isas_is_one_sentence(avx2: str, avx512: str, said: str) -> None:
    cells = [
        made(ROW.id, build, letter, class_)
        for class_, letters in ((AVX2, avx2), (AVX512, avx512))
        for build, letter in zip((BUILD, NEXT), letters, strict=True)
        if letter.strip()
    ]
    builds = {one.id: one for one in (BUILD, NEXT)}
    known = Known({ROW.id: ROW}, builds, {one.key: one for one in cells}, (HARDWARE,), NOON)
    assert english(isa_difference(ROW, known)) == said
    assert isa_difference(make_issue(), known) is None
    assert known.classes_of(ROW.id) == (HARDWARE, AVX2, AVX512)
    assert known.stored(ROW.id) == tuple(sorted(cells, key=lambda one: (one.hardware, one.build)))
