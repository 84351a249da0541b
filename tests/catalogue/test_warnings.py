"""What `check` warns of: ways to fool a verdict, each put into the sound example of repros/README.md."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from knowngood.catalogue.loader import CatalogueProblems, read_catalogue, shipped_catalogue
from knowngood.catalogue.scaffold import new_issue
from knowngood.catalogue.warnings.codes import WARNINGS, WarningCode
from knowngood.catalogue.warnings.rows import ANSWERS, RowWarning, read_answers, real_failures, row_warnings
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known
from tests.catalogue.given import Example
from tests.catalogue.given import shipped as shipped_rows
from tests.catalogue.test_scaffold import fill_in
from tests.commands.given import Call
from tools.answers import answers_text

Change = tuple[str, str]


def warned(folder: Path, *ids: str) -> Sequence[RowWarning]:
    return row_warnings([folder], ids or [place.name for place in folder.iterdir() if place.is_dir()])


def test_the_full_example_is_warned_of_nothing(example: Example, tmp_path: Path) -> None:
    assert warned(example.write(tmp_path)) == ()


def test_the_scaffold_is_warned_of_nothing_once_it_is_filled_in(tmp_path: Path) -> None:
    for file in new_issue(tmp_path, "ours-7", "Fails").iterdir():
        file.write_text(fill_in(file.read_text()))
    assert warned(tmp_path) == ()


OBSERVE = "def _observe(function, n):\n"
GIVE_UP = "def _give_up():\n    raise NotApplicable('no')\n\n\n"
RESULT = "    result = function(a, b)\n"
BASELINE = "    return _observe(torch.compile(_product, fullgraph=True), n)\n"
CALLED = "    result = torch.compile(_product, fullgraph=True)(a, b)\n"


@pytest.mark.parametrize(
    ("code", "changes", "words"),
    [
        pytest.param(
            WarningCode.BROAD_EXCEPT,
            (RESULT, "    try:\n        result = function(a, b)\n    except Exception:\n        result = a\n"),
            "`except Exception` around",
            id="an exception is swallowed",
        ),
        pytest.param(
            WarningCode.BROAD_EXCEPT,
            (RESULT, "    try:\n        result = function(a, b)\n    except:\n        return {'dtype': 'int8'}\n"),
            "`except` around",
            id="all are",
        ),
        pytest.param(
            WarningCode.BROAD_EXCEPT,
            (
                RESULT,
                "    with contextlib.suppress(RuntimeError):\n        function(a, b)\n    result = a\n",
            ),
            "`with contextlib.suppress(RuntimeError)`",
            id="with suppress",
        ),
        pytest.param(
            WarningCode.BROAD_EXCEPT,
            (
                RESULT,
                "    try:\n        result = function(a, b)\n    finally:\n        return {'dtype': str(a.dtype)}\n",
            ),
            "`return` in `finally`",
            id="finally returns",
        ),
        pytest.param(
            WarningCode.DISCARDED_RESULT,
            (RESULT, "    function(a, b)\n    result = torch.matmul(a, b)\n"),
            "and uses nothing that it returns",
            id="the suspect runs, and something else is compared",
        ),
        pytest.param(
            WarningCode.DISCARDED_RESULT,
            (RESULT, "    _ = function(a, b)\n    result = torch.matmul(a, b)\n"),
            "and uses nothing that it returns",
            id="the suspect's result has a name that nobody reads",
        ),
        pytest.param(
            WarningCode.SUPPRESS_ERRORS,
            (BASELINE, f"    torch._dynamo.config.suppress_errors = True\n{BASELINE}"),
            "torch._dynamo.config.suppress_errors",
            id="suppress_errors is assigned",
        ),
        pytest.param(
            WarningCode.SUPPRESS_ERRORS,
            (BASELINE, f"    with torch._dynamo.config.patch(suppress_errors=True):\n    {BASELINE}"),
            "suppress_errors",
            id="suppress_errors is patched",
        ),
        pytest.param(
            WarningCode.SUPPRESS_ERRORS,
            (BASELINE, f"    setattr(torch._dynamo.config, 'suppress_errors', True)\n{BASELINE}"),
            "suppress_errors",
            id="suppress_errors by its name",
        ),
        pytest.param(
            WarningCode.SUPPRESS_ERRORS,
            ("class WrongResult", 'ENV = {"baseline": {"TORCHDYNAMO_SUPPRESS_ERRORS": "1"}}\n\n\nclass WrongResult'),
            "TORCHDYNAMO_SUPPRESS_ERRORS",
            id="by the environment",
        ),
        pytest.param(
            WarningCode.LATE_NOT_APPLICABLE,
            (RESULT, f"{RESULT}    if result.dtype != a.dtype:\n        raise NotApplicable('not here')\n"),
            "after the call in line",
            id="after it failed",
        ),
        pytest.param(
            WarningCode.LATE_NOT_APPLICABLE,
            (
                RESULT,
                "    try:\n        result = function(a, b)\n    except Exception:\n        raise NotApplicable('no')\n",
            ),
            "in `except Exception`",
            id="in place of the failure",
        ),
        pytest.param(
            WarningCode.LATE_NOT_APPLICABLE,
            (RESULT, f"{CALLED}    if result.dtype != a.dtype:\n        raise NotApplicable('not here')\n"),
            "after the call in line",
            id="after a compiled function's call",
        ),
        pytest.param(
            WarningCode.LATE_NOT_APPLICABLE,
            (
                OBSERVE,
                f"{GIVE_UP}{OBSERVE}    try:\n        function(1, n)\n    except Exception:\n        _give_up()\n",
            ),
            "in `except Exception`",
            id="in place of the failure, by a helper",
        ),
        pytest.param(
            WarningCode.PATH_SWITCH,
            (
                "    return torch.matmul(a, b)\n",
                "    if torch.compiler.is_compiling():\n        return a\n    return torch.matmul(a, b)\n",
            ),
            "(torch.compiler.is_compiling)",
            id="the suspect asks whether it is compiled",
        ),
        pytest.param(
            WarningCode.PATH_SWITCH,
            (
                BASELINE,
                "    return _observe(torch.compile(lambda a, b: torch.compiler.disable(_product)(a, b)), n)\n",
            ),
            "(torch.compiler.disable)",
            id="what is compiled calls the suspect uncompiled",
        ),
        pytest.param(
            WarningCode.COMPILED_CONTROL,
            ("    return _observe(_product, n)\n", "    return _observe(torch.compile(_product), n)\n"),
            "the control calls torch.compile",
            id="the control is compiled too",
        ),
        pytest.param(
            WarningCode.NO_COMPARISON,
            (BASELINE, "    a = torch.ones(1, 1, n)\n    return {'first': float(torch.compile(_product)(a, a)[0])}\n"),
            "never gets to where WrongResult is raised",
            id="nothing is compared",
        ),
        pytest.param(
            WarningCode.NO_COMPARISON,
            ('    return {"dtype": str(result.dtype), "first": int(result.flatten()[0])}', '    return {"ok": True}'),
            "is written into the script",
            id="what is reported is a constant",
        ),
        pytest.param(
            WarningCode.NO_COMPARISON,
            (
                "    return _observe(_product, n)\n",
                '    _product(torch.ones(1, 1, n), 1)\n    return {"dtype": "int8"}\n',
            ),
            "what the control reports is written into the script",
            id="what the control reports is a constant",
        ),
        pytest.param(
            WarningCode.CONTROL_APART,
            (
                "    return _observe(_product, n)\n",
                '    a = _product(torch.ones(1, 1, n), 1)\n    return {"dtype": str(a.dtype)}\n',
            ),
            "raises WrongResult where the control never gets to",
            id="what is expected is never asked of the control",
        ),
        pytest.param(
            WarningCode.CONTROL_APART,
            ("    return _observe(_product, n)\n", '    return {"dtype": str(torch.ones(1).dtype)}\n'),
            "share no function",
            id="the control computes something else",
        ),
        pytest.param(
            WarningCode.CONTROL_APART,
            ("def control(n=2):", "def control(n=3):"),
            '"n" is 3 in the control and 2 in the baseline',
            id="the control computes with another size",
        ),
    ],
)
def test_a_script_that_may_fool_a_verdict_is_warned_of(
    example: Example, tmp_path: Path, code: WarningCode, changes: Change, words: str
) -> None:
    script = example.script.replace(*changes, 1)
    assert script != example.script
    found = warned(example.changed(script=(example.script, script)).write(tmp_path))
    assert [one for one in found if one.code is code and words in one.message], found
    assert {one.file.name for one in found} == {"repro.py"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("    try:\n        import numpy\n    except ImportError:\n        numpy = None\n", id="an import"),
        pytest.param(
            "    try:\n        function(a, b)\n    except Exception as refusal:\n"
            "        if 'int8' not in str(refusal):\n            raise\n",
            id="a refusal that is looked at",
        ),
        pytest.param(
            "    try:\n        function(a, b)\n    except Exception as refusal:\n"
            "        raise WrongResult('refused') from refusal\n",
            id="another exception in its place",
        ),
        pytest.param("    if not hasattr(torch, 'mm'):\n        raise NotApplicable('no mm')\n", id="asked before"),
        pytest.param("    torch._dynamo.config.suppress_errors = False\n", id="suppress_errors is off"),
    ],
)
def test_what_fools_nobody_is_not_warned_of(example: Example, tmp_path: Path, body: str) -> None:
    assert warned(example.changed(script=(RESULT, body + RESULT)).write(tmp_path)) == ()


LOUD = ('kind = "wrong_result"', 'kind = "message"')


@pytest.mark.parametrize(
    ("code", "document", "script", "words"),
    [
        pytest.param(
            WarningCode.EAGER_BASELINE,
            ('exercises = ["dynamo_graph", "inductor_cpp"]', 'exercises = ["eager"]'),
            None,
            "eager",
            id="eager proves nothing",
        ),
        pytest.param(
            WarningCode.WIDE_EXERCISES,
            ('exercises = ["dynamo_graph", "inductor_cpp"]', 'exercises = ["dynamo_graph"]'),
            None,
            "Inductor C++",
            id="aot_eager would do",
        ),
        pytest.param(
            WarningCode.SIGNATURE_IN_SCRIPT,
            LOUD,
            (RESULT, f"    print('expected dtype torch.int8, got torch.int64')\n{RESULT}"),
            "this line",
            id="a benign print",
        ),
        pytest.param(
            WarningCode.SIGNATURE_IN_SCRIPT,
            LOUD,
            (RESULT, "    result = function(a, b)  # expected dtype torch.int8, got torch.int64\n"),
            "this line",
            id="a comment that a traceback quotes",
        ),
    ],
)
def test_a_document_that_may_fool_a_verdict_is_warned_of(
    example: Example, tmp_path: Path, code: WarningCode, document: Change, script: Change | None, words: str
) -> None:
    (found,) = warned(example.changed(document=document, script=script).write(tmp_path))
    assert (found.code, words in found.message) == (code, True), found


@pytest.mark.parametrize("pattern", ["RuntimeError", "CppCompileError", "tuple index out of range", "not supported"])
def test_a_signature_that_fits_failures_of_other_rows_is_warned_of(
    example: Example, tmp_path: Path, pattern: str
) -> None:
    was = r"expected dtype torch\.int8, got torch\.int\d+"
    made = example.changed(document=(f"'''{was}'''", f"'''{pattern}'''"), script=(f'r"{was}"', f'r"{pattern}"'))
    (found,) = warned(made.write(tmp_path))
    assert found.code is WarningCode.WIDE_SIGNATURE


def test_signatures_are_held_against_two_hundred_real_failures() -> None:
    assert len(set(real_failures())) >= 200


SUMMARY = "breaks far from here.\n"


def given_evidence(folder: Path, id_: str) -> Path:
    (folder / ANSWERS).parent.mkdir()
    (folder / ANSWERS).write_text(f'{{"{id_}": {{"cpu-x86_64": {{"fails": ["2.6.0"], "passes": ["2.5.1"]}}}}}}')
    return folder


@pytest.mark.parametrize(("sentence", "warns"), [("Since torch 2.5.", True), ("Since torch 2.6.", False)])
def test_a_text_that_the_evidence_contradicts_is_warned_of(
    example: Example, tmp_path: Path, sentence: str, warns: bool
) -> None:
    made = example.changed(document=(SUMMARY, f"{SUMMARY}\n{sentence}\n"))
    found = warned(given_evidence(made.write(tmp_path), example.id), example.id)
    assert [one.code for one in found] == [WarningCode.VERSION_WORDS] * warns


def test_evidence_that_cannot_be_read_is_a_problem(example: Example, tmp_path: Path) -> None:
    (given_evidence(example.write(tmp_path), example.id) / ANSWERS).write_text("{]")
    with pytest.raises(CatalogueProblems, match="writes it anew"):
        warned(tmp_path, example.id)


EAGER = 'exercises = ["dynamo_graph", "inductor_cpp"]', 'exercises = ["eager"]'


def waiver(warning: str, reason: str = "It is an import.", about: str = "") -> str:
    return f'\n[[waiver]]\nwarning = "{warning}"\nreason = "{reason}"\nabout = "{about}"\n'


@pytest.mark.parametrize(
    ("written", "left"),
    [
        pytest.param(waiver("eager-baseline"), [], id="of this kind"),
        pytest.param(waiver("eager-baseline", about="exercises only"), [], id="about these words"),
        pytest.param(
            waiver("eager-baseline", about="other"), ["eager-baseline", "idle-waiver"], id="about other words"
        ),
        pytest.param(waiver("broad-except"), ["eager-baseline", "idle-waiver"], id="of another kind"),
    ],
)
def test_a_waiver_answers_what_it_is_about_and_nothing_else(
    example: Example, tmp_path: Path, written: str, left: Sequence[str]
) -> None:
    text = example.document.replace(*EAGER) + written
    found = warned(example.changed(document=(example.document, text)).write(tmp_path))
    assert [one.code for one in found if not one.reason] == left


@pytest.mark.parametrize(
    ("written", "words"),
    [(waiver("eager-baseline", reason=" "), '"reason": must not be empty'), (waiver("eager"), '"warning" is')],
)
def test_a_waiver_needs_a_reason_and_a_warning_that_there_is(
    example: Example, tmp_path: Path, written: str, words: str
) -> None:
    made = example.changed(document=(example.document, example.document + written)).write(tmp_path)
    with pytest.raises(CatalogueProblems, match=words):
        read_catalogue([made])


def test_every_warning_says_what_was_found_why_it_matters_and_what_to_do() -> None:
    assert set(WARNINGS) == set(WarningCode)
    assert all(all(texts) for texts in WARNINGS.values())


@pytest.mark.system
def test_the_shipped_rows_are_warned_of_nothing_that_they_do_not_answer() -> None:
    found = row_warnings([shipped_catalogue()], [issue.id for issue in shipped_rows().issues])
    assert [str(one) for one in found if not one.reason] == []


def test_what_texts_are_held_against_is_what_the_shipped_evidence_says(shipped: Engine) -> None:
    with reading(shipped) as s:
        text = answers_text(load_known(s, datetime(2026, 11, 23, tzinfo=UTC)))
    file = shipped_catalogue() / ANSWERS
    assert file.read_text(encoding="utf-8") == text, "write it anew with tools/answers.py"
    assert read_answers(shipped_catalogue())


@pytest.mark.parametrize(("strict", "status"), [((), 0), (("--strict",), 1)])
def test_check_tells_warnings_and_ends_in_one_only_where_asked_to(
    command: Call, example: Example, tmp_path: Path, strict: Sequence[str], status: int
) -> None:
    made = example.changed(document=EAGER).write(tmp_path)
    done = command("check", *strict, str(made))
    assert done.code == status
    assert f"warning: {made / example.id / 'issue.toml'}:15: {example.id}: the baseline exercises only" in done.out
    assert done.out.endswith("no problems (1 warnings, 0 waived with a reason)\n")


def test_check_tells_problems_and_warnings_at_once(command: Call, example: Example, tmp_path: Path) -> None:
    """Of a row that has both, and of one beside it."""
    made = example.changed(document=EAGER).write(tmp_path)
    shutil.copytree(made / example.id, made / "ours-2")
    row = made / "ours-2" / "issue.toml"
    row.write_text(row.read_text().replace('severity = "', 'severity = "very '))
    done = command("check", str(made))
    assert done.code == 1
    assert f"{row}:" in done.out
    told = {line.split(": ")[2] for line in done.out.splitlines() if line.startswith("warning: ")}
    assert told == {example.id, "ours-2"}
    assert done.out.endswith("1 problems (3 warnings, 0 waived with a reason)\n")
