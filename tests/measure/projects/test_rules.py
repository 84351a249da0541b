"""The rules of `try-bump`, as tables: the class of each id, what is repeated, and when the answer is ok."""

import pytest

from knowngood.domain.verdicts.outcome import Ending
from knowngood.measure.projects.rules import (
    Answer,
    Change,
    Comparison,
    Outcome,
    SuiteRun,
    conflicting,
    failures,
    moved_requirements,
    moves,
    problem_of,
)
from knowngood.measure.scripts.rules import Run

PASSED, FAILED = Run(Ending.EXITED, 0, "", "", "", 1.0), Run(Ending.EXITED, 1, "", "", "", 1.0)
OUTCOMES = {".": Outcome.PASSED, "X": Outcome.FAILED, "s": Outcome.SKIPPED}
STEADY = "t::steady"
NONE, LATE = "exit 4, no results written", "no results written in 9 s; --timeout gives it longer"


def side(*runs: str, ids: str = "a", steady: str = ".") -> tuple[SuiteRun, ...]:
    """One run for each text, a letter of it for each of `ids`: `-` is one that was not run. `steady` runs with all."""
    said = [{f"t::{id_}": OUTCOMES[sign] for id_, sign in zip(ids, run, strict=True) if sign != "-"} for run in runs]
    more = {STEADY: OUTCOMES[steady]} if steady else {}
    return tuple(SuiteRun(PASSED, {**more, **one}) if not at else SuiteRun(PASSED, one) for at, one in enumerate(said))


@pytest.mark.parametrize(
    ("base", "target", "change", "answer"),
    [
        (".", ".", Change.PASSES, Answer.OK),
        ("X", "X", Change.FAILS, Answer.OK),
        ("s", "s", Change.SKIPPED, Answer.OK),
        ("....", "XXXX", Change.NEWLY_FAILING, Answer.NOT_YET),
        (".", "X", Change.NEWLY_FAILING, Answer.CANNOT_SAY),  # as long as it was not repeated
        ("XXXX", "....", Change.NEWLY_PASSING, Answer.OK),
        (".X..", ".X.X", Change.FLAKY, Answer.OK),
        ("....", "X...", Change.UNSETTLED, Answer.CANNOT_SAY),
        ("....", "XXX.", Change.UNSETTLED, Answer.CANNOT_SAY),
        (".X..", "XXXX", Change.UNSETTLED, Answer.CANNOT_SAY),
        (".X..", "....", Change.UNSETTLED, Answer.CANNOT_SAY),
        ("ssss", "XXXX", Change.NEWLY_FAILING, Answer.NOT_YET),
        ("----", "XXXX", Change.NEWLY_FAILING, Answer.NOT_YET),
        (".", "s", Change.GONE, Answer.CANNOT_SAY),
        (".", "-", Change.GONE, Answer.CANNOT_SAY),
        ("X", "s", Change.GONE, Answer.OK),
        ("s", ".", Change.ADDED, Answer.OK),
        ("-", ".", Change.ADDED, Answer.OK),
        ("s", "-", Change.SKIPPED, Answer.OK),
    ],
)
def test_each_id_has_a_class_and_only_a_settled_difference_counts(
    base: str, target: str, change: Change, answer: Answer
) -> None:
    found = Comparison(side(*base), side(*target))
    assert found.changes["t::a"] is change
    assert found.answer is answer


@pytest.mark.parametrize("steady", ["s", "X", ""])
def test_it_is_never_ok_where_no_test_passes_on_both_sides(steady: str) -> None:
    for base, target in (("s", "s"), ("X", "X"), ("XXXX", "...."), ("-", "."), ("-", "-")):
        assert Comparison(side(*base, steady=steady), side(*target, steady=steady)).answer is Answer.CANNOT_SAY


@pytest.mark.parametrize("lost", [(), (SuiteRun(PASSED, {STEADY: Outcome.PASSED}, problem="SIGSEGV"),)])
def test_it_is_never_ok_where_a_side_could_not_be_run(lost: tuple[SuiteRun, ...]) -> None:
    for sides in ((lost, side(".")), (side("."), lost), (lost, lost)):
        found = Comparison(*sides)
        assert (found.answer, found.changes) == (Answer.CANNOT_SAY, {})
        assert any(found.problems)


@pytest.mark.parametrize(
    ("base", "target", "repeated"),
    [
        (".", ".", False),
        (".", "X", True),
        ("X", ".", True),
        ("....", "XXX", True),
        ("....", "XXXX", False),
        (".X..", "XXXX", False),
        (".", "s", False),  # it would be skipped again
        ("-", "X", True),
    ],
)
def test_what_differs_is_run_three_times_more_on_both_sides(base: str, target: str, repeated: bool) -> None:
    assert Comparison(side(*base), side(*target)).to_repeat == (("t::a",) if repeated else ())


def test_a_repetition_that_could_not_be_run_confirms_nothing() -> None:
    crashed = SuiteRun(PASSED, only=("t::a",), problem="SIGSEGV, no results written")
    found = Comparison(side(*"...."), (*side("X"), crashed, crashed, crashed))
    assert failures(found.target, "t::a") == (1, 1)
    assert found.answer is Answer.CANNOT_SAY
    assert found.to_repeat == ("t::a",)


