"""The workarounds of an issue as measured on one cell, best first."""

from dataclasses import dataclass

from markupsafe import Markup

from app.domain.issue import Issue
from app.domain.verdict import Cell, WorkaroundFinding, WorkaroundVerdict
from app.web.prose import markdown
from app.web.signs import Sign
from app.web.visit import Visit

_UNTRIED = WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, "not run yet")

WORDS = {
    WorkaroundVerdict.EFFECTIVE: "works",
    WorkaroundVerdict.UNNECESSARY: "not needed here",
    WorkaroundVerdict.UNVERIFIED: "not verified",
    WorkaroundVerdict.INEFFECTIVE: "does not help",
    WorkaroundVerdict.HARMFUL: "does harm",
}

_SIGNS = {
    WorkaroundVerdict.EFFECTIVE: Sign.PASSES,
    WorkaroundVerdict.UNNECESSARY: Sign.NOT_APPLICABLE,
    WorkaroundVerdict.UNVERIFIED: Sign.UNSURE,
    WorkaroundVerdict.INEFFECTIVE: Sign.FAILS,
    WorkaroundVerdict.HARMFUL: Sign.FAILS,
}


@dataclass(frozen=True)
class Remedy:
    """`rank` counts the ones that work from 1; 0 for the rest. `note` says why where it does not simply work."""

    id: str
    title: str
    body: Markup
    trade_off: str
    verdict: WorkaroundVerdict
    sign: Sign
    word: str
    note: str
    rank: int


def remedies_of(issue: Issue, cell: Cell, visit: Visit) -> tuple[Remedy, ...]:
    """Every workaround with what was measured of it on this cell; in the catalogue's order within each verdict."""
    best_first = list(WORDS)
    found = [(one, cell.workarounds.get(one.id, _UNTRIED)) for one in issue.workarounds]
    found.sort(key=lambda pair: best_first.index(pair[1].verdict))
    return tuple(
        Remedy(
            id=one.id,
            title=visit.in_language(one.title, one.title_zh),
            body=markdown(visit.in_language(one.body, one.body_zh)),
            trade_off=visit.in_language(one.trade_off, one.trade_off_zh),
            verdict=finding.verdict,
            sign=_SIGNS[finding.verdict],
            word=visit.say(WORDS[finding.verdict]),
            note=finding.note,
            rank=place if finding.verdict is WorkaroundVerdict.EFFECTIVE else 0,
        )
        for place, (one, finding) in enumerate(found, start=1)
    )
