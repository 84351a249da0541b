"""How far the answers here can be trusted, read from the store: for the page, its twin and whoever else asks."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.outcome import Outcome
from app.domain.quality import (
    Compared,
    Pair,
    Provisioned,
    Rate,
    Spent,
    compared_machines,
    infrastructure_rate,
    pairs_of,
    spent,
)
from app.domain.verdict import Cell, Verdict
from app.store.quality import load_outcomes, load_provisioned, load_times, load_trials
from app.store.reads import load_cells, load_issues
from app.store.session import Session


@dataclass(frozen=True)
class ClassQuality:
    """One hardware class. `varying` of the answers that several machines gave differ from machine to machine."""

    hardware: str
    changed: Rate
    varying: Rate
    infrastructure: Rate
    outcomes: Mapping[Outcome, int]
    spent: Spent


@dataclass(frozen=True)
class Quality:
    """`flaky` are the cells whose own verdict says so. Pairs and comparisons are all of them, agreeing ones too."""

    changed: Rate
    pairs: tuple[Pair, ...]
    compared: tuple[Compared, ...]
    flaky: tuple[Cell, ...]
    classes: tuple[ClassQuality, ...]
    provisioned: Provisioned


def load_quality(session: Session) -> Quality:
    issues = {issue.id: issue for issue in load_issues(session)}
    trials = load_trials(session)
    outcomes, times = load_outcomes(session), load_times(session)
    pairs, compared = pairs_of(issues, trials), compared_machines(issues, trials)
    return Quality(
        changed=_changed(pairs),
        pairs=pairs,
        compared=compared,
        flaky=tuple(cell for cell in load_cells(session, issues=issues) if cell.verdict is Verdict.FLAKY),
        classes=tuple(
            ClassQuality(
                hardware=hardware,
                changed=_changed([pair for pair in pairs if pair.hardware == hardware]),
                varying=_varying([one for one in compared if one.hardware == hardware]),
                infrastructure=infrastructure_rate(counts),
                outcomes=counts,
                spent=spent(times.get(hardware, ())),
            )
            for hardware, counts in outcomes.items()
        ),
        provisioned=load_provisioned(session),
    )


def _changed(pairs: tuple[Pair, ...] | list[Pair]) -> Rate:
    return Rate(sum(1 for pair in pairs if pair.is_false_change), len(pairs))


def _varying(compared: list[Compared]) -> Rate:
    return Rate(sum(1 for one in compared if one.varies), len(compared))
