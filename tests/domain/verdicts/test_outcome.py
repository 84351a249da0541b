"""The truth table of `classify`: one row, one reason."""

from dataclasses import replace
from typing import Any

import pytest

from knowngood.domain.issue import BASELINE, Device, Requires, Signature, SignatureKind, Suspect
from knowngood.domain.message import english
from knowngood.domain.timed_search import Searched
from knowngood.domain.verdicts.outcome import (
    Ending,
    Outcome,
    Raised,
    RunRecord,
    SeenPath,
    Trouble,
    TroubleCode,
    classify,
    search_key,
)
from tests.domain.given_claims import GPU
from tests.make import HARDWARE, SIGNATURE_TEXT, make_build, make_issue, make_record

WRONG = Raised("WrongResult", "expected 1, got 2", "Traceback", marked="wrong_result")
TYPED = Raised("torch._inductor.exc.InductorError", f"CppCompileError\n{SIGNATURE_TEXT}\nmore", "Traceback")
OTHER = Raised("builtins.ValueError", "no", "Traceback")


def judged(signature: Signature, record: RunRecord, log: str = "") -> Outcome:
    return classify(record, make_issue(signature=signature), BASELINE, make_build(), log).outcome


MESSAGE = Signature(SignatureKind.MESSAGE, r"conflicting declaration .*tmp_acc\d+")
LOGGED = replace(MESSAGE, log=True)
NUMBERS = Signature(SignatureKind.WRONG_RESULT)
ABORT = Signature(SignatureKind.SIGNAL, "deleted or donated buffer", ("SIGABRT",))
HANG = Signature(SignatureKind.HANG, r"in wait_for_pool")


