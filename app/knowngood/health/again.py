"""Asking cells with an answer once more, and holding what came against what was known: the project's own A/A pass."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import gathered
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.planning import PlannedJob, Sample, recheck_cells, recheck_jobs, twins_of
from knowngood.domain.message import english
from knowngood.domain.rate import Rate
from knowngood.domain.verdicts.false_changes import Again, Rechecked, recheck
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import CONCLUSIVE, NOT_RUN, Cell, CellPlace, Verdict
from knowngood.domain.vocabulary import many
from knowngood.serialization.marks import in_text, mark_of
from knowngood.store.engine import Engine, Session, reading
from knowngood.store.evidence.quality import load_judged
from knowngood.store.knowledge.model import runs_the_same
from knowngood.store.queries import load_cells, load_known_attempts

_PLACE = tuple[str, str, str]  # issue, build, hardware class


def draw(
    engine: Engine, issues: Sequence[Issue], builds: Sequence[Build], hardware: Collection[str], sample: Sample
) -> tuple[tuple[Cell, ...], Mapping[str, Build], tuple[PlannedJob, ...]]:
    """Cells as they are known when they are drawn, the build that each is asked on, and the jobs that ask them."""
    with reading(engine) as s:
        known = load_known_attempts(s)
    cells = recheck_cells(issues, builds, hardware, known, sample)
    twins = twins_of(builds, sample.python)
    return cells, twins, recheck_jobs(issues, twins, cells, known)


def compare(
    engine: Engine,
    issues: Iterable[Issue],
    cells: Iterable[Cell],
    twins: Mapping[str, Build],
    jobs: Iterable[PlannedJob],
) -> tuple[Rechecked, ...]:
    """The verdict on each cell that was drawn by the attempts planned for it alone; in the order of the draw."""
    by_id = {issue.id: issue for issue in issues}
    attempts = _attempts_by_cell(jobs)
    with reading(engine) as s:
        return tuple(_compare(s, by_id[cell.issue], twins[cell.build], cell, attempts) for cell in cells)


def _attempts_by_cell(jobs: Iterable[PlannedJob]) -> dict[_PLACE, set[tuple[str, str, int, str]]]:
    """Map each cell to arm, variant, ordinal and binding of the attempts planned for it."""
    planned = gathered(
        ((arm.issue, job.build.id, job.hardware), (arm.arm, arm.variant, arm.ordinal, arm.binding))
        for job in jobs
        for arm in job.arms
    )
    return {place: set(attempts) for place, attempts in planned.items()}


def _compare(
    s: Session, issue: Issue, build: Build, cell: Cell, attempts: dict[_PLACE, set[tuple[str, str, int, str]]]
) -> Rechecked:
    if build.id != cell.build:
        return _on_another_python(s, issue, build, cell)
    wanted = attempts[cell.issue, build.id, cell.hardware]
    new = [
        judged
        for ordinal, bound, judged in load_judged(s, issue, build, cell.hardware)
        if (judged.arm, judged.variant, ordinal, bound) in wanted
    ]
    return recheck(issue, build, cell, new, planned=len(wanted))


def _on_another_python(s: Session, issue: Issue, build: Build, cell: Cell) -> Rechecked:
    """Compare with all that was measured on that build, whenever it was."""
    cells = load_cells(s, issues=[issue.id], builds=[build.id], hardware=[cell.hardware])
    after = cells[0] if cells else Cell(issue.id, build.id, cell.hardware, Verdict.NOT_RUN, NOT_RUN)
    return compare_cells(cell, after)


def compare_cells(before: Cell, after: Cell) -> Rechecked:
    """Compare the cell of the later measurement with an earlier one of the same issue."""
    again = Again.STAYED if after.verdict is before.verdict else Again.CHANGED
    if after.verdict not in CONCLUSIVE:
        again = Again.NO_ANSWER
    return Rechecked(
        after.issue, after.build, after.hardware, before.verdict, after.verdict, again, after.reason, after.evidence
    )


def rate_of(comparisons: Iterable[Rechecked]) -> Rate:
    """How many of the cells that answered changed."""
    answered = [comparison for comparison in comparisons if comparison.again is not Again.NO_ANSWER]
    return Rate(sum(1 for comparison in answered if comparison.again is Again.CHANGED), len(answered))


def as_json(comparisons: Sequence[Rechecked], seed: str) -> dict[str, Any]:
    rate = rate_of(comparisons)
    return {
        "seed": seed,
        "cells": len(comparisons),
        "stayed": rate.whole - rate.part,
        "changed": [_in_english(comparison) for comparison in comparisons if comparison.again is Again.CHANGED],
        "no_answer": [_in_english(comparison) for comparison in comparisons if comparison.again is Again.NO_ANSWER],
        "share": rate.share,
        "interval": rate.interval,
    }


def _in_english(comparison: Rechecked) -> dict[str, Any]:
    return {**vars(comparison), "reason": english(comparison.reason)}


def print_rechecked(console: Console, comparisons: Sequence[Rechecked], seed: str) -> None:
    for comparison in comparisons:
        if comparison.again is not Again.STAYED:
            now = f" -> {comparison.after}" if comparison.again is Again.CHANGED else ", and now no answer"
            how = f"{comparison.before}{now}"
            text = f"{comparison.issue} {comparison.build} {comparison.hardware}: {how} ({english(comparison.reason)})"
            console.print(text, markup=False, soft_wrap=True)
    rate = rate_of(comparisons)
    low, high = rate.interval
    lost = len(comparisons) - rate.whole
    console.print(f"{rate.whole - rate.part} stayed, {rate.part} changed, {lost} gave no answer (--seed {seed})")
    if rate.whole:
        console.print(f"changed: {rate.share:.1%}, with 95 % confidence {low:.1%} to {high:.1%}")


# The end of a run: what was found, and whether it is what the results say that come with this release.


_MOST_LINES = 10


def against(cells: Iterable[Cell], issues: Mapping[str, Issue], shipped: Known) -> tuple[Rechecked, ...]:
    """Each cell that has an answer there, by what was found here; rows that run something else are none of them."""
    alike = {id_ for id_, issue in shipped.issues.items() if id_ in issues and runs_the_same(issues[id_], issue)}
    return tuple(
        compare_cells(before, cell)
        for cell in cells
        if cell.issue in alike and (before := shipped.cells.get(cell.key)) and before.verdict in CONCLUSIVE
    )


def print_verdicts(console: Console, places: Collection[CellPlace], known: Known, shipped: Known | None) -> None:
    """Print the verdicts of the cells at `places`; nothing where none is known."""
    cells = [known.cells[place] for place in sorted(places) if place in known.cells]
    if not cells:
        return
    words = Counter(mark_of(cell).word for cell in cells)
    console.print(
        f"found in {many(len(cells), 'cell')}: {'; '.join(f'{count} {word}' for word, count in words.most_common())}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if shipped is not None:
        for line in _agreement(against(cells, known.issues, shipped), len(cells)):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def _agreement(compared: Collection[Rechecked], cells: int) -> Iterable[str]:
    rate = rate_of(compared)
    silent = len(compared) - rate.whole
    rest = ", ".join(
        [
            *([f"{silent} have no answer here"] if silent else []),
            *([f"{cells - len(compared)} are not known there"] if len(compared) < cells else []),
        ]
    )
    alike = f"{rate.whole - rate.part} of {rate.whole} answers agree with the results that come with this release"
    yield f"{alike}{f'; {rest}' if rest else ''}"
    changed = [comparison for comparison in compared if comparison.again is Again.CHANGED]
    for comparison in changed[:_MOST_LINES]:
        here, there = in_text(comparison.after).word, in_text(comparison.before).word
        yield (
            f"  {comparison.issue} on {comparison.build}, {comparison.hardware}: "
            f"{here} here, {there} there ({english(comparison.reason)})"
        )
    if len(changed) > _MOST_LINES:
        yield f"  and {len(changed) - _MOST_LINES} more that differ"
