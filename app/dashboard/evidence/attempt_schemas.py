"""An attempt as JSON: a line of a cell's evidence, and all there is of it."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from knowngood.app.domain.measuring.isolation import Isolation
from knowngood.app.domain.measuring.machine import Machine
from knowngood.app.domain.verdicts.outcome import Ending, Outcome, TroubleCode
from knowngood.app.store.queries import AttemptDetail, AttemptRow
from knowngood.app.web.urls import attempt_address


class AttemptSummaryBody(BaseModel):
    """`counted` is false where the repro has changed since, and where it was `voided`."""

    id: str
    arm: str
    variant: str
    ordinal: int
    outcome: Outcome
    reason: str
    signature_line: str
    counted: bool
    voided: bool
    wall_s: float
    started_at: datetime
    finished_at: datetime
    url: str


class AttemptListedBody(AttemptSummaryBody):
    """A line of a list over several cells."""

    issue: str
    build: str
    hardware: str


class AttemptsBody(BaseModel):
    """Newest first. `next` is the address of older ones (null: there are none)."""

    attempts: list[AttemptListedBody]
    next: str | None


class RaisedBody(BaseModel):
    kind: str
    message: str
    text: str
    marked: str


class TroubleBody(BaseModel):
    code: TroubleCode
    sentence: str


class GpuBody(BaseModel):
    name: str
    compute_capability: str
    memory_bytes: int


class MachineBody(BaseModel):
    cpu_model: str
    isa: str
    cores: int
    memory_bytes: int
    os: str
    kernel: str
    glibc: str
    compiler: str
    driver: str
    driver_cuda: str
    gpus: list[GpuBody]
    sandbox: list[str]


class VoidedBody(BaseModel):
    """Who said that it does not count, when and why."""

    by: str
    at: datetime
    reason: str


class AttemptBody(AttemptSummaryBody):
    """All evidence of one attempt, as measured, with today's judgement of it.

    `void`, `received_at` (null: before that was kept) and `received_through` (the name of a token; empty: none) are
    this server's own words; what else there is the worker said.
    """

    issue: str
    build: str
    hardware: str
    ending: Ending
    exit_code: int | None
    signal: str
    observed: dict[str, str]
    probes: dict[str, int]
    raised: RaisedBody | None
    trouble: TroubleBody | None
    imported: dict[str, str]
    own_s: float
    peak_bytes: int
    threads: int
    isolation: Isolation
    sandbox: list[str]
    binding: str
    origin: str
    packages: dict[str, str]
    machine: MachineBody | None
    log: str
    log_cut_bytes: int
    log_url: str
    lock_url: str | None
    void: VoidedBody | None
    received_at: datetime | None
    received_through: str


def attempt_summary(row: AttemptRow) -> AttemptSummaryBody:
    return AttemptSummaryBody(**_fields(row))


def attempt_listed(row: AttemptRow) -> AttemptListedBody:
    attempt = row.attempt
    return AttemptListedBody(**_fields(row), issue=attempt.issue, build=attempt.build, hardware=attempt.hardware)


def attempt_body(detail: AttemptDetail) -> AttemptBody:
    attempt, record = detail.attempt, detail.attempt.record
    return AttemptBody(
        **_fields(detail),
        issue=attempt.issue,
        build=attempt.build,
        hardware=attempt.hardware,
        ending=record.ending,
        exit_code=record.exit_code,
        signal=record.signal,
        observed=dict(record.observed),
        probes=dict(record.probes),
        raised=RaisedBody(**vars(record.raised)) if record.raised else None,
        trouble=TroubleBody(**vars(record.trouble)) if record.trouble else None,
        imported=dict(record.imported),
        own_s=record.own_s,
        peak_bytes=record.peak_bytes,
        threads=record.threads,
        isolation=record.isolation,
        sandbox=list(record.sandbox),
        binding=attempt.binding,
        origin=attempt.origin,
        packages=dict(detail.packages),
        machine=_machine(detail.machine.brief) if detail.machine else None,
        log=detail.log,
        log_cut_bytes=record.log_cut_bytes,
        log_url=f"{attempt_address(attempt.id)}/log.txt",
        lock_url=f"{attempt_address(attempt.id)}/pylock.toml" if detail.lock else None,
        void=VoidedBody(by=void.actor, at=void.at, reason=void.reason) if (void := detail.void) else None,
        received_at=detail.reception.at,
        received_through=detail.reception.token_name,
    )


def _fields(row: AttemptRow | AttemptDetail) -> dict[str, Any]:
    attempt, judgement = row.attempt, row.judgement
    return {
        "id": attempt.id,
        "arm": attempt.arm,
        "variant": attempt.variant,
        "ordinal": attempt.ordinal,
        "outcome": judgement.outcome,
        "reason": judgement.reason,
        "signature_line": judgement.line,
        "counted": row.counted,
        "voided": row.void is not None,
        "wall_s": attempt.record.wall_s,
        "started_at": attempt.started_at,
        "finished_at": attempt.finished_at,
        "url": attempt_address(attempt.id),
    }


def _machine(machine: Machine) -> MachineBody:
    gpus = [
        GpuBody(
            name=gpu.name,
            compute_capability=f"{gpu.capability[0]}.{gpu.capability[1]}",
            memory_bytes=gpu.memory_bytes,
        )
        for gpu in machine.gpus
    ]
    return MachineBody(**{**vars(machine), "gpus": gpus, "sandbox": list(machine.sandbox)})
