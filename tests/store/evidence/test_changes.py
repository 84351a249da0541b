"""Steps of cells, read back from the events that told them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from knowngood.domain.access import Actor
from knowngood.domain.builds.packages import BuildCheck
from knowngood.domain.message import english
from knowngood.domain.verdicts.changes import Cause, CureNews, Earlier, changes_of
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import CellKey, Verdict, WorkaroundVerdict
from knowngood.domain.verdicts.voids import NoteKind
from knowngood.share.store import export_bundle, take_in_bundle
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.evidence.changes import load_checks, load_earlier, load_news, note_checks
from knowngood.store.evidence.notes import add_note
from knowngood.store.migrations import migrate
from knowngood.store.tables import events
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import given_results, given_run

ISSUE, OTHER = make_issue("toy-1"), make_issue("toy-2")
BUILD, SECOND = make_build("2.6.0+cu124"), make_build("2.7.0+cu126")


def test_a_run_tells_what_it_changed_why_and_which_workaround_turned(engine: Engine) -> None:
    run = given_run(engine, [ISSUE], [BUILD])
    given_results(engine, Outcome.MATCH)
    with reading(engine) as s:
        news = load_news(s, 100)
    assert {one.run for one in news} == {run}
    (change,) = changes_of(news, first=True)
    (turn,) = change.turns
    assert (change.issues, change.cause, change.run) == (("toy-1",), Cause.RUN, run)
    assert (turn.build, turn.hardware, turn.before, turn.after) == (
        BUILD.id,
        HARDWARE,
        Verdict.NOT_RUN,
        Verdict.AFFECTED,
    )
    assert english(turn.reason) == "1 of 1 attempt ended with the issue's own signature"
    (cure,) = turn.workarounds.values()
    assert (cure.before, cure.after, cure.news) == (
        WorkaroundVerdict.UNVERIFIED,
        WorkaroundVerdict.EFFECTIVE,
        CureNews.FIRST_MEASURED,
    )


def checked(engine: Engine, *answers: bool | None) -> list[list[tuple[str, bool | None]]]:
    """Ask an index once a day, and read what it made news of, newest first."""
    for day, able in enumerate(answers):
        with unit_of_work(engine) as s:
            check = BuildCheck(BUILD.id, able, "" if able else "yanked")
            note_checks(s, [check], NOON + timedelta(days=day))
    with reading(engine) as s:
        return [[(check.build, check.is_installable) for check in change.builds] for change in load_checks(s, 100)]


@pytest.mark.parametrize(
    ("answers", "news"),
    [
        ((True, True), []),
        ((False, False), [False]),
        ((False, None, False), [False]),
        ((None, False, True, False), [False, True, False]),
    ],
)
def test_only_a_build_that_went_or_came_back_is_news(engine: Engine, answers: list[bool], news: list[bool]) -> None:
    assert checked(engine, *answers) == [[(BUILD.id, able)] for able in news]
    with reading(engine) as s:
        assert [len(load_checks(s, 100, line)) for line in ("2.6", "2.7")] == [len(news), 0]


def test_the_same_result_again_is_no_news(engine: Engine) -> None:
    given_run(engine, [ISSUE], [BUILD])
    given_results(engine, Outcome.MATCH)
    with reading(engine) as s:
        before = load_news(s, 100)
    given_run(engine, [ISSUE], [BUILD], repeat=2)
    given_results(engine, Outcome.MATCH)
    with reading(engine) as s:
        assert load_news(s, 100) == before


def test_an_import_is_one_cause_and_says_where_it_came_from(engine: Engine, tmp_path: Path) -> None:
    other = connect(f"sqlite:///{tmp_path / 'other.db'}")
    migrate(other)
    given_run(other, [ISSUE, OTHER], [BUILD, SECOND])
    given_results(other, Outcome.MATCH)
    bundle = tmp_path / "results.jsonl.gz"
    with reading(other) as s, bundle.open("wb") as file:
        export_bundle(s, file, now=NOON, origin="lab 7")
    other.dispose()
    later = NOON + timedelta(hours=1)
    with unit_of_work(engine) as s:
        save_catalogue(s, [ISSUE, OTHER], [BUILD, SECOND], NOON)
    take_in_bundle(engine, bundle, later, by=Actor("ada"))
    with reading(engine) as s:
        (found,) = changes_of(load_news(s, 100), first=True)
    assert (found.issues, found.cause, found.origin, found.at) == (("toy-1", "toy-2"), Cause.IMPORT, "lab 7", later)
    assert [turn.build for turn in found.turns] == [BUILD.id, SECOND.id] * 2


def test_only_of_the_issues_asked_for(engine: Engine) -> None:
    given_run(engine, [ISSUE, OTHER], [BUILD])
    given_results(engine)
    with reading(engine) as s:
        assert {one.issue for one in load_news(s, 100, issues=["toy-2"])} == {"toy-2"}
        assert load_news(s, 100, issues=[]) == ()


def test_what_a_limit_cuts_in_two_is_left_out_unless_nothing_else_is_there(engine: Engine) -> None:
    first = given_run(engine, [ISSUE], [BUILD])
    given_results(engine)
    second = given_run(engine, [ISSUE, OTHER], [SECOND])
    given_results(engine)
    with reading(engine) as s:
        every = load_news(s, 100)
        of_second = [one for one in every if one.run == second]
        assert {one.run for one in every} == {first, second}
        assert load_news(s, len(every)) == every
        assert load_news(s, len(every) - 1) == tuple(of_second)
        assert load_news(s, len(of_second) - 1) == tuple(of_second[1:])


def test_events_of_an_older_release_are_still_read(engine: Engine) -> None:
    data = {"issue": "toy-1", "build": BUILD.id, "hardware": HARDWARE, "before": None, "after": "affected"}
    with unit_of_work(engine) as s:
        s.execute(events.insert().values(at=NOON, run="", kind="cell_changed", data=data))
    with reading(engine) as s:
        (change,) = changes_of(load_news(s, 10), first=True)
    assert (change.cause, change.turns[0].after, english(change.turns[0].reason)) == (
        Cause.DERIVED,
        Verdict.AFFECTED,
        "",
    )


def test_an_empty_store_has_no_news(engine: Engine) -> None:
    with reading(engine) as s:
        assert load_news(s, 10) == ()


def test_only_on_builds_of_the_line_asked_for(engine: Engine) -> None:
    given_run(engine, [ISSUE], [BUILD, SECOND, make_build("2.60.0+cu126")])
    given_results(engine)
    with reading(engine) as s:
        assert {one.build for one in load_news(s, 100, line="2.6")} == {BUILD.id}
        assert load_news(s, 100, line="2.5") == ()


def test_a_commit_says_whether_it_was_an_edit_or_a_note(engine: Engine) -> None:
    given_run(engine, [ISSUE], [BUILD])
    given_results(engine, Outcome.MATCH)
    key = CellKey(ISSUE.id, BUILD.id, HARDWARE)
    with unit_of_work(engine) as s:
        add_note(s, key, NoteKind.VOID, "too hot", by=Actor("ada"), now=NOON + timedelta(hours=1))
    with unit_of_work(engine) as s:
        add_note(s, key, NoteKind.RESTORE, "cooled", by=Actor("ada"), now=NOON + timedelta(hours=2))
    edited = make_issue("toy-1", signature=replace(ISSUE.signature, pattern="nothing like it"))
    with unit_of_work(engine) as s:
        save_catalogue(s, [edited], [BUILD], NOON + timedelta(hours=3))
    with reading(engine) as s:
        found = changes_of(load_news(s, 100))
    assert [(one.cause, one.turns[0].after) for one in found] == [
        (Cause.CATALOGUE, Verdict.DIFFERENT_FAILURE),
        (Cause.NOTE, Verdict.AFFECTED),
        (Cause.NOTE, Verdict.INCONCLUSIVE),
    ]


def test_what_a_cell_said_before_its_repro_was_edited_is_found_however_long_ago(engine: Engine) -> None:
    given_run(engine, [ISSUE], [BUILD])
    given_results(engine, Outcome.MATCH)
    arms = tuple(replace(arm, code=f"{arm.code}, other") for arm in ISSUE.arms)
    edited = replace(ISSUE, arms=arms)
    second = given_run(engine, [edited], [BUILD])
    given_results(engine, Outcome.PASS)
    with reading(engine) as s:
        newest = load_news(s, sum(one.run == second for one in load_news(s, 100)))
        earlier = load_earlier(s, newest)
        assert load_earlier(s, ()) == Earlier()
    assert {one.run for one in newest} == {second}
    (change,) = changes_of(newest, earlier)
    assert (change.turns[0].is_first, change.turns[0].earlier) == (False, Verdict.AFFECTED)
    assert change.turns[0].workarounds["aot_eager"].news is CureNews.NO_LONGER_NEEDED
