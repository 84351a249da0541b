"""How far the answers here can be trusted, read from the store: for the page, its twin and whoever else asks."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.rate import Rate
from knowngood.domain.verdicts.false_changes import (
    MachineComparison,
    ProvisioningTime,
    RepeatedPair,
    TimeSpent,
    compared_machines,
    infrastructure_rate,
    pairs_of,
    spent,
)
from knowngood.domain.verdicts.inference import AGREEMENT, Claims, holds
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.store.engine import Session
from knowngood.store.evidence.quality import load_outcomes, load_provisioned, load_times, load_trials


@dataclass(frozen=True)
class ClassQuality:
    """One hardware class. `varying` of the answers that several machines gave differ from machine to machine."""

    hardware: str
    changed: Rate
    varying: Rate
    infrastructure: Rate
    outcomes: Mapping[Outcome, int]
    spent: TimeSpent


@dataclass(frozen=True)
class Agreement:
    """How often two Pythons of one wheel (`one` the older), or the CPU and other classes, say the same of an issue, and
    the pairs of cells that do not. `infers`: cells are inferred from one to the other.
    """

    one: str
    other: str
    rate: Rate
    infers: bool
    differing: tuple[tuple[Cell, Cell], ...]

    @property
    def names(self) -> tuple[str, str]:
        return self.one, self.other


@dataclass(frozen=True)
class Quality:
    """`flaky` are the cells whose own verdict says so. Pairs and comparisons are all of them, agreeing ones too.

    `devices` is the agreement over issues that do not depend on the device, `least` what two Pythons, or devices, need
    to stand in for each other.
    """

    changed: Rate
    pairs: tuple[RepeatedPair, ...]
    compared: tuple[MachineComparison, ...]
    flaky: tuple[Cell, ...]
    classes: tuple[ClassQuality, ...]
    provisioned: ProvisioningTime
    pythons: tuple[Agreement, ...]
    devices: Agreement
    least: float = AGREEMENT

    @property
    def false_changes(self) -> tuple[RepeatedPair, ...]:
        return tuple(pair for pair in self.pairs if pair.is_false_change)

    @property
    def varying(self) -> tuple[MachineComparison, ...]:
        return tuple(one for one in self.compared if one.varies)


def load_quality(session: Session, claims: Claims) -> Quality:
    issues = claims.issues
    trials = load_trials(session)
    outcomes, times = load_outcomes(session), load_times(session)
    pairs, compared = pairs_of(issues, trials), compared_machines(issues, trials)
    return Quality(
        changed=_rate_of([pair.is_false_change for pair in pairs]),
        pairs=pairs,
        compared=compared,
        flaky=tuple(_flaky(claims)),
        classes=tuple(
            ClassQuality(
                hardware=hardware,
                changed=_rate_of([pair.is_false_change for pair in pairs if pair.hardware == hardware]),
                varying=_rate_of([one.varies for one in compared if one.hardware == hardware]),
                infrastructure=infrastructure_rate(counts),
                outcomes=counts,
                spent=spent(times.get(hardware, ())),
            )
            for hardware, counts in outcomes.items()
        ),
        provisioned=load_provisioned(session),
        pythons=tuple(_pythons(claims)),
        devices=Agreement(
            CPU_CLASS,
            "cuda",
            claims.device_agreement,
            claims.carries_to_gpus,
            tuple(_differing(claims.device_pairs)),
        ),
    )


def _flaky(claims: Claims) -> Iterator[Cell]:
    """Issue by issue; workarounds that are flaky do not make a cell so."""
    places = claims.cells if claims.flaky is None else claims.flaky
    cells = (claims.cells[place] for place in sorted(places) if place[0] in claims.issues)
    return (cell for cell in cells if cell.verdict is Verdict.FLAKY)


def _pythons(claims: Claims) -> Iterator[Agreement]:
    for (one, other), rate in claims.agreement.items():
        asked = {one, other}
        pairs = [pair for pair in claims.pairs if {claims.builds[cell.build].python for cell in pair} == asked]
        yield Agreement(one, other, rate, holds(rate), tuple(_differing(pairs)))


def _differing(pairs: Iterable[tuple[Cell, Cell]]) -> Iterator[tuple[Cell, Cell]]:
    return ((one, other) for one, other in pairs if one.verdict is not other.verdict)


def _rate_of(found: list[bool]) -> Rate:
    return Rate(sum(found), len(found))
