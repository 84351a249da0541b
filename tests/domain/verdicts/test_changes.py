"""Steps of cells become entries that a person reads: one per issue and cause, from before it to after it."""

from datetime import timedelta

import pytest

from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.changes import Cause, CellNews, CureNews, Earlier, changes_of, only
from knowngood.domain.verdicts.verdict import Verdict, WorkaroundVerdict
from tests.make import HARDWARE, NOON

OLD, NEW = "torch-2.6.0+cu124", "torch-2.10.0+cu128"


def step(
    before: Verdict | None,
    after: Verdict | None,
    *,
    minutes: int = 0,
    build: str = OLD,
    issue: str = "toy-1",
    **more: object,
) -> CellNews:
    fields: dict[str, object] = {"run": "run-1", "reason": quoted(f"now {after}"), **more}
    return CellNews(NOON + timedelta(minutes=minutes), issue, build, HARDWARE, before, after, **fields)  # type: ignore[arg-type]


def test_the_steps_of_one_run_are_told_as_one_change_from_first_to_last() -> None:
    (change,) = changes_of(
        [
            step(Verdict.NOT_AFFECTED, Verdict.INCONCLUSIVE, minutes=1),
            step(Verdict.INCONCLUSIVE, Verdict.AFFECTED, minutes=2),
        ]
    )
    (turn,) = change.turns
    assert (turn.before, turn.after, english(turn.reason)) == (Verdict.NOT_AFFECTED, Verdict.AFFECTED, "now affected")
    assert (change.cause, change.run, change.at) == (Cause.RUN, "run-1", NOON + timedelta(minutes=2))


def test_a_first_measurement_is_no_change_unless_it_is_asked_for_and_said() -> None:
    first = [step(None, Verdict.NOT_RUN), step(Verdict.NOT_RUN, Verdict.AFFECTED, minutes=1)]
    assert changes_of(first) == ()
    (change,) = changes_of(first, first=True)
    assert [(turn.after, turn.is_first) for turn in change.turns] == [(Verdict.AFFECTED, True)]


def test_an_answer_after_an_edited_repro_is_a_change_from_what_it_last_said() -> None:
    """The edit leaves the cell without a verdict; what comes next is not the first that was ever heard of it."""
    news = [
        step(Verdict.AFFECTED, None, run="", otherwise=Cause.CATALOGUE),
        step(Verdict.NOT_RUN, Verdict.NOT_AFFECTED, run="run-2", minutes=1),
    ]
    measured, edited = changes_of(news)
    assert (edited.cause, edited.turns[0].after) == (Cause.CATALOGUE, Verdict.NOT_RUN)
    (turn,) = measured.turns
    assert (turn.before, turn.earlier, turn.is_first) == (Verdict.NOT_RUN, Verdict.AFFECTED, False)
    place = ("toy-1", HARDWARE, OLD)
    (alone,) = changes_of(news[1:], Earlier({place: Verdict.FLAKY}))
    assert alone.turns[0].earlier is Verdict.FLAKY
    assert changes_of(news[1:]) == ()


def test_what_ended_as_it_began_is_no_change() -> None:
    assert changes_of([step(Verdict.AFFECTED, Verdict.FLAKY), step(Verdict.FLAKY, Verdict.AFFECTED)]) == ()
    assert changes_of([step(None, Verdict.NOT_RUN)], first=True) == ()


def test_all_that_one_cause_turned_is_one_entry_by_issue_and_release() -> None:
    news = [
        step(Verdict.NOT_AFFECTED, Verdict.AFFECTED, run="", origin="lab", build=build, issue=issue)
        for issue in ("toy-2", "toy-1")
        for build in (NEW, OLD)
    ]
    (found,) = changes_of(news)
    assert (found.cause, found.origin, found.issues) == (Cause.IMPORT, "lab", ("toy-1", "toy-2"))
    assert [(turn.issue, turn.build) for turn in found.turns] == [
        ("toy-1", OLD),
        ("toy-1", NEW),
        ("toy-2", OLD),
        ("toy-2", NEW),
    ]


def test_two_runs_and_two_imports_are_told_apart() -> None:
    news = [
        step(Verdict.FLAKY, Verdict.AFFECTED),
        step(Verdict.AFFECTED, Verdict.FLAKY, run="run-2", minutes=1),
        step(Verdict.FLAKY, Verdict.AFFECTED, run="", origin="lab", minutes=2),
        step(Verdict.AFFECTED, Verdict.NOT_AFFECTED, run="", minutes=3),
    ]
    found = changes_of(news)
    assert [change.cause for change in found] == [Cause.DERIVED, Cause.IMPORT, Cause.RUN, Cause.RUN]
    assert len({change.key for change in found}) == 4


def test_a_cell_that_lost_its_evidence_is_not_run_any_more() -> None:
    (change,) = changes_of([step(Verdict.AFFECTED, None, run="")])
    assert (change.turns[0].before, change.turns[0].after) == (Verdict.AFFECTED, Verdict.NOT_RUN)


def test_only_what_was_asked_for_is_left_of_a_change_and_nothing_of_others() -> None:
    news = [step(Verdict.FLAKY, Verdict.AFFECTED, issue=issue) for issue in ("toy-1", "toy-2")]
    news.append(step(Verdict.FLAKY, Verdict.AFFECTED, issue="toy-3", run="run-2"))
    (kept,) = only(changes_of(news), issues={"toy-2"})
    assert kept.issues == ("toy-2",)
    assert only(changes_of(news), hardware=["cuda-sm_90"]) == ()
    assert only(changes_of(news)) == changes_of(news)


