"""The rules of `try`, as tables: what is the same failure, what is run again, where the answer changes."""

from dataclasses import replace

import pytest

from knowngood.domain.verdicts.outcome import Ending, RunRecord, Trouble, TroubleCode
from knowngood.measure.bisection.search import answer_of, next_step
from knowngood.measure.scripts.candidate import pattern_of
from knowngood.measure.scripts.report import Report, as_body, lines_of, markdown_of
from knowngood.measure.scripts.rules import (
    Result,
    Run,
    Tried,
    error_line,
    is_same_failure,
    load_trouble,
    missing_runs,
    read_run,
    results_of,
    search_in,
)
from knowngood.measure.scripts.runner import Script
from tests.make import HARDWARE, make_build

BUILDS = tuple(make_build(f"2.{minor}.0+cu124", git=f"{minor}" * 40) for minor in range(1, 9))
RUNS = Run(Ending.EXITED, 0, "", "1.0", "1.0", 2.0)
FAILS = Run(Ending.EXITED, 1, "", "RuntimeError: no", "Traceback", 2.0)
SIGNS = {
    ".": RUNS,
    "X": FAILS,
    "o": replace(FAILS, line="TypeError: another"),
    "#": replace(RUNS, line="2.0", output="2.0"),
    "S": replace(FAILS, exit_code=None, ending=Ending.SIGNALLED, signal="SIGSEGV", line=""),
}
SCRIPT = Script("bug.py", "import torch\n", (), HARDWARE, 300)
LOST = Trouble(TroubleCode.NO_BUILD, "no such wheel")


def tried(*said: str) -> list[Tried]:
    """One build for each text; a letter of it is a run, `-` a trouble, and an empty text what was not tried."""
    return [
        Tried(build, trouble=LOST) if signs == "-" else Tried(build, tuple(SIGNS[sign] for sign in signs))
        for build, signs in zip(BUILDS, said, strict=False)
    ]


def sentence(*said: str, is_line: bool = False) -> str:
    return Report(SCRIPT, tuple(tried(*said)), is_line=is_line).sentence


_INNER = 'Traceback (most recent call last):\n  File "$SCRATCH/bug.py", line 3, in <module>\n    f()\n'


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (f"{_INNER}ValueError: 3 is no\n\nSet TORCHDYNAMO_VERBOSE=1 for more\n", "ValueError: 3 is no"),
        (f"{_INNER}KeyError: 1\n\nDuring handling ...\n\n{_INNER}RuntimeError: last\n", "RuntimeError: last"),
        (
            f"{_INNER}torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nAssertionError: size\n",
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: AssertionError: size",
        ),
        ("loss 1\nexpected 2, got 3\n\n", "expected 2, got 3"),
        (_INNER, "f()"),
        (
            "terminate called\n  what(): no\nFatal Python error: Aborted\n\nCurrent thread 0x1:\n  File a\n",
            "what(): no",
        ),
        ("Fatal Python error: Segmentation fault\n\nCurrent thread 0x1:\n", "Fatal Python error: Segmentation fault"),
        ("", ""),
    ],
)
def test_the_errors_own_line_is_found_above_the_hints_below_it(log: str, line: str) -> None:
    assert error_line(log.splitlines()) == line


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("RuntimeError: size 3 at 0x7fe0", "RuntimeError: size 17 at 0x11", True),
        ("ImportError: /a/b/libx.so: no", "ImportError: $ENVIRONMENT/lib/liby.so: no", True),
        (
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: AssertionError: size",
            "torch._inductor.exc.InductorError: AssertionError: size",
            True,
        ),
        ("torch.cuda.OutOfMemoryError: no", "torch.OutOfMemoryError: no", True),
        ("RuntimeError: no", "TypeError: no", False),
        ("RuntimeError: no kernel", "RuntimeError: no device", False),
        ("torch._inductor.exc.InductorError: ", "RuntimeError: no", False),
        (
            "Wrong: expected autocast to be left as it was, depth 0 and off, got on after an error",
            "Wrong: expected autocast to be left as it was, depth 0 and off, got off after an error",
            True,
        ),
        (
            "TypeError: expected autocast to be left as it was, depth 0 and off, got on after an error",
            "ValueError: expected autocast to be left as it was, depth 0 and off, got on after an error",
            False,
        ),
    ],
)
def test_a_failure_is_the_same_but_for_numbers_paths_and_what_wraps_it(one: str, other: str, same: bool) -> None:
    assert is_same_failure(replace(FAILS, line=one), replace(FAILS, line=other)) is same


