"""The words of verdicts: how every verdict, outcome, workaround verdict and answer of a release is shown to people.

Pages, terminals, Markdown, feeds, badges and reports read these tables; nothing else spells a verdict. Words are
English, and the keys of their translations (gettext). Tables are keyed by the values of the enumerations that they
tell of, so that the rules which define these may use their words; a test compares the two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """The meaning of a colour; which colour that is, is for terminals, badges and style sheets to choose."""

    BAD = "bad"
    MIXED = "mixed"
    OTHER = "other"
    UNSURE = "unsure"
    GOOD = "good"
    QUIET = "quiet"


class StatusLabel(StrEnum):
    """How a cell stands. The value is the name of its symbol in static/signs.svg and of its hue in static/app.css."""

    PASSES = "passes"
    WORKAROUND = "cure"
    PARTIAL = "partial"
    AS_REPORTED = "variant"
    BIGGER = "bigger"
    MORE_WORK = "work"
    SLOWER = "slow"
    UNTRIED = "untried"
    FAILS = "fails"
    DIFFERENT = "different"
    FLAKY = "flaky"
    UNSURE = "unsure"
    NOT_APPLICABLE = "absent"
    NO_BUILD = "nobuild"
    NOT_RUN = "notrun"


@dataclass(frozen=True)
class Term:
    """One value in words. `label` names its symbol and hue on pages, `symbol` is one for where there is text alone.

    `clause` is the word behind a subject (`it is flaky`) and `plural` behind several, both only where they differ from
    `word`; `preposition` leads from the word to a build.
    """

    word: str
    label: str = StatusLabel.NOT_RUN
    symbol: str = ""
    role: Role = Role.QUIET
    clause: str = ""
    plural: str = ""
    preposition: str = "on"

    @property
    def as_clause(self) -> str:
        return self.clause or self.word

    @property
    def as_plural(self) -> str:
        return self.plural or self.word


_FAILS = Term("fails", StatusLabel.FAILS, "✕", Role.BAD, plural="fail")

# Most severe first: what a reader must not miss.
STATUSES: Mapping[StatusLabel, Term] = {
    StatusLabel.FAILS: Term("fails, no workaround found", StatusLabel.FAILS, "✕", Role.BAD),
    StatusLabel.UNTRIED: Term("fails, workaround not verified here", StatusLabel.UNTRIED, "✕?", Role.BAD),
    StatusLabel.PARTIAL: Term("fails, workaround helps in part", StatusLabel.PARTIAL, "✕½", Role.BAD),
    StatusLabel.WORKAROUND: Term("fails, has a workaround", StatusLabel.WORKAROUND, "✕'", Role.BAD),
    StatusLabel.AS_REPORTED: Term("passes as reported, fails in a variant", StatusLabel.AS_REPORTED, "✓✕", Role.BAD),
    StatusLabel.BIGGER: Term("takes more memory", StatusLabel.BIGGER, "↑", Role.MIXED, plural="take more memory"),
    StatusLabel.MORE_WORK: Term("does more work", StatusLabel.MORE_WORK, "↻", Role.MIXED, plural="do more work"),
    StatusLabel.SLOWER: Term("takes longer", StatusLabel.SLOWER, "◷", Role.MIXED, plural="take longer"),
    StatusLabel.FLAKY: Term("flaky", StatusLabel.FLAKY, "~", Role.MIXED, clause="is flaky"),
    StatusLabel.DIFFERENT: Term("fails differently", StatusLabel.DIFFERENT, "≠", Role.OTHER, plural="fail differently"),
    StatusLabel.UNSURE: Term("cannot say", StatusLabel.UNSURE, "?", Role.UNSURE, preposition="for"),
    StatusLabel.PASSES: Term("passes", StatusLabel.PASSES, "✓", Role.GOOD, plural="pass"),
    StatusLabel.NO_BUILD: Term("cannot be built", StatusLabel.NO_BUILD, "⊘", preposition="for"),
    StatusLabel.NOT_RUN: Term("not run", StatusLabel.NOT_RUN),
    StatusLabel.NOT_APPLICABLE: Term(
        "does not apply", StatusLabel.NOT_APPLICABLE, "·", plural="do not apply", preposition="to"
    ),
}

SEVERITY = {label: rank for rank, label in enumerate(STATUSES)}
"""Lower is more severe."""

# What somebody who runs a build has to expect of an issue there.
PROSPECTS: Mapping[str, Term] = {
    "fails": _FAILS,
    "not_known": Term("not known", plural="are not known"),
    "needs_workaround": Term("needs a workaround", StatusLabel.WORKAROUND, "✕'", Role.BAD, plural="need a workaround"),
    "as_reported": STATUSES[StatusLabel.AS_REPORTED],
    "bigger": STATUSES[StatusLabel.BIGGER],
    "more_work": STATUSES[StatusLabel.MORE_WORK],
    "slower": STATUSES[StatusLabel.SLOWER],
    "passes": STATUSES[StatusLabel.PASSES],
    "does_not_apply": STATUSES[StatusLabel.NOT_APPLICABLE],
}

STATUS_MEANINGS: Mapping[StatusLabel, str] = {
    StatusLabel.PASSES: "the suspect path ran, proven, and gave the right answer",
    StatusLabel.WORKAROUND: (
        "the issue shows, and a measured workaround makes it go away with every variant that fails"
    ),
    StatusLabel.PARTIAL: (
        "the issue shows, and a measured workaround makes it go away with some of the variants that fail"
    ),
    StatusLabel.UNTRIED: (
        "the issue shows, nothing is known to help with all of it, and a workaround was not run here or gave no answer"
    ),
    StatusLabel.FAILS: "the issue shows, and every workaround that applies was run and does not help",
    StatusLabel.AS_REPORTED: "what the report ran passes here, and another variant of it shows the issue",
    StatusLabel.BIGGER: "the answer is right, and takes more memory than the same computation without the suspect path",
    StatusLabel.MORE_WORK: (
        "the answer is right, and takes more compilations, kernels or copies than without the suspect path"
    ),
    StatusLabel.SLOWER: "the answer is right, and takes longer than the same computation without the suspect path",
    StatusLabel.DIFFERENT: "it fails, but not with this issue's own text",
    StatusLabel.FLAKY: "some attempts showed the issue, others passed",
    StatusLabel.UNSURE: "tried, but the evidence is not enough for an answer",
    StatusLabel.NOT_APPLICABLE: "the issue cannot exist on this build or hardware",
    StatusLabel.NO_BUILD: "no such environment can be installed",
    StatusLabel.NOT_RUN: "nobody has measured it yet",
}

VERDICTS: Mapping[str, Term] = {
    "affected": _FAILS,
    "bigger": STATUSES[StatusLabel.BIGGER],
    "more_work": STATUSES[StatusLabel.MORE_WORK],
    "slower": STATUSES[StatusLabel.SLOWER],
    "flaky": STATUSES[StatusLabel.FLAKY],
    "different_failure": STATUSES[StatusLabel.DIFFERENT],
    "inconclusive": STATUSES[StatusLabel.UNSURE],
    "not_affected": STATUSES[StatusLabel.PASSES],
    "no_build": STATUSES[StatusLabel.NO_BUILD],
    "not_run": STATUSES[StatusLabel.NOT_RUN],
    "not_applicable": STATUSES[StatusLabel.NOT_APPLICABLE],
}

# Of a release, over its Pythons: those that neither pass nor fail.
ANSWERS: Mapping[str, Term] = {
    "pythons_disagree": Term("differs by Python", plural="differ by Python"),
    **{
        value: VERDICTS[value]
        for value in ("different_failure", "inconclusive", "no_build", "not_run", "not_applicable")
    },
}

OUTCOMES: Mapping[str, Term] = {
    "match": Term("showed the issue", StatusLabel.FAILS),
    "other_failure": Term("failed otherwise", StatusLabel.DIFFERENT),
    "crash": Term("crashed otherwise", StatusLabel.DIFFERENT),
    "timeout": Term("did not end in time", StatusLabel.UNSURE),
    "env_error": Term("environment trouble", StatusLabel.UNSURE),
    "harness_error": Term("proved nothing", StatusLabel.UNSURE),
    "pass": Term("passed", StatusLabel.PASSES),
    "not_applicable": Term("does not apply", StatusLabel.NOT_APPLICABLE),
    "cancelled": Term("cancelled"),
}

# Best first. A cell that fails in spite of a workaround that helps in part has a symbol of its own.
WORKAROUNDS: Mapping[str, Term] = {
    "effective": Term("works", StatusLabel.PASSES),
    "partial": Term("helps in part", "half"),
    "unnecessary": Term("not needed here", StatusLabel.NOT_APPLICABLE, clause="is not needed"),
    "unverified": Term("not verified", StatusLabel.UNSURE, clause="is not verified"),
    "ineffective": Term("does not help", StatusLabel.FAILS),
    "harmful": Term("does harm", StatusLabel.FAILS),
}


def many(count: int, word: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
