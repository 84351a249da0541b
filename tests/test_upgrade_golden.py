"""What `upgrade` says over the shipped evidence. See tests/golden_files.py for how a difference is accepted."""

from datetime import UTC, datetime

import pytest

from app.domain.upgrade import Advice, advise
from app.formats.migration_note import migration_note
from app.formats.upgrade_question import AskedUpgrade, Times, read_upgrade
from app.formats.upgrade_text import upgrade_text
from app.store.known import load_edition
from app.store.reads import load_durations
from app.store.session import Engine, reading
from app.store.times import load_environment_s
from app.web.shapes.upgrade import upgrade_body
from tests.golden_files import assert_golden

THEN = datetime(2026, 11, 22, tzinfo=UTC)

# A team of one component, one that watches everything, one on an old driver with three issues, and one on a GPU.
QUESTIONS = {
    "dynamo": AskedUpgrade(start="2.5.1", component=("Dynamo",)),
    "everything": AskedUpgrade(start="torch-2.5.1+cu124"),
    "old-driver": AskedUpgrade(start="2.5.1", issues=("xla-8464", "pytorch-151290", "fla-160"), driver="550"),
    "gpu": AskedUpgrade(start="2.10.0", python="3.12", hardware=("cuda-sm_90",)),
}


def advised(engine: Engine, name: str) -> Advice:
    with reading(engine) as s:
        grounds = load_edition(s, THEN).grounds
        times = Times(load_durations(s), load_environment_s(s))
    return advise(read_upgrade(QUESTIONS[name], grounds, times), grounds.known)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_reads_as_it_was_accepted(shipped: Engine, name: str) -> None:
    assert_golden(f"upgrade-{name}.txt", upgrade_text(advised(shipped, name)))


def test_the_answer_for_programs_reads_as_it_was_accepted(shipped: Engine) -> None:
    assert_golden("upgrade-old-driver.json", upgrade_body(advised(shipped, "old-driver")).model_dump(mode="json"))


def test_the_note_reads_as_it_was_accepted(shipped: Engine) -> None:
    advice = advised(shipped, "dynamo")
    base, page = "https://knowngood.example", "/upgrade?from=2.5.1&component=Dynamo"
    note = migration_note(advice, advice.candidates[0], base=base, page=page, now=THEN)
    assert_golden("upgrade-dynamo.md", note)


def test_the_same_question_has_the_same_answer(shipped: Engine) -> None:
    assert advised(shipped, "everything") == advised(shipped, "everything")
