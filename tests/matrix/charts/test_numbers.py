"""The numbers of the charts, counted once more from the cells, in other words than the charts'."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.matrix.charts.numbers import (
    lifespans_of,
    pass_rate,
    runs_of,
    short_labels,
)
from tests.random_stores import CLASSES, random_patterns, store_of

SEEDS = range(2)


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - repeatable on purpose


def stands(cell: Cell) -> str:
    """How a cell stands, spelled out."""
    match cell.verdict.value:
        case "not_applicable":
            return "does_not_apply"
        case "not_affected":
            return "passes"
        case "different_failure":
            return "fails"
        case "affected" if cell.as_reported and cell.as_reported.verdict.value == "not_affected":
            return "as_reported"
        case "affected" | "flaky":
            helps = any(one.verdict.value == "effective" for one in cell.workarounds.values())
            return "needs_workaround" if helps else "fails"
        case _:
            return "not_known"


def lines_of(known: Known, hardware: str) -> dict[str, list[Build]]:
    """By release of the default index with its own Triton, of which any Python was measured: all, the default first."""
    found: dict[str, list[Build]] = {}
    for build in sorted(
        known.builds.values(), key=lambda build: (build.build_id.version, build.python != "3.11", build.python)
    ):
        if build.origin == "default" and build.triton == build.pinned_triton:
            found.setdefault(build.torch.partition("+")[0], []).append(build)
    measured = {build for _, build, class_ in known.cells if class_ == hardware}
    return {release: builds for release, builds in found.items() if any(one.id in measured for one in builds)}


def standing(known: Known, issue: Issue, builds: Sequence[Build], hardware: str) -> Cell:
    """The first Python's with an answer that was run there, else with one from the CPU, unless two contradict each
    other; where none has one, the first that was tried, or else may be.
    """
    cells = [known.cell(issue, build, hardware) for build in builds]
    answers = [cell for cell in cells if stands(cell) in {"passes", "as_reported", "needs_workaround", "fails"}]
    told = [cell for cell in answers if cell.basis is None] or answers
    if {stands(cell) == "passes" for cell in told} == {True, False}:
        return Cell(issue.id, told[0].build, hardware, Verdict.INCONCLUSIVE, quoted(""))
    tried = [cell for cell in cells if cell.measured_at]
    possible = [cell for cell in cells if cell.verdict.value != "not_applicable"]
    return (told or tried or possible or cells)[0]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("hardware", CLASSES)
def test_the_pass_rate_counts_each_issue_once_on_each_measured_release(seed: int, hardware: str) -> None:
    known = store_of(random_patterns(chance(seed), 0.5))
    told = {
        one.release: ({stand.value: n for stand, n in one.counts.items() if n}, one.rate)
        for one in pass_rate(known, hardware).releases
    }
    expected = {}
    for release, builds in lines_of(known, hardware).items():
        counts = Counter(stands(standing(known, issue, builds, hardware)) for issue in known.issues.values())
        answered = sum(counts[stand] for stand in ("passes", "as_reported", "needs_workaround", "fails"))
        expected[release] = (dict(counts), counts["passes"] / answered if answered else None)
        assert sum(counts.values()) == len(known.issues)
    assert told == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("hardware", CLASSES)
def test_a_lifespan_has_a_segment_for_each_measured_release_and_says_what_its_cell_says(
    seed: int, hardware: str
) -> None:
    known = store_of(random_patterns(chance(seed), 0.5))
    lines = lines_of(known, hardware)
    spans = lifespans_of(known.issues.values(), known, hardware)
    shown = {row.issue.id: row for row in spans.rows}
    for issue in known.issues.values():
        cells = {release: standing(known, issue, builds, hardware) for release, builds in lines.items()}
        if all(stands(cell) == "does_not_apply" for cell in cells.values()):
            assert issue.id not in shown
            continue
        row = shown[issue.id]
        assert [(one.release, one.build, one.prospect.value, one.is_inferred) for one in row.segments] == [
            (release, cell.build, stands(cell), cell.basis is not None) for release, cell in cells.items()
        ]
        for segment, builds in zip(row.segments, lines.values(), strict=True):
            verdicts = {one.verdict for one in standing(known, issue, builds, hardware).variants}
            if len(builds) > 1:
                verdicts |= {known.cell(issue, build, hardware).verdict for build in builds}
            said = {one.value for one in verdicts} & {"affected", "not_affected", "flaky", "different_failure"}
            assert segment.is_mixed is ("flaky" in said or ("not_affected" in said and len(said) > 1))
        assert [one for run in runs_of(row.segments).values() for one in run] == list(row.segments)
        assert list(runs_of(row.segments)) == [
            at for at, one in enumerate(row.segments) if not at or one.look != row.segments[at - 1].look
        ]


def test_labels_name_the_minor_once() -> None:
    assert short_labels(["2.7.0", "2.7.1", "2.8.0", "2.10.0", "2.10.1"]) == ("2.7", ".1", "2.8", "2.10", ".1")
    # A minor that begins with its patch is named by the minor too: the table and the bar's name have it in full.
    assert short_labels(["2.1.2", "2.2.2"]) == ("2.1", "2.2")
