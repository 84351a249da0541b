"""How far the answers here can be trusted, read from the store: for the page and its JSON."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

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
from knowngood.domain.verdicts.inference import Claims, holds
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.serialization.message_field import MessageField
from knowngood.store.engine import Session
from knowngood.store.evidence.quality import load_outcomes, load_provisioned, load_times, load_trials
from knowngood.web.json_body import AttemptUrl, Body, CellUrl, OfCellBody, fields_of, read_from


class RateBody(Body):
    """`part` of `whole`, with Wilson's 95 % interval; where `whole` is 0 nothing is known and it is 0 to 1."""

    part: int
    whole: int
    share: float
    low: float = read_from("interval", 0)
    high: float = read_from("interval", 1)


class LinkedCellBody(OfCellBody):
    """A remark on one cell, with the address of its page."""

    url: CellUrl = read_from("key")


@fields_of(RepeatedPair, without={"first_attempt", "later_attempt", "times"})
class PairBody(LinkedCellBody):
    """One variant of a cell that was asked twice on one machine, and whose first pass and later pass differ."""

    later_attempts: int = read_from("times")
    first_url: AttemptUrl = read_from("first_attempt")
    later_url: AttemptUrl = read_from("later_attempt")


@fields_of(MachineComparison)
class ComparedBody(LinkedCellBody):
    """One variant of a cell whose verdict is another on another machine of its class; machines go by their digest."""


class FlakyBody(LinkedCellBody):
    reason: MessageField


class SideBody(Body):
    build: str
    hardware: str
    verdict: Verdict
    url: CellUrl = read_from("key")


@dataclass(frozen=True)
class ClassQuality:
    """One hardware class. `varying_by_machine`: of the answers that several machines gave, those that differ."""

    hardware: str
    false_changes: RateBody
    varying_by_machine: RateBody
    infrastructure: RateBody
    outcomes: Mapping[Outcome, int]
    time: TimeSpent


@dataclass(frozen=True)
class Differing:
    """Two cells of one issue with different answers."""

    issue: str
    cells: tuple[SideBody, SideBody]


@dataclass(frozen=True)
class Agreement:
    """How often cells that were measured on both sides have the same verdict, and those that do not. `inferred` says
    whether a cell that is measured on one side alone stands in for the other.
    """

    agreed: RateBody
    inferred: bool
    differing: tuple[Differing, ...]


@dataclass(frozen=True)
class PythonAgreement(Agreement):
    """Of two Pythons of one wheel, the older first. They are inferred by while `agreed.low` is 0.95 or more."""

    pythons: tuple[str, str]


@dataclass(frozen=True)
class Quality:
    """`flaky` are the cells whose own verdict says so."""

    false_changes: Annotated[
        RateBody, Field(description="Of the (cell, variant) pairs asked twice with nothing changed")
    ]
    changed: tuple[PairBody, ...]
    varying: tuple[ComparedBody, ...]
    flaky: tuple[FlakyBody, ...]
    hardware: tuple[ClassQuality, ...]
    provisioned: ProvisioningTime
    pythons: Annotated[
        tuple[PythonAgreement, ...], Field(description="Agreement between Pythons, of issues that name none")
    ]
    devices: Annotated[
        Agreement,
        Field(description="Agreement between the CPU and other classes, of issues that do not depend on the device"),
    ]
    composed: Annotated[
        tuple[PythonAgreement, ...],
        Field(description="Agreement between the CPU with one Python and other classes with another, of these issues"),
    ]


def load_quality(session: Session, claims: Claims) -> Quality:
    issues = claims.issues
    trials = load_trials(session)
    outcomes, times = load_outcomes(session), load_times(session)
    pairs, compared = pairs_of(issues, trials), compared_machines(issues, trials)
    return Quality(
        false_changes=_rate_of([pair.is_false_change for pair in pairs]),
        changed=tuple(PairBody.of(pair) for pair in pairs if pair.is_false_change),
        varying=tuple(ComparedBody.of(cell) for cell in compared if cell.varies),
        flaky=tuple(FlakyBody.of(cell) for cell in _flaky(claims)),
        hardware=tuple(
            ClassQuality(
                hardware=hardware,
                false_changes=_rate_of([pair.is_false_change for pair in pairs if pair.hardware == hardware]),
                varying_by_machine=_rate_of([cell.varies for cell in compared if cell.hardware == hardware]),
                infrastructure=RateBody.of(infrastructure_rate(counts)),
                outcomes=counts,
                time=spent(times.get(hardware, ())),
            )
            for hardware, counts in outcomes.items()
        ),
        provisioned=load_provisioned(session),
        pythons=tuple(_pythons(claims)),
        devices=Agreement(
            RateBody.of(claims.device_agreement), claims.carries_to_gpus, _differing(claims.device_pairs)
        ),
        composed=tuple(
            PythonAgreement(
                RateBody.of(Rate(sum(cpu.verdict is gpu.verdict for cpu, gpu in pairs), len(pairs))),
                claims.carries_to_gpus and holds(claims.composed_agreement.get(pythons, Rate(0, 0))),
                _differing(pairs),
                pythons,
            )
            for pythons, pairs in claims.composed_pairs.items()
        ),
    )


def _flaky(claims: Claims) -> Iterator[Cell]:
    """Issue by issue; workarounds that are flaky do not make a cell so."""
    places = claims.cells if claims.flaky is None else claims.flaky
    cells = (claims.cells[place] for place in sorted(places) if place[0] in claims.issues)
    return (cell for cell in cells if cell.verdict is Verdict.FLAKY)


def _pythons(claims: Claims) -> Iterator[PythonAgreement]:
    for (python, other), rate in claims.agreement.items():
        pythons = {python, other}
        pairs = [pair for pair in claims.pairs if {claims.builds[cell.build].python for cell in pair} == pythons]
        yield PythonAgreement(RateBody.of(rate), holds(rate), _differing(pairs), (python, other))


def _differing(pairs: Iterable[tuple[Cell, Cell]]) -> tuple[Differing, ...]:
    return tuple(
        Differing(cell.issue, (SideBody.of(cell), SideBody.of(other)))
        for cell, other in pairs
        if cell.verdict is not other.verdict
    )


def _rate_of(flags: list[bool]) -> RateBody:
    return RateBody.of(Rate(sum(flags), len(flags)))
