"""Messages between dispatcher and agent: a job's specification one way, its events the other way.

A job is one environment with the arms that share it. Everything here is JSON on the wire; nothing here holds a
credential, an address of a database, or a path of the dispatcher's machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import EnvironmentRequest
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.verdicts.outcome import RunRecord

LOCAL = "local"  # the origin of attempts that were made through this store, not imported into it


@dataclass(frozen=True)
class PlannedArm:
    issue: str
    arm: str
    variant: str
    ordinal: int
    binding: str


@dataclass(frozen=True)
class ArmSpec:
    """One attempt to make. `attempt` is its id, the same however often the job is tried: that is what makes a retried
    job count once. `script` is the digest of the repro's text in `JobSpec.scripts`. `device` is the default device that
    torch is given before the script is loaded (empty: torch's own); no binding holds it.
    """

    attempt: str
    issue: str
    arm: str
    variant: str
    ordinal: int
    binding: str
    script: str
    params: Mapping[str, str | int | float | bool]
    env: Mapping[str, str]
    exercises: tuple[str, ...]
    timeout_s: float
    device: str = ""


@dataclass(frozen=True)
class JobSpec:
    """One environment on one hardware class and what to run in it, in this order. `try_no` counts from 1."""

    job: str
    try_no: int
    build: Build
    hardware: str
    request: EnvironmentRequest
    scripts: Mapping[str, str]
    arms: tuple[ArmSpec, ...]


@dataclass(frozen=True)
class JobEvent:
    """A message of the agent's on one try of a job."""

    job: str
    try_no: int


@dataclass(frozen=True)
class JobStarted(JobEvent):
    machine: Machine


@dataclass(frozen=True)
class Provisioning(JobEvent):
    """Progress of the environment. `phase` is resolve, sync, compile, probe; bytes are 0 where unknown.

    Phase `wait` is none of these: no worker of the fleet has room yet, others download on that host, or the environment
    is there and another job holds the GPU. `detail` says which.
    """

    phase: str
    detail: str = ""
    done_bytes: int = 0
    total_bytes: int = 0


@dataclass(frozen=True)
class EnvironmentReady(JobEvent):
    """`lock` is the pylock.toml as resolved (it names hosts: for the database alone), `lock_digest` its digest.

    `packages` is what is installed, name to version; `imported` is what a process in it reported.
    """

    lock: str
    lock_digest: str
    packages: Mapping[str, str]
    imported: Mapping[str, str]
    seconds: float
    reused: bool = False


@dataclass(frozen=True)
class ArmStarted(JobEvent):
    attempt: str
    at: datetime


@dataclass(frozen=True)
class ArmFinished(JobEvent):
    """The evidence of one attempt. `log` is its output (UTF-8, limited; the middle is cut where it was longer)."""

    attempt: str
    record: RunRecord
    log: str
    lock_digest: str
    machine: str
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True)
class JobEnded(JobEvent):
    """The agent's last word. `problem` is empty, or says why arms of the job were left undone."""

    problem: str = ""


Event = JobStarted | Provisioning | EnvironmentReady | ArmStarted | ArmFinished | JobEnded


@dataclass(frozen=True)
class Attempt:
    """One execution of one arm as it is stored and shipped: the key, what it is bound to, and the raw record."""

    id: str
    job: str
    issue: str
    build: str
    hardware: str
    arm: str
    variant: str
    ordinal: int
    binding: str
    record: RunRecord
    log_digest: str
    lock_digest: str
    machine: str
    started_at: datetime
    finished_at: datetime
    origin: str = LOCAL
    labels: Mapping[str, str] = field(default_factory=dict)
