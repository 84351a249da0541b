"""`import knowngood`: what a program is told of the environment that it runs in, and what asking costs."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from knowngood.domain.verdicts.verdict import EXCESSES, FAILING
from knowngood.environments.resolve import resolve_build
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.gate.decision import Decision
from knowngood.gate.in_code.finding import Finding, worst_of
from knowngood.gate.in_code.from_gate import findings_of
from knowngood.gate.policy import Effect
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.store.knowledge.model import Knowledge
from knowngood.store.knowledge.snapshot import read_shipped
from tests.gate.in_code.running import environment_with, python

ROOT = Path(__file__).parents[3]
FAULTY, HEALTHY = "torch-2.7.1+cu126", "torch-2.6.0+cu124"


# -- the same answers as the gate's ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return read_shipped().knowledge


@pytest.mark.system
def test_every_answer_agrees_with_the_gates_own_door(knowledge: Knowledge) -> None:
    """All cells: every tested build, class and issue, by the default policy and as a program asks."""
    now = knowledge.known.as_of + timedelta(days=1)
    ids = tuple(knowledge.known.issues)
    for build in sorted(knowledge.tested):
        for hardware in knowledge.known.hardware:
            ruling = rule(GateRequest(build=build, issues=ids, hardware=(hardware,)), knowledge, now)
            environment = resolve_build(build, knowledge.known.build_names, knowledge.tested, shipped_wheels())
            asked = [knowledge.known.issues[reason.issue] for reason in ruling.reasons]
            found = {one.issue: one for one in findings_of(asked, environment, (hardware,), knowledge)}
            for reason in ruling.reasons:
                one = found[reason.issue]
                expected = True if reason.verdict in FAILING else False if reason.effect is Effect.PASS else None
                assert (one.affected, one.verdict, one.assurance) == (expected, reason.verdict, reason.assurance)
                assert (one.reason, one.build, one.hardware) == (reason.why, build, hardware)
                assert (one.measured_at, one.runs) == (reason.measured_at, reason.runs)


@pytest.mark.parametrize("build", [FAULTY, HEALTHY])
def test_of_two_classes_the_worst_decides_as_in_the_gate(knowledge: Knowledge, build: str) -> None:
    environment = resolve_build(build, knowledge.known.build_names, knowledge.tested, shipped_wheels())
    decisions = {Decision.BLOCK: True, Decision.PASS: False}
    exceeding = {cell.issue for cell in knowledge.known.cells.values() if cell.verdict in EXCESSES}
    blocking = AttachedFile('bigger = "block"\nmore_work = "block"\nslower = "block"\n', "knowngood.toml")
    for issue in knowledge.known.issues.values():
        if issue.requires.package:
            continue
        policy = blocking if issue.id in exceeding else None  # a file is read in a process of its own
        asked = GateRequest(build=build, issues=(issue.id,), hardware=("cuda-sm_90", "cpu-x86_64"), policy=policy)
        ruling = rule(asked, knowledge, knowledge.known.as_of)
        found = worst_of(findings_of([issue], environment, ("cuda-sm_90", "cpu-x86_64"), knowledge))
        if ruling.decision is Decision.BLOCK and found.affected is not True:
            assert any(one.verdict == "different_failure" for one in ruling.reasons)
        elif all(one.verdict == "not_applicable" for one in ruling.reasons):
            assert found.affected is False
        else:
            assert found.affected is decisions.get(ruling.decision)


# -- in a process of its own -------------------------------------------------------------------------------------------

ASKED = """
import json, sys, knowngood
told = {}
def note(name, ask):
    try:
        value = ask()
    except Exception as error:
        value = [type(error).__name__, str(error)]
    told[name] = value
for issue in ("pytorch-151290", "PyTorch-151290", "#151290", "pytorch-15129", "xla-8464"):
    note(issue, lambda: knowngood.affected(issue))
