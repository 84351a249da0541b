"""A small notebook as a reader would find it: every sign of the matrix once, made through the store's own doors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from sqlalchemy import delete

from knowngood.domain.access import Actor, Scope
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import (
    Claim,
    Culprit,
    Device,
    Issue,
    Link,
    LinkKind,
    Requires,
    Signature,
    SignatureKind,
    Variant,
    Workaround,
    digest,
)
from knowngood.domain.issue_selectors import Watch, WatchList, WatchListContent
from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmSpec,
    ArmStarted,
    EnvironmentReady,
    JobEnded,
    JobSpec,
    JobStarted,
)
from knowngood.domain.measuring.machine import Gpu, Machine
from knowngood.domain.measuring.planning import PlanRequest, plan_jobs
from knowngood.domain.verdicts.outcome import Outcome, Raised, RunRecord
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.job_queue import claim_job, create_run
from knowngood.store.queries import load_known_attempts
from knowngood.store.tables import locks
from knowngood.store.tokens import create_token
from knowngood.store.watch_lists import ListOwner, save_watch_list
from tests.make import HARDWARE, NOON, make_build, make_issue, make_record

NOW = NOON + timedelta(hours=3)
LONG_AGO = NOON - timedelta(days=200)
GPU_CLASS = "cuda-sm_90"
WHEEL_HASH = "ab" * 32
LOCK = (
    'lock-version = "1.0"\n\n[[packages]]\nname = "torch"\nversion = "2.7.1"\n'
    f'wheels = [{{ url = "torch-2.7.1.whl", hashes = {{ sha256 = "{WHEEL_HASH}" }} }}]\n'
)
LINE = "error: conflicting declaration 'int64_t tmp_acc0_arr [2]'"
LOG = f"compiling <kernel> & co\n{LINE}\nnote: previous declaration\n"

OLD = make_build("2.5.1+cu124", pinned_triton="3.1.0", as_of=date(2024, 11, 30))
BAD = make_build("2.7.1+cu126", pinned_triton="3.3.1", note="The last of its line.")
GOOD = make_build("2.8.0+cu128", pinned_triton="3.4.0", default=True)
NEW = make_build("2.9.0+cu128", pinned_triton="3.5.0")
MISMATCHED = make_build("2.7.1+cu126", pinned_triton="3.3.1", triton="3.2.0")
CPU_ONLY = make_build("2.7.1+cpu", pinned_triton=None, origin="cpu")
BUILDS = (OLD, BAD, GOOD, NEW, MISMATCHED, CPU_ONLY)

MASK = make_issue(
    "pytorch-151290",
    title='create_block_mask fails: "conflicting declaration"',
    title_zh="create_block_mask 编译失败",
    summary="Compiling ends in a **C++ error**. <script>alert(1)</script>",
    workarounds=("eager_mask", "flags"),
    variants=(Variant("big", "BLOCK_SIZE=1024", {"block": 1024}), Variant("small", "", {"block": 128}, ("baseline",))),
    links=(
        Link(LinkKind.REPORT, "https://github.com/pytorch/pytorch/issues/151290", "pytorch#151290"),
        Link(LinkKind.FIX, "https://github.com/pytorch/pytorch/pull/151887", "PR #151887"),
    ),
    claims=(
        Claim("Fixed by #151887.", "upstream", date(2025, 4, 23), "https://github.com/pytorch/pytorch/pull/151887"),
        Claim("Only one CI image.", "an article"),
    ),
    script='"""The repro."""\n\n\ndef baseline(block=1024):\n    return {"block": block}\n',
)
MASK = replace(
    MASK,
    workarounds=(
        Workaround("eager_mask", "Make it eagerly", "```python\nmask = make()\n```", "slower once", "不编译"),
        Workaround("flags", "Change the compiler", "```sh\nCXX=clang++\n```", "none"),
    ),
)
SILENT = make_issue(
    "pytorch-154771",
    title="bmm gives wrong numbers",
    silent=True,
    signature=Signature(SignatureKind.WRONG_RESULT),
    workarounds=(),
)
DYNAMO = make_issue("fla-160", title="NameError: name 's2' is not defined", component="Dynamo", workarounds=())
GPU_ONLY = make_issue(
    "pytorch-151589",
    title="Alignment assertion",
    component="Inductor Triton",
    culprit=Culprit.TRITON,
    requires=Requires(Device.CUDA, compute_capability=(8, 0)),
    workarounds=(),
)
ISSUES = (MASK, SILENT, DYNAMO, GPU_ONLY)

CPU_MACHINE = Machine("AMD EPYC 7B13", "avx2", 2, 8 << 30, "Debian 12", "6.1", "2.36", "g++ 12.2.0")
GPU_MACHINE = replace(
    CPU_MACHINE, driver="550.54", driver_cuda="12.4", gpus=(Gpu(0, "NVIDIA H100", (9, 0), 85_000_000_000),)
)

Tell = Callable[[JobSpec, ArmSpec], Outcome]
Record = Callable[[JobSpec, ArmSpec, Outcome], RunRecord]


def outcome_of(spec: JobSpec, arm: ArmSpec) -> Outcome:
    """The outcome of each baseline in the notebook; controls and most workarounds pass."""
    release = spec.build.build_id.release
    if arm.arm == "flags":
        return Outcome.MATCH if release == "2.7.1" else Outcome.PASS
    if arm.arm != "baseline":
        return Outcome.PASS
    table = {
        ("pytorch-151290", "2.7.1"): Outcome.MATCH if arm.variant == "big" else Outcome.PASS,
        ("pytorch-154771", "2.5.1"): Outcome.MATCH,
        ("pytorch-154771", "2.7.1"): Outcome.MATCH if arm.ordinal % 2 else Outcome.PASS,
        ("pytorch-154771", "2.8.0"): Outcome.ENV_ERROR,
        ("fla-160", "2.5.1"): Outcome.OTHER_FAILURE,
        ("pytorch-151589", "2.7.1"): Outcome.MATCH,
    }
    return table.get((arm.issue, release), Outcome.PASS)


def record_of(spec: JobSpec, arm: ArmSpec, outcome: Outcome) -> RunRecord:
    if outcome is Outcome.MATCH and arm.issue == SILENT.id:
        wrong = Raised("__main__.WrongResult", "expected 1.0, got 3.8", "Traceback\nWrongResult", "wrong_result")
        return replace(make_record(outcome, spec.build), raised=wrong)
    own_s = 0.5 if arm.arm == "control" else 4.0
    return make_record(outcome, spec.build, threads=2, peak_bytes=512_000_000, own_s=own_s, sandbox=("process",))


@dataclass(frozen=True)
class Asked:
    """A run's builds and issues, and its time."""

    builds: Sequence[Build]
    at: datetime
    hardware: str = HARDWARE
    issues: Sequence[Issue] = ISSUES
    wanted: PlanRequest = field(default_factory=PlanRequest)


