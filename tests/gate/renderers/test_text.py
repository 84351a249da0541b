import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from knowngood.cli.encoding import SCREEN
from knowngood.domain.issue import CPU_PATH
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.domain.vocabulary import VERDICTS, StatusLabel
from knowngood.gate.decision import Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.common import all_lines, counts_in_words, fix_in_words, mark_of, snippet_parts
from knowngood.gate.renderers.text import answer_text
from knowngood.serialization.marks import in_text
from tests.gate.rulings import (
    BLOCKED,
    CLONE,
    NO_ALIASING,
    OUT_OF_PLACE,
    SERVER,
    UNTESTED,
    make_reason,
    make_ruling,
    rulings,
)

REPROS = Path(__file__).parents[3] / "repros"


def test_a_refusal_reads_from_the_answer_to_the_cure() -> None:
    assert answer_text(BLOCKED, SERVER) == (
        """\
Blocked: 1 of 5 watched issues blocks torch 2.5.1 (CUDA 12.4)

✕   PyTorch/XLA reuses an executable that donates a live buffer: the process aborts (xla-8464)
        export XLA_ENABLE_PARAM_ALIASING=0
    works here; fixed in torch 2.6.0; then record it: --applied xla-8464=no_aliasing
    blocks: fails here, and the policy blocks what fails · CPU · measured 3 days ago

∆   PyTorch/XLA reuses an executable that donates a live buffer: the process aborts (pytorch-1),
    warns
    fixed in torch 2.6.0
✕   PyTorch/XLA reuses an executable that donates a live buffer: the process aborts (pytorch-4):
    CPU passes: ignored

✓   passes (1): pytorch-2
torch 2.5.1 from PyPI, Triton 3.1.0, Python 3.11 · CPU · 1 blocks, 1 warns, 2 pass, 1 does not
apply
Assumed: every measured hardware, the worst counts.
"""
    )


def test_all_of_a_refusal_has_its_workarounds_thread_and_evidence() -> None:
    text = answer_text(make_ruling(make_reason(upstream="https://example.org/1")), SERVER, in_full=True)
    for words in (
        "workaround that works here, no_aliasing: Turn buffer donation off (About a second copy of",
        "also works: out_of_place; does not help: clone",
        "upstream: https://example.org/1",
        f"evidence: {SERVER}/cells/xla-8464/torch-2.5.1%2Bcu124?hardware=cpu-x86_64",
    ):
        assert words in text
    assert "evidence" not in answer_text(make_ruling(make_reason()), in_full=True), "an address without a host"


def test_one_issue_is_told_once_and_an_answer_fits_a_screen() -> None:
    reasons = [
        make_reason(f"toy-{n}", title="A toy " * 20, hardware=class_)
        for n in range(1, 30)
        for class_ in ("cpu-x86_64", "cuda-sm_90")
    ]
    lines = answer_text(make_ruling(*reasons)).splitlines()
    assert len(lines) <= SCREEN
    told = "\n".join(lines)
    assert (told.count("(toy-1)"), "CPU · measured 3 days ago · and on H100" in " ".join(told.split())) == (1, True)
    assert sum(told.count(f"(toy-{n})") for n in range(1, 30)) + 29 - told.count("(toy-") == 29
    assert f"{29 - told.count('(toy-')} more: --all" in told
    full = answer_text(make_ruling(*reasons), in_full=True)
    assert (full.count("(toy-"), "--all" in full) == (58, False), "each on its own hardware"