def test_what_was_killed_is_the_same_by_what_killed_it() -> None:
    killed = SIGNS["S"]
    assert is_same_failure(killed, replace(killed, line="other words"))
    assert not is_same_failure(killed, replace(killed, signal="SIGABRT"))
    assert not is_same_failure(replace(killed, ending=Ending.TIMED_OUT, signal=""), FAILS)


@pytest.mark.parametrize(
    ("record", "fails", "how"),
    [
        (RunRecord(Ending.EXITED, exit_code=0), False, "exit 0"),
        (RunRecord(Ending.EXITED, exit_code=2), True, "exit 2"),
        (RunRecord(Ending.SIGNALLED, signal="SIGSEGV"), True, "SIGSEGV"),
        (RunRecord(Ending.TIMED_OUT), True, "timed out"),
        (RunRecord(Ending.OVER_MEMORY), True, "over the memory limit"),
    ],
)
def test_exit_0_runs_and_all_else_fails(record: RunRecord, fails: bool, how: str) -> None:
    run = read_run(record, "1\n", "", BUILDS[0])
    assert (run.fails, run.how) == (fails, how)


def test_of_an_output_neither_warnings_nor_addresses_nor_the_version_count() -> None:
    log = "/x/torch/a.py:3: UserWarning: old\n2.1.0+cu124 <f at 0x7f00>\n0.5\n"
    run = read_run(RunRecord(Ending.EXITED, exit_code=0), log, "", BUILDS[0])
    assert (run.line, run.output) == ("0.5", " <f at 0x>\n0.5")


@pytest.mark.parametrize(
    ("said", "results"),
    [
        (("X", "."), "fails runs"),
        (("o", ".", "X"), "fails otherwise, runs, fails"),
        (("#", "."), "other output, runs"),
        (("#", "X", "."), "other output, fails, runs"),
        (("X.", "."), "comes and goes, runs"),
        (("o.", "X"), "fails otherwise, fails"),
        (("-", "X"), "not run, fails"),
        (("S", "X"), "fails otherwise, fails"),
        ((".#", "#"), "runs, runs"),  # an output that differs on one build is compared with none
    ],
)
def test_the_newest_failure_and_the_newest_output_are_what_others_are_compared_with(
    said: tuple[str, ...], results: str
) -> None:
    assert ", ".join(results_of(tried(*said))) == results.replace("fails runs", "fails, runs")


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        (("", ""), [1, 1]),
        ((".", "."), [0, 0]),
        (("X", ".", "."), [2, 2, 0]),
        (("XXX", "...", "."), [0, 0, 0]),
        (("X.X", "..."), [7, 0]),
        (("X", "-", "."), [2, 0, 2]),
        (("#", "."), [2, 2]),
    ],
)
def test_runs_are_repeated_where_results_differ(said: tuple[str, ...], missing: list[int]) -> None:
    rows = tried(*said)
    still = missing_runs(list(zip(rows, results_of(rows), strict=True)))
    assert [still.get(each.build.id, 0) for each in rows] == missing


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ((".", "X"), "Fails on torch 2.2.0, runs on 2.1.0; begins to fail on 2.2.0 (2.1.0 runs), of those tried"),
        (("X", "."), "Fails on torch 2.1.0, runs on 2.2.0; stops failing on 2.2.0 (2.1.0 fails), of those tried"),
        ((".", "."), "Runs on torch 2.1.0 and 2.2.0"),
        (
            (".", "X", "."),
            (
                "Fails on torch 2.2.0, runs on 2.1.0 and 2.3.0; "
                "begins to fail on 2.2.0 (2.1.0 runs); stops failing on 2.3.0 (2.2.0 fails), of those tried"
            ),
        ),
        (("X", "X"), "Fails on torch 2.1.0 and 2.2.0"),
        (
            ("#", "."),
            (
                "Runs with other output on torch 2.1.0, runs on 2.2.0; "
                "the output changes between 2.1.0 and 2.2.0, of those tried"
            ),
        ),
        (
            ("o", "X"),
            (
                "Fails on torch 2.2.0, fails otherwise on 2.1.0; "
                "the failure changes between 2.1.0 and 2.2.0, of those tried"
            ),
        ),
        (
            ("o", ".", "X.X", "-"),
            (
                "Comes and goes on torch 2.3.0 (fails in 2 of 3), fails otherwise on 2.1.0, runs on 2.2.0, "
                "could not be run on 2.4.0; begins to fail on 2.3.0 (2.2.0 runs), of those tried"
            ),
        ),
        ((".",) * 6, "Runs on torch 2.1.0, 2.2.0, 2.3.0, 2.4.0 and 2 more"),
    ],
)
def test_the_first_line_is_the_answer(said: tuple[str, ...], first: str) -> None:
    assert sentence(*said) == first
    report = Report(SCRIPT, tuple(tried(*said)))
    assert markdown_of(report)[0] == f"{first}."
    assert as_body(report)["answer"] == next(lines_of(report)) == first


