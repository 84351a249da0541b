"""Read back as the runner reads: actions/runner, ActionCommand.TryParseV2, and what actions/toolkit escapes."""

import re
from dataclasses import replace

import pytest
from hypothesis import given

from knowngood.domain.verdicts.verdict import WorkaroundVerdict
from knowngood.gate.decision import Decision, MeasuredWorkaround, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.common import active_reasons, headline, one_line
from knowngood.gate.renderers.github import SHOWN, SUMMARY_LIMIT_BYTES, answer_github, github_summary
from tests.gate.rulings import BLOCKED, SERVER, UNTESTED, make_reason, make_ruling, rulings, texts

_ORDER = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))


def unescaped(text: str, *, in_property: bool) -> str:
    for code, mark in _ORDER:
        if in_property or mark not in ":,":
            text = text.replace(code, mark)
    return text


def commands_in(log: str) -> list[tuple[str, dict[str, str], str]]:
    """(level, properties, message) of each line that the runner takes for a command."""
    found = []
    for line in re.split(r"\r\n|\r|\n", log):
        command = line.lstrip()
        if not command.startswith("::"):
            assert "##[" not in line, "the runner finds these anywhere in a line that is no command"
            continue
        told_, _, message = command[2:].partition("::")
        level, _, properties = told_.partition(" ")
        pairs = (one.split("=", 1) for one in properties.split(",") if "=" in one)
        read = {name: unescaped(value, in_property=True) for name, value in pairs}
        found.append((level, read, unescaped(message, in_property=False)))
    return found


def test_each_reason_is_an_annotation_after_the_answer() -> None:
    text = answer_github(BLOCKED, SERVER, where="ci/requirements, cpu.txt")

    assert text.splitlines()[0] == "Blocked: 1 of 5 watched issues blocks torch 2.5.1 (CUDA 12.4)"
    assert text.splitlines()[1].startswith(
        "::error title=xla-8464 blocks on torch 2.5.1 (CUDA 12.4),file=ci/requirements%2C cpu.txt::fails here, and"
    )
    (level, properties, message), second = commands_in(text)
    assert level == "error"
    assert properties == {"title": "xla-8464 blocks on torch 2.5.1 (CUDA 12.4)", "file": "ci/requirements, cpu.txt"}
    assert "fixed in torch 2.6.0" in message.splitlines()
    assert "\n  export XLA_ENABLE_PARAM_ALIASING=0\n" in message
    assert second[0] == "warning"


def test_annotations_stand_at_the_line_that_states_torch() -> None:
    at_line = replace(BLOCKED, line=7)

    assert {one[1].get("line") for one in commands_in(answer_github(at_line, where="requirements.txt"))} == {"7"}
    assert {one[1].get("line") for one in commands_in(answer_github(at_line))} == {None}
    (untested,) = commands_in(answer_github(replace(UNTESTED, line=3), where="requirements.txt"))
    assert untested[1]["line"] == "3"


def test_ten_are_shown_and_the_rest_is_counted_with_a_link() -> None:
    many = make_ruling(*(make_reason(f"toy-{number}") for number in range(14)))

    commands = commands_in(answer_github(many, SERVER))

    assert [level for level, _, _ in commands] == ["error"] * SHOWN + ["notice"]
    assert commands[-1][2] == "And 4 more: https://knowngood.example/team/builds/torch-2.5.1%2Bcu124"
    assert commands_in(answer_github(many))[-1][2] == "And 4 more: the JSON form tells them all"


@pytest.mark.parametrize(
    ("ruling", "advisory", "level"),
    [
        (make_ruling(make_reason(effect=Effect.PASS)), False, "notice"),
        (make_ruling(make_reason(effect=Effect.WARN)), False, "warning"),
        (make_ruling(make_reason(effect=Effect.INSUFFICIENT)), False, "error"),
        (make_ruling(make_reason(effect=Effect.INSUFFICIENT)), True, "warning"),
        (make_ruling(make_reason()), True, "warning"),
        (UNTESTED, False, "error"),
        (UNTESTED, True, "warning"),
        (make_ruling(), False, "error"),
    ],
    ids=["pass", "warn", "insufficient", "advised", "block advised", "untested", "untested advised", "nothing"],
)
def test_what_refuses_is_an_error_unless_the_gate_only_advises(ruling: Ruling, advisory: bool, level: str) -> None:
    assert [command[0] for command in commands_in(answer_github(ruling, advisory=advisory))] == [level]


def test_a_refusal_that_no_reason_carries_is_told_too() -> None:
    doubtful = replace(make_ruling(make_reason(effect=Effect.WARN)), decision=Decision.INSUFFICIENT, why="assumed")

    assert [(level, message.split("\n")[0]) for level, _, message in commands_in(answer_github(doubtful))][-1] == (
        "error",
        "assumed",
    )


@given(rulings, texts)
def test_no_text_ends_a_command_or_begins_one(ruling: Ruling, where: str) -> None:
    text = answer_github(ruling, SERVER, where=where)

    text.encode()
    reasons = active_reasons(ruling)
    commands = commands_in(text)
    assert len(commands) in {len(reasons), len(reasons) + 1}
    assert text.splitlines()[0] == headline(ruling).replace("##[", "## [")
    for reason, (level, properties, message) in zip(reasons, commands, strict=False):
        assert level in {"error", "warning"}
        assert message.split("\n")[0] == one_line(reason.why)
        assert properties.get("file", "") == one_line(where)
        assert properties["title"].startswith(one_line(reason.issue).strip())


def test_a_summary_fits_what_github_takes() -> None:
    huge = MeasuredWorkaround("c", "C", WorkaroundVerdict.EFFECTIVE, "", "```\n" + "x" * 200_000 + "\n```")
    many = make_ruling(*(make_reason(f"toy-{number}", workarounds=(huge,)) for number in range(14)))

    for ruling in (BLOCKED, many, make_ruling(make_reason(why="y" * 2_000_000)), make_ruling(why="z" * 2_000_000)):
        assert len(github_summary(ruling, SERVER).encode()) < SUMMARY_LIMIT_BYTES
    assert github_summary(BLOCKED, SERVER).startswith("**Blocked:**")
    assert "And 13 more" in github_summary(many, SERVER)
