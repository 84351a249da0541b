"""Cells of a row that depends on the vector ISA: each ISA's own, and the whole class's over them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from knowngood.domain.issue import Issue, Requires
from knowngood.domain.measuring.job import ArmSpec, JobSpec
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.changes import load_cells_at
from knowngood.store.maintenance import reclassify
from knowngood.store.queries import load_cells, load_hardware
from tests.make import HARDWARE, NOON, make_issue
from tests.web import given
from tests.web.given import GOOD, Asked

PLAIN = make_issue()
ROW = replace(PLAIN, requires=Requires(vector_isas=("avx2", "avx512")))
AVX2, AVX512 = f"{HARDWARE}-avx2", f"{HARDWARE}-avx512"
LATER, LAST = NOON + timedelta(hours=1), NOON + timedelta(hours=2)


def fails_with_avx2(spec: JobSpec, arm: ArmSpec) -> Outcome:
    return Outcome.MATCH if spec.hardware == AVX2 and arm.arm == "baseline" else Outcome.PASS


def verdicts(engine: Engine) -> dict[str, str]:
    with reading(engine) as s:
        return {
            cell.hardware: f"{cell.verdict}: {english(cell.reason)}".partition(" attempt")[0] for cell in load_cells(s)
        }


def measure(engine: Engine, issue: Issue, *hardware: str) -> None:
    for at, class_ in zip((NOON, LATER, LAST), hardware, strict=False):
        given.run(engine, Asked([GOOD], at, hardware=class_, issues=[issue]), tell=fails_with_avx2)


@pytest.fixture
def measured(engine: Engine) -> Engine:
    """On the class as a whole before the row said that it depends on the ISA, and with each ISA after that."""
    given.save(engine, [PLAIN], [GOOD])
    measure(engine, PLAIN, HARDWARE)
    given.save(engine, [ROW], [GOOD])
    given.run(engine, Asked([GOOD], LATER, hardware=AVX2, issues=[ROW]), tell=fails_with_avx2)
    given.run(engine, Asked([GOOD], LAST, hardware=AVX512, issues=[ROW]), tell=fails_with_avx2)
    return engine


def test_the_whole_class_follows_its_isas_and_older_evidence_counts_on(measured: Engine) -> None:
    assert verdicts(measured) == {
        HARDWARE: "affected: on avx2: 1 of 1",
        AVX2: "affected: 1 of 1",
        AVX512: "not_affected: 1 of 1",
    }
    with reading(measured) as s:
        assert load_hardware(s) == (HARDWARE,)
    with unit_of_work(measured) as s:
        assert reclassify(s, LAST) == ()
    given.save(measured, [PLAIN], [GOOD])
    assert verdicts(measured)[HARDWARE] == "not_affected: 1 of 1"


def test_what_was_known_then_is_known_of_the_whole_class_too(measured: Engine) -> None:
    with reading(measured) as s:
        live = load_cells(s)
        assert load_cells_at(s, LAST + timedelta(hours=1)) == live
        assert english(load_cells_at(s, LAST, hardware=[HARDWARE])[0].reason).startswith("on avx2: ")
        (then,) = load_cells_at(s, NOON + timedelta(minutes=1))
    assert (then.hardware, then.verdict, then.measured_at) == (HARDWARE, "not_affected", NOON + timedelta(seconds=5))


def test_a_class_measured_by_its_isas_alone_has_a_cell_as_long_as_they_have(engine: Engine) -> None:
    given.save(engine, [ROW], [GOOD])
    given.run(engine, Asked([GOOD], NOON, hardware=AVX512, issues=[ROW]), tell=fails_with_avx2)
    assert verdicts(engine)[HARDWARE] == "inconclusive: not measured with avx2 yet"
    given.run(engine, Asked([GOOD], LATER, issues=[ROW]), tell=fails_with_avx2)
    assert verdicts(engine)[HARDWARE] == "affected: on avx2: 1 of 1"
    with unit_of_work(engine) as s:
        assert reclassify(s, LAST) == ()
    given.save(engine, [PLAIN], [GOOD])
    assert HARDWARE not in verdicts(engine)
