"""The project's own error rates, as JSON."""

from pydantic import BaseModel, Field

from knowngood.app.domain.verdicts.false_changes import MachineComparison, Rate, RepeatedPair, TimeSpent
from knowngood.app.domain.verdicts.outcome import Outcome
from knowngood.app.domain.verdicts.verdict import Cell, Verdict
from knowngood.app.features.quality.service import Agreement, ClassQuality, Quality
from knowngood.app.web.urls import attempt_address, cell_address


class RateBody(BaseModel):
    """`part` of `whole`, with Wilson's 95 % interval; where `whole` is 0 nothing is known and it is 0 to 1."""

    part: int
    whole: int
    share: float
    low: float
    high: float


class PairBody(BaseModel):
    """One variant of a cell that was asked twice on one machine, and whose first pass and later pass differ."""

    issue: str
    build: str
    hardware: str
    variant: str
    first: Verdict
    later: Verdict
    later_attempts: int
    url: str
    first_url: str
    later_url: str


class ComparedBody(BaseModel):
    """One variant of a cell whose verdict is another on another machine of its class; machines go by their digest."""

    issue: str
    build: str
    hardware: str
    variant: str
    verdicts: dict[str, Verdict]
    url: str


class FlakyBody(BaseModel):
    issue: str
    build: str
    hardware: str
    reason: str
    url: str


class SpentBody(BaseModel):
    """Seconds over `attempts`: Python's start, `import torch` and the exit; the arms; processes that could not tell."""

    attempts: int
    starting_s: float
    arms_s: float
    untold: int
    untold_s: float


class ProvisionedBody(BaseModel):
    """Seconds that environments took, beside the processes that then ran in them; jobs of this store alone."""

    environments: int
    seconds: float
    attempts: int
    processes_s: float


class ClassQualityBody(BaseModel):
    hardware: str
    false_changes: RateBody
    varying_by_machine: RateBody
    infrastructure: RateBody
    outcomes: dict[Outcome, int]
    time: SpentBody


class SideBody(BaseModel):
    build: str
    hardware: str
    verdict: Verdict
    url: str


class DifferingBody(BaseModel):
    """Two cells of one issue with different answers."""

    issue: str
    cells: tuple[SideBody, SideBody]


class AgreementBody(BaseModel):
    """How often cells that were measured on both sides have the same verdict, and those that do not. `inferred` says
    whether a cell that is measured on one side alone stands in for the other.
    """

    agreed: RateBody
    inferred: bool
    differing: list[DifferingBody]


class PythonsBody(AgreementBody):
    """Of two Pythons of one wheel, the older first. They are inferred by while `agreed.low` is 0.95 or more."""

    pythons: tuple[str, str]


class QualityBody(BaseModel):
    false_changes: RateBody = Field(description="Of the (cell, variant) pairs asked twice with nothing changed")
    changed: list[PairBody]
    varying: list[ComparedBody]
    flaky: list[FlakyBody]
    hardware: list[ClassQualityBody]
    provisioned: ProvisionedBody
    pythons: list[PythonsBody] = Field(description="Agreement between Pythons, of issues that name none")
    devices: AgreementBody = Field(
        description="Agreement between the CPU and other classes, of issues that do not depend on the device"
    )


def quality_body(found: Quality) -> QualityBody:
    return QualityBody(
        false_changes=_rate(found.changed),
        changed=[_pair(pair) for pair in found.pairs if pair.is_false_change],
        varying=[_compared(one) for one in found.compared if one.varies],
        flaky=[_flaky(cell) for cell in found.flaky],
        hardware=[_class(one) for one in found.classes],
        provisioned=ProvisionedBody(**vars(found.provisioned)),
        pythons=[PythonsBody(pythons=(one.one, one.other), **vars(_agreement(one))) for one in found.pythons],
        devices=_agreement(found.devices),
    )


def _agreement(found: Agreement) -> AgreementBody:
    differing = [DifferingBody(issue=one.issue, cells=(_side(one), _side(other))) for one, other in found.differing]
    return AgreementBody(agreed=_rate(found.rate), inferred=found.infers, differing=differing)


def _side(cell: Cell) -> SideBody:
    address = cell_address(cell.issue, cell.build, cell.hardware)
    return SideBody(build=cell.build, hardware=cell.hardware, verdict=cell.verdict, url=address)


def _rate(rate: Rate) -> RateBody:
    low, high = rate.interval
    return RateBody(part=rate.part, whole=rate.whole, share=rate.share, low=low, high=high)


def _pair(pair: RepeatedPair) -> PairBody:
    return PairBody(
        issue=pair.issue,
        build=pair.build,
        hardware=pair.hardware,
        variant=pair.variant,
        first=pair.first,
        later=pair.later,
        later_attempts=pair.times,
        url=cell_address(pair.issue, pair.build, pair.hardware),
        first_url=attempt_address(pair.first_attempt),
        later_url=attempt_address(pair.later_attempt),
    )


def _compared(one: MachineComparison) -> ComparedBody:
    return ComparedBody(**vars(one), url=cell_address(one.issue, one.build, one.hardware))


def _flaky(cell: Cell) -> FlakyBody:
    address = cell_address(cell.issue, cell.build, cell.hardware)
    return FlakyBody(issue=cell.issue, build=cell.build, hardware=cell.hardware, reason=cell.reason, url=address)


def _class(one: ClassQuality) -> ClassQualityBody:
    return ClassQualityBody(
        hardware=one.hardware,
        false_changes=_rate(one.changed),
        varying_by_machine=_rate(one.varying),
        infrastructure=_rate(one.infrastructure),
        outcomes=dict(one.outcomes),
        time=_spent(one.spent),
    )


def _spent(spent: TimeSpent) -> SpentBody:
    return SpentBody(
        attempts=spent.attempts,
        starting_s=round(spent.starting_s, 3),
        arms_s=round(spent.arms_s, 3),
        untold=spent.untold,
        untold_s=round(spent.untold_s, 3),
    )
