"""The cells in memory are those of the store, after whatever was written, and no more is read than that."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from operator import is_

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundVerdict
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.job_queue import create_run
from knowngood.store.knowledge.cache import KnowledgeCache
from knowngood.store.maintenance import reclassify
from knowngood.store.queries import load_cells
from tests.fixtures.databases import CountStatements, StoreWith
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import given_catalogue, given_results, planned

ISSUES, BUILDS = [make_issue("toy-1"), make_issue("toy-2")], [make_build(), make_build("2.7.1+cu126")]


def measured(
    engine: Engine,
    baseline: Outcome = Outcome.MATCH,
    issues: Sequence[Issue] = ISSUES,
    builds: Sequence[Build] = BUILDS,
    repeat: int = 1,
) -> None:
    given_catalogue(engine, ISSUES, BUILDS)
    with unit_of_work(engine) as s:
        create_run(s, planned(issues, builds, repeat), {"by": "test"}, NOON)
    for _ in builds:  # a job each
        given_results(engine, baseline)


def cache_of(engine: Engine) -> KnowledgeCache:
    return KnowledgeCache(engine, lambda: NOON)


def found(engine: Engine, kept: KnowledgeCache, hardware: str = HARDWARE) -> dict[str, tuple[Cell, ...]]:
    with reading(engine) as s:
        known = kept.load(s, NOON).knowledge.known
    rows = {issue: tuple(cell for _, cell in known.measured(issue, hardware)) for issue, _, _ in known.cells}
    return {issue: cells for issue, cells in rows.items() if cells}


def stored(engine: Engine, hardware: str = HARDWARE) -> dict[str, tuple[Cell, ...]]:
    with reading(engine) as s:
        cells = load_cells(s, hardware=[hardware])
    return {id_: tuple(cell for cell in cells if cell.issue == id_) for id_ in {cell.issue for cell in cells}}


def test_they_are_what_is_stored(own_engine: Engine) -> None:
    measured(own_engine)
    kept = cache_of(own_engine)
    assert found(own_engine, kept) == stored(own_engine)
    assert len(stored(own_engine)["toy-1"]) == 2
    assert found(own_engine, kept, "cuda-sm_90") == {}


def test_they_are_not_read_again_while_nothing_is_written(
    own_engine: Engine, count_statements: CountStatements
) -> None:
    measured(own_engine)
    kept = cache_of(own_engine)
    with reading(own_engine) as s:
        before = kept.load(s, NOON)
    with count_statements(own_engine) as said, reading(own_engine) as s:
        assert kept.load(s, NOON) is before
    assert len(said) == 1


def test_what_is_written_is_seen_and_the_other_issues_stay_the_very_same(own_engine: Engine) -> None:
    measured(own_engine)
    kept = cache_of(own_engine)
    before = found(own_engine, kept)
    measured(own_engine, Outcome.OTHER_FAILURE, issues=ISSUES[:1], builds=BUILDS[1:], repeat=2)
    after = found(own_engine, kept)
    assert after == stored(own_engine)
    assert [cell.runs for cell in after["toy-1"]] == [1, 3]
    assert all(map(is_, after["toy-2"], before["toy-2"]))
    assert after["toy-1"][0] is before["toy-1"][0]
    assert after["toy-1"][1] is not before["toy-1"][1]
    assert [cell.runs for cell in before["toy-1"]] == [1, 1]


def test_a_cell_that_becomes_flaky_makes_its_whole_row_flaky_and_no_other(own_engine: Engine) -> None:
    measured(own_engine)
    kept = cache_of(own_engine)
    cures = [cell.workarounds["aot_eager"].verdict for cells in found(own_engine, kept).values() for cell in cells]
    assert set(cures) == {WorkaroundVerdict.EFFECTIVE}
    measured(own_engine, Outcome.PASS, issues=ISSUES[:1], builds=BUILDS[1:], repeat=2)
    after = found(own_engine, kept)
    assert [cell.verdict for cell in after["toy-1"]] == [Verdict.AFFECTED, Verdict.FLAKY]
    (cured, _), (other, _) = after["toy-1"], after["toy-2"]
    assert cured.workarounds["aot_eager"].verdict is WorkaroundVerdict.UNVERIFIED
    assert english(cured.workarounds["aot_eager"].note) == "one run; this issue is flaky: 2 more would say"
    assert other.workarounds["aot_eager"].verdict is WorkaroundVerdict.EFFECTIVE
    assert found(own_engine, cache_of(own_engine)) == after, "read anew it is the same"


def test_a_build_that_was_not_measured_before_takes_its_place(own_engine: Engine) -> None:
    measured(own_engine, builds=BUILDS[1:])
    kept = cache_of(own_engine)
    found(own_engine, kept)
    measured(own_engine)
    assert found(own_engine, kept) == stored(own_engine)
    assert [cell.build for cell in found(own_engine, kept)["toy-1"]] == [build.id for build in BUILDS]


def test_a_write_that_turns_no_cell_leaves_all_of_them_the_very_same(own_engine: Engine) -> None:
    measured(own_engine)
    kept = cache_of(own_engine)
    before = found(own_engine, kept)
    with unit_of_work(own_engine) as s:
        reclassify(s, NOON + timedelta(days=1))
    given_catalogue(own_engine, [replace(ISSUES[0], title="Another title"), ISSUES[1]], BUILDS)
    after = found(own_engine, kept)
    assert all(map(is_, after["toy-1"] + after["toy-2"], before["toy-1"] + before["toy-2"]))


def test_a_cell_that_went_with_its_issue_is_gone(own_engine: Engine) -> None:
    measured(own_engine)
    kept = cache_of(own_engine)
    assert set(found(own_engine, kept)) == {"toy-1", "toy-2"}
    given_catalogue(own_engine, ISSUES[1:], BUILDS)
    assert found(own_engine, kept) == stored(own_engine)
    assert set(found(own_engine, kept)) == {"toy-2"}


def test_a_store_in_the_place_of_a_newer_one_is_read_anew(own_engine: Engine, store_with: StoreWith) -> None:
    measured(own_engine)
    newer = store_with(measured)
    measured(newer, Outcome.PASS)
    kept = cache_of(own_engine)
    found(newer, kept)
    assert found(own_engine, kept) == stored(own_engine)
