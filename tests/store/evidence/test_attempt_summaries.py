"""Attempts at a glance: what pages list of many, read without their logs."""

from dataclasses import replace

from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.attempt_codec import load_glances, load_timed
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import given_results, given_run

ISSUE, BUILD = make_issue("toy-1"), make_build("2.6.0+cu124")


def test_the_newest_attempts_of_an_issue_are_listed_with_what_they_count_as(engine: Engine) -> None:
    given_run(engine, [ISSUE], [BUILD])
    given_results(engine, Outcome.MATCH)
    with reading(engine) as s:
        glances = load_glances(s, ISSUE.id, 10)
        assert len(load_glances(s, ISSUE.id, 1)) == 1
        assert load_glances(s, "toy-2", 10) == ()
    assert {one.arm for one in glances} == {arm.id for arm in ISSUE.arms}
    assert {one.arm: one.outcome for one in glances}["baseline"] is Outcome.MATCH
    assert [one.finished_at for one in glances] == sorted((one.finished_at for one in glances), reverse=True)


def test_a_superseded_attempt_has_no_outcome_and_is_not_timed(engine: Engine) -> None:
    given_run(engine, [ISSUE], [BUILD])
    given_results(engine, Outcome.PASS)
    changed = replace(ISSUE, arms=tuple(replace(arm, code=f"{arm.code}!") for arm in ISSUE.arms))
    with reading(engine) as s:
        assert {one.arm for one in load_timed(s, ISSUE.id, BUILD.id, HARDWARE)} == {arm.id for arm in ISSUE.arms}
    with unit_of_work(engine) as s:
        save_catalogue(s, [changed], [BUILD], NOON)
    with reading(engine) as s:
        assert {one.outcome for one in load_glances(s, ISSUE.id, 10)} == {None}
        assert load_timed(s, ISSUE.id, BUILD.id, HARDWARE) == ()


def test_only_passes_are_timed(engine: Engine) -> None:
    given_run(engine, [ISSUE], [BUILD])
    given_results(engine, Outcome.MATCH)
    with reading(engine) as s:
        assert "baseline" not in {one.arm for one in load_timed(s, ISSUE.id, BUILD.id, HARDWARE)}
