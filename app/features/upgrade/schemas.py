"""An upgrade's answer as JSON."""

from datetime import datetime

from pydantic import BaseModel

from knowngood.app.domain.issue import Severity
from knowngood.app.domain.verdicts.verdict import Assurance, Verdict
from knowngood.app.features.compare.comparison import Group
from knowngood.app.features.upgrade.candidates import Candidate, Item, Missing, Prospect, Rating, Tally
from knowngood.app.features.upgrade.ranking import UpgradeAdvice, UpgradeDecision
from knowngood.app.features.upgrade.wording import answer, requirements
from knowngood.app.web.urls import build_address, cell_address, issue_address


class ItemBody(BaseModel):
    """One watched issue on one candidate. `group` is what became of it, as `/api/v1/compare` has it; `runs` how many
    attempts each side rests on at least, and `assurance` that of the weaker side. `measured_on` is the build whose cell
    the answer stands on. `workarounds` are those that help there.
    """

    issue: str
    title: str
    severity: Severity
    silent: bool
    prospect: Prospect
    group: Group
    assurance: Assurance
    runs: int
    hardware: str
    before: Verdict
    after: Verdict
    measured_on: str
    measured_at: datetime | None
    workarounds: list[str]
    url: str
    evidence_url: str


class MissingBody(BaseModel):
    """The watched issues without an answer: `to_run` were never run there, `to_ask_again` gave no answer, `closed`
    cannot be run. `seconds` is an estimate of the commands' time, one arm after another; `guessed` of its `arms` were
    never timed.
    """

    to_run: list[str]
    to_ask_again: list[str]
    closed: list[str]
    arms: int
    guessed: int
    seconds: float
    commands: list[str]


class CandidateBody(BaseModel):
    """`coverage` is `measured` of `applicable`: the share of the watched issues that have an answer there; `assurance`
    the share of those not known to fail there that are known to pass: it decides whether enough is measured. `gain` is
    the weight of what is gained, less that of what newly needs a workaround.
    """

    build: str
    rating: Rating
    why: str
    counts: dict[Tally, int]
    measured: int
    applicable: int
    coverage: float
    assurance: float
    gain: int
    missing: MissingBody
    items: list[ItemBody]
    url: str


class LeftOutBody(BaseModel):
    """A newer build that breaks a constraint."""

    build: str
    reasons: list[str]


class FindOutBody(BaseModel):
    """What would have to be measured before more can be said."""

    what: str
    commands: list[str]


class UpgradeBody(BaseModel):
    """`base` is the build one is on, held to the same standard as the `candidates`, which stand best first. `build` and
    `requirements` are those of the recommended one.
    """

    decision: UpgradeDecision
    answer: str
    start: str
    build: str | None
    requirements: list[str]
    watched: list[str]
    hardware: list[str]
    constraints: list[str]
    enough: float
    failing: list[str]
    find_out: list[FindOutBody]
    base: CandidateBody
    candidates: list[CandidateBody]
    left_out: list[LeftOutBody]
    notes: list[str]


def upgrade_body(advice: UpgradeAdvice) -> UpgradeBody:
    best = advice.best
    return UpgradeBody(
        decision=advice.decision,
        answer=answer(advice),
        start=advice.start.id,
        build=best.build.id if best else None,
        requirements=list(requirements(best.build)) if best else [],
        watched=[issue.id for issue in advice.watched],
        hardware=list(advice.hardware),
        constraints=list(advice.constraints.in_words),
        enough=advice.enough,
        failing=list(advice.failing),
        find_out=[FindOutBody(what=str(one.what), commands=list(one.commands)) for one in advice.find_out],
        base=_candidate(advice.base),
        candidates=[_candidate(one) for one in advice.candidates],
        left_out=[LeftOutBody(build=one.build.id, reasons=list(one.reasons)) for one in advice.left_out],
        notes=list(advice.notes),
    )


def _candidate(one: Candidate) -> CandidateBody:
    return CandidateBody(
        build=one.build.id,
        rating=one.rating,
        why=str(one.why),
        counts=dict(one.counts),
        measured=one.measured,
        applicable=one.applicable,
        coverage=round(one.coverage, 4),
        assurance=round(one.assurance, 4),
        gain=one.gain,
        missing=_missing(one.missing, one.build.id),
        items=[_item(item) for item in one.items],
        url=build_address(one.build.id),
    )


def _missing(missing: Missing, build: str) -> MissingBody:
    return MissingBody(
        to_run=list(missing.to_run),
        to_ask_again=list(missing.to_ask_again),
        closed=list(missing.closed),
        arms=missing.price.arms,
        guessed=missing.price.guessed,
        seconds=missing.price.seconds,
        commands=list(missing.commands(build)),
    )


def _item(item: Item) -> ItemBody:
    cell = item.after
    return ItemBody(
        issue=item.issue.id,
        title=item.issue.title,
        severity=item.issue.severity,
        silent=item.issue.silent,
        prospect=item.prospect,
        group=item.group,
        assurance=item.assurance,
        runs=item.runs,
        hardware=cell.hardware,
        before=item.before.verdict,
        after=cell.verdict,
        measured_on=cell.basis.build if cell.basis else cell.build,
        measured_at=cell.measured_at,
        workarounds=list(item.workarounds),
        url=issue_address(item.issue.id, build=cell.build, hardware=cell.hardware),
        evidence_url=cell_address(cell.issue, cell.build, cell.hardware),
    )
