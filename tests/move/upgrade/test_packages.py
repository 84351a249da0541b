"""What cannot come along: torch_xla is released for one minor release of torch each, and for none after 2.9."""

from datetime import UTC, datetime

import pytest

from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.move.schemas import upgrade_body
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.renderers import upgrade_text
from knowngood.move.upgrade.request import UpgradeRequest, read_upgrade, relevant_packages
from knowngood.move.upgrade.wording import answer
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.knowledge.snapshot import read_shipped

PAIRS = (
    "According to upstream, each release of torch-xla is built for one minor release of torch: "
    "2.9.1 with torch-xla 2.9.0, 2.9.0 with torch-xla 2.9.0, 2.8.0 with torch-xla 2.8.0, "
)
NONE = "There is no torch-xla for torch {} and newer (PyPI for Python {}, asked 2026-11-27)."


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return read_shipped().knowledge


def advised(knowledge: Knowledge, *has: str, **asked: object) -> UpgradeAdvice:
    fields = {"start": "2.5.1", "has": has, **asked}
    return advise(read_upgrade(UpgradeRequest(**fields), knowledge, Recorded()), knowledge.known)  # type: ignore[arg-type]


@pytest.mark.parametrize("hardware", [(), ("cpu-x86_64",), ("H100",)])
def test_with_torch_xla_2_9_1_is_the_newest_and_the_first_line_says_why(
    knowledge: Knowledge, hardware: tuple[str, ...]
) -> None:
    advice = advised(knowledge, "torch_xla", hardware=hardware)
    newest = max((one.build for one in advice.candidates), key=lambda build: build.build_id)
    assert newest.requirement == "2.9.1"
    assert PAIRS in english(answer(advice))
    assert english(answer(advice)).endswith(NONE.format("2.10", "3.11"))
    assert " ".join(upgrade_text(advice).split("\n\n")[0].split()) == english(answer(advice))
    out = {
        one.build
        for one in advice.left_out
        if "has no torch-xla that is built for it (PyPI, asked 2026-11-27)" in map(english, one.reasons)
    }
    assert {one.minor for one in advice.newer if one.id in out} == {f"2.{minor}" for minor in range(10, 16)}


@pytest.mark.parametrize(
    ("start", "python", "said"),
    [
        pytest.param(
            "2.5.1", "3.12", f"{PAIRS[:-2]}. {NONE.format('2.6, 2.7, 2.10', '3.12')}", id="no wheel for a Python"
        ),
        pytest.param("2.10.0", "", NONE.format("2.10", "3.11"), id="none at all"),
    ],
)
def test_where_there_is_none_that_is_said(knowledge: Knowledge, start: str, python: str, said: str) -> None:
    assert english(answer(advised(knowledge, "torch-xla", start=start, python=python))).endswith(said)


def test_a_recommendation_names_the_release_and_installs_it(knowledge: Knowledge) -> None:
    advice = advised(knowledge, "torch_xla", component=("PyTorch/XLA",))
    body = upgrade_body(advice)
    assert body.answer.startswith("Go to torch 2.9.1 (CUDA 12.8) with torch-xla 2.9.0. ")
    assert body.requirements == ["torch==2.9.1", "torch-xla==2.9.0"]
    assert {one.build: one.packages for one in body.candidates}["2.6.0+cu124"] == {"torch-xla": "2.6.0"}
    assert "    pip install torch==2.9.1 torch-xla==2.9.0\n" in upgrade_text(advice)


@pytest.mark.parametrize("has", [(), ("none",), ("torchao",)])
def test_without_it_nothing_is_left_out_and_nothing_said(knowledge: Knowledge, has: tuple[str, ...]) -> None:
    advice = advised(knowledge, *has)
    assert max(one.build.build_id for one in advice.candidates).release == "2.15.0"
    assert "is built for" not in english(answer(advice)) + "".join(
        english(why) for one in advice.left_out for why in one.reasons
    )
    assert not any(one.packages for one in upgrade_body(advice).candidates)


def test_that_its_rows_have_no_build_rules_nothing_out(knowledge: Knowledge) -> None:
    """Somebody may have made a wheel of it: where nothing is known of the packages the rows say what they say."""
    advice = advised(knowledge, issues=("xla-8464",))
    there = {one.build.id: one.items for one in advice.candidates}["2.10.0+cu128"]
    assert [item.after.verdict for item in there] == [Verdict.NO_BUILD]


def test_of_an_environment_it_is_kept_whether_a_row_concerns_it_or_not(knowledge: Knowledge) -> None:
    assert relevant_packages({"torch-xla": "2.5.1", "numpy": "2.2.6"}, knowledge) == ("torch-xla==2.5.1",)


@pytest.mark.parametrize(
    ("torch", "xla", "said"),
    [
        pytest.param("2.9.1", "2.9.0", "", id="of the same minor"),
        pytest.param("2.9.1", "2.8.1", "2.9.0 goes with 2.9.1+cu128", id="of another"),
        pytest.param("2.10.0", "2.9.0", "PyPI has none for torch 2.10", id="of none"),
    ],
)
def test_the_gate_says_it_in_a_note_that_decides_nothing(knowledge: Knowledge, torch: str, xla: str, said: str) -> None:
    def ruled(version: str) -> object:
        file = AttachedFile(f"torch=={torch}\ntorch_xla=={version}\n", "requirements.txt")
        asked = GateRequest(environment=file, python="3.11", issues=("pytorch-151290",), hardware=("cpu-x86_64",))
        return rule(asked, knowledge, datetime(2026, 11, 27, tzinfo=UTC))

    found, other = ruled(xla), ruled(torch)
    notes = [note for note in found.notes if "torch-xla" in note]  # type: ignore[attr-defined]
    assert [said in note and "a claim, not measured: pytorch/xla#6437" in note for note in notes] == [True] * bool(said)
    assert (found.decision, found.why, found.reasons) == (other.decision, other.why, other.reasons)  # type: ignore[attr-defined]
