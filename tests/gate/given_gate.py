"""A small world for the gate: what a test does not say is as plain as can be."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Issue, Requires
from knowngood.domain.issue_selectors import Watch
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.environments.resolve import ResolvedBuild
from knowngood.gate.decision import Ruling, decide
from knowngood.gate.policy import Policy
from knowngood.gate.question import GateQuestion
from tests.make import HARDWARE, NOON, make_build, make_issue

GPU, OLD_GPU = "cuda-sm_90", "cuda-sm_80"
TORCH_25, TORCH_26, TORCH_27 = make_build("2.5.1+cu124"), make_build("2.6.0+cu124"), make_build("2.7.1+cu126")
NIGHTLY = make_build("2.8.0.dev20260101+cu128", origin="nightly")
BUILDS = (TORCH_25, TORCH_26, TORCH_27, NIGHTLY)
FAILS, PASSES = Verdict.AFFECTED, Verdict.NOT_AFFECTED
LETTERS = {
    "x": Verdict.AFFECTED,
    "o": Verdict.NOT_AFFECTED,
    "~": Verdict.FLAKY,
    "!": Verdict.DIFFERENT_FAILURE,
    "?": Verdict.INCONCLUSIVE,
    "-": Verdict.NOT_APPLICABLE,
    "0": Verdict.NO_BUILD,
}
CURES = {"e": "effective", "i": "ineffective", "h": "harmful", "n": "unnecessary", "u": "unverified"}


def make_cell(verdict: Verdict, issue: str = "toy-1", build: Build = TORCH_25, **changes: Any) -> Cell:
    """`days` old (0), with `cures` as `name=letter` pairs."""
    cures = {
        name: WorkaroundFinding(WorkaroundVerdict(CURES[letter]), quoted("so it was seen") if letter in "ih" else None)
        for name, letter in changes.pop("cures", {}).items()
    }
    measured: datetime | None = NOON - timedelta(days=changes.pop("days", 0))
    fields = {"hardware": HARDWARE, "reason": quoted("1 of 1 attempt"), "measured_at": measured, "workarounds": cures}
    return Cell(issue, build.id, verdict=verdict, **{**fields, **changes})


def row(text: str, issue: str = "toy-1", hardware: str = HARDWARE, **changes: Any) -> list[Cell]:
    """One sign for each of 2.5.1, 2.6.0, 2.7.1 and a nightly; a blank is not run."""
    return [
        make_cell(LETTERS[sign], issue, build, hardware=hardware, **changes)
        for sign, build in zip(text, BUILDS, strict=False)
        if sign != " "
    ]


def make_known(cells: Iterable[Cell], *issues: Issue, builds: Iterable[Build] = BUILDS) -> Known:
    stored = {(cell.issue, cell.build, cell.hardware): cell for cell in cells}
    rows = issues or (make_issue(workarounds=("eager", "clone")),)
    return Known(
        issues={issue.id: issue for issue in rows},
        builds={build.id: build for build in builds},
        cells=stored,
        hardware=tuple(sorted({hardware for _, _, hardware in stored})),
        as_of=NOON,
    )


def gpu_issue(id_: str = "gpu-1", **changes: Any) -> Issue:
    return make_issue(id_, requires=Requires(device=Device.CUDA), **changes)


def ask(known: Known, build: Build | None = TORCH_25, resolved: ResolvedBuild | None = None, **policy: Any) -> Ruling:
    """Everything that is known is watched where the policy watches nothing."""
    policy.setdefault("watch", Watch(issues=tuple(known.issues)))
    found = resolved or ResolvedBuild(build.id if build else None, "torch 2.5.1 as somebody has it")
    return decide(GateQuestion(found, Policy(**policy), NOON, known))
