"""Which sign, word and hue stand for a cell. Colour only repeats what symbol and word say."""

from dataclasses import dataclass
from enum import StrEnum

from knowngood.app.domain.verdicts.changes import Cause
from knowngood.app.domain.verdicts.inference import ground_of
from knowngood.app.domain.verdicts.matrix import concerns_cpu_path
from knowngood.app.domain.verdicts.outcome import Outcome
from knowngood.app.domain.verdicts.verdict import Cell, Verdict, WorkaroundVerdict
from knowngood.app.web.html.i18n import Language, say


class StatusLabel(StrEnum):
    """The name of a symbol in static/signs.svg and of its hue in static/app.css."""

    PASSES = "passes"
    CURE = "cure"
    PARTIAL = "partial"
    FAILS = "fails"
    DIFFERENT = "different"
    FLAKY = "flaky"
    UNSURE = "unsure"
    NOT_APPLICABLE = "absent"
    NO_BUILD = "nobuild"
    NOT_RUN = "notrun"


WORDS = {
    StatusLabel.PASSES: "passes",
    StatusLabel.CURE: "fails, has a workaround",
    StatusLabel.PARTIAL: "fails, workaround helps in part",
    StatusLabel.FAILS: "fails",
    StatusLabel.DIFFERENT: "fails differently",
    StatusLabel.FLAKY: "flaky",
    StatusLabel.UNSURE: "cannot say",
    StatusLabel.NOT_APPLICABLE: "does not apply",
    StatusLabel.NO_BUILD: "cannot be built",
    StatusLabel.NOT_RUN: "not run",
}

MEANINGS = {
    StatusLabel.PASSES: "the suspect path ran, proven, and gave the right answer",
    StatusLabel.CURE: "the issue shows, and a measured workaround makes it go away with every variant that fails",
    StatusLabel.PARTIAL: (
        "the issue shows, and a measured workaround makes it go away with some of the variants that fail"
    ),
    StatusLabel.FAILS: "the issue shows, and no measured workaround helps",
    StatusLabel.DIFFERENT: "it fails, but not with this issue's own text",
    StatusLabel.FLAKY: "some attempts showed the issue, others passed",
    StatusLabel.UNSURE: "tried, but the evidence is not enough for an answer",
    StatusLabel.NOT_APPLICABLE: "the issue cannot exist on this build or hardware",
    StatusLabel.NO_BUILD: "no such environment can be installed",
    StatusLabel.NOT_RUN: "nobody has measured it yet",
}

_BY_VERDICT = {
    Verdict.NOT_AFFECTED: StatusLabel.PASSES,
    Verdict.AFFECTED: StatusLabel.FAILS,
    Verdict.DIFFERENT_FAILURE: StatusLabel.DIFFERENT,
    Verdict.FLAKY: StatusLabel.FLAKY,
    Verdict.INCONCLUSIVE: StatusLabel.UNSURE,
    Verdict.NOT_APPLICABLE: StatusLabel.NOT_APPLICABLE,
    Verdict.NO_BUILD: StatusLabel.NO_BUILD,
    Verdict.NOT_RUN: StatusLabel.NOT_RUN,
}

# The order in which a folded group and a legend name them: what a reader must not miss comes first.
GRAVEST_FIRST = (
    StatusLabel.FAILS,
    StatusLabel.PARTIAL,
    StatusLabel.CURE,
    StatusLabel.FLAKY,
    StatusLabel.DIFFERENT,
    StatusLabel.UNSURE,
    StatusLabel.PASSES,
    StatusLabel.NO_BUILD,
    StatusLabel.NOT_RUN,
    StatusLabel.NOT_APPLICABLE,
)


@dataclass(frozen=True)
class LegendEntry:
    sign: StatusLabel
    word: str
    meaning: str


LEGEND = tuple(LegendEntry(sign, WORDS[sign], MEANINGS[sign]) for sign in StatusLabel)


