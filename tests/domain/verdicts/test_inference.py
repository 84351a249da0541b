"""Claims of a cell that nobody measured: by one rule at most, from the store alone, and it says so."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.issue import CPU_PATH, Device, Issue, Requires
from knowngood.domain.message import english
from knowngood.domain.rate import Rate
from knowngood.domain.verdicts.inference import (
    DEVICE_AND_PYTHON_RULE,
    DEVICE_RULE,
    PYTHON_RULE,
    ground_of,
    holds,
    inferred_reason,
    own_reason,
)
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import (
    NOT_RUN,
    Assurance,
    Basis,
    Cell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    tried_here,
)
from tests.domain.given_claims import (
    BUILDS,
    GPU,
    ROW,
    SMOKE,
    WHEELS,
    any_device,
    build_of,
    carrying,
    known_of,
    made,
    smoked,
    store,
)
from tests.make import HARDWARE, make_issue

WHEEL = WHEELS[1]
OLD, PLAIN, NEW = (BUILDS[WHEEL, python] for python in ("3.10", "3.11", "3.12"))


def test_what_was_measured_stands_as_it_is() -> None:
    cell = made(ROW.id, NEW, "x")
    known = store([cell, made(ROW.id, PLAIN, "o")])
    assert known.cell(ROW, NEW, HARDWARE) is cell
    assert cell.assurance is Assurance.MEASURED


@pytest.mark.parametrize("letter", ["x", "o", "~", "!"])
def test_an_answer_on_one_python_stands_in_for_another_and_names_its_ground(letter: str) -> None:
    known = store([made(ROW.id, PLAIN, letter)])
    claim = known.cell(ROW, NEW, HARDWARE)
    basis = claim.basis
    assert basis is not None
    assert (claim.build, claim.verdict, claim.assurance) == (NEW.id, made(ROW.id, PLAIN, letter).verdict, "inferred")
    assert (basis.rule, basis.build, basis.hardware) == (PYTHON_RULE, PLAIN.id, HARDWARE)
    assert (basis.agreed, basis.compared) == (100, 100)
    assert english(claim.reason) == f"inferred from {PLAIN.in_words} (these Pythons agreed in 100 of 100 cells): 2 of 2"


def test_an_inferred_cell_is_its_ground_without_the_attempts() -> None:
    ground = made(ROW.id, PLAIN, "o", attempts={"pass": 2}, superseded=3, voided=1)
    claim = store([ground]).cell(ROW, NEW, HARDWARE)
    basis = Basis(PYTHON_RULE, PLAIN.id, HARDWARE, 100, 100)
    reason = inferred_reason(basis, ground.reason)
    assert claim == replace(made(ROW.id, PLAIN, "o"), build=NEW.id, reason=reason, basis=basis)
    assert english(reason) == f"inferred from {PLAIN.in_words} (these Pythons agreed in 100 of 100 cells): 2 of 2"
    assert (ground_of(Basis(PYTHON_RULE, PLAIN.id, HARDWARE)), own_reason(claim)) == (PLAIN.id, ground.reason)
    assert own_reason(ground) == ground.reason


def test_what_nobody_measured_or_inferred_says_so() -> None:
    known = store([])
    assert known.cell(ROW, NEW, HARDWARE) == Cell(ROW.id, NEW.id, HARDWARE, Verdict.NOT_RUN, NOT_RUN)
    assert known.cell(ROW, NEW, GPU) == Cell(ROW.id, NEW.id, GPU, Verdict.NOT_APPLICABLE, CPU_PATH)


def test_what_is_stored_of_a_cell_that_was_not_run_is_kept_where_nothing_is_inferred() -> None:
    superseded = Cell(ROW.id, NEW.id, HARDWARE, Verdict.NOT_RUN, NOT_RUN, superseded=3)
    assert store([superseded]).cell(ROW, NEW, HARDWARE) is superseded
    assert store([superseded, made(ROW.id, PLAIN, "o")]).cell(ROW, NEW, HARDWARE).assurance is Assurance.INFERRED


@pytest.mark.parametrize(
    ("pairs", "ground"),
    [
        ({"3.9": 100, "3.10": 200, "3.11": 100}, "3.10"),
        ({"3.9": 100, "3.10": 100, "3.11": 100}, "3.11"),
        ({"3.9": 100, "3.10": 100, "3.11": 10}, "3.9"),
    ],
    ids=["the best agreement", "of equals the default Python", "of other equals the oldest"],
)
def test_of_several_grounds_one_stands_in(pairs: dict[str, int], ground: str) -> None:
    line = {python: build_of(WHEEL, python) for python in (*pairs, "3.12")}
    rows = [make_issue(f"pair-{number}") for number in range(max(pairs.values()))]
    cells = [made(row.id, line["3.12"], "o") for row in rows]
    cells += [made(row.id, line[python], "o") for python, count in pairs.items() for row in rows[:count]]
    cells += [made(SMOKE.id, line["3.12"], "o"), *(made(ROW.id, line[python], "x") for python in pairs)]
    claim = known_of(cells, [ROW, SMOKE, *rows], line).cell(ROW, line["3.12"], HARDWARE)
    assert (claim.verdict, claim.basis and claim.basis.build) == (Verdict.AFFECTED, line[ground].id)


def test_a_build_that_the_catalogue_does_not_know_is_inferred_from_nothing() -> None:
    unknown = build_of("2.9.1+cu128", "3.11")
    known = store([made(SMOKE.id, unknown, "o")])
    assert known.cell(ROW, unknown, HARDWARE).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize(
    ("why", "known"),
    [
        ("nothing was measured", store([])),
        ("only doubt was measured", store([made(ROW.id, PLAIN, "?")])),
        ("two Pythons disagree on that build", store([made(ROW.id, PLAIN, "o"), made(ROW.id, OLD, "x")])),
        ("the smoke row was not run there", known_of([made(ROW.id, PLAIN, "o"), *smoked(["3.11"])], [ROW, SMOKE])),
        ("no smoke row is in the catalogue", store([made(ROW.id, PLAIN, "o")], smoke=False)),
        ("another wheel was measured", store([made(ROW.id, BUILDS[WHEELS[2], "3.11"], "o")])),
        ("another class was measured", store([made(ROW.id, PLAIN, "o", GPU)])),
        ("the Pythons were hardly compared", store([made(ROW.id, PLAIN, "o")], pairs=70)),
        ("the Pythons disagree too often", store([made(ROW.id, PLAIN, "o")], pairs=100, differing=3)),
    ],
)
def test_nothing_is_inferred_where(why: str, known: object) -> None:
    from knowngood.domain.verdicts.known import Known

    assert isinstance(known, Known)
    claim = known.cell(ROW, NEW, HARDWARE)
    assert (claim.verdict, claim.assurance) == (Verdict.NOT_RUN, Assurance.NOT_KNOWN), why


def test_a_smoke_row_that_fails_there_lets_nothing_be_inferred() -> None:
    known = store([made(ROW.id, PLAIN, "o"), made(SMOKE.id, NEW, "x")])
    assert known.cell(ROW, NEW, HARDWARE).verdict is Verdict.NOT_RUN
    assert known.cell(ROW, OLD, HARDWARE).assurance is Assurance.INFERRED


def test_a_row_that_names_a_python_is_inferred_on_none() -> None:
    named = make_issue("named-1", requires=Requires(python=">=3.11"))
    known = store([made(named.id, PLAIN, "o")], named)
    assert known.cell(named, NEW, HARDWARE).verdict is Verdict.NOT_RUN
    assert known.cell(named, OLD, HARDWARE).verdict is Verdict.NOT_APPLICABLE


def test_a_smoke_row_is_never_inferred_itself() -> None:
    cells = [cell for cell in smoked() if cell.build != NEW.id]
    assert known_of(cells, [SMOKE]).cell(SMOKE, NEW, HARDWARE).verdict is Verdict.NOT_RUN


def test_wheels_that_differ_in_more_than_their_python_are_not_alike() -> None:
    bare = replace(NEW, triton=None)
    known = store([made(ROW.id, PLAIN, "o")])
    known = replace(known, builds={**known.builds, NEW.id: bare})
    assert known.cell(ROW, bare, HARDWARE).verdict is Verdict.NOT_RUN


def test_a_doubtful_cell_of_its_own_outweighs_an_inference() -> None:
    doubt = made(ROW.id, NEW, "?")
    assert store([made(ROW.id, PLAIN, "o"), doubt]).cell(ROW, NEW, HARDWARE) is doubt


def test_a_disagreement_on_another_build_does_not_count_on_this_one() -> None:
    other = [made(ROW.id, BUILDS[WHEELS[0], "3.11"], "o"), made(ROW.id, BUILDS[WHEELS[0], "3.12"], "x")]
    known = store([made(ROW.id, PLAIN, "o"), *other], pairs=200)
    assert known.cell(ROW, NEW, HARDWARE).verdict is Verdict.NOT_AFFECTED


def test_an_unrelated_measured_cell_on_that_python_turns_no_inference_off() -> None:
    ground = made(ROW.id, PLAIN, "o")
    before = store([ground]).cell(ROW, NEW, HARDWARE)
    other = make_issue("other-1")
    after = store([ground, made(other.id, NEW, "x")], ROW, other).cell(ROW, NEW, HARDWARE)
    assert (before.verdict, before.basis) == (after.verdict, after.basis)


def test_a_device_independent_row_is_inferred_from_the_cpu_of_the_very_same_build() -> None:
    row = any_device()
    known = carrying(store([made(row.id, NEW, "x")], row))
    claim = known.cell(row, NEW, GPU)
    basis = Basis(DEVICE_RULE, NEW.id, HARDWARE, 100, 100)
    reason = "inferred from CPU (independent of the device; agreed in 100 of 100 cells): 2 of 2"
    assert replace(claim, reason=own_reason(claim)) == replace(made(row.id, NEW, "x"), hardware=GPU, basis=basis)
    assert english(claim.reason) == reason
    assert ground_of(basis) == HARDWARE
    assert english(known.history_sentence(row, GPU)) == f"as on CPU: {english(known.history_sentence(row, HARDWARE))}"
    assert english(store([made(row.id, NEW, "x")], row).history_sentence(row, GPU)) == "no release answered yet"


@given(st.integers(0, 90), st.integers(0, 4), st.integers(0, 90))
def test_the_device_rule_is_on_only_where_its_pairs_agree_often_enough(agreed: int, differing: int, gone: int) -> None:
    """As with Pythons, a pair that disagrees is evidence against: without it the rate is higher. Of those that agree
    none creates an answer by going.
    """

    def claim_of(letters: Sequence[str]) -> Cell:
        row, rows = any_device(), [any_device(f"both-{number}") for number in range(len(letters))]
        both = zip(rows, letters, strict=True)
        cells = [
            made(one.id, PLAIN, letter, at)
            for one, pair in both
            for letter, at in zip(pair, (HARDWARE, GPU), strict=True)
        ]
        return known_of([made(row.id, NEW, "x"), *cells], [row, *rows]).cell(row, NEW, GPU)

    letters = [*["oo"] * agreed, *["xo"] * differing]
    before, after = claim_of(letters), claim_of(letters[min(gone, agreed) :])
    assert before.assurance is (Assurance.INFERRED if holds(Rate(agreed, agreed + differing)) else Assurance.NOT_KNOWN)
    assert after.assurance is Assurance.NOT_KNOWN or before.assurance is Assurance.INFERRED


def composed(rows: int, wheels: int, failing: int, differing: int = 0) -> tuple[Issue, Known]:
    """A row that fails on the CPU with Python 3.11, beside rows with an answer there and on a GPU with 3.12."""
    row, others = any_device(), [any_device(f"both-{number}") for number in range(rows)]
    cells = [made(row.id, PLAIN, "x")]
    for number, (other, wheel) in enumerate(product(others, WHEELS[:wheels])):
        letter, opposite = ("x", "o") if number < failing else ("o", "x")
        cells.append(made(other.id, BUILDS[wheel, "3.11"], opposite if number < differing else letter))
        cells.append(made(other.id, BUILDS[wheel, "3.12"], letter, GPU))
    return row, carrying(store(cells, row, *others))


def test_python_and_hardware_together_are_not_known_where_no_such_pair_was_measured() -> None:
    row, known = composed(0, 0, 0)
    assert known.cell(row, NEW, HARDWARE).assurance is Assurance.INFERRED
    assert known.cell(row, NEW, GPU).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize(
    ("rows", "wheels", "failing", "differing", "is_inferred"),
    [
        pytest.param(40, 3, 40, 0, True, id="enough of all"),
        pytest.param(39, 4, 40, 0, False, id="too few rows"),
        pytest.param(60, 2, 60, 0, False, id="too few builds"),
        pytest.param(40, 3, 39, 0, False, id="too few failures"),
        pytest.param(40, 3, 60, 1, True, id="one of 120 differs"),
        pytest.param(40, 3, 60, 2, False, id="two of 120 differ"),
    ],
)
def test_the_cpu_with_one_python_answers_for_a_gpu_with_another_where_just_such_pairs_agree(
    rows: int, wheels: int, failing: int, differing: int, is_inferred: bool
) -> None:
    row, known = composed(rows, wheels, failing, differing)
    claim, pairs = known.cell(row, NEW, GPU), rows * wheels
    if is_inferred:
        basis = Basis(DEVICE_AND_PYTHON_RULE, PLAIN.id, HARDWARE, pairs - differing, pairs)
        assert (claim.verdict, claim.basis, ground_of(basis)) == (Verdict.AFFECTED, basis, HARDWARE)
        said = f"(independent of the device; agreed in {pairs - differing} of {pairs} cells): 2 of 2"
        assert english(claim.reason) == f"inferred from CPU with another Python {said}"
    else:
        assert (claim.verdict, claim.basis) == (Verdict.NOT_RUN, None)
    assert known.cell(row, OLD, GPU).basis is None, "for which no such pair was measured"


def test_the_cpu_with_another_python_stands_behind_the_cpu_with_the_same() -> None:
    row, known = composed(40, 3, 40)
    cells = {**known.cells, (row.id, NEW.id, HARDWARE): made(row.id, NEW, "o")}
    own = carrying(replace(known, cells=cells)).cell(row, NEW, GPU)
    assert (own.verdict, own.basis and own.basis.rule) == (Verdict.NOT_AFFECTED, DEVICE_RULE)
    doubtful = {**known.cells, (row.id, OLD.id, HARDWARE): made(row.id, OLD, "o")}
    assert carrying(replace(known, cells=doubtful)).cell(row, NEW, GPU).basis is None, "two Pythons that contradict"


def test_other_cpu_rows_concern_the_cpu_path() -> None:
    known = store([made(ROW.id, PLAIN, "x")])
    claim = known.cell(ROW, PLAIN, GPU)
    assert (claim.verdict, claim.reason) == (Verdict.NOT_APPLICABLE, CPU_PATH)


def test_the_agreement_counts_each_cell_that_two_pythons_answered() -> None:
    known = store([], pairs=3, differing=1)
    assert known.claims.agreement == {("3.10", "3.11"): Rate(3, 4), ("3.10", "3.12"): Rate(4, 4), ("3.11", "3.12"): Rate(3, 4)}  # fmt: skip  # noqa: E501
    differing = [(one.build, other.build) for one, other in known.claims.pairs if one.verdict is not other.verdict]
    last = [BUILDS[WHEELS[-1], python].id for python in ("3.10", "3.11", "3.12")]
    assert differing == [(last[0], last[1]), (last[1], last[2])]


def test_agreements_and_their_pairs_are_told_in_order_whatever_order_the_cells_arrive_in() -> None:
    line = {(wheel, python): build_of(wheel, python) for wheel in WHEELS[:2] for python in ("3.10", "3.9")}
    cells = [
        made(row, line[wheel, python], "o", hardware)
        for row in ("b-1", "a-1")
        for hardware in (GPU, HARDWARE)
        for wheel, python in reversed(line)
    ]
    claims = known_of(cells, [make_issue(row, requires=Requires(Device.ANY)) for row in ("b-1", "a-1")], line).claims
    assert [(one.issue, one.hardware) for one, _ in claims.pairs] == [
        (row, hardware) for row in ("a-1", "b-1") for hardware in (HARDWARE, GPU) for _ in WHEELS[:2]
    ]
    assert {(claims.builds[one.build].python, claims.builds[other.build].python) for one, other in claims.pairs} == {
        ("3.9", "3.10")
    }
    assert claims.agreement == {("3.9", "3.10"): Rate(8, 8)}
    assert claims.agreement_of("3.10", "3.9") == Rate(8, 8)
    assert claims.agreement_of("3.9", "3.12") == Rate(0, 0)


def test_pythons_are_told_by_their_number() -> None:
    line = {python: build_of(WHEEL, python) for python in ("3.10", "3.9", "3.12")}
    claims = known_of([made(ROW.id, build, "o") for build in line.values()], [ROW], line).claims
    assert list(claims.agreement) == [("3.9", "3.10"), ("3.9", "3.12"), ("3.10", "3.12")]


def test_the_agreement_of_devices_counts_the_rows_that_do_not_depend_on_them() -> None:
    row, cpu_only = any_device(), make_issue("cpu-1", requires=Requires(device=Device.CPU))
    letters = {"2.5.1+cu124": "xx", "2.6.0+cu124": "oo", "2.7.1+cu126": "xo", "2.8.0+cu128": "o?"}
    line = [BUILDS[wheel, "3.11"] for wheel in letters]
    answers = dict(zip(line, letters.values(), strict=True))
    cells = [
        made(issue.id, build, letter, hardware)
        for build, both in answers.items()
        for issue in (row, cpu_only)
        for letter, hardware in zip(both, (HARDWARE, GPU), strict=True)
    ]
    cells.append(made(row.id, BUILDS[WHEELS[0], "3.12"], "o", GPU))
    known = known_of([*cells, made(row.id, NEW, "x")], [row, cpu_only])
    expected = [((build.id, HARDWARE), (build.id, GPU)) for build in line[:3]]
    found = known.claims.device_pairs
    assert [tuple((cell.build, cell.hardware) for cell in pair) for pair in found] == expected
    assert {cell.issue for pair in found for cell in pair} == {row.id}
    assert known.claims.device_agreement == Rate(2, 3)
    assert known.cell(row, NEW, GPU).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize(
    ("agreed", "compared", "expected"),
    [(0, 0, False), (72, 72, False), (73, 73, True), (149, 150, True), (148, 150, True), (147, 150, False)],
)
def test_an_agreement_is_good_enough_where_the_lower_end_of_its_interval_is(
    agreed: int, compared: int, expected: bool
) -> None:
    assert holds(Rate(agreed, compared)) is expected


def test_a_view_of_the_past_infers_nothing() -> None:
    known = replace(store([made(ROW.id, PLAIN, "o")]), infers=False)
    assert known.cell(ROW, NEW, HARDWARE).verdict is Verdict.NOT_RUN


_NEVER = WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, NOT_RUN)
_HELPS = WorkaroundFinding(WorkaroundVerdict.EFFECTIVE, helped=("default",), runs=3)


@pytest.mark.parametrize(
    ("own", "there", "twin", "kept", "why"),
    [
        (_NEVER, _HELPS, "x", {}, "as the cell would be"),
        (WorkaroundFinding(WorkaroundVerdict.INEFFECTIVE), _HELPS, "x", {}, "what was tried here stands"),
        (_NEVER, _NEVER, "x", {}, "it was tried nowhere"),
        (_NEVER, _HELPS, "~", {}, "the two cells differ"),
        (_NEVER, _HELPS, "x", {"pairs": 40}, "the Pythons are not known to agree"),
        (_NEVER, _HELPS, "x", {"smoke": False}, "nothing shows that its compiler works"),
    ],
)
def test_what_another_python_says_of_a_workaround_stands_in_as_a_cell_would(
    own: WorkaroundFinding, there: WorkaroundFinding, twin: str, kept: dict[str, Any], why: str
) -> None:
    here, other = BUILDS[WHEELS[0], "3.12"], BUILDS[WHEELS[0], "3.11"]
    cells = [
        made(ROW.id, here, "x", workarounds={"aot_eager": own}),
        made(ROW.id, other, twin, workarounds={"aot_eager": there}),
    ]
    cell = store(cells, **kept).cell(ROW, here, HARDWARE)
    found = cell.workarounds["aot_eager"]
    assert cell.assurance is Assurance.MEASURED
    if why != "as the cell would be":
        assert found == own, why
        return
    assert (found.verdict, found.ground, english(found.note)) == (
        there.verdict,
        other.id,
        f"inferred from {other.in_words}",
    )
    assert tried_here(cell) == cells[0]