def test_a_file_that_newly_cannot_be_collected_stands_for_its_tests() -> None:
    base = side("..", "..", "..", "..", ids="ab")
    target = tuple(SuiteRun(FAILED, {"t": Outcome.FAILED, "u::c": Outcome.PASSED}) for _ in range(4))
    found = Comparison(base, target)
    assert found.changes == {"t": Change.NEWLY_FAILING, "u::c": Change.ADDED}
    assert found.answer is Answer.NOT_YET


def test_other_words_of_what_fails_on_both_are_told() -> None:
    words = {"t::a": "ValueError: size 3"}
    before = (SuiteRun(FAILED, {"t::a": Outcome.FAILED}, words),)
    for after, otherwise in (("ValueError: size 4", ()), ("TypeError: no", ("t::a",))):
        found = Comparison(before, (SuiteRun(FAILED, {"t::a": Outcome.FAILED}, {"t::a": after}),))
        assert found.otherwise == otherwise


@pytest.mark.parametrize(
    ("end", "outcomes", "is_pytest", "problem"),
    [
        (Run(Ending.EXITED, 0, "", "", "", 1), ".", True, ""),
        (Run(Ending.EXITED, 1, "", "", "", 1), "X", True, ""),
        (Run(Ending.EXITED, 1, "", "", "", 1), ".", True, "exit 1 though no test failed"),
        (Run(Ending.EXITED, 2, "", "", "", 1), "X", True, "exit 2: pytest stopped before its end"),
        (Run(Ending.EXITED, 2, "", "", "", 1), "X", False, ""),  # of make
        (Run(Ending.EXITED, 2, "", "", "", 1), ".", False, "exit 2 though no test failed"),
        (Run(Ending.EXITED, 5, "", "", "", 1), "", True, "no test was collected"),
        (Run(Ending.EXITED, 0, "", "", "", 1), "", True, "no test was collected"),
        (Run(Ending.EXITED, 4, "", "no --cov", "", 1), "", True, f"{NONE} (no --cov)"),
        (Run(Ending.SIGNALLED, None, "SIGSEGV", "", "", 1), "", True, "SIGSEGV, no results written"),
        (Run(Ending.SIGNALLED, None, "SIGSEGV", "", "", 1), ".", True, "SIGSEGV, no results written"),
        (
            Run(Ending.EXITED, 4, "", "== no tests ==", "ERROR: no x\n== no tests ==", 1),
            "",
            True,
            f"{NONE} (ERROR: no x)",
        ),
        (Run(Ending.TIMED_OUT, None, "", "", "", 9), "", False, f"timed out, {LATE}"),
    ],
)
def test_a_run_counts_only_where_it_came_to_its_end(end: Run, outcomes: str, is_pytest: bool, problem: str) -> None:
    said = {str(at): OUTCOMES[sign] for at, sign in enumerate(outcomes)}
    assert problem_of(end, said, is_pytest=is_pytest) == problem


@pytest.mark.parametrize(
    ("base", "target", "answer"),
    [
        ({"t::a[1]": ".", "t::a[2]": "."}, {"t::a[3]": ".", "t::a[4]": "."}, Answer.OK),
        ({"t::a[1]": ".", "t::a[2]": "."}, {"t::a[3]": "."}, Answer.CANNOT_SAY),
        ({"t::a[1]": "."}, {"t::b[1]": "."}, Answer.CANNOT_SAY),
        ({"t::a[1]": "."}, {"t::a[2]": "s"}, Answer.CANNOT_SAY),
        ({"t::a[1]": "."}, {"t::a[2]": "X"}, Answer.CANNOT_SAY),
        ({"t::a[1]": ".", "t::a[2]": "s"}, {"t::a[1]": "s", "t::a[2]": "."}, Answer.CANNOT_SAY),
    ],
)
def test_parameters_that_are_drawn_anew_in_each_run_are_no_tests_that_went(
    base: dict[str, str], target: dict[str, str], answer: Answer
) -> None:
    sides = [
        (SuiteRun(PASSED, {id_: OUTCOMES[sign] for id_, sign in {STEADY: ".", **said}.items()}),)
        for said in (base, target)
    ]
    assert Comparison(*sides).answer is answer


PINS = {"torch": "2.7.1", "triton": "3.3.1", "nvidia-nccl-cu12": "2.26.2", "torchvision": "0.22.1", "numpy": "2.0"}


@pytest.mark.parametrize(("torch", "way"), [("2.15.0", ">="), ("2.6.0", "<=")])
def test_what_is_freed_goes_the_way_of_torch_and_what_torch_brings_is_left_to_it(torch: str, way: str) -> None:
    told = moved_requirements(PINS, torch, frozenset({"torchvision"}))
    assert told == [f"torchvision{way}0.22.1", "numpy==2.0"]


def test_the_packages_that_a_resolver_names_are_those_that_conflict() -> None:
    words = "Because torchvision==0.22.1 depends on torch==2.7.1 and numpy>=3 is missing, your requirements conflict"
    assert conflicting(PINS, words) == {"torchvision", "numpy"}
    assert conflicting(PINS, "there is no version of torch===9.9") == frozenset()


def test_what_moved_is_named_and_packages_of_cuda_are_counted() -> None:
    after = {"torch": "2.15.0", "triton": "3.9.0", "nvidia-nccl-cu13": "2.29", "torchvision": "0.22.1", "numpy": "2.0"}
    assert moves(PINS, after) == (["triton 3.3.1 -> 3.9.0"], 2)
