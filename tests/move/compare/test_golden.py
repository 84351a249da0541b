"""`compare` over builds of the shipped evidence. See tests/golden_files.py for how a difference is accepted."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell
from knowngood.move.compare.api import comparison_of
from knowngood.move.compare.comparison import CompareRequest, Comparison, sentence
from knowngood.move.compare.renderers import comparison_markdown
from knowngood.move.pair import Group, InstalledPackages, IssuePair, SideStanding, Transition, standing_of
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known
from knowngood.store.queries import load_builds, load_cells, load_hardware
from tests.golden_files import assert_golden

CPU, GPU = "cpu-x86_64", "cuda-sm_90"
THEN = datetime(2026, 11, 23, tzinfo=UTC)

# The steps that somebody takes, one of five releases, one on a GPU that was not measured before, and a foreign Triton.
STEPS = {
    "one-release": ("torch-2.5.1+cu124", "torch-2.6.0+cu124", CPU),
    "two-releases": ("torch-2.5.1+cu124", "torch-2.7.1+cu126", CPU),
    "many-releases": ("torch-2.5.1+cu124", "torch-2.15.0+cu132", CPU),
    "on-a-gpu": ("torch-2.10.0+cu128~py312", "torch-2.11.0+cu130~py312", GPU),
    "first-on-a-gpu": ("torch-2.7.1+cu126~py312", "torch-2.8.0+cu128~py312", GPU),
    "foreign-triton": ("torch-2.8.0+cu128~py312", "torch-2.8.0+cu128~triton-3.5.1~py312", GPU),
}


Compare = Callable[[str, str, str], Comparison]


@pytest.fixture(scope="module")
def compared(shipped: Engine) -> Compare:
    with reading(shipped) as s:
        known = load_known(s, THEN)

    def compare(before: str, after: str, hardware: str) -> Comparison:
        return comparison_of(CompareRequest(a=before, b=after, hardware=hardware), known, THEN)

    return compare


def told(pair: IssuePair) -> dict[str, Any]:
    found: dict[str, Any] = {
        "issue": pair.issue.id,
        "transition": pair.transition,
        "before": side(pair.before),
        "after": side(pair.after),
    }
    if pair.issue.silent:
        found["silent"] = True
    if pair.turns:
        found["workarounds"] = dict(pair.turns)
    if pair.packages.before != pair.packages.after:
        found["packages"] = (pair.packages.before, pair.packages.after)
    return found


def side(cell: Cell) -> str:
    """`affected, 2 runs`; of an inferred one, what it is inferred from."""
    inferred = f", from {cell.basis.build} on {cell.basis.hardware}" if cell.basis else ""
    return f"{cell.verdict}{f', {cell.runs} runs' if cell.runs else ''}{inferred}"


@pytest.mark.parametrize("step", STEPS)
def test_a_step_between_builds_reads_as_it_was_accepted(compared: Compare, step: str) -> None:
    found = compared(*STEPS[step])
    groups: dict[str, Any] = {group: [told(pair) for pair in found.of(group)] for group in Group}
    assert_golden(f"compare-{step}.json", {"sentence": english(sentence(found)), **groups})


def test_the_markdown_reads_as_it_was_accepted(compared: Compare) -> None:
    assert_golden("compare-one-release.md", comparison_markdown(compared(*STEPS["one-release"])))


def test_between_any_two_measured_builds_only_a_proven_pass_is_fixed(shipped: Engine, compared: Compare) -> None:
    """And every issue is counted once, and the way back says the opposite."""
    with reading(shipped) as s:
        measured = {(cell.build, cell.hardware) for cell in load_cells(s)}
        builds = [build.id for build in load_builds(s)]
        classes = load_hardware(s)
    for hardware in classes:
        line = [build for build in builds if (build, hardware) in measured]
        for before, after in zip(line, line[1:] + line[:1], strict=True):
            there, back = (compared(*pair, hardware) for pair in ((before, after), (after, before)))
            for pair in there.of(Group.FIXED):
                assert standing_of(pair.after) is SideStanding.PASSES
                assert {cell.verdict for cell in (pair.before, pair.after)} <= CONCLUSIVE
            assert there.counts[Transition.FIXED] == back.counts[Transition.REGRESSED]
            assert there.counts[Transition.NOW_UNKNOWN] == back.counts[Transition.WAS_UNKNOWN]
            assert sum(there.counts.values()) == len(there.pairs) == len(back.pairs)


def test_xla_8464_is_fixed_between_2_5_1_and_2_6_0_with_the_package_that_goes_with_each(compared: Compare) -> None:
    """The founding issue of the catalogue: measured on both, so the answer is no guess."""
    found = {pair.issue.id: pair for pair in compared(*STEPS["one-release"]).pairs}["xla-8464"]
    assert found.transition is Transition.FIXED
    assert found.packages == InstalledPackages(("torch_xla==2.5.1",), ("torch_xla==2.6.0",))
