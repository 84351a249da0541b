"""`/api/v1/cells/{issue}/{build}`: one cell with its evidence.

`/api/v1/attempts`: the evidence of an issue, newest first, and all there is of one attempt.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import AfterValidator, BeforeValidator, Field

from knowngood.domain.hardware_classes import with_isa_classes
from knowngood.domain.measuring.isolation import Isolation
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.verdicts.changes import Cause, CellNews
from knowngood.domain.verdicts.outcome import Outcome, ProofLevel, RunRecord
from knowngood.domain.verdicts.status import ranked
from knowngood.domain.verdicts.verdict import Cell, Difference, OfCell, VariantFinding, WorkaroundFinding
from knowngood.domain.verdicts.workaround_cost import Cost
from knowngood.matrix.evidence.service import CHANGES_SHOWN, CellEvidence, cell_sentence, load_cell_evidence, timed_of
from knowngood.matrix.issues.workarounds import costs_on
from knowngood.matrix.lookups import find_attempt, find_issue
from knowngood.matrix.overview.selection import Names, Several, Words, known_classes, named_builds
from knowngood.matrix.schemas import LEFT_OUT, CellBody, cell_fields
from knowngood.store.engine import Session
from knowngood.store.evidence.changes import load_cell_news
from knowngood.store.queries import AttemptRow, load_builds, load_hardware, load_recent_attempts
from knowngood.web.json_body import AttemptUrl, Body, English, fields_of, read_from
from knowngood.web.pagination import Paging, answer, in_parts, newest_after, next_of, one_of
from knowngood.web.parameter_validation import Written, last_moment
from knowngood.web.request_context import Context

router = APIRouter()


class AttemptSummaryBody(Body):
    """`counted` is false where the repro has changed since, and where it was `voided`. `proof` is `call` where the
    harness looked at the suspect call, `process` where it looked at the process around it.
    """

    id: str = read_from("attempt", "id")
    arm: str = read_from("attempt", "arm")
    variant: str = read_from("attempt", "variant")
    ordinal: int = read_from("attempt", "ordinal")
    outcome: Outcome = read_from("judgement", "outcome")
    reason: English = read_from("judgement", "reason")
    signature_line: str = read_from("judgement", "line")
    proof: ProofLevel = read_from("attempt", "record", "proof")
    counted: bool
    voided: Annotated[bool, BeforeValidator(lambda void: void is not None)] = read_from("void")
    wall_s: float = read_from("attempt", "record", "wall_s")
    started_at: datetime = read_from("attempt", "started_at")
    finished_at: datetime = read_from("attempt", "finished_at")
    url: AttemptUrl = read_from("attempt", "id")


@fields_of(OfCell, "attempt")
class AttemptListedBody(AttemptSummaryBody):
    """A line of a list over several cells."""


class AttemptsBody(Body):
    """Newest first. `next` is the address of older ones (null: there are none)."""

    attempts: list[AttemptListedBody]
    next: str | None


class GpuBody(Body):
    name: str
    compute_capability: Annotated[str, BeforeValidator(lambda parts: ".".join(map(str, parts)))] = read_from(
        "capability"
    )
    memory_bytes: int


@fields_of(Machine)
class MachineBody(Body):
    gpus: list[GpuBody]


class VoidedBody(Body):
    """Who said that it does not count, when and why."""

    by: str = read_from("actor")
    at: datetime
    reason: str


@fields_of(RunRecord, "attempt", "record")
class AttemptBody(AttemptListedBody, json_schema_serialization_defaults_required=True):
    """All evidence of one attempt, as measured, with today's judgement of it.

    `void`, `received_at` (null: before that was kept) and `received_through` (the name of a token; empty: none) are
    this server's own words; what else there is the worker said. `differs` is what a pass observed otherwise than every
    control, for which it does not count as one (null: nothing).
    """

    differs: Difference | None = read_from("difference")
    isolation: Isolation = read_from("attempt", "record", "isolation")
    binding: str = read_from("attempt", "binding")
    origin: str = read_from("attempt", "origin")
    packages: dict[str, str]
    machine: Annotated[MachineBody | None, BeforeValidator(lambda machine: machine and machine.brief)]
    log: str
    log_url: Annotated[AttemptUrl, AfterValidator(lambda url: f"{url}/log.txt")] = read_from("attempt", "id")
    lock_url: Annotated[
        str | None, BeforeValidator(lambda lock, info: f"{info.data['url']}/pylock.toml" if lock else None)
    ] = read_from("lock")
    void: VoidedBody | None
    received_at: datetime | None
    received_through: str = read_from("token_name")


@fields_of(VariantFinding)
class VariantFindingBody(Body):
    """The baseline's verdict with one variant: `k` of `n` attempts that said anything ended with the signature."""


