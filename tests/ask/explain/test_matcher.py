"""When a signature in a stranger's text is the issue, may be it, or is nothing."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from knowngood.ask.explain.answer import Explanation, Strength, Why, tried_workarounds
from knowngood.ask.explain.matcher import complete, make_failure_library, places_in, recognise
from knowngood.ask.text_index import SearchBudget
from knowngood.domain.issue import Arm, Device, Issue, Requires, Signature, SignatureKind, Status
from knowngood.domain.message import english
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.store.knowledge.model import Knowledge
from tests.make import HARDWARE, NOON, make_build, make_issue

TRACE = """\
Traceback (most recent call last):
  File "/u/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line 1, in _fn
  File "/u/lib/python3.11/site-packages/torch/_inductor/special.py", line 2, in lower_special
  File "/u/lib/python3.11/site-packages/torch/_inductor/special.py", line 9, in pick
IndexError: tuple index out of range
"""
EAGER = TRACE.replace("torch/_dynamo/eval_frame", "torch/nn/modules/module").replace(
    "torch/_inductor/special", "mine/a"
)
OTHER_COMPILED = TRACE.replace("_inductor/special", "_inductor/elsewhere")

BUILDS = {one.id: one for one in (make_build("2.6.0+cu124"), make_build("2.7.1+cu126"), make_build("2.8.0+cu128"))}
OLD, BAD, GOOD = BUILDS


def message(pattern: str, id_: str = "toy-1") -> Issue:
    return make_issue(id_, signature=Signature(SignatureKind.MESSAGE, pattern))


def asked(
    text: str,
    *issues: Issue,
    failures: Mapping[str, Sequence[str]] | None = None,
    cells: Sequence[Cell] = (),
    budget: SearchBudget | None = None,
    build: str = "",
) -> Explanation:
    library = make_failure_library(issues, failures or {})
    found = recognise(library, text, budget or SearchBudget(time.thread_time))
    return complete(found, library.issues, measured(cells, issues), build)


def measured(cells: Sequence[Cell], issues: Sequence[Issue] = ()) -> Knowledge:
    tested = frozenset(cell.build for cell in cells)
    stored = {(cell.issue, cell.build, cell.hardware): cell for cell in cells}
    classes = tuple(sorted({cell.hardware for cell in cells}))
    return Knowledge(Known({issue.id: issue for issue in issues}, BUILDS, stored, classes, NOON), tested)


def cell(build: str, verdict: Verdict, **changes: object) -> Cell:
    return replace(Cell("toy-1", build, HARDWARE, verdict, "because", NOON), **changes)  # type: ignore[arg-type]


def strengths(found: Explanation) -> list[tuple[str, str]]:
    return [(match.issue, match.strength.value) for match in found.matches]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(TRACE, [("toy-1", "sure")], id="the same words by the same way"),
        pytest.param("IndexError: tuple index out of range", [], id="the words alone: anybody says them"),
        pytest.param(
            "torch._inductor.exc.InductorError: IndexError: tuple index out of range",
            [("toy-1", "possible")],
            id="the words alone, of a compiler",
        ),
        pytest.param(OTHER_COMPILED, [], id="by another way through the compilers"),
        pytest.param(EAGER, [], id="by a way that never comes to a compiler"),
        pytest.param("IndexError: list index out of range", [], id="other words"),
    ],
)
def test_anybodys_words_count_by_the_way_the_traceback_runs(text: str, expected: list[tuple[str, str]]) -> None:
    issue = message("IndexError: tuple index out of range")
    others = [message(f"unlike anything {n}", f"toy-{n}") for n in range(2, 6)]
    failures = {"toy-1": [TRACE], **{one.id: [OTHER_COMPILED.replace("pick", one.id)] for one in others}}
    assert strengths(asked(text, issue, *others, failures=failures)) == expected


FRAMES = [
    '  File "/u/lib/python3.11/site-packages/torch/_inductor/special.py", line 9, in pick',
    '  File "/u/lib/python3.12/dist-packages/torch/_inductor/special.py", line 9 in pick',
    r'  File "E:\ComfyUI\python_embeded\Lib\site-packages\torch\_inductor\special.py", line 9, in pick',
    "File ~/env/lib/python3.11/site-packages/torch/_inductor/special.py:9, in Chooser.pick(self, *args)",
    '  File "/srv/u/pytorch/torch/_inductor/special.py", line 9, in pick',
]


@pytest.mark.parametrize("frame", FRAMES, ids=["Python", "faulthandler", "Windows", "IPython", "a checkout"])
def test_a_frame_is_a_place_however_it_is_told(frame: str) -> None:
    assert places_in(frame) == {("torch/_inductor/special.py", "pick")}


def test_pytest_tells_files_without_functions_and_they_count() -> None:
    frame = "lib/python3.11/site-packages/torch/_inductor/special.py:9: IndexError"
    text = f"{frame}\nE   IndexError: tuple index out of range"
    issue = message("IndexError: tuple index out of range")
    others = [message(f"unlike anything {n}", f"toy-{n}") for n in range(2, 6)]
    failures = {"toy-1": [TRACE], **{one.id: [OTHER_COMPILED.replace("pick", one.id)] for one in others}}
    assert strengths(asked(text, issue, *others, failures=failures)) == [("toy-1", "sure")]


def test_an_issues_own_words_are_enough() -> None:
    assert strengths(asked("x: error: conflicting declaration 'float tmp_acc0'", make_issue())) == [("toy-1", "sure")]


def test_a_short_signature_is_never_sure_by_itself() -> None:
    assert strengths(asked("CUDA error: misaligned address", message("misaligned address"))) == []
    found = asked("after torch.compile: CUDA error: misaligned address", message("misaligned address"))
    assert strengths(found) == [("toy-1", "possible")]
    assert not found.known


COMMON = "torch._inductor.exc.InductorError: IndexError: tuple index out of range"


@pytest.mark.parametrize(
    ("text", "strength", "why"),
    [
        pytest.param(f"{COMMON}\n  target: odd_op_backward", "sure", Why.MARKED, id="an operator of the title"),
        pytest.param(f"{COMMON}\ntorch 2.7.1", "possible", Why.COMMON_WORDS, id="the release of the title alone"),
        pytest.param(f"{COMMON}\n  from oddpack import x", "sure", Why.MARKED, id="the package"),
        pytest.param(f"{COMMON}\ntorch 2.6.0", "possible", Why.COMMON_WORDS, id="another release, and nothing else"),
        pytest.param(f"{COMMON}\nodd_op, torch 2.3.0", "possible", Why.RULED_OUT, id="a torch that it cannot be on"),
        pytest.param(f"{COMMON}\nodd_op, Python 3.9.1", "possible", Why.RULED_OUT, id="a Python that it cannot be on"),
        pytest.param(f"{COMMON}\nodd_op, torch 2.7.1+cpu", "possible", Why.RULED_OUT, id="a torch without CUDA"),
        pytest.param(f"{COMMON}\nodd_op, triton 3.2.0", "possible", Why.RULED_OUT, id="a Triton that is too old"),
        pytest.param(f"{COMMON}\nodd_op, triton 3.6.0", "sure", Why.MARKED, id="a newer Triton"),
    ],
)
def test_common_words_need_a_mark_and_what_is_stated_can_rule_the_issue_out(text: str, strength: str, why: Why) -> None:
    issue = make_issue(
        title="odd_op fails on torch 2.7 beside Triton 3.5",
        status=Status.USAGE,
        requires=Requires(Device.CUDA, torch=">=2.5", python=">=3.10", package="oddpack"),
        signature=Signature(SignatureKind.MESSAGE, "IndexError: tuple index out of range"),
    )
    (match,) = asked(text, issue).matches
    assert (match.strength.value, match.why) == (strength, why)


@pytest.mark.parametrize(
    ("beside", "strength"),
    [
        ("x.lerp_(end, 0.75) and its strides, then a permuted view", "sure"),
        ("x.lerp_(end, 0.75) and its strides", "possible"),
        ("x.view(torch.uint8)", "possible"),
        ("Tensor.view(dtype) after contiguous", "sure"),
    ],
)
def test_three_rare_words_of_the_title_or_the_call_that_it_names_are_a_mark(beside: str, strength: str) -> None:
    pattern = "IndexError: tuple index out of range"
    issue = replace(message(pattern), title="Strides of a permuted lerp break view(dtype)")
    assert strengths(asked(f"{COMMON}\n{beside}", issue)) == [("toy-1", strength)]


def test_a_message_that_was_wrapped_is_found_and_is_as_common_as_on_one_line() -> None:
    wrapped = "> torch._inductor: IndexError: tuple index\n>    out of range"
    assert strengths(asked(wrapped, message("IndexError: tuple index out of range"))) == [("toy-1", "possible")]
    found = asked("error: conflicting declaration\n    'float tmp_acc0'", message("conflicting declaration 'float tmp"))
    assert strengths(found) == [("toy-1", "sure")]
    assert [line.number for line in found.matches[0].around if line.lit] == [1, 2]


@pytest.mark.parametrize("name", ["torch.odd_cell(x)", "nn.OddCell(3)"])
def test_the_operator_that_a_repro_exercises_is_one_that_its_crash_is_known_by(name: str) -> None:
    signature = Signature(SignatureKind.SIGNAL, r"line \d+ in _own_function\b", signals=("SIGSEGV",))
    arms = (Arm("baseline", ("operator:aten::odd_cell",), code="baseline-1"),)
    issue = make_issue(title="A cell kills the process", signature=signature, arms=arms)
    assert strengths(asked(f"{name}\nSegmentation fault", issue)) == [("toy-1", "possible")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("torch.linalg.odd_solve(a, b)\ndouble free or corruption (out)\nAborted (core dumped)", True),
        ("x = odd_solve(a)\nmalloc(): invalid size (unsorted)", True),
        ("x = odd_solve(a)\nRuntimeError: singular matrix", False),
        ("y = other_solve(a)\nAborted (core dumped)", False),
        ("x = odd_solve(a)\nSegmentation fault (core dumped)", False),
        ("linalg/odd_solve.py:3\nAborted (core dumped)", False),
    ],
)
def test_a_crash_is_possible_by_its_operator_where_its_signature_is_the_repros_own_frame(
    text: str, found: bool
) -> None:
    signature = Signature(SignatureKind.SIGNAL, r"line \d+ in _own_function\b", signals=("SIGABRT",))
    matches = asked(text, make_issue(title="linalg.odd_solve corrupts the heap", signature=signature)).matches
    assert [(one.strength.value, one.why) for one in matches] == [("possible", Why.SAME_OPERATOR)] * found


def test_a_pass_measured_on_the_very_build_leaves_it_possible_and_shows_no_workaround() -> None:
    cells = [cell(BAD, Verdict.AFFECTED), cell(GOOD, Verdict.NOT_AFFECTED)]
    text = "conflicting declaration 'int tmp_acc1'\ntorch "
    (there,) = asked(f"{text}2.7.1+cu126", make_issue(), cells=cells).matches
    (elsewhere,) = asked(f"{text}2.8.0+cu128", make_issue(), cells=cells).matches
    assert (there.strength.value, elsewhere.strength.value, elsewhere.why) == ("sure", "possible", Why.PASSES_THERE)
    assert elsewhere.cures_on is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("__main__.WrongResult: expected 0, got 256", [("toy-1", "sure")], id="our repro's words"),
        pytest.param("assert: expected 0, got 256", [], id="the same of somebody's own test"),
        pytest.param("WrongResult: expected 1, got 2", [], id="another wrong result"),
    ],
)
def test_a_wrong_result_is_known_by_the_repro_that_says_it(text: str, expected: list[tuple[str, str]]) -> None:
    issue = make_issue(signature=Signature(SignatureKind.WRONG_RESULT, "expected 0, got 256"))
    assert strengths(asked(text, issue)) == expected


def test_the_repros_words_in_a_signature_of_a_message_need_the_repro_too() -> None:
    issue = message(r"Unsupported: odd thing happened|expected \[4\.0\], got")
    assert strengths(asked("AssertionError: expected [4.0], got [5.0]", issue)) == []
    assert strengths(asked("WrongResult: expected [4.0], got [5.0]", issue)) == [("toy-1", "sure")]
    assert strengths(asked("Unsupported: odd thing happened", issue)) == [("toy-1", "sure")]


def test_a_crash_without_its_signal_is_only_possible() -> None:
    issue = make_issue(signature=Signature(SignatureKind.SIGNAL, "called on deleted or donated buffer", ("SIGABRT",)))
    text = "Check failed: called on deleted or donated buffer"
    assert strengths(asked(text, issue)) == [("toy-1", "possible")]
    assert strengths(asked(f"{text}\nAborted (core dumped)", issue)) == [("toy-1", "sure")]
    assert strengths(asked(f"{text}\nSegmentation fault", issue)) == [("toy-1", "possible")]


def test_a_failure_without_a_pattern_is_never_read_out_of_a_text() -> None:
    assert strengths(asked("WrongResult: anything", make_issue(signature=Signature(SignatureKind.WRONG_RESULT)))) == []


def test_the_signature_that_says_more_stands_first() -> None:
    wide = message("odd failure in", "toy-wide")
    narrow = message(r"odd failure in kernel triton_poi_fused_\d+ of the backward", "toy-zz")
    found = asked("E: odd failure in kernel triton_poi_fused_12 of the backward", wide, narrow)
    assert strengths(found) == [("toy-zz", "sure"), ("toy-wide", "sure")]


def test_the_lit_line_is_named_by_its_place_in_the_paste() -> None:
    (match,) = asked(
        "one\r\ntwo\r\n> [rank0]: error: conflicting declaration 'float tmp_acc0'\r\nfour", make_issue()
    ).matches
    assert match.line == "error: conflicting declaration 'float tmp_acc0'"
    assert [(line.number, line.lit) for line in match.around] == [(1, False), (2, False), (3, True), (4, False)]


def test_where_it_was_seen_stands_newest_first_and_passes_do_not_count() -> None:
    cells = [cell(OLD, Verdict.AFFECTED), cell(BAD, Verdict.FLAKY), cell(GOOD, Verdict.NOT_AFFECTED)]
    (match,) = asked("conflicting declaration 'int tmp_acc1'", make_issue(), cells=cells).matches
    assert [one.build for one in match.seen] == [BAD, OLD]


@pytest.mark.parametrize(
    ("torch", "own", "shown"),
    [
        pytest.param("torch 2.7.1+cu126", BAD, BAD, id="a build on which it fails"),
        pytest.param("", None, BAD, id="no build"),
        pytest.param("torch 1.13.1", None, BAD, id="a build that nobody measured"),
    ],
)
def test_workarounds_are_told_of_the_build_of_the_paste(torch: str, own: str | None, shown: str) -> None:
    cells = [cell(OLD, Verdict.AFFECTED), cell(BAD, Verdict.AFFECTED), cell(GOOD, Verdict.NOT_AFFECTED)]
    found = asked(f"conflicting declaration 'int tmp_acc1'\n{torch}", make_issue(), cells=cells)
    (advice,) = found.matches
    assert (advice.here and advice.here.build, advice.cures_on and advice.cures_on.build) == (own, shown)
    assert {one: english(said) for one, said in advice.history.items()} == {
        HARDWARE: "fails up to 2.7.1, fixed in 2.8.0"
    }


def test_a_cell_of_which_the_control_alone_was_run_tells_nothing_of_the_build() -> None:
    cells = [cell(OLD, Verdict.AFFECTED), cell(BAD, Verdict.NOT_RUN)]
    found = asked(
        f"conflicting declaration 'int tmp_acc1'\ntorch=={BAD.removeprefix('torch-')}", make_issue(), cells=cells
    )
    (advice,) = found.matches
    assert (advice.here, advice.cures_on and advice.cures_on.build) == (None, OLD)


def test_a_build_where_something_helps_stands_for_the_issue_before_a_newer_one_where_it_helps_in_part() -> None:
    whole, part = (
        {"aot_eager": WorkaroundFinding(kind)} for kind in (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL)
    )

    def shown(*cells: Cell) -> str:
        found = asked("conflicting declaration 'int tmp_acc1'", make_issue(), cells=cells)
        best = found.matches[0].cures_on
        return best.build if best else ""

    helped = [cell(OLD, Verdict.AFFECTED, workarounds=whole), cell(BAD, Verdict.AFFECTED, workarounds=part)]
    assert shown(*helped) == OLD
    assert shown(helped[1], cell(GOOD, Verdict.AFFECTED)) == BAD


def test_workarounds_that_work_stand_first_and_those_for_other_releases_nowhere() -> None:
    issue = make_issue(workarounds=("no", "yes", "elsewhere"))
    findings = {
        "no": WorkaroundFinding(WorkaroundVerdict.INEFFECTIVE),
        "yes": WorkaroundFinding(WorkaroundVerdict.EFFECTIVE),
        "elsewhere": WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, applies=False),
    }
    tried = tried_workarounds(issue, cell(BAD, Verdict.AFFECTED, workarounds=findings))
    assert [one.id for one in tried] == ["yes", "no"]


def test_words_about_wrong_numbers_lead_to_the_silent_issues() -> None:
    silent = make_issue("toy-2", silent=True, title="cumsum of int8 gives wrong sums once compiled")
    found = asked("after torch.compile the cumsum of int8 is wrong", make_issue(), silent)
    assert [one.issue for one in found.silent] == ["toy-2"]
    assert asked("cumsum of int8 does not compile", make_issue(), silent).silent == ()


def test_a_catastrophic_pattern_is_given_up_in_time_and_named() -> None:
    started = time.process_time()
    found = asked(
        "a" * 3_000, message(r"(a+)+b"), make_issue("toy-2"), budget=SearchBudget(time.thread_time, 60.0, 0.2)
    )
    assert time.process_time() - started < 10
    assert found.untried == ("toy-1",)
    assert not found.matches


def test_all_signatures_together_have_a_time_too() -> None:
    issues = [message(rf"(a+)+{n}", f"toy-{n}") for n in range(9)]
    started = time.process_time()
    found = asked("a" * 3_000, *issues, budget=SearchBudget(time.thread_time, 0.5, 0.2))
    assert time.process_time() - started < 10  # each alone would take longer than the world lasts
    assert len(found.untried) == 9


def test_strength_is_a_word_that_programs_read() -> None:
    assert [one.value for one in Strength] == ["sure", "possible"]
