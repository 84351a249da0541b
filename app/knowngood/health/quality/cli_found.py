"""The end of a run: what was found, and whether it is what the results say that come with this release."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from rich.console import Console

from knowngood.domain.issue import Issue
from knowngood.domain.message import english
from knowngood.domain.verdicts.false_changes import Again, Rechecked
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, CellPlace
from knowngood.domain.vocabulary import many
from knowngood.health.quality.cli_recheck import asked_again, rate_of
from knowngood.serialization.marks import in_text, mark_of
from knowngood.store.knowledge.together import runs_the_same

_MOST_LINES = 10


def against(found: Iterable[Cell], issues: Mapping[str, Issue], shipped: Known) -> tuple[Rechecked, ...]:
    """Each cell that has an answer there, by what was found here; rows that run something else are none of them."""
    alike = {id_ for id_, issue in shipped.issues.items() if id_ in issues and runs_the_same(issues[id_], issue)}
    return tuple(
        asked_again(before, cell)
        for cell in found
        if cell.issue in alike and (before := shipped.cells.get(cell.key)) and before.verdict in CONCLUSIVE
    )


def print_found(console: Console, places: Collection[CellPlace], known: Known, shipped: Known | None) -> None:
    """Of the cells that were asked; nothing where none was."""
    found = [known.cells[place] for place in sorted(places) if place in known.cells]
    if not found:
        return
    words = Counter(mark_of(cell).word for cell in found)
    console.print(
        f"found in {many(len(found), 'cell')}: {'; '.join(f'{count} {word}' for word, count in words.most_common())}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if shipped is not None:
        for line in _agreement(against(found, known.issues, shipped), len(found)):
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
    changed = [one for one in compared if one.again is Again.CHANGED]
    for one in changed[:_MOST_LINES]:
        here, there = in_text(one.after).word, in_text(one.before).word
        yield f"  {one.issue} on {one.build}, {one.hardware}: {here} here, {there} there ({english(one.reason)})"
    if len(changed) > _MOST_LINES:
        yield f"  and {len(changed) - _MOST_LINES} more that differ"
