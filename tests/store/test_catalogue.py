from dataclasses import replace

import pytest
import sqlalchemy as sa

from knowngood.domain.errors import UnknownIssue
from knowngood.domain.issue import Signature, SignatureKind
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.store import queries
from knowngood.store.catalogue import is_taken_in, remember_taken_in, save_catalogue
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.tables import builds, issues
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import given_catalogue, given_results, given_run

ISSUE, BUILD = make_issue(), make_build()


def verdicts(engine: Engine) -> dict[tuple[str, str], Verdict]:
    with reading(engine) as s:
        return {(cell.issue, cell.build): cell.verdict for cell in queries.load_cells(s)}


def test_what_people_wrote_comes_back_as_it_was(engine: Engine) -> None:
    older, newer = make_build("2.9.0+cu128"), make_build("2.10.0+cu128")
    given_catalogue(engine, [make_issue("b-2"), ISSUE], [newer, older])
    with reading(engine) as s:
        assert queries.load_issues(s) == (make_issue("b-2"), ISSUE)
        assert queries.load_issue(s, ISSUE.id) == ISSUE
        assert queries.load_builds(s) == (older, newer)


def test_saving_the_same_catalogue_again_changes_nothing(engine: Engine) -> None:
    given_catalogue(engine, [ISSUE], [BUILD])
    with reading(engine) as s:
        before = queries.load_generation(s)
    given_catalogue(engine, [ISSUE], [BUILD])
    with reading(engine) as s:
        assert queries.load_generation(s) == before


def test_an_issue_that_left_is_unknown_and_its_cells_are_gone(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    assert verdicts(engine) == {(ISSUE.id, BUILD.id): Verdict.AFFECTED}
    given_catalogue(engine, [], [BUILD])
    assert verdicts(engine) == {}
    with reading(engine) as s, pytest.raises(UnknownIssue, match='no issue "toy-1" in the catalogue'):
        queries.load_issue(s, ISSUE.id)


def test_an_issue_that_comes_back_has_its_evidence_still(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    given_catalogue(engine, [], [])
    given_catalogue(engine, [ISSUE], [BUILD])
    assert verdicts(engine) == {(ISSUE.id, BUILD.id): Verdict.AFFECTED}


def test_a_mended_signature_changes_verdicts_without_a_run(engine: Engine) -> None:
    given_run(engine)
    given_results(engine, Outcome.OTHER_FAILURE)
    assert verdicts(engine) == {(ISSUE.id, BUILD.id): Verdict.DIFFERENT_FAILURE}
    mended = replace(ISSUE, signature=Signature(SignatureKind.MESSAGE, "something else"))
    with unit_of_work(engine) as s:
        (change,) = save_catalogue(s, [mended], [BUILD], NOON)
    assert change.verdicts == (Verdict.DIFFERENT_FAILURE, Verdict.AFFECTED)
    assert verdicts(engine) == {(ISSUE.id, BUILD.id): Verdict.AFFECTED}


def test_a_changed_arm_leaves_its_results_visible_but_uncounted(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    baseline = replace(ISSUE.arm("baseline"), code="baseline-2")
    changed = replace(ISSUE, arms=tuple(baseline if arm.id == "baseline" else arm for arm in ISSUE.arms))
    given_catalogue(engine, [changed], [BUILD])
    assert verdicts(engine) == {(ISSUE.id, BUILD.id): Verdict.NOT_RUN}
    with reading(engine) as s:
        (cell,) = queries.load_cells(s)
        rows = queries.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE)
    assert cell.superseded == 1
    assert {row.attempt.arm: row.counted for row in rows} == {"control": True, "baseline": False, "aot_eager": True}


def test_an_arm_that_left_its_issue_does_not_break_the_page_of_its_results(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    without = make_issue(workarounds=())
    given_catalogue(engine, [without], [BUILD])
    with reading(engine) as s:
        (row,) = [
            row for row in queries.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE) if row.attempt.arm == "aot_eager"
        ]
    assert not row.counted
    assert row.judgement.outcome is Outcome.NOT_APPLICABLE
    assert "no longer an arm" in english(row.judgement.reason)


def test_only_cells_of_what_changed_are_derived_anew(engine: Engine) -> None:
    issues, builds = [ISSUE, make_issue("toy-2")], [BUILD, make_build("2.7.0+cu126")]
    given_run(engine, issues, builds)
    given_results(engine, Outcome.OTHER_FAILURE)
    mended = replace(ISSUE, signature=Signature(SignatureKind.MESSAGE, "something else"))
    with unit_of_work(engine) as s:
        changes = save_catalogue(s, [mended, issues[1]], builds, NOON)
    assert {(change.issue, change.build) for change in changes} == {(ISSUE.id, build.id) for build in builds}


@pytest.mark.parametrize("table", [issues, builds], ids=["issues", "builds"])
def test_a_catalogue_that_was_changed_since_is_not_taken_for_the_one_that_was_read(
    own_engine: Engine, table: sa.Table
) -> None:
    given_catalogue(own_engine, [ISSUE], [BUILD])
    with unit_of_work(own_engine) as s:
        remember_taken_in(s, b"files")
        assert (is_taken_in(s, b"files"), is_taken_in(s, b"other files")) == (True, False)
        s.execute(sa.update(table).values(doc=table.c.doc + " "))
        assert not is_taken_in(s, b"files")