def test_on_a_whole_line_it_is_said_whether_anything_lies_between() -> None:
    assert sentence(".", "X", is_line=True).endswith("begins to fail on 2.2.0 (2.1.0 runs)")
    assert sentence(".", "", "X", is_line=True).endswith("begins to fail on 2.3.0 (2.1.0 runs), of those tried")


def test_at_most_25_lines_are_printed() -> None:
    many = [Tried(make_build(f"2.{minor}.0+cu124"), (SIGNS[".X"[minor % 2]],)) for minor in range(40)]
    assert len(list(lines_of(Report(SCRIPT, tuple(many))))) <= 25
    alike = [replace(each, runs=(FAILS,)) for each in many]
    assert "  2.0.0 to 2.39.0" in list(lines_of(Report(SCRIPT, tuple(alike))))[1]


def test_markdown_names_both_revisions_and_holds_what_a_cell_may_not() -> None:
    rows = tried(".", "X")
    rows[1] = replace(rows[1], runs=(replace(FAILS, line="Error: a|b `c`"),))
    text = "\n".join(markdown_of(Report(replace(SCRIPT, text="x = '''\n````\n'''\n"), tuple(rows))))
    assert "| 2.2.0+cu124 | fails | exit 1 | `Error: a\\|b 'c'` |" in text
    assert "pytorch/pytorch/compare/111111111111...222222222222" in text
    assert "\n`````python\n" in text


@pytest.mark.parametrize(
    ("truth", "answer"),
    [
        ("....XXXX", "(2.4.0, 2.5.0]"),
        ("XXXXXXX.", "(2.7.0, 2.8.0]"),
        ("ooo.XXXX", "(2.4.0, 2.5.0]"),
        ("ooooXXXX", "(2.4.0, 2.5.0]"),
        ("####....", "(2.4.0, 2.5.0]"),
        ("-..XXXXX", "(2.2.0, 2.4.0]"),
        ("........", ""),
    ],
)
def test_bisect_finds_the_first_release_on_which_the_outcome_changes(truth: str, answer: str) -> None:
    line, jobs = tried(*("",) * 8), 0
    while isinstance(step := next_step(search_in(line, jobs)), int):
        line[step], jobs = tried(*truth)[step], jobs + 1
    assert [change.interval for change in answer_of(search_in(line)).changes] == ([answer] if answer else [])
    assert jobs <= 5


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("RuntimeError: expected size 3 to be the number of columns", "to be the number of columns"),
        ("AssertionError", "AssertionError"),
        ("a.BackendCompilerFailed: backend='inductor' raised: ValueError: Cannot view [4] as (2,)!", "Cannot view"),
        ("ValueError: (a+b) is no", r"a\+b\) is no"),
    ],
)
def test_a_signature_is_the_longest_part_that_stays(line: str, pattern: str) -> None:
    assert pattern_of(line) == pattern


def test_nothing_that_was_not_run_is_a_row() -> None:
    report = Report(SCRIPT, tuple(tried("", "X", "")))
    assert [row[0].build.label for row in report.rows] == ["2.2.0"]
    assert Result.NOT_RUN not in {result for _, result in report.rows}


@pytest.mark.parametrize(
    ("ending", "load", "is_told"),
    [
        (Ending.TIMED_OUT, 5.9, False),
        (Ending.TIMED_OUT, 6.1, True),
        (Ending.EXITED, 21.0, False),
        (Ending.SIGNALLED, 21.0, False),
    ],
)
def test_a_time_limit_reached_on_a_busy_machine_is_no_result(ending: Ending, load: float, is_told: bool) -> None:
    trouble = load_trouble(ending, load, cores=2)
    assert bool(trouble) is is_told