def fill(engine: Engine) -> None:
    """Old results for the oldest build, fresh ones for three more, a second round where it matters, one GPU."""
    with unit_of_work(engine) as s:
        save_catalogue(s, ISSUES, BUILDS, LONG_AGO)
    run(engine, Asked([OLD], LONG_AGO))
    run(engine, Asked([BAD, GOOD, MISMATCHED], NOON))
    run(engine, Asked([BAD], NOON + timedelta(hours=1), wanted=PlanRequest(repeat=2)))
    run(
        engine, Asked([GOOD], NOON + timedelta(hours=1), issues=[MASK], wanted=PlanRequest(repeat=2, workarounds=False))
    )
    run(engine, Asked([BAD], NOON + timedelta(hours=2), hardware=GPU_CLASS))
    watch(engine, "vision-team", WatchListContent(Watch(issues=(MASK.id,), components=("Dynamo",)), (HARDWARE,)))


def watch(engine: Engine, name: str, content: WatchListContent, by: str = "lead") -> WatchList:
    with unit_of_work(engine) as s:
        return save_watch_list(s, name, content, by=ListOwner(Actor(by)), now=NOON)


def make_token(engine: Engine, *scopes: Scope, name: str = "ci", expires_at: datetime | None = None) -> str:
    """A new token's secret."""
    with unit_of_work(engine) as s:
        by = Actor("an admin")
        return create_token(s, name=name, scopes=scopes, by=by, now=NOW, expires_at=expires_at).secret


