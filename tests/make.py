"""Values with sensible defaults: a test says only what matters to it."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from knowngood.domain.builds.build import Build, BuildId
from knowngood.domain.issue import (
    BASELINE,
    CONTROL,
    Arm,
    Culprit,
    Fidelity,
    Issue,
    Link,
    LinkKind,
    Packages,
    Requires,
    Severity,
    Signature,
    SignatureKind,
    Status,
    Workaround,
    binding,
    environment_request,
    variants_of,
)
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.message import Message, english, quoted
from knowngood.domain.verdicts.outcome import Ending, Outcome, Raised, RunRecord, Trouble, TroubleCode
from knowngood.domain.verdicts.verdict import Judged

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HARDWARE = "cpu-x86_64"


def make_build(torch: str = "2.6.0+cu124", **changes: Any) -> Build:
    release, _, local = torch.partition("+")
    cuda = f"{local[2:-1]}.{local[-1]}" if local.startswith("cu") else None
    pinned = changes.pop("pinned_triton", "3.2.0")
    triton = changes.pop("triton", pinned)
    python = changes.pop("python", "3.11")
    name = BuildId(torch=torch, triton=None if triton == pinned else triton, python=python)
    fields: dict[str, Any] = {
        "id": str(name),
        "torch": torch,
        "requirement": release,
        "cuda": cuda,
        "triton": triton,
        "pinned_triton": pinned,
        "python": python,
        "origin": "default",
        "as_of": date(2025, 3, 1),
        "released": date(2025, 1, 29),
    }
    return Build(**{**fields, **changes})


def make_issue(id_: str = "toy-1", *, workarounds: tuple[str, ...] = ("aot_eager",), **changes: Any) -> Issue:
    arms = (
        Arm(CONTROL, ("eager",), code="control-1"),
        Arm(BASELINE, ("dynamo_graph", "inductor_cpp"), code="baseline-1"),
        *(Arm(name, ("dynamo_graph",), code=f"{name}-1") for name in workarounds),
    )
    fields: dict[str, Any] = {
        "id": id_,
        "title": f"{id_} fails to compile",
        "summary": "Compiling it fails.",
        "links": (Link(LinkKind.REPORT, "https://github.com/pytorch/pytorch/issues/1", "pytorch#1"),),
        "component": "Inductor C++",
        "culprit": Culprit.TORCH,
        "severity": Severity.HIGH,
        "silent": False,
        "fidelity": Fidelity.REDUCED,
        "status": Status.BUG,
        "claims": (),
        "requires": Requires(),
        "packages": Packages(),
        "signature": Signature(SignatureKind.MESSAGE, r"conflicting declaration .*tmp_acc\d+", log=True),
        "variants": (),
        "arms": arms,
        "workarounds": tuple(Workaround(name, name, "```python\nx\n```", "slower") for name in workarounds),
        "timeout_s": 60.0,
        "script": "def control(): ...\n",
    }
    return Issue(**{**fields, **changes})


SIGNATURE_TEXT = "error: conflicting declaration 'int64_t tmp_acc0_arr [2]'"


def make_record(outcome: Outcome = Outcome.PASS, build: Build | None = None, **changes: Any) -> RunRecord:
    """A record that classifies as `outcome` for the issue of `make_issue` on the build of `make_build`."""
    build = build or make_build()
    imported = {"torch": build.torch, "cuda": build.cuda or "", "triton": build.triton or ""}
    imported["python"] = f"{build.python}.7"
    fields: dict[str, Any] = {"ending": Ending.RAISED, "exit_code": 0, "imported": imported, "wall_s": 5.0}
    match outcome:
        case Outcome.PASS:
            probes = {"eager": 3, "dynamo_graph": 1, "inductor_cpp": 1}
            fields |= {"ending": Ending.RETURNED, "observed": {"equal": "True"}, "probes": probes}
        case Outcome.MATCH:
            fields |= {"raised": Raised("torch.CompileError", SIGNATURE_TEXT, f"Traceback\n{SIGNATURE_TEXT}")}
        case Outcome.OTHER_FAILURE:
            fields |= {"raised": Raised("builtins.ValueError", "something else", "Traceback")}
        case Outcome.TIMEOUT:
            fields |= {"ending": Ending.TIMED_OUT}
        case Outcome.CRASH:
            fields |= {"ending": Ending.SIGNALLED, "signal": "SIGSEGV"}
        case Outcome.ENV_ERROR:
            fields |= {"trouble": Trouble(TroubleCode.NO_COMPILER, "no C++ compiler; install g++")}
        case Outcome.HARNESS_ERROR:
            fields |= {"ending": Ending.RETURNED, "observed": {}}
        case Outcome.NOT_APPLICABLE:
            fields |= {"raised": Raised("NotApplicable", "no such API", "", marked="not_applicable")}
        case Outcome.CANCELLED:
            fields |= {"ending": Ending.CANCELLED}
    return RunRecord(**{**fields, **changes})


def make_attempt(
    outcome: Outcome = Outcome.PASS,
    *,
    issue: Issue | None = None,
    build: Build | None = None,
    arm: str = BASELINE,
    **changes: Any,
) -> Attempt:
    issue, build = issue or make_issue(), build or make_build()
    variant = variants_of(issue, arm)[0]
    ordinal = changes.get("ordinal", 1)
    fields: dict[str, Any] = {
        "id": f"{issue.id}-{build.id}-{arm}-{changes.get('variant', variant.id)}-{ordinal}",
        "job": "job-1",
        "issue": issue.id,
        "build": build.id,
        "hardware": HARDWARE,
        "arm": arm,
        "variant": variant.id,
        "ordinal": ordinal,
        "binding": binding(issue.arm(arm), variant, environment_request(issue, build)),
        "record": make_record(outcome, build),
        "log_digest": "",
        "lock_digest": "",
        "machine": "",
        "started_at": NOON,
        "finished_at": NOON + timedelta(seconds=5),
    }
    return Attempt(**{**fields, **changes})


def make_judged(outcome: Outcome, arm: str = BASELINE, variant: str = "default", n: int = 1, **changes: Any) -> Judged:
    fields: dict[str, Any] = {
        "attempt": f"{arm}-{variant}-{outcome}-{n}",
        "arm": arm,
        "variant": variant,
        "outcome": outcome,
        "reason": quoted(f"because {outcome}"),
        "line": SIGNATURE_TEXT if outcome is Outcome.MATCH else "",
        "measured_at": NOON + timedelta(seconds=n),
        "wall_s": 5.0,
    }
    if isinstance(reason := changes.get("reason"), str):
        changes["reason"] = quoted(reason)
    return Judged(**{**fields, **changes})


def in_english(value: Any) -> Any:
    """The value with a sentence in place of each message, for comparing what is said."""
    match value:
        case Message():
            return english(value)
        case None:
            return ""
        case tuple() | list():
            return [in_english(one) for one in value]
        case Mapping():
            return {name: in_english(one) for name, one in value.items()}
        case _:
            return {name: in_english(one) for name, one in vars(value).items()} if is_dataclass(value) else value