@pytest.mark.parametrize(
    ("expected", "signature", "base", "changes", "log"),
    [
        pytest.param(Outcome.PASS, MESSAGE, Outcome.PASS, {}, "", id="returned with proof"),
        pytest.param(Outcome.HARNESS_ERROR, MESSAGE, Outcome.PASS, {"probes": {}}, "", id="returned, path not proven"),
        pytest.param(
            Outcome.HARNESS_ERROR, MESSAGE, Outcome.PASS, {"probes": {"dynamo_graph": 1}}, "", id="half the path proven"
        ),
        pytest.param(Outcome.HARNESS_ERROR, MESSAGE, Outcome.PASS, {"observed": {}}, "", id="returned nothing"),
        pytest.param(
            Outcome.ENV_ERROR,
            MESSAGE,
            Outcome.PASS,
            {"imported": {"torch": "2.7.0+cu126"}},
            "",
            id="another torch was imported, though it passed",
        ),
        pytest.param(Outcome.MATCH, MESSAGE, Outcome.MATCH, {}, "", id="the message"),
        pytest.param(Outcome.MATCH, MESSAGE, Outcome.MATCH, {"raised": TYPED}, "", id="the message, other class"),
        pytest.param(Outcome.MATCH, LOGGED, Outcome.CRASH, {}, SIGNATURE_TEXT, id="the message, then a crash"),
        pytest.param(Outcome.CRASH, MESSAGE, Outcome.CRASH, {}, SIGNATURE_TEXT, id="the row does not trust its log"),
        pytest.param(
            Outcome.OTHER_FAILURE,
            MESSAGE,
            Outcome.OTHER_FAILURE,
            {},
            f"{SIGNATURE_TEXT}\n",
            id="a benign print, then an unrelated error",
        ),
        pytest.param(
            Outcome.MATCH,
            LOGGED,
            Outcome.PASS,
            {"ending": Ending.EXITED, "exit_code": 1},
            SIGNATURE_TEXT,
            id="the message, then exit 1",
        ),
        pytest.param(
            Outcome.HARNESS_ERROR,
            LOGGED,
            Outcome.PASS,
            {"ending": Ending.EXITED, "exit_code": 0},
            SIGNATURE_TEXT,
            id="exit 0 before the arm returned proves nothing",
        ),
        pytest.param(
            Outcome.OTHER_FAILURE, MESSAGE, Outcome.PASS, {"ending": Ending.EXITED, "exit_code": 3}, "", id="exit 3"
        ),
        pytest.param(Outcome.OTHER_FAILURE, MESSAGE, Outcome.OTHER_FAILURE, {}, "", id="another exception"),
        pytest.param(
            Outcome.OTHER_FAILURE, MESSAGE, Outcome.MATCH, {"raised": WRONG}, "", id="loud issue, wrong result"
        ),
        pytest.param(
            Outcome.ENV_ERROR,
            MESSAGE,
            Outcome.MATCH,
            {"trouble": Trouble(TroubleCode.NO_COMPILER, "no compiler")},
            "",
            id="trouble outweighs a matching text",
        ),
        pytest.param(Outcome.TIMEOUT, LOGGED, Outcome.TIMEOUT, {}, SIGNATURE_TEXT, id="a timeout is no message"),
        pytest.param(Outcome.CRASH, MESSAGE, Outcome.CRASH, {}, "", id="a crash without the text"),
        pytest.param(
            Outcome.ENV_ERROR, LOGGED, Outcome.CRASH, {"signal": "SIGKILL"}, SIGNATURE_TEXT, id="killed from outside"
        ),
        pytest.param(Outcome.ENV_ERROR, MESSAGE, Outcome.MATCH, {"ending": Ending.OVER_MEMORY}, "", id="over memory"),
        pytest.param(
            Outcome.ENV_ERROR, MESSAGE, Outcome.MATCH, {"ending": Ending.OVER_PROCESSES}, "", id="over processes"
        ),
        pytest.param(
            Outcome.ENV_ERROR,
            MESSAGE,
            Outcome.MATCH,
            {"raised": Raised("torch.OutOfMemoryError", SIGNATURE_TEXT, "")},
            "",
            id="CUDA out of memory",
        ),
        pytest.param(
            Outcome.ENV_ERROR,
            MESSAGE,
            Outcome.MATCH,
            {"raised": Raised("torch.cuda.OutOfMemoryError", SIGNATURE_TEXT, "")},
            "",
            id="CUDA out of memory, by its name up to torch 2.4",
        ),
        pytest.param(
            Outcome.ENV_ERROR,
            MESSAGE,
            Outcome.MATCH,
            {"trouble": Trouble(TroubleCode.GPU_BUSY, "5000 MB are in use")},
            "",
            id="the GPU was not sound afterwards",
        ),
        pytest.param(
            Outcome.PASS,
            MESSAGE,
            Outcome.PASS,
            {"trouble": Trouble(TroubleCode.GPU_BUSY, "5000 MB are in use")},
            "",
            id="the GPU was not sound afterwards, and what ran with proof, ran",
        ),
        pytest.param(
            Outcome.ENV_ERROR,
            MESSAGE,
            Outcome.MATCH,
            {"ending": Ending.NOT_STARTED, "imported": {}, "trouble": Trouble(TroubleCode.DRIVER_TOO_OLD, "too old")},
            "",
            id="the driver is too old",
        ),
        pytest.param(
            Outcome.NOT_APPLICABLE,
            MESSAGE,
            Outcome.MATCH,
            {"ending": Ending.NOT_STARTED, "imported": {}, "trouble": Trouble(TroubleCode.NO_CODE_FOR_CARD, "sm_80")},
            "",
            id="the wheel has no code for the card",
        ),
        pytest.param(
            Outcome.ENV_ERROR,
            MESSAGE,
            Outcome.MATCH,
            {"raised": Raised("OSError", f"[Errno 28] No space left on device: {SIGNATURE_TEXT}", "")},
            "",
            id="disk full",
        ),
        pytest.param(
            Outcome.ENV_ERROR,
            MESSAGE,
            Outcome.MATCH,
            {"raised": Raised("ModuleNotFoundError", "No module named 'einops'", "")},
            "",
            id="a package of the issue is missing",
        ),
        pytest.param(
            Outcome.OTHER_FAILURE,
            MESSAGE,
            Outcome.MATCH,
            {"raised": Raised("ModuleNotFoundError", "No module named 'torch.nn.attention.flex_attention'", "")},
            "",
            id="torch itself has no such module",
        ),
        pytest.param(Outcome.ENV_ERROR, MESSAGE, Outcome.MATCH, {"imported": {}}, "", id="torch could not be imported"),
        pytest.param(
            Outcome.ENV_ERROR,
            MESSAGE,
            Outcome.MATCH,
            {"ending": Ending.NOT_STARTED, "trouble": Trouble(TroubleCode.INDEX_UNREACHABLE, "no index")},
            "",
            id="the index could not be reached",
        ),
        pytest.param(
            Outcome.NOT_APPLICABLE,
            MESSAGE,
            Outcome.MATCH,
            {"ending": Ending.NOT_STARTED, "trouble": Trouble(TroubleCode.NO_BUILD, "no wheel")},
            "",
            id="no such wheel",
        ),
        pytest.param(
            Outcome.HARNESS_ERROR,
            MESSAGE,
            Outcome.MATCH,
            {"trouble": Trouble(TroubleCode.HARNESS, "the worker died")},
            "",
            id="our own harness",
        ),
        pytest.param(Outcome.NOT_APPLICABLE, MESSAGE, Outcome.NOT_APPLICABLE, {}, "", id="the script says so"),
        pytest.param(Outcome.CANCELLED, LOGGED, Outcome.CANCELLED, {}, SIGNATURE_TEXT, id="cancelled"),
        pytest.param(Outcome.MATCH, NUMBERS, Outcome.MATCH, {"raised": WRONG}, "", id="wrong numbers"),
        pytest.param(Outcome.OTHER_FAILURE, NUMBERS, Outcome.MATCH, {"raised": OTHER}, "", id="silent issue made loud"),
        pytest.param(
            Outcome.MATCH,
            ABORT,
            Outcome.CRASH,
            {"signal": "SIGABRT"},
            "Check failed: deleted or donated buffer\n",
            id="abort with the text",
        ),
        pytest.param(Outcome.CRASH, ABORT, Outcome.CRASH, {"signal": "SIGABRT"}, "other text", id="abort, other text"),
        pytest.param(
            Outcome.CRASH, ABORT, Outcome.CRASH, {"signal": "SIGSEGV"}, "deleted or donated buffer", id="other signal"
        ),
        pytest.param(Outcome.MATCH, HANG, Outcome.TIMEOUT, {}, "File x.py in wait_for_pool", id="hang with the stack"),
        pytest.param(Outcome.TIMEOUT, HANG, Outcome.TIMEOUT, {}, "File x.py in compile", id="hang elsewhere"),
    ],
)
def test_each_ending_has_one_meaning(
    expected: Outcome, signature: Signature, base: Outcome, changes: dict[str, Any], log: str
) -> None:
    assert judged(signature, make_record(base, **changes), log) is expected


