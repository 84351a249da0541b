"""Of a store and of what comes with the release, each cell says what the newer evidence says."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from knowngood.domain.issue import Arm
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import (
    Cell,
    VariantFinding,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    is_flaky,
)
from knowngood.store.knowledge.model import Knowledge, Recorded, newest_of, recorded_together, together
from tests.gate.given_gate import GPU, TORCH_25, TORCH_26, make_known, row
from tests.make import NOON, make_build, make_issue

FAILS, PASSES, UNCLEAR = Verdict.AFFECTED, Verdict.NOT_AFFECTED, Verdict.INCONCLUSIVE


def cell(verdict: Verdict, days: int, cures: Mapping[str, str] | None = None, **changes: Any) -> Cell:
    """Of one variant; `days` old."""
    found = {id_: WorkaroundFinding(WorkaroundVerdict(one)) for id_, one in (cures or {}).items()}
    variants = changes.pop("variants", (VariantFinding("default", verdict, quoted("1 of 1 attempt"), 1, 1),))
    said = Cell("toy-1", TORCH_25.id, "cpu-x86_64", verdict, quoted("1 of 1 attempt"), NOON - timedelta(days=days))
    return replace(said, variants=variants, workarounds=found, **changes)


def knowledge(known: Known) -> Knowledge:
    flaky = frozenset(place for place, one in known.cells.items() if is_flaky(one))
    return Knowledge(replace(known, flaky=flaky), frozenset(build for _, build, _ in known.cells))


@pytest.mark.parametrize(
    ("own", "other", "verdict"),
    [
        pytest.param(cell(FAILS, 1), cell(PASSES, 2), FAILS, id="the store's is newer"),
        pytest.param(cell(FAILS, 2), cell(PASSES, 1), PASSES, id="the shipped one is newer"),
        pytest.param(cell(FAILS, 1), cell(PASSES, 1), FAILS, id="as old: the store's"),
        pytest.param(cell(UNCLEAR, 1), cell(PASSES, 9), PASSES, id="what says nothing counts for less"),
        pytest.param(cell(FAILS, 9), cell(UNCLEAR, 1), FAILS, id="on either side"),
        pytest.param(cell(FAILS, 9, voided=1), cell(PASSES, 1), FAILS, id="what was voided here stays so"),
        pytest.param(cell(Verdict.NOT_APPLICABLE, 9), cell(FAILS, 1), Verdict.NOT_APPLICABLE, id="it cannot exist"),
    ],
)
def test_the_newer_of_two_cells_counts(own: Cell, other: Cell, verdict: Verdict) -> None:
    assert newest_of(own, other).verdict is verdict


def test_a_workaround_that_only_the_other_tried_counts_where_the_same_variants_failed() -> None:
    own = cell(FAILS, 1, {"eager": "unverified", "clone": "effective"})
    other = cell(FAILS, 2, {"eager": "effective", "clone": "ineffective"})
    found = {id_: one.verdict.value for id_, one in newest_of(own, other).workarounds.items()}
    assert found == {"eager": "effective", "clone": "effective"}


def test_one_that_was_tried_with_other_variants_does_not() -> None:
    big = (VariantFinding("big", FAILS, quoted("1 of 1 attempt"), 1, 1),)
    own = cell(FAILS, 1, {"eager": "unverified"})
    assert newest_of(own, cell(FAILS, 2, {"eager": "effective"}, variants=big)) == own


def test_what_one_side_lacks_is_the_others() -> None:
    own = knowledge(make_known(row("x ")))
    other = knowledge(make_known([*row("oo", hardware=GPU), *row(" ~")]))
    both = together(own, other)
    assert [both.known.cells["toy-1", build.id, "cpu-x86_64"].verdict for build in (TORCH_25, TORCH_26)] == [
        Verdict.AFFECTED,
        Verdict.FLAKY,
    ]
    assert set(both.known.cells) == set(own.known.cells) | set(other.known.cells)
    assert len(both.known.cells) == 4
    assert both.known.hardware == ("cpu-x86_64", GPU)
    assert both.tested == {TORCH_25.id, TORCH_26.id}


def test_issues_and_builds_of_both_are_known_builds_in_release_order() -> None:
    own = knowledge(make_known(row("x "), make_issue(title="As the store has it"), builds=[TORCH_26]))
    other = knowledge(
        make_known([], make_issue(), make_issue("another-1"), builds=[make_build("2.7.0+cu126"), TORCH_25])
    )
    both = together(own, other).known
    assert [issue.title for issue in both.issues.values()] == [make_issue("another-1").title, "As the store has it"]
    assert list(both.builds) == [TORCH_25.id, TORCH_26.id, "torch-2.7.0+cu126"]


def test_results_of_a_row_that_runs_something_else_are_left_out() -> None:
    edited = make_issue(arms=(Arm("baseline", (), "another digest"), Arm("control", (), "c")))
    own = knowledge(make_known([], edited))
    other = knowledge(make_known(row("x")))
    assert not together(own, other).known.cells
    reworded = replace(make_issue(workarounds=("eager", "clone")), summary="Told anew.")
    assert len(together(knowledge(make_known([], reworded)), other).known.cells) == 1


def test_flaky_is_what_the_joined_cells_are() -> None:
    mixed = cell(Verdict.FLAKY, 9)
    steady = cell(FAILS, 1)
    own, other = knowledge(make_known([steady])), knowledge(make_known([mixed]))
    assert together(own, other).known.flaky == frozenset()
    assert together(other, knowledge(make_known([]))).known.flaky == frozenset({("toy-1", TORCH_25.id, "cpu-x86_64")})


def test_what_is_recorded_here_outweighs_what_was_recorded_elsewhere() -> None:
    arm = ("toy-1", "baseline", "default")
    both = recorded_together(Recorded({arm: 1.0}), Recorded({arm: 9.0}, 60.0, {"toy-1": ("RuntimeError",)}))
    assert both == Recorded({arm: 1.0}, 60.0, {"toy-1": ("RuntimeError",)})