UNTRIED, WORKS, PARTLY, USELESS, NEEDLESS, HARMS = (
    WorkaroundVerdict.UNVERIFIED,
    WorkaroundVerdict.EFFECTIVE,
    WorkaroundVerdict.PARTIAL,
    WorkaroundVerdict.INEFFECTIVE,
    WorkaroundVerdict.UNNECESSARY,
    WorkaroundVerdict.HARMFUL,
)


@pytest.mark.parametrize(
    ("before", "after", "verdicts", "news"),
    [
        pytest.param(WORKS, NEEDLESS, (Verdict.AFFECTED, Verdict.NOT_AFFECTED), CureNews.NO_LONGER_NEEDED, id="fixed"),
        pytest.param(
            WORKS, UNTRIED, (Verdict.AFFECTED, Verdict.NOT_AFFECTED), CureNews.NO_LONGER_NEEDED, id="fixed, not tried"
        ),
        pytest.param(WORKS, UNTRIED, (Verdict.AFFECTED, Verdict.AFFECTED), CureNews.OTHER, id="only to be tried anew"),
        pytest.param(
            WORKS, UNTRIED, (Verdict.AFFECTED, Verdict.INCONCLUSIVE), CureNews.OTHER, id="nobody can say: still needed"
        ),
        pytest.param(WORKS, USELESS, (Verdict.AFFECTED, Verdict.AFFECTED), CureNews.STOPPED_WORKING, id="useless"),
        pytest.param(WORKS, HARMS, (Verdict.AFFECTED, Verdict.NOT_AFFECTED), CureNews.STOPPED_WORKING, id="harmful"),
        pytest.param(USELESS, WORKS, (Verdict.AFFECTED, Verdict.AFFECTED), CureNews.NOW_WORKS, id="works now"),
        pytest.param(UNTRIED, WORKS, (Verdict.NOT_AFFECTED, Verdict.AFFECTED), CureNews.FIRST_MEASURED, id="first"),
        pytest.param(USELESS, NEEDLESS, (Verdict.AFFECTED, Verdict.NOT_AFFECTED), CureNews.OTHER, id="never helped"),
        pytest.param(WORKS, PARTLY, (Verdict.AFFECTED, Verdict.AFFECTED), CureNews.NOW_HELPS_IN_PART, id="less"),
        pytest.param(USELESS, PARTLY, (Verdict.AFFECTED, Verdict.AFFECTED), CureNews.NOW_HELPS_IN_PART, id="more"),
        pytest.param(PARTLY, WORKS, (Verdict.AFFECTED, Verdict.AFFECTED), CureNews.NOW_WORKS, id="whole"),
        pytest.param(PARTLY, USELESS, (Verdict.AFFECTED, Verdict.AFFECTED), CureNews.STOPPED_WORKING, id="no more"),
        pytest.param(
            PARTLY, NEEDLESS, (Verdict.AFFECTED, Verdict.NOT_AFFECTED), CureNews.NO_LONGER_NEEDED, id="fixed, in part"
        ),
    ],
)
def test_what_another_verdict_of_a_workaround_means_to_its_users(
    before: WorkaroundVerdict, after: WorkaroundVerdict, verdicts: tuple[Verdict, Verdict], news: CureNews
) -> None:
    (change,) = changes_of([step(*verdicts, workarounds={"flags": (before, after)})], first=True)
    assert change.turns[0].workarounds["flags"].news is news


def test_a_workaround_that_stops_working_is_news_without_another_verdict() -> None:
    steps = [
        step(Verdict.AFFECTED, Verdict.AFFECTED, workarounds={"flags": (WORKS, UNTRIED), "new": (None, UNTRIED)}),
        step(Verdict.AFFECTED, Verdict.AFFECTED, workarounds={"flags": (UNTRIED, USELESS)}),
    ]
    (change,) = changes_of(steps)
    (turned,) = change.turns[0].workarounds.values()
    assert (turned.before, turned.after, turned.news) == (WORKS, USELESS, CureNews.STOPPED_WORKING)
    back = step(Verdict.AFFECTED, Verdict.AFFECTED, workarounds={"flags": (USELESS, WORKS)})
    assert changes_of([*steps, back]) == ()


def test_a_workaround_that_is_tried_anew_stopped_working_though_it_was_unverified_between() -> None:
    same = (Verdict.AFFECTED, Verdict.AFFECTED)
    news = [
        step(*same, workarounds={"flags": (WORKS, UNTRIED)}, run="", otherwise=Cause.CATALOGUE),
        step(*same, workarounds={"flags": (UNTRIED, USELESS)}, minutes=1),
    ]
    assert changes_of(news)[0].turns[0].workarounds["flags"].news is CureNews.STOPPED_WORKING


def test_a_workaround_that_is_tried_for_the_first_time_is_no_change() -> None:
    first = step(Verdict.AFFECTED, Verdict.AFFECTED, workarounds={"flags": (UNTRIED, WORKS)})
    assert changes_of([first]) == ()
    assert len(changes_of([first], first=True)) == 1
