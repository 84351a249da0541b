"""An attempt as JSON: a line of a cell's evidence, and all there is of it."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from knowngood.domain.measuring.isolation import Isolation
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.verdicts.outcome import Outcome, ProofLevel, RunRecord
from knowngood.domain.verdicts.verdict import Difference, OfCell
from knowngood.web.json_body import AttemptUrl, Body, English, fields_of, read_from


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
    received_at: datetime | None = read_from("reception", "at")
    received_through: str = read_from("reception", "token_name")