note("bool", lambda: bool(knowngood.finding("pytorch-151290")))
note("text", lambda: str(knowngood.finding("pytorch-151290")))
note("on a GPU", lambda: knowngood.affected("pytorch-151290", hardware="cuda-sm_90"))
note("no class", lambda: knowngood.affected("pytorch-151290", hardware="a toaster"))
for workaround in (None, "aot_eager", "block_128", "eager_mask", "nonsense"):
    note(f"needs {workaround}", lambda: knowngood.workaround_needed("pytorch-151290", workaround))
def guarded(**how):
    with knowngood.guard("pytorch-151290", **how) as found:
        return found.affected
for how in ({}, {"workaround": "aot_eager"}, {"workaround": "eager_mask"}, {"unknown": "raise"}, {"action": "run"}):
    note(f"guard {how}", lambda: guarded(**how))
@knowngood.guard("pytorch-151290")
def decorated():
    return "ran"
note("decorated", decorated)
told["torch"] = "torch" in sys.modules
print(json.dumps(told))
"""


def told(folder: Path, *packages: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(python(environment_with(folder, *packages), ASKED))
    return found


@pytest.fixture(scope="module")
def on_faulty(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return told(tmp_path_factory.mktemp("faulty"), FAULTY)


@pytest.fixture(scope="module")
def on_healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return told(tmp_path_factory.mktemp("healthy"), HEALTHY)


def test_a_bug_is_there_or_not_by_the_torch_that_is_installed(
    on_faulty: dict[str, Any], on_healthy: dict[str, Any]
) -> None:
    for name in ("pytorch-151290", "PyTorch-151290", "#151290"):
        assert (on_faulty[name], on_healthy[name]) == (True, False)
    assert on_faulty["text"].startswith("pytorch-151290: passes as reported, fails here in a variant: ")
    assert not on_faulty["torch"]


def test_what_cannot_exist_here_does_not_fail_here(on_faulty: dict[str, Any]) -> None:
    assert (on_faulty["xla-8464"], on_faulty["on a GPU"]) == (False, False)


def test_an_unknown_issue_names_the_nearest(on_faulty: dict[str, Any]) -> None:
    kind, sentence = on_faulty["pytorch-15129"]
    assert kind == "UnknownIssue"
    assert sentence.startswith('no issue is called "pytorch-15129" here; nearest: pytorch-151290')


def test_a_class_that_is_none_is_refused(on_faulty: dict[str, Any]) -> None:
    kind, sentence = on_faulty["no class"]
    assert (kind, sentence.startswith('"a toaster" is no hardware class; write for example cpu-x86_64')) == (
        "BadRequest",
        True,
    )


def test_a_finding_is_neither_true_nor_false(on_faulty: dict[str, Any]) -> None:
    kind, sentence = on_faulty["bool"]
    assert kind == "TypeError"
    assert "ask `.affected`" in sentence


def test_a_workaround_is_needed_where_the_issue_fails_and_it_was_measured_to_help(
    on_faulty: dict[str, Any], on_healthy: dict[str, Any]
) -> None:
    assert (on_faulty["needs None"], on_healthy["needs None"]) == (True, False)
    assert (on_faulty["needs aot_eager"], on_healthy["needs aot_eager"]) == (True, False)
    assert on_faulty["needs eager_mask"] is None  # measured to help with some variants only
    assert on_healthy["needs eager_mask"] is False
    for told_ in (on_faulty, on_healthy):
        kind, sentence = told_["needs nonsense"]
        assert kind == "UnknownWorkaround"
        assert "known: eager_mask, aot_eager," in sentence


def test_guarded_code_runs_where_it_may(on_faulty: dict[str, Any], on_healthy: dict[str, Any]) -> None:
    kind, sentence = on_faulty["guard {}"]
    assert kind == "NotKnownGood"
    assert "fails here" in sentence
    assert "measured to help here: aot_eager," in sentence
    assert on_faulty["decorated"] == [kind, sentence]
    assert on_faulty["guard {'workaround': 'aot_eager'}"] is True
    assert "the workaround eager_mask is partial here" in on_faulty["guard {'workaround': 'eager_mask'}"][1]
    assert (on_healthy["guard {}"], on_healthy["decorated"]) == (False, "ran")
    assert on_healthy["guard {'action': 'run'}"] == ["BadRequest", 'action="run" is none of raise, warn, pass']


UNCLEAR = {
    "no torch": ((), "not tested: no torch"),
    "a torch that nobody tested": (("torch-99.1.0",), "not tested: torch 99.1.0"),
    "another variant of a tested release": (("torch-2.6.0+cpu",), "not tested: torch 2.6.0 (CPU)"),
}


@pytest.mark.parametrize(("packages", "reason"), UNCLEAR.values(), ids=UNCLEAR.keys())
def test_of_an_environment_that_nobody_tested_nothing_is_known(
    packages: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    found = told(tmp_path, *packages)
    assert (found["pytorch-151290"], found["needs aot_eager"], found["guard {}"]) == (None, None, None)
    assert found["text"].startswith(f"pytorch-151290: {reason}")
    kind, sentence = found["guard {'unknown': 'raise'}"]
    assert kind == "NotKnownGood"
    assert sentence.startswith("not known whether pytorch-151290")


def test_a_wheel_of_the_default_index_is_known_by_the_cuda_beside_it(tmp_path: Path) -> None:
    found = told(tmp_path, "torch-2.7.1", "nvidia_cuda_runtime_cu12-12.6.77")
    assert found["pytorch-151290"] is True
    assert "without its CUDA variant" not in found["text"]


def test_a_store_of_ones_own_is_asked_too(tmp_path: Path) -> None:
    """Settings of any kind lead to the gate itself; its answer is the same."""
    environment = environment_with(tmp_path, FAULTY)
    code = "import knowngood; print(knowngood.finding('pytorch-151290'))"
    quick = python(environment, code)
    assert python({**environment, "KNOWNGOOD_SHIPPED": "true"}, code) == quick


def test_a_warning_names_the_line_that_is_guarded(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text('import knowngood\nwith knowngood.guard("pytorch-151290", action="warn"):\n    pass\n')
    code = """