@fields_of(WorkaroundFinding, without={"helped", "failed", "untried", "runs", "ground"})
class WorkaroundFindingBody(Body):
    """`applies` is false where there is nothing to try on this build: unverified then, and not missing.

    `cost` is null where nothing comparable was measured. The recommended workaround stands first.
    """

    id: str
    title: str
    title_zh: str
    cost: Cost | None


@fields_of(CellNews, without={"issue", "build", "hardware", "workarounds", "otherwise", "event"})
class CellStepBody(Body):
    """One step of this cell: its verdict before and after, and what made it so."""

    cause: Cause


@fields_of(Cell, without=LEFT_OUT - {"superseded", "voided", "differences", "amounts"})
class CellDetailBody(CellBody, json_schema_serialization_defaults_required=True):
    """`superseded` counts attempts of an older repro, `voided` those of a worker whose results were voided: they stand
    in `evidence`, the newest 100 attempts, and do not count. `differences` are passes that do not count as such: their
    values are not those of any control; without values no control was run with their variant.

    `changes` are the newest 20 steps, the newest first.
    """

    sentence: str
    caveat: str = ""
    variants: list[VariantFindingBody]
    findings: list[WorkaroundFindingBody]
    changes: list[CellStepBody]
    evidence: list[AttemptSummaryBody]


def cell_detail(evidence: CellEvidence, now: datetime, news: Iterable[CellNews]) -> CellDetailBody:
    """`news` stand in the order in which they happened."""
    cell = evidence.cell
    costs = costs_on(evidence.issue, cell, timed_of(evidence.supporting))
    return CellDetailBody(
        **cell_fields(cell, evidence.build, now)
        | {
            "sentence": cell_sentence(evidence),
            "caveat": evidence.issue.caveat,
            "findings": [
                WorkaroundFindingBody(
                    id=one.id, title=one.title, title_zh=one.title_zh, cost=costs.get(one.id), **vars(finding)
                )
                for one, finding in ranked(evidence.issue, cell)
            ],
            "changes": list(news)[::-1],
            "evidence": evidence.attempts,
        }
    )


@router.get("/cells/{issue}/{build}", response_model=CellDetailBody, tags=["cells"])
def cell(
    context: Context,
    issue: str,
    build: str,
    hardware: Annotated[Words, Query(description="The hardware class; none means the first that was measured")] = "",
    at: Annotated[
        Written, Query(description="As known at this time: what attempts finished by then say by today's rules")
    ] = None,
) -> Response:
    """One cell with its newest 100 attempts, superseded ones too, as known now; or with all of them, at a past time."""
    then = None if at is None else last_moment(at, "at", context.now)
    now = then or context.now

    def load(session: Session) -> CellDetailBody:
        evidence = load_cell_evidence(session, context.known(session), issue, build, hardware, at=then)
        news = load_cell_news(session, *evidence.cell.key, CHANGES_SHOWN)
        return cell_detail(evidence, now, [change for change in news if change.at <= now])

    return context.answer(load, context.json)


class AttemptsQuery(Paging):
    issue: Annotated[Words, Field(description="The issue's id")]
    builds: Annotated[Names, Field(description="Only attempts on these builds: ids, or versions of torch")]
    hardware: Annotated[Names, Field(description="Only attempts on these hardware classes")]
    outcome: Annotated[Several[Outcome], Field(description="Only attempts that count, and with one of these outcomes")]
    fields: Annotated[Names, one_of(AttemptListedBody.model_fields), Field(description="Only these fields of each")]


@router.get("/attempts", response_model=in_parts(AttemptsBody, "attempts"), tags=["attempts"])
def attempts(context: Context, query: Annotated[AttemptsQuery, Query()]) -> Response:
    """The attempts of one issue, newest first, 100 where no limit is given; superseded ones too."""
    after = newest_after(context.request, query.cursor)

    def load(session: Session) -> Sequence[AttemptRow]:
        issue = find_issue(session, query.issue)
        builds = [build.id for build in named_builds(load_builds(session), query.builds)] if query.builds else None
        classes = known_classes(query.hardware, with_isa_classes(load_hardware(session))) if query.hardware else None
        return load_recent_attempts(
            session,
            issue.id,
            query.most + 1,
            builds=builds,
            hardware=classes,
            counts_as=query.outcome or None,
            after=after,
        )

    def show(rows: Sequence[AttemptRow]) -> Response:
        shown, next_ = next_of(context.request, rows, query.most, lambda row: (row.attempt.finished_at, row.attempt.id))
        body = AttemptsBody(attempts=[AttemptListedBody.of(row) for row in shown], next=next_)
        return answer(context, body, "attempts", query.fields, next_, is_paged=True)

    return context.answer(load, show)


@router.get("/attempts/{attempt}", response_model=AttemptBody, tags=["attempts"])
def attempt(context: Context, attempt: str) -> Response:
    """All evidence of one attempt, as measured, with today's judgement of it."""
    return context.answer(
        lambda session: find_attempt(session, attempt), lambda detail: context.json(AttemptBody.of(detail))
    )
