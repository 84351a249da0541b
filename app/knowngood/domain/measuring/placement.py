"""A fleet: which machines have joined it, what each can take, and where a job may go and should best go.

Machines describe themselves by labels, which are short texts; a job's needs are conditions on labels.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadRequest
from knowngood.domain.hardware_classes import has_isa, isa_of, whole_class
from knowngood.domain.measuring.machine import CPU_CLASS, Machine

# Names of labels. Letters, digits and - _ . are all that Ray and Kubernetes allow in their values.
RELEASE = "knowngood-release"
CPU = "knowngood-cpu"
CUDA = "knowngood-cuda"
CAPABILITY = "knowngood-capability"
DRIVER = "knowngood-driver"
DRIVER_CUDA = "knowngood-driver-cuda"
GPU_MEMORY = "knowngood-gpu-memory-gb"
MEMORY = "knowngood-memory-gb"
CORES = "knowngood-cores"
ISA = "knowngood-isa"

_CLASS = re.compile(r"cpu-x86_64|cuda-sm_\d{2,3}[a-z]?")
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_CONDITION = re.compile(r"([A-Za-z0-9._/-]+)(>=|=)(.+)")


def release_label(version: str) -> str:
    """A version as a label's value: one of a checkout has a plus sign, which labels may not have."""
    return version.replace("+", "_")


def labels_of(machine: Machine, release: str) -> dict[str, str]:
    """The labels of a machine that runs `release` of this product; sizes in whole GB, rounded down.

    Its GPUs must be of one hardware class, or none: a fleet hands them out by number, not by kind.
    """
    labels = {
        RELEASE: release_label(release),
        CPU: CPU_CLASS,
        MEMORY: str(machine.memory_bytes >> 30),
        CORES: str(machine.cores),
        ISA: machine.isa,
    }
    if machine.gpus:
        major, minor = machine.gpus[0].capability
        labels |= {
            CUDA: machine.gpus[0].hardware,
            CAPABILITY: f"{major}.{minor}",
            DRIVER: machine.driver,
            DRIVER_CUDA: machine.driver_cuda,
            GPU_MEMORY: str(min(gpu.memory_bytes for gpu in machine.gpus) >> 30),
        }
    return {name: value for name, value in labels.items() if _VALUE.fullmatch(value)}


@dataclass(frozen=True)
class Member:
    """A machine that has joined. `cpu_jobs` and `gpus` say how many jobs it takes at once: of the CPU class, and one
    for each GPU.
    """

    id: str
    labels: Mapping[str, str]
    cpu_jobs: int
    gpus: int

    @property
    def room(self) -> dict[str, int]:
        """How many jobs of each hardware class it takes at once. What a label says is believed if it is a class."""
        offered = {self.labels.get(CPU, ""): self.cpu_jobs, self.labels.get(CUDA, ""): self.gpus}
        return {class_: jobs for class_, jobs in offered.items() if jobs > 0 and _CLASS.fullmatch(class_)}


@dataclass(frozen=True)
class Condition:
    """A condition on a label: exactly `value`, or (`at_least`) a number, version or vector ISA that is not below it."""

    label: str
    value: str
    at_least: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.label)
        if value is None:
            return False
        if not self.at_least:
            return value == self.value
        if self.label == ISA:
            return has_isa(value, self.value)
        have, want = _numbers(value), _numbers(self.value)
        return have is not None and want is not None and have >= want


def _numbers(text: str) -> tuple[int, ...] | None:
    parts = text.split(".")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else None


def parse_condition(text: str) -> Condition:
    """Read `LABEL=VALUE` or `LABEL>=NUMBER`. Raises BadRequest."""
    match = _CONDITION.fullmatch(text.replace(" ", ""))
    if match is None or not _VALUE.fullmatch(match[3]):
        raise BadRequest(f'"{text}" is no condition; write LABEL=VALUE or LABEL>=NUMBER, such as {MEMORY}>=64')
    if match[2] == ">=" and _numbers(match[3]) is None:
        raise BadRequest(f'"{text}" compares with "{match[3]}", which is no number or version such as 64 or 550.54')
    return Condition(match[1], match[3], at_least=match[2] == ">=")


