"""The answer of `try-bump` in each form, from runs and explanations that are given."""

import json

import pytest

from knowngood.ask.explain.explaining import read_failure
from knowngood.ask.explain.matcher import make_failure_library
from knowngood.cli.encoding import SCREEN
from knowngood.domain.issue import Signature, SignatureKind
from knowngood.domain.measuring.isolation import Isolation
from knowngood.domain.verdicts.outcome import Ending
from knowngood.gate.renderers.json import dumped
from knowngood.measure.projects.cli import _settings
from knowngood.measure.projects.report import Report, Target, as_body, lines_of, markdown_of
from knowngood.measure.projects.rules import Comparison, Outcome, SuiteRun
from knowngood.measure.scripts.rules import Run
from tests.make import make_issue

END = Run(Ending.EXITED, 1, "", "", "", 2.0)
SYMBOL = "ImportError: x.so: undefined symbol: _ZN3c105ErrorC1ENS_14SourceLocationE"
WORDS = {
    "t.py::known": "torch._dynamo.exc.Unsupported: odd thing happened",
    "t.py::build": SYMBOL,
    "t.py::new": "ValueError: no",
}
ISSUE = make_issue(signature=Signature(SignatureKind.MESSAGE, "Unsupported: odd thing happened"))


def lock(torch: str, **others: str) -> str:
    packages = {"torch": torch, **others}
    return "".join(f'[[packages]]\nname = "{name}"\nversion = "{version}"\n' for name, version in packages.items())


def report(count: int = 1) -> Report:
    """So many tests for each of WORDS, all of which newly fail."""
    words = {f"{id_}{at}": text for id_, text in WORDS.items() for at in range(count)}
    passes = SuiteRun(END, {"t.py::sound": Outcome.PASSED, **dict.fromkeys(words, Outcome.PASSED)})
    fails = SuiteRun(END, {"t.py::sound": Outcome.PASSED, **dict.fromkeys(words, Outcome.FAILED)}, words)
    library = make_failure_library([ISSUE], {})
    explained = {id_: read_failure(library, text) for id_, text in words.items()}
    new = lock("2.15.0", triton="3.9.0", torchvision="0.29.2")
    target = Target("2.15.0", new, comparison=Comparison((passes,) * 4, (fails,) * 4), explained=explained)
    refused = Target("2.16.0", refusal="old asks torch==2.7.1")
    return Report(lock("2.7.1", triton="3.3.1", torchvision="0.22.1"), (target, refused), "python -m pytest", "here")


def test_each_new_failure_is_said_with_what_is_known_of_it() -> None:
    lines = list(lines_of(report()))
    first = "Not yet: 3 of your 4 tests fail on torch 2.15.0 and not on 2.7.1; 2 of them known here."
    assert lines[0] == first
    text = "\n".join(lines)
    assert (
        f"t.py::known0    fails 4 of 4\n    torch._dynamo.exc.Unsupported: odd thing happened\n  {ISSUE.id}: " in text
    )
    assert "\n  The compiled extension was built for another torch" in text
    assert "t.py::new0    fails 4 of 4\n    ValueError: no\n  not known here\n" in text
    assert "moved with torch 2.7.1 -> 2.15.0: torchvision 0.22.1 -> 0.29.2, triton 3.3.1 -> 3.9.0\n" in text
    assert "Not yet: torch 2.16.0 cannot be installed with what the project has.\n  old asks torch==2.7.1\n" in text
    assert lines[-1].startswith("A failure that nobody knows:  knowngood try ")


def test_many_failures_fit_on_a_screen_and_say_how_many_are_left_out() -> None:
    lines = list(lines_of(report(30)))
    assert len(lines) <= SCREEN + 5, "the second target has lines of its own"
    assert any(line.endswith(" more: --json") for line in lines)


def test_the_note_has_the_table_and_json_has_all() -> None:
    note = "\n".join(markdown_of(report()))
    rows = (
        "| 2.7.1 | 4 | 0 | 0 |  | as it is |\n| 2.15.0 | 1 | 3 | 0 | 3 | not yet |\n| 2.16.0 |  |  |  |  | not yet |\n"
    )
    assert rows in note
    body = json.loads(dumped(as_body(report())))
    assert body["answer"] == "not yet"
    target, refused = body["targets"]
    assert [each["id"] for each in target["new_failures"]] == [f"{id_}0" for id_ in WORDS]
    assert target["new_failures"][0]["explanation"]["matches"][0]["issue"] == ISSUE.id
    assert (refused["refusal"], refused["packages"]) == ("old asks torch==2.7.1", {})


def test_tests_run_without_network_or_not_at_all_unless_they_are_let_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWNGOOD_MIN_ISOLATION", "none")
    assert _settings(network=False).min_isolation is Isolation.NETWORK
    assert _settings(network=True).max_isolation is Isolation.PROCESS
    monkeypatch.setenv("KNOWNGOOD_MIN_ISOLATION", "filtered")
    assert _settings(network=False).min_isolation is Isolation.FILTERED