def test_a_match_shows_the_line_that_carries_the_signature() -> None:
    found = classify(make_record(Outcome.MATCH, raised=TYPED), make_issue(), BASELINE, make_build(), "")
    assert found.line == SIGNATURE_TEXT


def test_a_pass_says_what_proves_it() -> None:
    found = classify(make_record(), make_issue(), BASELINE, make_build(), "")
    assert english(found.reason) == "passed; path proven (dynamo_graph 1x, inductor_cpp 1x)"


SLOW = make_issue(signature=Signature(SignatureKind.MESSAGE, r"(a+)+$b", log=True))


@pytest.mark.parametrize("record", [make_record(Outcome.OTHER_FAILURE), make_record(Outcome.CRASH)], ids=repr)
def test_what_cannot_be_held_against_the_signature_in_time_is_neither_the_issue_nor_another_failure(
    record: RunRecord,
) -> None:
    found = classify(replace(record, ending=Ending.RAISED), SLOW, BASELINE, make_build(), "a" * 5_000, limit_s=0.05)
    assert (found.outcome, found.searched) == (Outcome.TIMEOUT, Searched(search_key(SLOW), is_late=True))
    assert "took too long" in english(found.reason)


@pytest.mark.parametrize(
    ("kept", "outcome"),
    [
        pytest.param(Searched(search_key(SLOW), "the line"), Outcome.MATCH, id="it was there"),
        pytest.param(Searched(search_key(SLOW)), Outcome.OTHER_FAILURE, id="it was not there"),
        pytest.param(Searched(search_key(SLOW), is_late=True), Outcome.TIMEOUT, id="nobody knows"),
        pytest.param(Searched("another", "the line"), Outcome.TIMEOUT, id="of another signature"),
    ],
)
def test_what_was_looked_for_once_is_not_looked_for_again(kept: Searched, outcome: Outcome) -> None:
    record = make_record(Outcome.OTHER_FAILURE)
    found = classify(record, SLOW, BASELINE, make_build(), "a" * 5_000, kept, limit_s=0.05)
    assert (found.outcome, found.line) == (outcome, kept.line if outcome is Outcome.MATCH else "")