def able(members: Iterable[Member], hardware: str, conditions: Sequence[Condition]) -> tuple[Member, ...]:
    """The members that can take a job of this class at all."""
    return tuple(
        member
        for member in members
        if whole_class(hardware) in member.room and all(condition.holds(member.labels) for condition in conditions)
    )


def room_of(members: Iterable[Member], conditions: Sequence[Condition]) -> dict[str, int]:
    """How many jobs of each class the fleet takes at once."""
    room: Counter[str] = Counter()
    for member in members:
        if all(condition.holds(member.labels) for condition in conditions):
            room.update(member.room)
    return dict(room)


def needs_of(build: Build, hardware: str) -> tuple[Condition, ...]:
    """A job's conditions on its machine: a driver for its build's major version of CUDA, as `driver_trouble` does, and
    the vector ISA of its class.
    """
    if isa_of(hardware):
        return (Condition(ISA, isa_of(hardware), at_least=True),)
    if not hardware.startswith("cuda-") or build.cuda is None:
        return ()
    return (Condition(DRIVER_CUDA, build.cuda.split(".")[0], at_least=True),)


@dataclass(frozen=True)
class Placement:
    """Where a job may go: machines whose labels have one of the values for each name. `best` is the one that it is to
    go to if there is room at that moment; empty where all are alike to it.
    """

    selector: Mapping[str, tuple[str, ...]]
    best: str = ""


def choose(
    members: Iterable[Member],
    hardware: str,
    *,
    conditions: Sequence[Condition],
    wishes: Sequence[Condition],
    holders: Collection[str],
    busy: Mapping[str, int],
) -> Placement | None:
    """Choose among `members`; None where none can take the job.

    A wish counts as a condition while somebody meets it: a build that no driver of the fleet serves is tried all the
    same, and the machine's own sentence is the result. `holders` are machines that have the job's environment, `busy`
    says how many jobs of the class each has now.
    """
    candidates = able(members, hardware, conditions)
    met_wishes = [wish for wish in wishes if able(candidates, hardware, [wish])]
    candidates = able(candidates, hardware, met_wishes)
    if not candidates:
        return None
    label, class_ = CUDA if hardware.startswith("cuda-") else CPU, whole_class(hardware)
    selector: dict[str, tuple[str, ...]] = {label: (class_,)}
    for condition in (*conditions, *met_wishes):
        values = {member.labels[condition.label] for member in candidates}
        selector[condition.label] = tuple(sorted(values & set(selector.get(condition.label, values))))
    free = [member for member in candidates if member.id in holders and busy.get(member.id, 0) < member.room[class_]]
    best = min(free, key=lambda member: (busy.get(member.id, 0), member.id), default=None)
    return Placement(selector, best.id if best else "")


class Why(StrEnum):
    """Why queued jobs of a class wait for longer than their turn."""

    NO_DISPATCHER = "no_dispatcher"
    NO_WORKER = "no_worker"


@dataclass(frozen=True)
class Waiting:
    """Queued jobs of one class that nobody can take now. `last_seen_at` is when a worker of the class was last there;
    None where none ever was.
    """

    hardware: str
    jobs: int
    why: Why
    reason: str
    last_seen_at: datetime | None


def waiting_of(
    queued: Mapping[str, int], offered_until: Mapping[str, datetime], dispatcher_until: datetime | None, now: datetime
) -> tuple[Waiting, ...]:
    """Queued jobs that no machine can take now, by class.

    `offered_until` says for each class until when a dispatcher had a worker for it; later than now: it has one.
    """
    is_at_work = dispatcher_until is not None and dispatcher_until > now
    offers = [(hardware, offered_until.get(hardware)) for hardware in sorted(queued)]
    return tuple(
        _waiting(hardware, queued[hardware], min(until, now) if until else None, is_at_work=is_at_work)
        for hardware, until in offers
        if not (is_at_work and until is not None and until > now)
    )


def _waiting(hardware: str, jobs: int, seen_at: datetime | None, *, is_at_work: bool) -> Waiting:
    if not is_at_work:
        reason = "no dispatcher is at work; start one with `knowngood dispatch`"
        return Waiting(hardware, jobs, Why.NO_DISPATCHER, reason, seen_at)
    seen = f"last seen {seen_at:%Y-%m-%d %H:%M} UTC" if seen_at else "none ever has"
    return Waiting(hardware, jobs, Why.NO_WORKER, f"no worker of class {hardware} has joined; {seen}", seen_at)
