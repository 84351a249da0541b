"""An upgrade's answer as JSON."""

from datetime import datetime

from pydantic import BaseModel

from app.domain.issue import Severity
from app.domain.prospects import Candidate, Item, Missing, Prospect, Rating
from app.domain.upgrade import Advice, Decision
from app.domain.verdict import Verdict
from app.formats.upgrade_words import answer, requirements
from app.web.addresses import build_address, cell_address, issue_address


class ItemBody(BaseModel):
    """One watched issue on one candidate. `measured_on` is the very build that answers: another Python of the candidate
    may. `is_new`: it fails there and is not known to fail where one is now. `cures` are workarounds that help there.
    """

    issue: str
    title: str
    severity: Severity
    silent: bool
    prospect: Prospect
    is_new: bool
    hardware: str
    before: Verdict
    after: Verdict
    measured_on: str
    measured_at: datetime | None
    cures: list[str]
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
    """`coverage` is the share of the watched issues that have an answer there; `assurance` the share of those not known
    to fail there that are known to pass: it decides whether enough is measured.
    """

    build: str
    rating: Rating
    why: str
    counts: dict[Prospect, int]
    coverage: float
    assurance: float
    gain: int
    requirements: list[str]
    missing: MissingBody
    items: list[ItemBody]
    url: str


class LeftOutBody(BaseModel):
    """A newer build that breaks a constraint."""

    build: str
    reasons: list[str]


class UpgradeBody(BaseModel):
    """`candidates` stand best first. `failing` are the watched issues that fail on the build one is on; `enough` is the
    assurance that a recommendation asks for.
    """

    decision: Decision
    answer: str
    start: str
    build: str | None
    watched: list[str]
    hardware: list[str]
    constraints: list[str]
    enough: float
    failing: list[str]
    unmeasured: MissingBody
    candidates: list[CandidateBody]
    left_out: list[LeftOutBody]
    notes: list[str]


def upgrade_body(advice: Advice) -> UpgradeBody:
    return UpgradeBody(
        decision=advice.decision,
        answer=answer(advice),
        start=advice.start.id,
        build=advice.best.build.id if advice.best else None,
        watched=[issue.id for issue in advice.watched],
        hardware=list(advice.hardware),
        constraints=list(advice.constraints.in_words),
        enough=advice.enough,
        failing=list(advice.failing),
        unmeasured=_missing(advice.unmeasured, advice.start.id),
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
        coverage=round(one.coverage, 4),
        assurance=round(one.assurance, 4),
        gain=one.gain,
        requirements=list(requirements(one.build)),
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
        is_new=item.is_new,
        hardware=cell.hardware,
        before=item.before.verdict,
        after=cell.verdict,
        measured_on=cell.build,
        measured_at=cell.measured_at,
        cures=list(item.cures),
        url=issue_address(item.issue.id, build=cell.build, hardware=cell.hardware),
        evidence_url=cell_address(cell.issue, cell.build, cell.hardware),
    )
