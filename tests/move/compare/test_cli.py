"""`knowngood compare A B` as somebody types it: the forms of its answer, and how it ends."""

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from knowngood.move.compare.comparison import CompareRequest, read_comparison
from knowngood.move.compare.renderers import comparison_text
from knowngood.move.pair import Transition
from knowngood.store.knowledge.snapshot import read_shipped
from tests.commands.given import Call
from tests.fixtures.databases import NewStore
from tests.given_toys import TOYS
from tests.web.given import BAD, GOOD, GPU_CLASS, MASK, NEW, OLD, SILENT


@pytest.fixture
def call(call_notebook: Call) -> Call:
    return partial(call_notebook, "compare")


def test_the_first_line_is_the_answer_and_the_gravest_comes_next(call: Call) -> None:
    done = call(OLD.id, BAD.id)
    assert done.code == 0
    answer, groups = done.out.split("\n\n", 1)
    assert " ".join(answer.split()) == (
        "From torch 2.5.1 (CUDA 12.4) to torch 2.7.1 (CUDA 12.6) on CPU: 1 newly broken (1 has a workaround), "
        "1 fixed (1 by old evidence), 1 still fails."
    )
    assert groups.startswith(
        'Newly broken (1)\n  ✓ → ✕\'  create_block_mask fails: "conflicting declaration" (pytorch-151290)'
    )
    assert "needs a workaround there; measured to help: eager_mask" in done.out
    assert "; 1 run" in groups
    assert "∆ wrong numbers, no error" in done.out


def test_of_two_releases_as_much_is_told_as_fits_on_a_screen_and_all_where_it_is_asked_for() -> None:
    known, now = read_shipped().knowledge.known, datetime(2026, 11, 29, tzinfo=UTC)
    compared = read_comparison(CompareRequest(a="2.7.1", b="2.8.0"), known, now)
    short, full = comparison_text(compared).splitlines(), comparison_text(compared, in_full=True).splitlines()
    assert len(short) <= 25 < len(full)
    assert short[:2] == full[:2]
    assert "        torch._dynamo.config.allow_unspec_int_on_nn_module = True" in short
    fixed = short.index("Fixed (6)")
    assert [line[0] for line in short[fixed + 1 :] if line.startswith(("∆", "✕"))] == ["∆", "∆", "✕", "✕"]
    assert "2 more" in short
    assert "Still fails (44)" in " ".join(short)


def test_a_build_beside_itself_is_answered_in_one_line(call: Call) -> None:
    done = call(BAD.id, BAD.id)
    assert (done.code, done.out) == (0, "Both are torch 2.7.1 (CUDA 12.6): nothing can differ.\n")
    assert call(BAD.id, BAD.id, "--format", "markdown").out.startswith(
        f"**Both are {BAD.in_words}: nothing can differ.**"
    )


def test_json_is_what_the_api_answers(call: Call) -> None:
    done, short = call(BAD.id, GOOD.id, "--format", "json"), call(BAD.id, GOOD.id, "--json")
    assert (done.code, short.out) == (0, done.out)
    body = json.loads(done.out)
    assert (body["a"]["id"], body["b"]["id"], body["hardware"]) == (BAD.id, GOOD.id, "cpu-x86_64")
    assert {pair["issue"]: pair["transition"] for pair in body["pairs"]}[MASK.id] == Transition.FIXED


def test_markdown_is_ready_to_be_pasted(call: Call) -> None:
    done = call(BAD.id, GOOD.id, "--format", "markdown")
    assert done.out.startswith(
        "**From torch 2.7.1 (CUDA 12.6) to torch 2.8.0 (CUDA 12.8) on CPU: none newly broken, 1 fixed"
    )
    assert "| create\\_block\\_mask fails" in done.out


@pytest.mark.parametrize(("fail_on", "code"), [("regressed", 1), ("fixed,now_unknown", 1), ("now_unknown", 0)])
def test_it_ends_with_1_where_a_transition_that_is_asked_for_was_found(call: Call, fail_on: str, code: int) -> None:
    assert call(OLD.id, BAD.id, "--fail-on", fail_on).code == code


def test_an_environment_that_broke_down_is_a_finding_for_who_asks_and_no_fix(call: Call) -> None:
    done = call(BAD.id, GOOD.id, "--fail-on", "now_unknown", "--issues", SILENT.id)
    assert done.code == 1
    assert "1 not known there" in " ".join(done.out.split())
    assert "no C++ compiler; install g++" in done.out


def test_it_ends_with_3_where_nothing_was_compared_and_says_what_would_measure_it(call: Call) -> None:
    done = call(GOOD.id, NEW.id)
    assert done.code == 3
    assert f"knowngood run --builds {GOOD.id},{NEW.id}" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["torch-2.7.2+cu126", GOOD.id], 'a: no build is called "torch-2.7.2+cu126" here; nearest: torch-2.7.1+cu126'),
        ([OLD.id, "2.6"], 'b: no build is called "2.6" here; nearest: torch-2.5.1+cu124'),
        ([OLD.id, "newest"], 'b: "newest" names no build'),
        ([OLD.id, BAD.id, "--hardware", "cuda-sm_42"], 'hardware "cuda-sm_42" was never measured here'),
        ([OLD.id, BAD.id, "--issues", "pytorch-1"], 'no issue is called "pytorch-1" here'),
        ([OLD.id, BAD.id, "--fail-on", "broken"], '--fail-on "broken" is no transition; known: regressed'),
    ],
)
def test_what_it_cannot_understand_ends_with_2_and_a_sentence(call: Call, arguments: list[str], said: str) -> None:
    done = call(*arguments)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_another_hardware_class_is_asked_for_by_name(call: Call) -> None:
    done = call(OLD.id, BAD.id, "--hardware", GPU_CLASS, "--json")
    assert {pair["issue"]: pair["transition"] for pair in json.loads(done.out)["pairs"]}[
        "pytorch-151589"
    ] == "was_unknown"
    assert done.code == 3  # nothing was measured on the first of the two there


def test_help_says_how_it_ends(call: Call) -> None:
    told = " ".join(call("--help").out.split())
    for code in (
        "0 compared",
        "1 a transition of --fail-on",
        "2 the question",
        "3 no issue has an answer",
        "4 the store",
    ):
        assert code in told


def test_a_store_that_cannot_be_used_ends_with_4(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL", f"sqlite:///{tmp_path}/nothing/here.db")
    assert call(OLD.id, BAD.id).code == 4


def test_in_a_new_installation_the_catalogue_is_read_and_nothing_is_claimed(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, new_setting: NewStore
) -> None:
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path / "new"))
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL", new_setting())
    monkeypatch.setenv("KNOWNGOOD_CATALOGUE", str(TOYS))
    done = call("0.0.1", "0.0.2")
    assert done.code == 3
    assert ": none newly broken, none fixed, " in " ".join(done.out.split())
