"""Who says what stands under a number: forged results go in first, and the genuine ones still get in and win."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from knowngood.domain.access import Actor
from knowngood.domain.errors import BadBundle
from knowngood.domain.issue import digest
from knowngood.domain.measuring.job import Attempt, EnvironmentReady
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.domain.verdicts.voids import Clock, VoidSpan
from knowngood.serialization.lock_keys import InstalledEnvironment
from knowngood.share import bundle as bundles_format
from knowngood.share.store import take_in_bundle
from knowngood.store import queries
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.voids import void_results
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.records import ImportReport
from knowngood.store.tables import attempts, environments, locks
from tests.make import HARDWARE, NOON, make_attempt, make_build, make_issue, make_record
from tests.store.given import claim, finished, given_catalogue, given_run

ISSUE, OTHER, BUILD = make_issue(), make_issue("toy-2"), make_build()
FORGER, HONEST, OPERATOR = Actor("forger", "f" * 12), Actor("gpu-host-1", "b" * 12), Actor("ada")
SEED = 20261122
CASES = 24  # each of the twelve ways to forge, of each arm


def lock(text: str = "torch==2.6.0", name: str = "c" * 32) -> list[bundles_format.Item]:
    return [
        bundles_format.LockText(name, text),
        InstalledEnvironment(name, {"torch": text}, {"torch": "2.6.0+cu124"}),
    ]


def push(engine: Engine, path: Path, items: Sequence[bundles_format.Item], by: Actor) -> ImportReport:
    with path.open("wb") as out:
        bundles_format.write_bundle(out, bundles_format.BundleHeader(NOON, by.name), items)
    return take_in_bundle(engine, path, NOON, by=by, vouched=bool(by.token))


def void(engine: Engine, token: str) -> None:
    span = VoidSpan("", token, None, NOON + timedelta(hours=1), Clock.RECEIVED)
    with unit_of_work(engine) as s:
        void_results(s, span, "its token was stolen", by=OPERATOR, now=NOON + timedelta(hours=2))


def honest(number: int) -> Attempt:
    arm = ("control", "baseline")[number % 2]
    return make_attempt(arm=arm, id=f"known-{number}", ordinal=number // 2 + 1, lock_digest="c" * 32)


def forge(attempt: Attempt, way: int, chance: random.Random) -> list[bundles_format.Item]:
    """The same number, and something else under it."""
    ways: list[list[bundles_format.Item]] = [
        [*lock(), replace(attempt, record=make_record(Outcome.MATCH))],
        [*lock(), replace(attempt, record=replace(attempt.record, wall_s=chance.random()))],
        [*lock(), replace(attempt, issue=OTHER.id)],
        [*lock(), replace(attempt, hardware="cuda-sm_90")],
        [*lock(), replace(attempt, binding=f"{chance.getrandbits(128):032x}")],
        [*lock(), replace(attempt, machine=f"{chance.getrandbits(128):032x}")],
        [*lock(), replace(attempt, ordinal=attempt.ordinal + 1000)],
        [*lock(), replace(attempt, finished_at=NOON + timedelta(seconds=chance.randrange(6, 600)))],
        [*lock(), replace(attempt, log_digest=digest("lies")), bundles_format.LogText(digest("lies"), "lies")],
        [*lock("torch==6.6.6"), attempt],
        [InstalledEnvironment("c" * 32, {"torch": "6.6.6"}, {}), attempt],
        [attempt],
    ]
    return ways[way]


def said(engine: Engine) -> list[dict[str, Any]]:
    """Every attempt as it is shown, but for when it came."""
    with reading(engine) as s:
        found = [
            queries.load_attempt(s, id_)
            for id_ in s.execute(sa.select(attempts.c.id).order_by(attempts.c.id)).scalars()
        ]
    return [{**vars(one), "reception": one.token} for one in found]


@pytest.mark.parametrize(
    "by", [HONEST, OPERATOR], ids=["another token, once the forged ones are voided", "the operator"]
)
def test_of_many_forged_bundles_the_genuine_one_gets_in_and_wins(engine: Engine, tmp_path: Path, by: Actor) -> None:
    chance = random.Random(SEED)  # noqa: S311 - no secret
    given_catalogue(engine, [ISSUE, OTHER], [BUILD])
    genuine = [honest(number) for number in range(CASES)]
    for number, one in enumerate(genuine):
        push(engine, tmp_path / f"{number}.gz", forge(one, number // 2, chance), FORGER)
    report = push(engine, tmp_path / "genuine.gz", [*lock(), *genuine], by)
    if by is HONEST:
        assert (report.added, report.replaced, len(report.refused)) == (0, 0, CASES)
        void(engine, FORGER.token)
        report = push(engine, tmp_path / "genuine.gz", [*lock(), *genuine], by)
    assert (report.added, report.replaced, report.refused) == (CASES, CASES, ())
    shown = said(engine)
    assert [one["attempt"].record for one in shown] == [one.record for one in sorted(genuine, key=lambda one: one.id)]
    assert {one["lock"] for one in shown} == {"torch==2.6.0"}
    assert {str(one["packages"]) for one in shown} == {"{'torch': 'torch==2.6.0'}"}
    assert {(one["attempt"].origin, one["reception"]) for one in shown} == {(by.name if by.token else "ada", by.token)}
    with reading(engine) as s:
        cells = {(cell.issue, cell.hardware): cell.verdict for cell in queries.load_cells(s)}
        entries = [row for row in load_audit(s, limit=1000) if row.action == "results.import"]
    assert cells == {(ISSUE.id, HARDWARE): Verdict.NOT_AFFECTED}
    assert len(entries) == CASES + (2 if by is HONEST else 1)
    assert sum(row.data["refused"] for row in entries) == (CASES if by is HONEST else 0)


def test_a_forged_result_after_the_genuine_one_is_refused_and_told(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, [ISSUE, OTHER], [BUILD])
    push(engine, tmp_path / "genuine.gz", [*lock(), honest(1)], HONEST)
    before = said(engine)
    lie = replace(honest(1), record=make_record(Outcome.MATCH))
    report = push(engine, tmp_path / "forged.gz", [*lock(), lie, honest(2)], FORGER)
    assert (report.added, report.known) == (1, 0)
    assert [(one.id, one.origin) for one in report.refused] == [("known-1", "gpu-host-1")]
    assert [one for one in said(engine) if one["attempt"].id == "known-1"] == before
    with reading(engine) as s:
        (entry, _) = (row for row in load_audit(s) if row.action == "results.import")
    assert entry.data["clashes"] == [{"id": "known-1", "origin": "gpu-host-1", "token": HONEST.token}]


def test_the_same_evidence_under_another_name_of_its_lock_is_known(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, [ISSUE], [BUILD])
    push(engine, tmp_path / "one.gz", [*lock(), honest(1)], HONEST)
    again = [*lock(name="d" * 32), replace(honest(1), lock_digest="d" * 32)]
    report = push(engine, tmp_path / "two.gz", again, FORGER)
    assert (report.added, report.known, report.refused) == (0, 1, ())


def test_what_is_voided_stays_so_when_its_sender_sends_it_again(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, [ISSUE], [BUILD])
    push(engine, tmp_path / "one.gz", [honest(1)], FORGER)
    void(engine, FORGER.token)
    report = push(engine, tmp_path / "one.gz", [honest(1)], FORGER)
    assert (report.added, report.known, report.refused) == (0, 1, ())
    with reading(engine) as s:
        assert s.execute(sa.select(attempts.c.counts_as)).scalars().all() == [None]


def test_a_bundle_that_says_two_things_of_one_lock_is_refused(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, [ISSUE], [BUILD])
    with pytest.raises(BadBundle, match="what it said otherwise before"):
        push(
            engine, tmp_path / "two.gz", [*lock(), bundles_format.LockText("c" * 32, "torch==6.6.6"), honest(1)], HONEST
        )


def test_what_our_own_dispatcher_measured_takes_the_place_of_what_came_under_its_number(
    engine: Engine, tmp_path: Path
) -> None:
    given_run(engine, [ISSUE], [BUILD])
    spec = claim(engine)
    planned = next(arm for arm in spec.arms if arm.arm == "baseline")
    lie = make_attempt(Outcome.MATCH, id=planned.attempt)
    push(
        engine, tmp_path / "lie.gz", [lie], OPERATOR
    )  # over the command line: a token is not let in with a planned number
    with unit_of_work(engine) as s:
        record_event(s, finished(spec, planned), NOON)
    (shown,) = said(engine)
    assert (shown["attempt"].origin, shown["judgement"].outcome) == ("local", Outcome.PASS)
    with reading(engine) as s:
        entry = load_audit(s)[0]
    assert (entry.action, entry.subject, entry.data["origin"]) == ("results.replace", planned.attempt, "ada")


def test_what_came_before_our_own_dispatcher_measured_the_very_same_stays(engine: Engine, tmp_path: Path) -> None:
    given_run(engine, [ISSUE], [BUILD])
    spec = claim(engine)
    planned = next(arm for arm in spec.arms if arm.arm == "baseline")
    event = finished(spec, planned)
    same = make_attempt(id=planned.attempt, job=spec.job, machine=event.machine, record=event.record)
    push(engine, tmp_path / "same.gz", [same], OPERATOR)
    with unit_of_work(engine) as s:
        record_event(s, event, NOON)
    (shown,) = said(engine)
    assert shown["attempt"].origin != "local"
    with reading(engine) as s:
        assert "results.replace" not in [row.action for row in load_audit(s)]
        assert [cell.attempts for cell in queries.load_cells(s)] == [{"pass": 1}]


def test_no_worker_of_ours_can_say_what_another_lock_installed(engine: Engine) -> None:
    given_run(engine, [ISSUE], [BUILD])
    spec = claim(engine)
    ready = EnvironmentReady(spec.job, 1, "torch==6.6.6", digest("torch==2.6.0"), {"torch": "6.6.6"}, {}, 1.0)
    with unit_of_work(engine) as s:
        record_event(s, ready, NOON)
    with reading(engine) as s:
        assert (
            s.execute(sa.select(locks.c.digest)).all() == s.execute(sa.select(environments.c.lock_digest)).all() == []
        )
