"""Knowledge is brought up to date by what changed."""

from dataclasses import replace
from datetime import timedelta

from knowngood.domain.issue import Requires
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.store import queries
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.knowledge.loader import KnowledgeSnapshot, load_knowledge
from knowngood.store.maintenance import reclassify
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import given_catalogue, given_results, given_run

PLACE = ("toy-1", make_build().id, HARDWARE)


def measured(engine: Engine, baseline: Outcome = Outcome.MATCH, repeat: int = 1) -> None:
    given_run(engine, repeat=repeat)
    given_results(engine, baseline)


def snapshot(engine: Engine, before: KnowledgeSnapshot | None = None) -> KnowledgeSnapshot:
    with reading(engine) as s:
        return load_knowledge(s, NOON, before)


def cells_of(engine: Engine) -> dict[tuple[str, str, str], Cell]:
    with reading(engine) as s:
        return {(cell.issue, cell.build, cell.hardware): cell for cell in queries.load_cells(s)}


def test_it_is_what_the_pages_read(own_engine: Engine) -> None:
    measured(own_engine)
    found = snapshot(own_engine)
    assert dict(found.knowledge.known.cells) == cells_of(own_engine)
    assert found.knowledge.known.cells[PLACE].verdict is Verdict.AFFECTED
    with reading(own_engine) as s:
        assert tuple(found.knowledge.known.issues.values()) == queries.load_issues(s)
        assert tuple(found.knowledge.known.builds.values()) == queries.load_builds(s)
    assert found.knowledge.known.hardware == (HARDWARE,)
    assert found.knowledge.tested == {make_build().id}


def test_one_query_tells_that_nothing_moved(own_engine: Engine, count_statements: CountStatements) -> None:
    measured(own_engine)
    before = snapshot(own_engine)
    with count_statements(own_engine) as said:
        assert snapshot(own_engine, before) is before
    assert len(said) == 1


def test_only_what_changed_is_read_and_the_old_edition_stays_as_it_was(own_engine: Engine) -> None:
    measured(own_engine)
    before = snapshot(own_engine)
    old = dict(before.knowledge.known.cells)
    issue = before.knowledge.known.issues["toy-1"]
    assert before.knowledge.known.history("toy-1", HARDWARE).spans
    measured(own_engine, Outcome.PASS, repeat=2)
    after = snapshot(own_engine, before)
    fresh = snapshot(own_engine).knowledge.known
    assert after.knowledge.known.history("toy-1", HARDWARE) == fresh.history("toy-1", HARDWARE)
    assert after.generation > before.generation
    assert dict(after.knowledge.known.cells) == cells_of(own_engine)
    assert dict(before.knowledge.known.cells) == old
    assert (before.cells[PLACE].verdict, after.cells[PLACE].verdict) == (Verdict.AFFECTED, after.cells[PLACE].verdict)
    assert after.knowledge.known.verdicts == {place: cell.verdict for place, cell in after.cells.items()}
    assert after.knowledge.known.issues["toy-1"] is issue


def test_a_cell_that_went_with_its_issue_is_gone(own_engine: Engine) -> None:
    measured(own_engine)
    before = snapshot(own_engine)
    given_catalogue(own_engine, [make_issue("toy-2")], [make_build()])
    after = snapshot(own_engine, before)
    assert (len(after.knowledge.known.cells), set(after.knowledge.known.issues)) == (0, {"toy-2"})


def test_an_issue_that_says_something_else_is_read_anew(own_engine: Engine) -> None:
    measured(own_engine)
    before = snapshot(own_engine)
    before.knowledge.known.history("toy-1", HARDWARE)
    revised = replace(make_issue(), title="Another title", requires=Requires(torch=">=9"))
    given_catalogue(own_engine, [revised], [make_build()])
    after, fresh = snapshot(own_engine, before).knowledge.known, snapshot(own_engine).knowledge.known
    assert after.issues["toy-1"].title == "Another title"
    assert after.history("toy-1", HARDWARE) == fresh.history("toy-1", HARDWARE)


def test_a_store_that_went_backwards_is_read_anew(own_engine: Engine) -> None:
    measured(own_engine)
    before = replace(snapshot(own_engine), generation=10**6)
    assert snapshot(own_engine, before).generation < 10**6


def test_deriving_anew_what_reads_the_same_changes_no_cell(own_engine: Engine) -> None:
    measured(own_engine)
    before = snapshot(own_engine)
    with unit_of_work(own_engine) as s:
        reclassify(s, NOON + timedelta(days=1))
    after = snapshot(own_engine, before)
    assert dict(after.knowledge.known.cells) == dict(before.knowledge.known.cells)
