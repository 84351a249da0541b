"""Steps of cells become entries that a person reads: one per issue and cause, from before it to after it."""

from datetime import timedelta

from app.domain.changes import Cause, CellNews, changes_of
from app.domain.verdict import Verdict, WorkaroundVerdict
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
    fields: dict[str, object] = {"run": "run-1", "reason": f"now {after}", **more}
    return CellNews(NOON + timedelta(minutes=minutes), issue, build, HARDWARE, before, after, **fields)  # type: ignore[arg-type]


def test_the_steps_of_one_run_are_told_as_one_change_from_first_to_last() -> None:
    (change,) = changes_of(
        [
            step(None, Verdict.NOT_RUN),
            step(Verdict.NOT_RUN, Verdict.INCONCLUSIVE, minutes=1),
            step(Verdict.INCONCLUSIVE, Verdict.AFFECTED, minutes=2),
        ]
    )
    (turn,) = change.turns
    assert (turn.before, turn.after, turn.reason) == (Verdict.NOT_RUN, Verdict.AFFECTED, "now affected")
    assert (change.cause, change.run, change.at) == (Cause.RUN, "run-1", NOON + timedelta(minutes=2))


def test_what_ended_as_it_began_is_no_change() -> None:
    assert changes_of([step(Verdict.AFFECTED, Verdict.FLAKY), step(Verdict.FLAKY, Verdict.AFFECTED)]) == ()
    assert changes_of([step(None, Verdict.NOT_RUN)]) == ()


def test_an_import_of_many_cells_is_one_entry_per_issue() -> None:
    news = [
        step(None, Verdict.AFFECTED, run="", origin="lab", build=build, issue=issue)
        for issue in ("toy-1", "toy-2")
        for build in (NEW, OLD)
    ]
    found = changes_of(news)
    assert [(change.issue, change.cause, change.origin) for change in found] == [
        ("toy-2", Cause.IMPORT, "lab"),
        ("toy-1", Cause.IMPORT, "lab"),
    ]
    assert [turn.build for turn in found[0].turns] == [OLD, NEW]


def test_two_runs_and_two_imports_are_told_apart() -> None:
    news = [
        step(None, Verdict.AFFECTED),
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


def test_a_workaround_that_stops_working_is_news_without_another_verdict() -> None:
    works, useless, untried = (
        WorkaroundVerdict.EFFECTIVE,
        WorkaroundVerdict.INEFFECTIVE,
        WorkaroundVerdict.UNVERIFIED,
    )
    steps = [
        step(Verdict.AFFECTED, Verdict.AFFECTED, workarounds={"flags": (works, untried), "new": (None, untried)}),
        step(Verdict.AFFECTED, Verdict.AFFECTED, workarounds={"flags": (untried, useless)}),
    ]
    (change,) = changes_of(steps)
    assert change.turns[0].workarounds == {"flags": (works, useless)}
    back = step(Verdict.AFFECTED, Verdict.AFFECTED, workarounds={"flags": (useless, works)})
    assert changes_of([*steps, back]) == ()