FRAMES = """Traceback (most recent call last):
  File "/tmp/repro.py", line 7, in baseline
    return _observe("conflicting declaration of tmp_acc1")  # as it fails upstream
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
AGAIN = "\nThe above exception was the direct cause of the following exception:\n\n"
MEANWHILE = "\nDuring handling of the above exception, another exception occurred:\n\n"
SOURCE = """def baseline():
    return _observe("conflicting declaration of tmp_acc1")  # as it fails upstream
"""


@pytest.mark.parametrize(
    ("expected", "message", "traceback"),
    [
        pytest.param(Outcome.MATCH, SIGNATURE_TEXT, "", id="the message has it"),
        pytest.param(Outcome.OTHER_FAILURE, "no", f"{FRAMES}ValueError: no\n", id="a source line has it"),
        pytest.param(Outcome.OTHER_FAILURE, "no", f"  | {FRAMES}".replace("\n", "\n  | "), id="in a group's frames"),
        pytest.param(Outcome.OTHER_FAILURE, f"no\n\nfrom user code:\n{FRAMES}", "", id="the message quotes source"),
        pytest.param(Outcome.OTHER_FAILURE, f"at 2:11:\n{SOURCE}", "", id="a compiler quotes source without frames"),
        pytest.param(
            Outcome.MATCH, "no", f"{FRAMES}CppCompileError: {SIGNATURE_TEXT}\n{AGAIN}RuntimeError: no\n", id="its cause"
        ),
        pytest.param(
            Outcome.OTHER_FAILURE,
            "no",
            f"{FRAMES}CppCompileError: {SIGNATURE_TEXT}\n{MEANWHILE}{FRAMES}RuntimeError: no\n",
            id="it was being handled when another mistake was made",
        ),
        pytest.param(Outcome.MATCH, f"{FRAMES}\n{SIGNATURE_TEXT}", "", id="the message goes on behind what it quotes"),
        pytest.param(
            Outcome.MATCH,
            "",
            f'{FRAMES}  File "/torch/ir.py", line 9, in lower\n    assert {SIGNATURE_TEXT!r}\nAssertionError\n',
            id="an assert without a message, in a file of torch's",
        ),
    ],
)
def test_a_signature_is_found_in_what_was_raised_and_not_in_what_was_quoted(
    expected: Outcome, message: str, traceback: str
) -> None:
    record = make_record(Outcome.MATCH, raised=Raised("builtins.RuntimeError", message, traceback))
    issue = make_issue(signature=MESSAGE, script=SOURCE)
    assert classify(record, issue, BASELINE, make_build(), f"{FRAMES}{traceback}").outcome is expected


@pytest.mark.parametrize(
    ("expected", "log"),
    [
        pytest.param(Outcome.OTHER_FAILURE, FRAMES, id="a traceback quotes the script"),
        pytest.param(Outcome.MATCH, f"{FRAMES}{SIGNATURE_TEXT}", id="the compiler said it"),
    ],
)
def test_a_log_is_searched_without_lines_of_the_script(expected: Outcome, log: str) -> None:
    issue = make_issue(signature=LOGGED, script=SOURCE)
    assert classify(make_record(Outcome.OTHER_FAILURE), issue, BASELINE, make_build(), log).outcome is expected


@pytest.mark.parametrize(
    "other", [{"log": True}, {"pattern": "another"}, {"kind": SignatureKind.HANG}], ids=lambda one: next(iter(one))
)
def test_what_was_found_is_of_no_use_once_it_is_looked_for_elsewhere(other: dict[str, Any]) -> None:
    issue = make_issue(signature=MESSAGE)
    assert search_key(replace(issue, signature=replace(MESSAGE, **other))) != search_key(issue)
    assert search_key(replace(issue, script="another")) != search_key(issue)


RAN = SeenPath("frame", "Model.forward", "inductor", compiled=1, ran=2, objects=1)
HELPER = SeenPath("frame", "helper", "inductor", compiled=1, ran=1, objects=1)


@pytest.mark.parametrize(
    ("expected", "seen", "raises"),
    [
        pytest.param(
            "passed; path proven (dynamo_graph 2x, inductor_cpp 1x; by inductor)", [RAN, HELPER], False, id="ran"
        ),
        pytest.param("nothing shows that Model.forward ran compiled", [], False, id="nothing ran"),
        pytest.param("ran compiled (seen: helper)", [HELPER], False, id="another function ran"),
        pytest.param("ran compiled", [replace(RAN, ran=0)], False, id="compiled and never called"),
        pytest.param("passed", [replace(RAN, objects=0)], False, id="objects of its backward pass"),
        pytest.param(
            "nothing shows that it exercised inductor_cpp",
            [replace(RAN, backend="eager", objects=0)],
            False,
            id="objects that Inductor did not make",
        ),
        pytest.param(
            "nothing shows that it exercised inductor_cpp",
            [replace(RAN, objects=0), HELPER],
            False,
            id="objects of another",
        ),
        pytest.param("and something went on without", [replace(RAN, raised=1)], False, id="a call raised"),
        pytest.param("and something went on without", [replace(RAN, gave_up=1)], False, id="a compilation failed"),
        pytest.param("passed", [replace(RAN, refused=1)], False, id="a graph break"),
        pytest.param("compiling it failed", [replace(RAN, ran=0, gave_up=1)], False, id="never compiled"),
        pytest.param("passed", [replace(RAN, ran=0, raised=1)], True, id="raised as it should"),
        pytest.param("passed", [replace(RAN, ran=0, gave_up=1)], True, id="was refused as it should"),
        pytest.param("ran compiled", [HELPER], True, id="another function ran, where it should raise"),
        pytest.param(
            "ran compiled", [replace(RAN, name="Other.Model.forward")], False, id="of the same name elsewhere"
        ),
    ],
)
def test_what_returned_is_a_pass_only_if_the_suspect_ran(expected: str, seen: list[SeenPath], *, raises: bool) -> None:
    issue = make_issue(suspect=Suspect(("Model.forward", "call"), raises=raises))
    found = classify(make_record(harness=2, seen=tuple(seen)), issue, BASELINE, make_build(), "")
    reason = english(found.reason)
    assert expected.replace("Model.forward", "Model.forward or call") in reason or expected in reason
    assert found.outcome is (Outcome.PASS if expected.startswith("passed") else Outcome.HARNESS_ERROR)


ON_GPU = replace(RAN, on_cuda=1)
ANY, CUDA, CPU = Requires(Device.ANY), Requires(Device.CUDA), Requires(Device.CPU)
OFF_THE_GPU = "no CUDA tensor was seen to enter {}: what ran on the CPU says nothing of this GPU"


@pytest.mark.parametrize(
    ("requires", "hardware", "arm", "seen", "enters"),
    [
        pytest.param(ANY, GPU, BASELINE, [ON_GPU], "", id="entered"),
        pytest.param(ANY, GPU, BASELINE, [RAN, replace(ON_GPU, backend="", ran=0)], "", id="as it was compiled"),
        pytest.param(ANY, GPU, BASELINE, [RAN], "Model.forward", id="on the CPU, or an older harness"),
        pytest.param(ANY, GPU, BASELINE, [RAN, replace(HELPER, on_cuda=1)], "Model.forward", id="a helper alone"),
        pytest.param(ANY, GPU, "eager", [replace(HELPER, on_cuda=1)], "", id="a workaround by another function"),
        pytest.param(ANY, GPU, "eager", [RAN], "the eager", id="a workaround on the CPU"),
        pytest.param(ANY, HARDWARE, BASELINE, [RAN], "", id="asked of the CPU"),
        pytest.param(CUDA, GPU, BASELINE, [RAN], "", id="a row of GPUs, which names its device"),
        pytest.param(CPU, HARDWARE, BASELINE, [RAN], "", id="a row of the CPU"),
    ],
)
@pytest.mark.parametrize("ends", [Outcome.PASS, Outcome.MATCH, Outcome.OTHER_FAILURE, Outcome.TIMEOUT, Outcome.CRASH])
def test_what_names_no_device_counts_on_a_gpu_only_if_a_cuda_tensor_entered_it(
    requires: Requires, hardware: str, arm: str, seen: list[SeenPath], enters: str, ends: Outcome
) -> None:
    issue = make_issue(suspect=Suspect(("Model.forward",)), requires=requires, workarounds=("eager",))
    record = make_record(ends, harness=3, seen=tuple(seen))
    found = classify(record, issue, arm, make_build(), "", hardware=hardware)
    assert found.outcome is (Outcome.HARNESS_ERROR if enters else ends)
    assert not enters or english(found.reason) == OFF_THE_GPU.format(enters)


@pytest.mark.parametrize("ends", [Outcome.ENV_ERROR, Outcome.CANCELLED, Outcome.NOT_APPLICABLE])
def test_trouble_on_a_gpu_is_told_before_the_device(ends: Outcome) -> None:
    found = classify(make_record(ends), make_issue(requires=ANY), BASELINE, make_build(), "", hardware=GPU)
    assert found.outcome is ends


def test_without_a_suspect_any_compiled_code_that_ran_will_do() -> None:
    for seen, expected in (([HELPER], Outcome.PASS), ([replace(HELPER, ran=0, raised=1)], Outcome.HARNESS_ERROR)):
        record = make_record(harness=2, seen=tuple(seen))
        assert classify(record, make_issue(), BASELINE, make_build(), "").outcome is expected


def test_an_attempt_of_an_older_harness_is_judged_by_its_process() -> None:
    issue = make_issue(suspect=Suspect(("Model.forward",)))
    assert classify(make_record(), issue, BASELINE, make_build(), "").outcome is Outcome.PASS


def test_a_workaround_may_go_through_another_function() -> None:
    issue = make_issue(suspect=Suspect(("Model.forward",)))
    record = make_record(harness=2, seen=(replace(HELPER, backend="aot_eager"),))
    assert classify(record, issue, issue.workarounds[0].id, make_build(), "").outcome is Outcome.PASS


def test_before_python_3_11_frames_are_known_by_their_last_part() -> None:
    issue, build = make_issue(suspect=Suspect(("Model.forward",))), make_build()
    old = {**make_record().imported, "python": "3.10.14"}
    seen = (replace(RAN, name="forward"),)
    assert classify(make_record(harness=2, seen=seen), issue, BASELINE, build, "").outcome is Outcome.HARNESS_ERROR
    build = make_build(python="3.10")
    record = make_record(build=build, harness=2, seen=seen, imported=old)
    assert classify(record, issue, BASELINE, build, "").outcome is Outcome.PASS