import runpy, sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    runpy.run_path(sys.argv[1])
print(*((one.category.__name__, one.filename, one.lineno) for one in caught), sep="\\n")
"""
    told_ = python(environment_with(tmp_path, FAULTY), code, str(script))
    assert told_ == f"('NotKnownGoodWarning', '{script}', 2)\n"


# -- the cost ----------------------------------------------------------------------------------------------------------

COST = """
import sys
before, calls = set(sys.modules), 0
def count(frame, event, given):
    global calls
    calls += event == "call"
sys.setprofile(count)
import knowngood
imported = calls
at_once = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
knowngood.affected("pytorch-151290")
first = calls
knowngood.affected("pytorch-151290")
second = calls
sys.setprofile(None)
foreign = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
foreign = {name for name in foreign if not name.startswith("_")}
print(imported, first - imported, second - first, ",".join(sorted(at_once)), ",".join(sorted(foreign)))
"""


@pytest.fixture(scope="module")
def cost(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """In calls of Python functions, which no other process on the machine changes."""
    environment = environment_with(tmp_path_factory.mktemp("cost"), FAULTY)
    python(environment, COST)  # bytecode is written
    return python(environment, COST).split()


def test_importing_imports_nothing_else(cost: list[str]) -> None:
    assert cost[3:] == ["knowngood", "knowngood,packaging,regex"]


@pytest.mark.parametrize(("at", "most"), [(0, 700), (1, 205_000), (2, 10)], ids=["import", "first", "then"])
def test_asking_costs_few_calls(cost: list[str], at: int, most: int) -> None:
    assert int(cost[at]) <= most


# -- the documents -----------------------------------------------------------------------------------------------------


def test_the_examples_of_the_document_run_as_they_stand(tmp_path: Path) -> None:
    code = "import doctest, sys; print(doctest.testfile(sys.argv[1], module_relative=False))"
    told_ = python(environment_with(tmp_path, FAULTY), code, str(ROOT / "docs" / "library.md"))
    assert "failed=0" in told_
    assert "attempted=0" not in told_


def test_a_finding_says_where_it_holds() -> None:
    found = Finding("a", "t", "message", "", "torch-1", "cpu-x86_64", affected=None, verdict="not_run", reason="why")
    assert str(found) == "a: why (torch-1, cpu-x86_64)"