def run(engine: Engine, asked: Asked, tell: Tell = outcome_of, record: Record | None = None) -> str:
    """Plan, queue and run to the end; the run's id."""
    id_ = queue(engine, asked)
    while True:
        spec = claim(engine, asked.at)
        if spec is None:
            return id_
        begin(engine, spec, asked.at)
        for arm in spec.arms:
            finish(engine, spec, arm, tell(spec, arm), asked.at, record)
        with unit_of_work(engine) as s:
            record_event(s, JobEnded(spec.job, spec.try_no), asked.at)


def queue(engine: Engine, asked: Asked) -> str:
    with reading(engine) as s:
        known = load_known_attempts(s)
    builds = sorted(asked.builds, key=lambda build: build.build_id)
    planned = plan_jobs(asked.issues, builds, [asked.hardware], known, asked.wanted)
    request = {"builds": [build.id for build in builds], "force": False}
    with unit_of_work(engine) as s:
        return create_run(s, planned, request, asked.at)


def claim(engine: Engine, at: datetime) -> JobSpec | None:
    with unit_of_work(engine) as s:
        return claim_job(s, "dispatcher-1", at, 60.0)


def begin(engine: Engine, spec: JobSpec, at: datetime) -> None:
    machine = GPU_MACHINE if spec.hardware == GPU_CLASS else CPU_MACHINE
    ready = EnvironmentReady(spec.job, spec.try_no, LOCK, digest(LOCK), {"torch": "2.7.1", "numpy": "2.2.6"}, {}, 12.0)
    with unit_of_work(engine) as s:
        record_event(s, JobStarted(spec.job, spec.try_no, machine), at)
        record_event(s, ready, at)


def start(engine: Engine, spec: JobSpec, arm: ArmSpec, at: datetime) -> None:
    with unit_of_work(engine) as s:
        record_event(s, ArmStarted(spec.job, spec.try_no, arm.attempt, at), at)


def finish(
    engine: Engine, spec: JobSpec, arm: ArmSpec, outcome: Outcome, at: datetime, make: Record | None = None
) -> None:
    record = (make or record_of)(spec, arm, outcome)
    log = LOG if outcome is Outcome.MATCH else "observed equal = True\n"
    machine = GPU_MACHINE if spec.hardware == GPU_CLASS else CPU_MACHINE
    told = ArmFinished(
        spec.job, spec.try_no, arm.attempt, record, log, digest(LOCK), machine.digest, at, at + timedelta(seconds=5)
    )
    with unit_of_work(engine) as s:
        record_event(s, told, at + timedelta(seconds=5))


def end(engine: Engine, spec: JobSpec, at: datetime) -> None:
    with unit_of_work(engine) as s:
        record_event(s, JobEnded(spec.job, spec.try_no), at)


def save(engine: Engine, issues: Sequence[Issue], builds: Sequence[Build]) -> None:
    with unit_of_work(engine) as s:
        save_catalogue(s, issues, builds, NOON)


def with_new_code(issue: Issue) -> Issue:
    """The same issue after somebody changed every arm of its repro."""
    return replace(issue, arms=tuple(replace(arm, code=f"{arm.code}, changed") for arm in issue.arms))


def forget_locks(engine: Engine) -> None:
    """As after pruning, or an import without locks."""
    with unit_of_work(engine) as s:
        s.execute(delete(locks))
