"""The project's own error rates, as JSON."""

from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from knowngood.domain.verdicts.false_changes import ProvisioningTime, TimeSpent
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.web.json_body import AttemptUrl, Body, CellUrl, OfCellBody, read_from


class RateBody(Body):
    """`part` of `whole`, with Wilson's 95 % interval; where `whole` is 0 nothing is known and it is 0 to 1."""

    part: int
    whole: int
    share: float
    low: Annotated[float, BeforeValidator(lambda interval: interval[0])] = read_from("interval")
    high: Annotated[float, BeforeValidator(lambda interval: interval[1])] = read_from("interval")


class PairBody(OfCellBody):
    """One variant of a cell that was asked twice on one machine, and whose first pass and later pass differ."""

    variant: str
    first: Verdict
    later: Verdict
    later_attempts: int = read_from("times")
    url: CellUrl = read_from("key")
    first_url: AttemptUrl = read_from("first_attempt")
    later_url: AttemptUrl = read_from("later_attempt")


class ComparedBody(OfCellBody):
    """One variant of a cell whose verdict is another on another machine of its class; machines go by their digest."""

    variant: str
    verdicts: dict[str, Verdict]
    url: CellUrl = read_from("key")


class FlakyBody(OfCellBody):
    reason: str
    url: CellUrl = read_from("key")


def _rounded(spent: TimeSpent) -> TimeSpent:
    return replace(
        spent,
        starting_s=round(spent.starting_s, 3),
        arms_s=round(spent.arms_s, 3),
        untold_s=round(spent.untold_s, 3),
    )


class ClassQualityBody(Body):
    hardware: str
    false_changes: RateBody = read_from("changed")
    varying_by_machine: RateBody = read_from("varying")
    infrastructure: RateBody
    outcomes: dict[Outcome, int]
    time: Annotated[TimeSpent, AfterValidator(_rounded)] = read_from("spent")


class SideBody(Body):
    build: str
    hardware: str
    verdict: Verdict
    url: CellUrl = read_from("key")


class DifferingBody(Body):
    """Two cells of one issue with different answers."""

    issue: str
    cells: tuple[SideBody, SideBody]


class AgreementBody(Body):
    """How often cells that were measured on both sides have the same verdict, and those that do not. `inferred` says
    whether a cell that is measured on one side alone stands in for the other.
    """

    agreed: RateBody = read_from("rate")
    inferred: bool = read_from("infers")
    differing: Annotated[
        list[DifferingBody],
        BeforeValidator(lambda pairs: [{"issue": cells[0].issue, "cells": cells} for cells in pairs]),
    ]


class PythonsBody(AgreementBody):
    """Of two Pythons of one wheel, the older first. They are inferred by while `agreed.low` is 0.95 or more."""

    pythons: tuple[str, str] = read_from("names")


class QualityBody(Body, json_schema_serialization_defaults_required=True):
    false_changes: Annotated[
        RateBody, Field(description="Of the (cell, variant) pairs asked twice with nothing changed")
    ] = read_from("changed")
    changed: list[PairBody] = read_from("false_changes")
    varying: list[ComparedBody]
    flaky: list[FlakyBody]
    hardware: list[ClassQualityBody] = read_from("classes")
    provisioned: ProvisioningTime
    pythons: list[PythonsBody] = Field(description="Agreement between Pythons, of issues that name none")
    devices: AgreementBody = Field(
        description="Agreement between the CPU and other classes, of issues that do not depend on the device"
    )
