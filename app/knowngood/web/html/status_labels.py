"""Cells, verdicts and outcomes as pages show them, from the words of `domain.vocabulary`. Colour only repeats what
symbol and word say.
"""

from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.changes import Cause
from knowngood.domain.verdicts.inference import ground_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import concerns_cpu_path, helped_elsewhere
from knowngood.domain.verdicts.status import failing_variants, passes_as_reported, status_of
from knowngood.domain.verdicts.verdict import Cell
from knowngood.domain.vocabulary import STATUS_MEANINGS, STATUSES, VERDICTS, StatusLabel, Term
from knowngood.serialization.marks import VerdictMark
from knowngood.web.html.i18n import Language, say

# The signs that one line has room for; the others are rare, and say their word where they stand.
LEGEND_LINE = tuple(
    STATUSES[label]
    for label in (
        StatusLabel.PASSES,
        StatusLabel.FAILS,
        StatusLabel.UNTRIED,
        StatusLabel.WORKAROUND,
        StatusLabel.PARTIAL,
        StatusLabel.DIFFERENT,
        StatusLabel.FLAKY,
        StatusLabel.UNSURE,
        StatusLabel.NOT_APPLICABLE,
        StatusLabel.NOT_RUN,
    )
)

LEGEND = tuple((STATUSES[label], STATUS_MEANINGS[label]) for label in StatusLabel)


def shown(term: Term, language: Language) -> VerdictMark:
    """Its symbol in static/signs.svg, and its word in the reader's language."""
    return VerdictMark(term.label, say(term.word, language))


def word_of(cell: Cell, language: Language) -> str:
    """The cell in a word, with what it is inferred from: `passes, inferred from torch-2.6.0+cu124`."""
    return _inferred(bare_word(cell, language), ground_of(cell.basis) if cell.basis else "", language)


def bare_word(cell: Cell, language: Language) -> str:
    """The cell in a word, for places that name what it is inferred from beside it."""
    if concerns_cpu_path([cell]):
        return say("concerns the CPU path", language)
    word = say(STATUSES[status_of(cell)].word, language)
    if passes_as_reported(cell):
        return say("{verdict}: {variants}", language, verdict=word, variants=", ".join(failing_variants(cell)))
    return word


def whole_word(cell: Cell, issue: Issue, known: Known, language: Language) -> str:
    """The cell in a word, with the build on which a workaround works that is not verified here."""
    word = bare_word(cell, language)
    elsewhere = helped_elsewhere(issue, cell, known)
    return say("{verdict} (works on {build})", language, verdict=word, build=elsewhere[1].id) if elsewhere else word


RUN_WORDS = ("1 run", "{n} runs")


def runs_in_words(runs: int, language: Language) -> str:
    """How many runs an answer rests on; empty where it rests on none."""
    return say(RUN_WORDS[runs > 1], language, n=runs) if runs else ""


def remarks_in_words(cell: Cell, language: Language) -> tuple[str, ...]:
    """The rest of what is known of a cell: that it rests on one run, and how the report's own variant ended."""
    remarks = [runs_in_words(1, language)] if cell.runs == 1 else []
    if (own := cell.as_reported) is not None and not passes_as_reported(cell):
        word = say(VERDICTS[own.verdict].word, language)
        remarks.append(say("as reported ({variant}): {verdict}", language, variant=own.variant, verdict=word))
    return tuple(remarks)


def inferred_word(sign: StatusLabel, ground: str, language: Language) -> str:
    """`ground` is what the cell is inferred from; empty: it was measured."""
    return _inferred(say(STATUSES[sign].word, language), ground, language)


def _inferred(word: str, ground: str, language: Language) -> str:
    return say("{verdict}, inferred from {ground}", language, verdict=word, ground=ground) if ground else word


CAUSES = {
    Cause.RUN: "measured here",
    Cause.IMPORT: "imported from {origin}",
    Cause.CATALOGUE: "the catalogue was edited",
    Cause.NOTE: "voided or restored by a person",
    Cause.VOID: "results of a worker were voided",
    Cause.UNVOID: "voided results count again",
    Cause.INDEX: "the package index was asked",
    Cause.DERIVED: "derived again",
}
