"""Rows of verdicts written as signs, and random ones: what queries are asked of."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import (
    Arm,
    Claim,
    Culprit,
    Device,
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
    Variant,
)
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from tests.make import HARDWARE, NOON, make_build, make_issue

GPU = "cuda-sm_90"
BUILDS = (
    make_build("2.5.1+cu124", pinned_triton="3.1.0"),
    make_build("2.6.0+cu124", pinned_triton="3.2.0"),
    make_build("2.7.0+cu126", pinned_triton="3.3.0"),
    make_build("2.7.1+cu126", pinned_triton="3.3.1"),
    make_build("2.8.0+cu128", pinned_triton="3.4.0"),
    make_build("2.9.0+cu130", pinned_triton="3.5.0"),
)
WORDS = {
    "x": Verdict.AFFECTED,
    "o": Verdict.NOT_AFFECTED,
    "d": Verdict.DIFFERENT_FAILURE,
    "~": Verdict.FLAKY,
    "?": Verdict.INCONCLUSIVE,
    "-": Verdict.NOT_APPLICABLE,
    "/": Verdict.NO_BUILD,
    ".": Verdict.NOT_RUN,
}
TOY = make_issue()


def cells_of(issue: Issue, builds: Sequence[Build], line: str, hardware: str = HARDWARE) -> list[Cell]:
    """A cell per build: verdicts by the signs of WORDS; what was measured was measured at noon."""
    unmeasured = {Verdict.NOT_APPLICABLE, Verdict.NOT_RUN}
    return [
        Cell(issue.id, build.id, hardware, WORDS[sign], quoted(""), None if WORDS[sign] in unmeasured else NOON)
        for build, sign in zip(builds, line, strict=True)
    ]


RICH = replace(
    make_issue(
        "pytorch-154771",
        title="bmm gives wrong numbers",
        title_zh="bmm 结果错误",
        summary="A compiled product of two matrices.",
        component="Inductor C++",
        culprit=Culprit.TORCH,
        severity=Severity.HIGH,
        silent=True,
        fidelity=Fidelity.REDUCED,
        status=Status.BUG,
        claims=(Claim("Fixed.", "upstream"),),
        requires=Requires(Device.CPU),
        signature=Signature(SignatureKind.WRONG_RESULT),
        packages=Packages(("transformers==4.50",), {"2.5": ("einops",)}),
        variants=(Variant("big", ""),),
        workarounds=("aot_eager",),
        links=(
            Link(
                LinkKind.REPORT,
                "https://github.com/pytorch/pytorch/issues/154771",
                "the report",
                "closed",
                date(2026, 1, 1),
            ),
            Link(LinkKind.FIX, "https://github.com/pytorch/pytorch/pull/1", "the fix"),
        ),
    ),
    default=True,
)
RICH = replace(
    RICH,
    arms=(*(a for a in RICH.arms if a.id != "baseline"), Arm("baseline", ("inductor_cpp", "operator:aten::bmm"), "c")),
)

PYTHONS = tuple(make_build("2.6.0+cu124", python=python) for python in ("3.11", "3.12", "3.13"))
MIXED = (*PYTHONS, make_build("2.6.0+cu124", triton="3.3.0"), make_build("2.7.0+cpu", origin="cpu", pinned_triton=None))


@lru_cache(maxsize=16)
def random_rows(seed: int) -> tuple[list[Issue], dict[str, list[list[Cell]]], tuple[Build, ...]]:
    """Issues with random rows on two classes over the line, Pythons and a mismatch."""
    chance = random.Random(seed)  # noqa: S311 - a seeded choice
    builds = tuple(sorted((*BUILDS, *PYTHONS[1:], MIXED[3]), key=lambda build: build.build_id))
    issues = [
        replace(RICH, id=f"toy-{at}", silent=bool(at % 2), component=chance.choice(["Dynamo", "Inductor"]))
        for at in range(12)
    ]
    rows = {}
    for issue in issues:
        rows[issue.id] = [
            [
                replace(
                    one,
                    measured_at=one.measured_at and one.measured_at - timedelta(days=chance.randint(0, 300)),
                    workarounds={"w": WorkaroundFinding(chance.choice(list(WorkaroundVerdict)))},
                )
                for one in cells_of(issue, builds, "".join(chance.choices("xxooood~?-/..", k=len(builds))), hardware)
            ]
            for hardware in (HARDWARE, GPU)
        ]
    return issues, rows, builds