@pytest.mark.parametrize(("columns", "widest"), [("80", 80), ("200", 96)])
def test_lines_are_no_wider_than_the_terminal(columns: str, widest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert max(map(len, answer_text(make_ruling(make_reason(why="because " * 60)), SERVER).splitlines())) <= widest


def test_an_untested_environment_names_its_neighbours_and_what_is_watched() -> None:
    text = " ".join(answer_text(UNTESTED).split())

    assert text.startswith("Cannot say: not tested: torch 2.5.2")
    assert "nearest tested, not used: torch 2.5.1 (CUDA 12.4), torch 2.6.0 (CUDA 12.4)" in text
    assert "? watched, without an answer (2): pytorch-1, pytorch-2" in text


def test_what_was_not_measured_is_told_together() -> None:
    absent = {
        "measured_at": None,
        "age_days": None,
        "workarounds": (),
        "verdict": Verdict.NOT_RUN,
        "why": "not run yet",
    }
    unknown = [make_reason(f"toy-{number}", Effect.INSUFFICIENT, title="A toy", **absent) for number in (1, 2)]

    text = answer_text(make_ruling(make_reason(), *unknown))

    assert "\n?   not run (2), leaves it open: not run yet: toy-1, toy-2\n" in text


def test_a_workaround_in_place_is_not_offered_again() -> None:
    text = answer_text(make_ruling(make_reason(applied=("no_aliasing",))))

    assert "XLA_ENABLE_PARAM_ALIASING" not in text
    assert "t1 = t1 + t0" in text


def test_without_an_effective_workaround_none_is_offered_and_what_was_tried_is_told() -> None:
    text = answer_text(make_ruling(make_reason(workarounds=(CLONE,), first_fixed="", fixed_in="")), in_full=True)

    assert "workarounds: does not help: clone" in text
    assert "works here" not in text
    assert "fixed" not in text


@given(rulings)
def test_nothing_in_a_ruling_speaks_to_the_terminal_or_hides_the_answer(ruling: Ruling) -> None:
    text = answer_text(ruling, SERVER)

    assert text.split(":")[0] in {"Pass", "Blocked", "Cannot say"}
    assert text.encode().decode() == text
    assert text.endswith("\n")
    assert not any(ord(mark) < 32 or 127 <= ord(mark) < 160 for mark in text.replace("\n", "").replace("\t", ""))
    assert not any(mark in text for mark in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2028\u2029")


def test_lines_of_words_fit_a_terminal() -> None:
    long = make_reason(title="many words " * 40, why="because " * 60)

    assert max(map(len, answer_text(make_ruling(long)).splitlines())) <= 96


def test_signs_and_words_are_those_of_the_pages() -> None:
    assert {verdict: in_text(verdict).word for verdict in Verdict} == {
        verdict: VERDICTS[verdict].word for verdict in Verdict
    }
    assert mark_of(make_reason()) == ("✕'", "fails, has a workaround")
    assert mark_of(make_reason(sign=StatusLabel.FAILS)) == ("✕", "fails, no workaround found")
    assert mark_of(make_reason(sign=StatusLabel.UNTRIED)) == ("✕?", "fails, workaround not verified here")
    assert mark_of(make_reason(sign=StatusLabel.AS_REPORTED)) == ("✓✕", "passes as reported, fails in a variant")
    assert mark_of(make_reason(effect=Effect.PASS)) == ("✓", "passes")


def test_what_concerns_others_is_not_told_as_what_does_not_apply() -> None:
    cpu_path, torchao = english(CPU_PATH), "concerns only environments with torchao, and the environment does not"
    reasons = [
        make_reason(
            issue=f"pytorch-{number}",
            verdict=Verdict.NOT_APPLICABLE,
            effect=Effect.PASS,
            why=why,
            workarounds=(),
            concerns_others=number < 3,
        )
        for number, why in enumerate((cpu_path, cpu_path, torchao, "does not apply: needs torch >=2.6"))
    ]
    ruling = make_ruling(
        reasons=(*reasons, make_reason(issue="pytorch-9", effect=Effect.PASS)), counts={Effect.PASS: 5}
    )
    assert counts_in_words(ruling) == "1 passes, 3 concern other classes or packages, 1 does not apply"
    told = " ".join(answer_text(ruling, SERVER, in_full=True).split())
    assert "✓ passes (1): pytorch-9" in told
    assert f"· {cpu_path} (2): pytorch-0, pytorch-1" in told
    assert f"· {torchao} (1): pytorch-2" in told
    assert "· does not apply (1): pytorch-3" in told


@pytest.mark.parametrize(
    ("snippet", "code"),
    [
        ("```\na\n```", [("a",)]),
        ("words\n\n~~~python\n  a\n\nb\n~~~\nmore", [("  a", "", "b")]),
        ("````\n```\na\n```\n````", [("```", "a", "```")]),
        ("```\nnever closed", [("never closed",)]),
        ("``` a`b\nno fence", []),
        ("  ```\n  a\n    b\n  ```", [("a", "  b")]),
        ("```\r\na\r\n```\r\n", [("a",)]),
        ("```\na\n```\n```\nb\n```", [("a",), ("b",)]),
        ("only `words`", []),
        ("", []),
    ],
)
def test_code_is_what_stands_between_fences(snippet: str, code: list[tuple[str, ...]]) -> None:
    assert [tuple(lines) for is_code, lines in snippet_parts(snippet) if is_code] == code


def test_every_shipped_snippet_is_read_as_markdown_reads_it() -> None:
    issues = [tomllib.loads(path.read_text()) for path in REPROS.glob("*/issue.toml")]
    bodies = [workaround["body"] for issue in issues for workaround in issue.get("workaround", ())]

    for body in bodies:
        fences = [token for token in MarkdownIt("commonmark").parse(body) if token.type == "fence"]
        mine = [lines for is_code, lines in snippet_parts(body) if is_code]
        assert mine == [all_lines_of(token.content) for token in fences]
    assert len(bodies) > 300


def all_lines_of(content: str) -> list[str]:
    return [line.rstrip() for line in content.removesuffix("\n").split("\n")]


def test_the_best_workaround_is_the_first_that_was_measured_to_help() -> None:
    shown = answer_text(make_ruling(make_reason(workarounds=(CLONE, OUT_OF_PLACE, NO_ALIASING))))

    assert "--applied xla-8464=out_of_place" in shown
    assert all_lines(OUT_OF_PLACE.snippet)[1] in shown


def test_a_ruling_without_counts_or_reasons_still_answers() -> None:
    text = answer_text(replace(make_ruling(), counts={}, asked="", hardware=()))

    assert text.splitlines()[0].startswith("Cannot say")


@pytest.mark.parametrize(
    ("interval", "says"),
    [
        ("(2.5.1, 2.6.0]", "fixed in torch 2.6.0"),
        (
            "(2.4.1, 2.6.0] (2.5.0, 2.5.1 not run)",
            "torch 2.6.0 passes (2.5.0, 2.5.1 not run)",
        ),
    ],
)
def test_a_fix_is_called_the_first_only_where_no_release_before_it_is_left_open(interval: str, says: str) -> None:
    assert fix_in_words(make_reason(first_fixed="torch-2.6.0+cu124", fixed_in=interval)) == says
