"""A release bump as it really went: torch 2.11 to 2.12 under vLLM, triaged by hand in pytorch/pytorch#180899.

What people found out there over weeks, each finding with its thread. The names of issues are those of the threads; what
their scripts do here is what the threads report of them, told to the store as attempts through its own doors.

- #181247: `fullgraph=True` with Dynamo disabled raises "found no compiled frames". Passed on 2.11, failed on the test
  channel's 2.12.0; `--enforce-eager` works on both. The release only warns (PR #181940).
- #181633: accuracy of GSM8K collapses to 0.000. Passed on 2.11, failed on 2.12: no error but the number.
- #182328: a custom operator's stride is not what its fake kernel says (3072, got 2880). Filed as a regression, closed
  as a bug of vLLM's own: what was compared were two commits of vLLM. With one commit it fails on both.
- #182549: filed and retracted: the baseline's job had been killed by the container runtime (exit 125), so that nobody
  knew whether 2.11 passed.
- #182700: filed and retracted: it failed twice in retries of one build, and passed in a fresh one.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import BASELINE, Culprit, Device, Requires, Severity, Signature, SignatureKind, digest
from knowngood.domain.issue_selectors import Watch, WatchListContent
from knowngood.domain.measuring.job import ArmFinished, ArmSpec, JobEnded, JobSpec
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.verdicts.outcome import Ending, Outcome, Raised, RunRecord, Trouble, TroubleCode
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.jobs.event_recorder import record_event
from tests.make import NOON, make_build, make_issue, make_record
from tests.web.given import GPU_CLASS, GPU_MACHINE, LOCK, Asked, begin, claim, queue, watch

BEFORE = make_build("2.11.0+cu130", pinned_triton="3.6.0", python="3.12")
CANDIDATE = make_build("2.12.0+cu130", pinned_triton="3.7.0", python="3.12", note="The test channel's.")
RELEASE = make_build("2.12.1+cu130", pinned_triton="3.7.1", python="3.12")
BUILDS = (BEFORE, CANDIDATE, RELEASE)

NO_FRAMES = make_issue(
    "pytorch-181247",
    title="fullgraph=True raises where Dynamo is disabled: found no compiled frames",
    component="Dynamo",
    workarounds=("enforce_eager",),
    signature=Signature(SignatureKind.MESSAGE, "fullgraph=True found no compiled frames"),
)
ACCURACY = make_issue(
    "pytorch-181633",
    title="GSM8K accuracy collapses to 0.000 under elastic expert parallelism",
    component="Distributed",
    severity=Severity.CRITICAL,
    silent=True,
    workarounds=(),
    signature=Signature(SignatureKind.WRONG_RESULT, "GSM8K accuracy"),
)
STRIDE = make_issue(
    "pytorch-182328",
    title="moe_forward returns another stride than its fake kernel says",
    component="Custom operators",
    culprit=Culprit.THIRD_PARTY,
    workarounds=(),
    signature=Signature(SignatureKind.MESSAGE, r"expected size \d+==\d+, stride 2880==3072"),
)
RETRACTED = make_issue(
    "pytorch-182549",
    title="Filed against a baseline that never ran",
    component="Inductor",
    workarounds=(),
    signature=Signature(SignatureKind.MESSAGE, "CUDA error: an illegal memory access"),
)
RETRIED = make_issue(
    "pytorch-182700",
    title="test_cascade_attention fails in the retries of one build",
    component="Attention",
    workarounds=(),
    signature=Signature(SignatureKind.MESSAGE, "cascade attention differs"),
)
ISSUES = tuple(
    replace(issue, requires=Requires(Device.CUDA)) for issue in (NO_FRAMES, ACCURACY, STRIDE, RETRACTED, RETRIED)
)
LIST = "vllm-bump"
LATER = NOON + timedelta(days=7)

SAID: Mapping[str, Raised] = {
    NO_FRAMES.id: Raised("builtins.RuntimeError", "torch.compile with fullgraph=True found no compiled frames.", "Tb"),
    ACCURACY.id: Raised("__main__.WrongResult", "GSM8K accuracy 0.000 is below 0.58", "Tb", "wrong_result"),
    STRIDE.id: Raised("builtins.AssertionError", "expected size 512==512, stride 2880==3072 at dim=0", "Tb"),
    RETRACTED.id: Raised("torch.AcceleratorError", "CUDA error: an illegal memory access was encountered", "Tb"),
    RETRIED.id: Raised("builtins.AssertionError", "cascade attention differs by 0.3", "Tb"),
}

KILLED = Trouble(TroubleCode.PROVISION_FAILED, "nvidia-container-cli ended with exit 125 before the job began")


def bump(engine: Engine) -> None:
    """2.11 and the test channel's 2.12, as they stood when the threads were filed; twice each, as the triagers ask."""
    with unit_of_work(engine) as s:
        save_catalogue(s, ISSUES, BUILDS, NOON)
    watch(engine, LIST, WatchListContent(Watch(issues=tuple(issue.id for issue in ISSUES)), (GPU_CLASS,)))
    _measure(engine, Asked([BEFORE, CANDIDATE], NOON, GPU_CLASS, ISSUES, PlanRequest(repeat=2)), host_works=False)


def repair(engine: Engine) -> None:
    """The host is well again, and what it could not run on 2.11 is run there."""
    _measure(engine, Asked([BEFORE], LATER, GPU_CLASS, ISSUES, PlanRequest(repeat=2)))


def release(engine: Engine) -> None:
    """2.12 comes out, with the warning in place of the error."""
    _measure(engine, Asked([RELEASE], LATER, GPU_CLASS, ISSUES, PlanRequest(repeat=2)))


def _measure(engine: Engine, asked: Asked, *, host_works: bool = True) -> None:
    queue(engine, asked)
    while (spec := claim(engine, asked.at)) is not None:
        begin(engine, spec, asked.at)
        for arm in spec.arms:
            _finish(engine, spec, arm, asked, host_works=host_works)
        with unit_of_work(engine) as s:
            record_event(s, JobEnded(spec.job, spec.try_no), asked.at)


def _finish(engine: Engine, spec: JobSpec, arm: ArmSpec, asked: Asked, *, host_works: bool) -> None:
    at = asked.at + timedelta(minutes=arm.ordinal)
    told = ArmFinished(
        spec.job, spec.try_no, arm.attempt, _record(spec.build, arm, host_works=host_works), "", digest(LOCK),
        GPU_MACHINE.digest, at, at + timedelta(seconds=5),
    )  # fmt: skip
    with unit_of_work(engine) as s:
        record_event(s, told, at + timedelta(seconds=5))


def _record(build: Build, arm: ArmSpec, *, host_works: bool) -> RunRecord:
    if arm.issue == RETRACTED.id and build == BEFORE and not host_works:
        return make_record(Outcome.ENV_ERROR, build, ending=Ending.NOT_STARTED, trouble=KILLED)
    if arm.arm == BASELINE and _fails(build, arm):
        return make_record(Outcome.MATCH, build, raised=SAID[arm.issue])
    return make_record(Outcome.PASS, build)


def _fails(build: Build, arm: ArmSpec) -> bool:
    """Whether the threads say that this baseline fails."""
    is_new = build != BEFORE
    return {
        NO_FRAMES.id: build == CANDIDATE,
        ACCURACY.id: is_new,
        STRIDE.id: True,
        RETRACTED.id: True,
        RETRIED.id: is_new and arm.ordinal == 1,
    }[arm.issue]
