"""`upgrade` over the shipped evidence. See tests/golden_files.py for how a difference is accepted."""

from datetime import UTC, datetime
from functools import cache

import pytest

from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import Assurance, Verdict
from knowngood.move.compare.comparison import compare
from knowngood.move.pair import Group
from knowngood.move.schemas import upgrade_body
from knowngood.move.upgrade.candidates import Tally
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.reasons import UpgradeDecision
from knowngood.move.upgrade.renderers import migration_note, upgrade_text
from knowngood.move.upgrade.request import UpgradeRequest, read_upgrade
from knowngood.store.engine import Engine, reading
from knowngood.store.jobs.durations import load_environment_s
from knowngood.store.knowledge.loader import load_knowledge
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.queries import load_durations
from tests.golden_files import assert_golden

THEN = datetime(2026, 11, 23, tzinfo=UTC)

# Everything on the CPU, and on a GPU where the present build is hardly measured; a team of one component, one on an old
# driver with three issues, one with torchao beside torch, and one on a GPU with Python 3.12.
QUESTIONS = {
    "cpu": UpgradeRequest(start="torch-2.5.1+cu124", hardware=("cpu-x86_64",)),
    "cuda": UpgradeRequest(start="torch-2.4.1+cu121", hardware=("cuda-sm_90",)),
    "component": UpgradeRequest(start="2.5.1", component=("Inductor C++",)),
    "old-driver": UpgradeRequest(start="2.5.1", issues=("xla-8464", "pytorch-151290", "fla-160"), driver="550"),
    "torchao": UpgradeRequest(start="2.8.0", hardware=("cpu-x86_64",), has=("torchao",)),
    "gpu": UpgradeRequest(start="2.10.0", python="3.12", hardware=("cuda-sm_90",)),
}


@cache
def ground_of(engine: Engine) -> tuple[Knowledge, Recorded]:
    with reading(engine) as s:
        return load_knowledge(s, THEN).knowledge, Recorded(load_durations(s), load_environment_s(s))


def advised(engine: Engine, name: str) -> UpgradeAdvice:
    knowledge, times = ground_of(engine)
    return advise(read_upgrade(QUESTIONS[name], knowledge, times), knowledge.known)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_reads_as_it_was_accepted(shipped: Engine, name: str) -> None:
    assert_golden(f"upgrade-{name}.txt", upgrade_text(advised(shipped, name)))


def test_the_answer_for_programs_reads_as_it_was_accepted(shipped: Engine) -> None:
    assert_golden("upgrade-old-driver.json", upgrade_body(advised(shipped, "old-driver")).model_dump(mode="json"))


def test_the_note_reads_as_it_was_accepted(shipped: Engine) -> None:
    advice = advised(shipped, "component")
    base, page = "https://knowngood.example", "/upgrade?from=2.5.1&component=Inductor+C%2B%2B"
    assert advice.best is not None
    assert_golden("upgrade-component.md", migration_note(advice, advice.best, base=base, page=page, now=THEN))


def test_without_a_recommendation_the_markdown_is_the_answer(shipped: Engine) -> None:
    assert_golden("upgrade-cuda.md", migration_note(advised(shipped, "cuda"), None, now=THEN))


def test_on_the_cpu_2_5_1_is_told_to_go_where_a_comparison_finds_most_gained(shipped: Engine) -> None:
    """Every number is the comparison's, and every loss a pass that became a failure, both measured."""
    advice = advised(shipped, "cpu")
    best = advice.best
    assert best is not None
    compared = compare(advice.watched, advice.start, best.build, "cpu-x86_64", ground_of(shipped)[0].known)
    assert [len(compared.of(group)) for group in (Group.FIXED, Group.NEWLY_BROKEN, Group.NEW)] == [
        best.counts[tally] for tally in (Tally.GAINED, Tally.LOST, Tally.NEW)
    ]
    for pair in compared.of(Group.NEWLY_BROKEN):
        assert (pair.before.verdict, pair.assurance) == (Verdict.NOT_AFFECTED, Assurance.MEASURED)
        assert pair.after.verdict in {Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE}
    assert best.counts[Tally.GAINED] == max(one.counts[Tally.GAINED] for one in advice.candidates)


def test_on_a_gpu_it_is_said_first_that_2_4_1_is_hardly_measured_there(shipped: Engine) -> None:
    advice = advised(shipped, "cuda")
    assert advice.decision is UpgradeDecision.CANNOT_SAY
    assert english(advice.why[0]).startswith("torch 2.4.1 (CUDA 12.1) is hardly measured: 0 of ")
    assert "--builds torch-2.4.1+cu121" in advice.find_out[0].commands[0]


def test_the_same_question_has_the_same_answer(shipped: Engine) -> None:
    before = advised(shipped, "cpu")
    ground_of.cache_clear()
    assert advised(shipped, "cpu") == before
