"""How many attempts each machine made: whatever happens to a store, as if somebody counted them anew."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command

from knowngood.domain.access import Actor
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.voids import Clock, VoidSpan
from knowngood.share import bundle as bundles_format
from knowngood.share.store import take_in_bundle
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.voids import unvoid_results, void_results
from knowngood.store.maintenance import prune
from knowngood.store.tables import attempts, machine_tallies
from tests.make import NOON, make_attempt, make_build, make_issue
from tests.store.given import given_catalogue, given_results, given_run
from tests.store.test_maintenance import superseding
from tests.store.test_migrations import alembic

FORGER, HONEST, OPERATOR = Actor("forger", "f" * 12), Actor("gpu-host-1", "b" * 12), Actor("ada")
ONE, OTHER = "1" * 32, "2" * 32
HOUR = timedelta(hours=1)


def tallied(engine: Engine) -> list[Any]:
    """What is kept, once it is seen to be what counting gives."""
    a = attempts.c
    key = (a.machine, a.hardware, a.origin)
    query = sa.select(*key, sa.func.count(), sa.func.max(a.finished_at)).where(a.machine != "").group_by(*key)
    with reading(engine) as s:
        kept = sorted(s.execute(sa.select(machine_tallies)).all())
        assert kept == sorted(s.execute(query).all())
    return kept


def numbers(engine: Engine) -> dict[str, int]:
    found: dict[str, int] = {}
    for machine, _, _, n, _ in tallied(engine):
        found[machine] = found.get(machine, 0) + n
    return found


def push(engine: Engine, folder: Path, made: Sequence[Attempt], by: Actor = OPERATOR) -> None:
    path = folder / "bundle.gz"
    with path.open("wb") as out:
        bundles_format.write_bundle(out, bundles_format.BundleHeader(NOON, by.name), made)
    take_in_bundle(engine, path, NOON + HOUR, by=by, vouched=bool(by.token))


def attempt(number: int, machine: str, outcome: Outcome = Outcome.PASS, *, after_s: int = 5) -> Attempt:
    made = make_attempt(outcome, id=f"made-{number}", ordinal=number, machine=machine)
    return replace(made, finished_at=NOON + timedelta(seconds=after_s))


def test_what_workers_here_measure_is_tallied(engine: Engine) -> None:
    given_run(engine, [make_issue()], [make_build()])
    assert tallied(engine) == []
    given_results(engine)
    assert len(tallied(engine)) == 1


def test_what_bundles_bring_is_tallied_once_however_often_they_come(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, [make_issue()], [make_build()])
    made = [attempt(1, ONE), attempt(2, ONE, after_s=9), attempt(3, OTHER), attempt(4, "")]
    push(engine, tmp_path, made)
    push(engine, tmp_path, [*made, attempt(5, ONE, after_s=7)])
    push(engine, tmp_path, [attempt(6, ONE)], HONEST)
    assert numbers(engine) == {ONE: 4, OTHER: 1}
    assert len(tallied(engine)) == 3


def test_what_gives_way_to_another_result_of_its_number_is_taken_off(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, [make_issue()], [make_build()])
    forged = [attempt(1, ONE, Outcome.MATCH, after_s=50), attempt(2, OTHER, Outcome.MATCH), attempt(3, OTHER)]
    push(engine, tmp_path, forged, FORGER)
    push(engine, tmp_path, [attempt(4, ONE)], FORGER)
    push(engine, tmp_path, [attempt(1, ONE), attempt(2, ONE)])
    assert numbers(engine) == {ONE: 3, OTHER: 1}
    push(engine, tmp_path, [attempt(3, ONE, Outcome.MATCH)])
    assert numbers(engine) == {ONE: 4}


def test_what_is_voided_was_made_all_the_same(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, [make_issue()], [make_build()])
    push(engine, tmp_path, [attempt(1, ONE), attempt(2, OTHER)], FORGER)
    span = VoidSpan("", FORGER.token, None, NOON + HOUR, Clock.RECEIVED)
    with unit_of_work(engine) as s:
        void = void_results(s, span, "its token was stolen", by=OPERATOR, now=NOON + 2 * HOUR).void
    assert numbers(engine) == {ONE: 1, OTHER: 1}
    with unit_of_work(engine) as s:
        unvoid_results(s, void.id, "it was not", by=OPERATOR, now=NOON + 3 * HOUR)
    assert numbers(engine) == {ONE: 1, OTHER: 1}


@pytest.mark.parametrize("machines", [1, 2])
def test_what_is_pruned_is_taken_off(engine: Engine, machines: int) -> None:
    superseding(engine, machines_seen=machines)
    before = sum(numbers(engine).values())
    with unit_of_work(engine) as s:
        gone = prune(s, NOON + timedelta(days=31), superseded_days=30, history_days=3650)["attempts"].rows
    assert gone
    assert sum(numbers(engine).values()) == before - gone


def test_a_store_from_before_there_were_tallies_is_counted_once(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, [make_issue()], [make_build()])
    push(engine, tmp_path, [attempt(1, ONE), attempt(2, ONE, after_s=9), attempt(3, OTHER), attempt(4, "")])
    with engine.begin() as connection:
        command.downgrade(alembic(connection), "c94b1d27fe30")
        command.upgrade(alembic(connection), "head")
    assert numbers(engine) == {ONE: 2, OTHER: 1}