_BY_OUTCOME = {
    Outcome.PASS: StatusLabel.PASSES,
    Outcome.MATCH: StatusLabel.FAILS,
    Outcome.OTHER_FAILURE: StatusLabel.DIFFERENT,
    Outcome.CRASH: StatusLabel.DIFFERENT,
    Outcome.TIMEOUT: StatusLabel.UNSURE,
    Outcome.ENV_ERROR: StatusLabel.UNSURE,
    Outcome.HARNESS_ERROR: StatusLabel.UNSURE,
    Outcome.NOT_APPLICABLE: StatusLabel.NOT_APPLICABLE,
    Outcome.CANCELLED: StatusLabel.NOT_RUN,
}

OUTCOME_WORDS = {
    Outcome.PASS: "passed",
    Outcome.MATCH: "showed the issue",
    Outcome.OTHER_FAILURE: "failed otherwise",
    Outcome.TIMEOUT: "did not end in time",
    Outcome.CRASH: "crashed otherwise",
    Outcome.ENV_ERROR: "environment trouble",
    Outcome.HARNESS_ERROR: "proved nothing",
    Outcome.NOT_APPLICABLE: "does not apply",
    Outcome.CANCELLED: "cancelled",
}


def sign_of_verdict(verdict: Verdict) -> StatusLabel:
    """Without a word on workarounds: of one variant, say."""
    return _BY_VERDICT[verdict]


def sign_of_outcome(outcome: Outcome) -> StatusLabel:
    return _BY_OUTCOME[outcome]


_FAILS = StatusLabel.FAILS  # looking up a member of an enum takes as long as the rest of what is asked of every cell


def sign_of(cell: Cell) -> StatusLabel:
    sign = _BY_VERDICT[cell.verdict]
    if sign is not _FAILS:
        return sign
    found = {one.verdict for one in cell.workarounds.values()}
    return StatusLabel.CURE if _EFFECTIVE in found else StatusLabel.PARTIAL if _PARTIAL in found else sign


_EFFECTIVE, _PARTIAL = WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL


def word_of(cell: Cell, language: Language) -> str:
    """The cell in a word, with what it is inferred from: `passes, inferred from torch-2.6.0+cu124`."""
    return _inferred(bare_word(cell, language), ground_of(cell.basis) if cell.basis else "", language)


def bare_word(cell: Cell, language: Language) -> str:
    """The same where it is said beside it what it is inferred from."""
    if concerns_cpu_path([cell]):
        return say("concerns the CPU path", language)
    return say(WORDS[sign_of(cell)], language)


def said_beside(cell: Cell, language: Language) -> tuple[str, ...]:
    """What the word of a cell leaves out: that it rests on one run, and what the report's own variant says."""
    said = [say("1 run", language)] if cell.runs == 1 else []
    if (own := cell.as_reported) is not None:
        word = say(WORDS[_BY_VERDICT[own.verdict]], language)
        said.append(say("as reported ({variant}): {verdict}", language, variant=own.variant, verdict=word))
    return tuple(said)


def inferred_word(sign: StatusLabel, ground: str, language: Language) -> str:
    """`ground` is what the cell is inferred from; empty: it was measured."""
    return _inferred(say(WORDS[sign], language), ground, language)


def _inferred(word: str, ground: str, language: Language) -> str:
    return say("{verdict}, inferred from {ground}", language, verdict=word, ground=ground) if ground else word


def cures_of(cell: Cell) -> tuple[str, ...]:
    """Ids of the workarounds that help on this very cell, with every variant that fails."""
    return _with_verdict(cell, _EFFECTIVE)


def partly_of(cell: Cell) -> tuple[str, ...]:
    """Of those that help with some of the variants that fail."""
    return _with_verdict(cell, _PARTIAL)


def _with_verdict(cell: Cell, verdict: WorkaroundVerdict) -> tuple[str, ...]:
    return tuple(id_ for id_, finding in cell.workarounds.items() if finding.verdict is verdict)


CAUSES = {
    Cause.RUN: "measured here",
    Cause.IMPORT: "imported from {origin}",
    Cause.CATALOGUE: "the catalogue was edited",
    Cause.NOTE: "voided or restored by a person",
    Cause.VOID: "results of a worker were voided",
    Cause.UNVOID: "voided results count again",
    Cause.DERIVED: "derived anew",
}
