"""`/quality`: how often this project's own answers change where nothing did."""

from dataclasses import dataclass

from fastapi import APIRouter, Response

from knowngood.app.domain.verdicts.false_changes import (
    MachineComparison,
    ProvisioningTime,
    Rate,
    RepeatedPair,
    TimeSpent,
)
from knowngood.app.domain.verdicts.inference import AGREEMENT
from knowngood.app.domain.verdicts.verdict import Cell, Verdict
from knowngood.app.features.quality.service import Agreement, ClassQuality, load_quality
from knowngood.app.web.html.i18n import duration
from knowngood.app.web.html.status_labels import WORDS, StatusLabel, sign_of_verdict
from knowngood.app.web.request_context import Context, RequestContext
from knowngood.app.web.urls import API, attempt_address, cell_address

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Figure:
    """A rate as it is read: `2 of 214`, `0.9 %`, `0.3 to 3.3 %`; the last two are empty where it rests on nothing."""

    count: str
    share: str
    interval: str


@dataclass(frozen=True)
class Chip:
    sign: StatusLabel
    word: str


@dataclass(frozen=True)
class ChangedLine:
    pair: RepeatedPair
    address: str
    first: Chip
    first_address: str
    later: Chip
    later_address: str


@dataclass(frozen=True)
class VaryingLine:
    one: MachineComparison
    address: str
    chips: tuple[Chip, ...]


@dataclass(frozen=True)
class FlakyLine:
    cell: Cell
    address: str


@dataclass(frozen=True)
class ClassLine:
    hardware: str
    changed: Figure
    varying: Figure
    infrastructure: Figure


@dataclass(frozen=True)
class DifferingLine:
    """Two cells of one issue with different answers."""

    issue: str
    one: Chip
    one_build: str
    one_address: str
    other: Chip
    other_build: str
    other_address: str


@dataclass(frozen=True)
class AgreementLine:
    """Two Pythons, or the CPU and other classes: how often they agree, and whether one is inferred from the other."""

    name: str
    rate: Figure
    infers: bool
    differing: tuple[DifferingLine, ...]


@dataclass(frozen=True)
class TimeLine:
    """Of one hardware class: each part as its share and its time."""

    hardware: str
    attempts: int
    starting: str
    arms: str
    untold: str


@dataclass(frozen=True)
class QualityPage:
    overall: Figure
    low: str
    high: str
    pairs: int
    changed: tuple[ChangedLine, ...]
    varying: tuple[VaryingLine, ...]
    flaky: tuple[FlakyLine, ...]
    classes: tuple[ClassLine, ...]
    times: tuple[TimeLine, ...]
    provisioned: ProvisioningTime
    provisioning: str
    pythons: tuple[AgreementLine, ...]
    devices: AgreementLine
    least: str
    json_address: str


@router.get("/quality")
def quality(context: Context) -> Response:
    with context.reading() as session:
        found = load_quality(session, context.known(session).claims)
    low, high = found.changed.interval
    page = QualityPage(
        overall=_figure(context, found.changed),
        low=percent(low),
        high=percent(high),
        pairs=found.changed.whole,
        changed=tuple(_changed(context, pair) for pair in found.pairs if pair.is_false_change),
        varying=tuple(_varying(context, one) for one in found.compared if one.varies),
        flaky=tuple(FlakyLine(cell, cell_address(cell.issue, cell.build, cell.hardware)) for cell in found.flaky),
        classes=tuple(_class(context, one) for one in found.classes),
        times=tuple(_time(one.hardware, one.spent) for one in found.classes if one.spent.attempts),
        provisioned=found.provisioned,
        provisioning=_provisioning(found.provisioned),
        pythons=tuple(_agreement(context, one) for one in found.pythons),
        devices=_agreement(context, found.devices),
        least=f"{AGREEMENT * 100:g} %",
        json_address=f"{API}/quality",
    )
    return context.page("quality.html", page)


def percent(share: float) -> str:
    """One decimal: with a few hundred pairs there are no more."""
    return f"{100 * share:.1f} %"


def _figure(context: RequestContext, rate: Rate) -> Figure:
    count = context.say("{n} of {all}", n=rate.part, all=rate.whole)
    if not rate.whole:
        return Figure(count, "", "")
    low, high = rate.interval
    return Figure(count, percent(rate.share), context.say("{low} to {high}", low=percent(low), high=percent(high)))


def _class(context: RequestContext, one: ClassQuality) -> ClassLine:
    return ClassLine(
        hardware=one.hardware,
        changed=_figure(context, one.changed),
        varying=_figure(context, one.varying),
        infrastructure=_figure(context, one.infrastructure),
    )


def _chip(context: RequestContext, verdict: Verdict) -> Chip:
    sign = sign_of_verdict(verdict)
    return Chip(sign, context.say(WORDS[sign]))


def _changed(context: RequestContext, pair: RepeatedPair) -> ChangedLine:
    return ChangedLine(
        pair=pair,
        address=cell_address(pair.issue, pair.build, pair.hardware),
        first=_chip(context, pair.first),
        first_address=attempt_address(pair.first_attempt),
        later=_chip(context, pair.later),
        later_address=attempt_address(pair.later_attempt),
    )


def _varying(context: RequestContext, one: MachineComparison) -> VaryingLine:
    chips = tuple(_chip(context, verdict) for verdict in dict.fromkeys(one.verdicts.values()))
    return VaryingLine(one, cell_address(one.issue, one.build, one.hardware), chips)


def _agreement(context: RequestContext, found: Agreement) -> AgreementLine:
    name = context.say("{one} and {other}", one=found.one, other=found.other)
    lines = tuple(_differing(context, one, other) for one, other in found.differing)
    return AgreementLine(name, _figure(context, found.rate), found.infers, lines)


def _differing(context: RequestContext, one: Cell, other: Cell) -> DifferingLine:
    return DifferingLine(
        issue=one.issue,
        one=_chip(context, one.verdict),
        one_build=one.build,
        one_address=cell_address(one.issue, one.build, one.hardware),
        other=_chip(context, other.verdict),
        other_build=other.build if other.build != one.build else other.hardware,
        other_address=cell_address(other.issue, other.build, other.hardware),
    )


def _time(hardware: str, spent: TimeSpent) -> TimeLine:
    def part(seconds: float) -> str:
        return f"{percent(seconds / spent.total_s)} ({duration(seconds)})"

    return TimeLine(hardware, spent.attempts, part(spent.starting_s), part(spent.arms_s), part(spent.untold_s))


def _provisioning(found: ProvisioningTime) -> str:
    whole = found.seconds + found.processes_s
    return percent(found.seconds / whole) if whole else ""
