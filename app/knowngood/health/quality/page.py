"""`/quality`: how often this project's own answers change where nothing did."""

from dataclasses import dataclass

from fastapi import APIRouter, Response

from knowngood.domain.rate import Rate
from knowngood.domain.verdicts.false_changes import (
    MachineComparison,
    ProvisioningTime,
    RepeatedPair,
    TimeSpent,
)
from knowngood.domain.verdicts.inference import AGREEMENT
from knowngood.domain.verdicts.verdict import Cell
from knowngood.health.quality.service import Agreement, Quality, load_quality
from knowngood.web.html.i18n import duration
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import API

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Figure:
    """A rate as it is read: `2 of 214`, `0.9 %`, `0.3 to 3.3 %`; the last two are empty where it rests on nothing."""

    count: str
    share: str
    interval: str


@dataclass(frozen=True)
class ClassLine:
    hardware: str
    changed: Figure
    varying: Figure
    infrastructure: Figure


@dataclass(frozen=True)
class AgreementLine:
    """Two Pythons, or the CPU and other classes: how often they agree, and whether one is inferred from the other."""

    name: str
    rate: Figure
    infers: bool
    differing: tuple[tuple[Cell, Cell], ...]


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
    changed: tuple[RepeatedPair, ...]
    varying: tuple[MachineComparison, ...]
    flaky: tuple[Cell, ...]
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
    return context.answer(
        lambda session: load_quality(session, context.known(session).claims),
        lambda found: context.page("quality.html", quality_page(context, found)),
    )


def quality_page(context: RequestContext, found: Quality) -> QualityPage:
    low, high = found.changed.interval
    making = found.provisioned.seconds
    whole = making + found.provisioned.processes_s
    return QualityPage(
        overall=_figure(context, found.changed),
        low=percent(low),
        high=percent(high),
        pairs=found.changed.whole,
        changed=found.false_changes,
        varying=found.varying,
        flaky=found.flaky,
        classes=tuple(
            ClassLine(
                hardware=one.hardware,
                changed=_figure(context, one.changed),
                varying=_figure(context, one.varying),
                infrastructure=_figure(context, one.infrastructure),
            )
            for one in found.classes
        ),
        times=tuple(_time(one.hardware, one.spent) for one in found.classes if one.spent.attempts),
        provisioned=found.provisioned,
        provisioning=percent(making / whole) if whole else "",
        pythons=tuple(_agreement(context, one) for one in found.pythons),
        devices=_agreement(context, found.devices),
        least=f"{AGREEMENT * 100:g} %",
        json_address=f"{API}/quality",
    )


def percent(share: float) -> str:
    """One decimal: with a few hundred pairs there are no more."""
    return f"{100 * share:.1f} %"


def _figure(context: RequestContext, rate: Rate) -> Figure:
    count = context.say("{n} of {all}", n=rate.part, all=rate.whole)
    if not rate.whole:
        return Figure(count, "", "")
    low, high = rate.interval
    return Figure(count, percent(rate.share), context.say("{low} to {high}", low=percent(low), high=percent(high)))


def _agreement(context: RequestContext, found: Agreement) -> AgreementLine:
    name = context.say("{one} and {other}", one=found.one, other=found.other)
    return AgreementLine(name, _figure(context, found.rate), found.infers, found.differing)


def _time(hardware: str, spent: TimeSpent) -> TimeLine:
    def part(seconds: float) -> str:
        return f"{percent(seconds / spent.total_s)} ({duration(seconds)})"

    return TimeLine(hardware, spent.attempts, part(spent.starting_s), part(spent.arms_s), part(spent.untold_s))
