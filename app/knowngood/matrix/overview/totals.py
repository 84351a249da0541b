"""Sums of the cells of each column: lines of numbers under the heads, and a bar for a group that is folded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup, escape

from knowngood.domain.verdicts.status import Prospect
from knowngood.domain.vocabulary import PROSPECTS, StatusLabel
from knowngood.web.html.i18n import Language, say

COUNTED = (
    Prospect.PASSES,
    Prospect.AS_REPORTED,
    Prospect.NEEDS_WORKAROUND,
    Prospect.FAILS,
    Prospect.BIGGER,
    Prospect.MORE_WORK,
    Prospect.SLOWER,
    Prospect.NOT_KNOWN,
)
"""In the order of lines and bars. What cannot exist on a build is no part of either."""


_RARE = frozenset({Prospect.AS_REPORTED, Prospect.BIGGER, Prospect.MORE_WORK, Prospect.SLOWER})


@dataclass(frozen=True)
class TotalLine:
    """One prospect, with how many cells of each column have it."""

    prospect: Prospect
    sign: StatusLabel
    word: str
    counts: tuple[int, ...]


def counted(rows: Sequence[Sequence[Prospect]], width: int) -> tuple[Mapping[Prospect, int], ...]:
    """Count prospects by column; `rows` have a prospect for each of `width` columns."""
    return tuple(Counter(column) for column in zip(*rows, strict=True)) or (Counter[Prospect](),) * width


def lines_of(columns: Sequence[Mapping[Prospect, int]], language: Language) -> tuple[TotalLine, ...]:
    """A line for each prospect; the rare ones have none where nothing has it."""
    return tuple(
        TotalLine(
            prospect,
            StatusLabel(PROSPECTS[prospect].label),
            say(PROSPECTS[prospect].word, language),
            tuple(column[prospect] for column in columns),
        )
        for prospect in COUNTED
        if prospect not in _RARE or any(column[prospect] for column in columns)
    )


def bars_of(columns: Sequence[Mapping[Prospect, int]], language: Language) -> tuple[Markup, ...]:
    """A stacked bar for each column, with its numbers in words for people who cannot see it."""
    return tuple(_bar(tuple(column[prospect] for prospect in COUNTED), language) for column in columns)


@lru_cache(maxsize=4096)
def _bar(counts: tuple[int, ...], language: Language) -> Markup:
    """Draw one bar; empty where nothing can be counted."""
    parts = [(PROSPECTS[prospect], count) for prospect, count in zip(COUNTED, counts, strict=True) if count]
    if not parts:
        return Markup()
    label = say(", ", language).join(f"{say(term.word, language)}{say(': ', language)}{count}" for term, count in parts)
    starts = [sum(counts[:at]) for at, count in enumerate(counts) if count]
    pieces = "".join(
        f'<rect class="{term.label}" x="{start}" width="{count}" height="1"></rect>'
        for start, (term, count) in zip(starts, parts, strict=True)
    )
    return Markup(  # noqa: S704 - numbers, and words of ours that are escaped
        f'<svg class="stack" viewBox="0 0 {sum(counts)} 1" preserveAspectRatio="none" role="img">'
        f"<title>{escape(label)}</title>{pieces}</svg>"
    )
