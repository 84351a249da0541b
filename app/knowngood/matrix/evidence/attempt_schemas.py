"""An attempt as JSON: a line of a cell's evidence, and all there is of it."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from knowngood.domain.measuring.isolation import Isolation
from knowngood.domain.verdicts.outcome import Ending, Outcome, ProofLevel, Raised, SeenPath, Trouble
from knowngood.domain.verdicts.verdict import Difference
from knowngood.web.json_body import AttemptUrl, Body, English, read_from


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


class AttemptListedBody(AttemptSummaryBody):
    """A line of a list over several cells."""

    issue: str = read_from("attempt", "issue")
    build: str = read_from("attempt", "build")
    hardware: str = read_from("attempt", "hardware")


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


class MachineBody(Body):
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


class VoidedBody(Body):
    """Who said that it does not count, when and why."""

    by: str = read_from("actor")
    at: datetime
    reason: str


class AttemptBody(AttemptListedBody, json_schema_serialization_defaults_required=True):
    """All evidence of one attempt, as measured, with today's judgement of it.

    `void`, `received_at` (null: before that was kept) and `received_through` (the name of a token; empty: none) are
    this server's own words; what else there is the worker said. `differs` is what a pass observed otherwise than every
    control, for which it does not count as one (null: nothing).
    """

    ending: Ending = read_from("attempt", "record", "ending")
    exit_code: int | None = read_from("attempt", "record", "exit_code")
    signal: str = read_from("attempt", "record", "signal")
    observed: dict[str, str] = read_from("attempt", "record", "observed")
    differs: Difference | None = read_from("difference")
    probes: dict[str, int] = read_from("attempt", "record", "probes")
    seen: list[SeenPath] = read_from("attempt", "record", "seen")
    harness: int = read_from("attempt", "record", "harness")
    raised: Raised | None = read_from("attempt", "record", "raised")
    trouble: Trouble | None = read_from("attempt", "record", "trouble")
    imported: dict[str, str] = read_from("attempt", "record", "imported")
    own_s: float = read_from("attempt", "record", "own_s")
    peak_bytes: int = read_from("attempt", "record", "peak_bytes")
    threads: int = read_from("attempt", "record", "threads")
    isolation: Isolation = read_from("attempt", "record", "isolation")
    sandbox: list[str] = read_from("attempt", "record", "sandbox")
    binding: str = read_from("attempt", "binding")
    origin: str = read_from("attempt", "origin")
    packages: dict[str, str]
    machine: Annotated[MachineBody | None, BeforeValidator(lambda machine: machine and machine.brief)]
    log: str
    log_cut_bytes: int = read_from("attempt", "record", "log_cut_bytes")
    log_url: Annotated[AttemptUrl, AfterValidator(lambda url: f"{url}/log.txt")] = read_from("attempt", "id")
    lock_url: Annotated[
        str | None, BeforeValidator(lambda lock, info: f"{info.data['url']}/pylock.toml" if lock else None)
    ] = read_from("lock")
    void: VoidedBody | None
    received_at: datetime | None = read_from("reception", "at")
    received_through: str = read_from("reception", "token_name")
