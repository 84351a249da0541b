"""Extracts of a matrix: one with every verdict, one whose texts mean harm."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Culprit, Issue, Link, LinkKind, Packages
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import stale_cells
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import NOT_RUN, Basis, Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.share.exports.extract import Extract, Links
from tests.make import HARDWARE, NOON, make_build, make_issue

LINKS = Links(
    issue=lambda issue: f"https://kg.example/issues/{issue}",
    cell=lambda issue, build, hardware: (
        f"https://kg.example/cells/{issue}/{build.replace('+', '%2B')}?hardware={hardware}"
    ),
    attempt=lambda attempt: f"https://kg.example/attempts/{attempt.replace('+', '%2B')}",
)
GPU_CLASS = "cuda-sm_90"

V25, V26, V27, V28 = (make_build(f"2.{minor}.0+cu124", pinned_triton=f"3.{minor}.0") for minor in (5, 6, 7, 8))
V27_CPU = make_build("2.7.0+cpu", pinned_triton=None, origin="cpu")
V27_OTHER_TRITON = make_build("2.7.0+cu124", pinned_triton="3.7.0", triton="3.2.0")
V27_PY312 = make_build("2.7.0+cu124", pinned_triton="3.7.0", python="3.12")
NIGHTLY = make_build("2.9.0.dev20261101+cu130", pinned_triton="3.9.0", origin="nightly", git="a" * 40)
LINE = (V25, V26, V27, V28)

# What a message or a title may hold: signs that XML cannot carry, quotes, line ends, markup, and a formula.
HOSTILE = "=cmd|' /C calc'!A0 \x00\x07\x1b[31m \"quoted\", 'so'\r\nnext\tline ]]> <b>&amp;</b> \ufffe\U0001f600 末"


def cell(
    verdict: Verdict, build: Build = V27, issue: str = "toy-1", hardware: str = HARDWARE, **changes: object
) -> Cell:
    """A cell as it is derived: measured unless it says that nobody did."""
    unmeasured = verdict in {Verdict.NOT_RUN, Verdict.NOT_APPLICABLE}
    fields: dict[str, object] = {
        "reason": quoted(f"because it is {verdict}"),
        "measured_at": None if unmeasured else NOON,
        "control": None if unmeasured else Outcome.PASS,
        "evidence": "" if unmeasured else f"{issue}-{build.id}-baseline",
    }
    if isinstance(reason := changes.get("reason"), str):
        changes["reason"] = quoted(reason)
    return Cell(issue, build.id, hardware, verdict, **{**fields, **changes})  # type: ignore[arg-type]


def inferred(verdict: Verdict, build: Build = V27_PY312, **changes: Any) -> Cell:
    """A cell that another Python of the same wheel stands in for."""
    basis = Basis("python", V27.id, HARDWARE, 149, 150)
    return cell(verdict, build, basis=basis, reason=f"inferred from {V27.id}: because", **changes)


def extract(
    *cells: Cell,
    issues: tuple[Issue, ...] = (make_issue(),),
    builds: tuple[Build, ...] = LINE,
    links: Links | None = LINKS,
) -> Extract:
    """Of a store that holds these cells, and the inferred among them as they are."""
    by_id = {build.id: build for build in builds}
    stored = {(one.issue, one.build, one.hardware): one for one in cells if one.basis is None}
    classes = tuple(sorted({one.hardware for one in cells}))
    now = NOON + timedelta(days=1)
    known = Known({issue.id: issue for issue in issues}, by_id, stored, classes, now)
    return Extract(issues, known, cells, stale_cells(cells, by_id, now), now, links)


EVERY = make_issue(
    "toy-1",
    workarounds=("good", "bad", "needless", "untried"),
    links=(
        Link(LinkKind.REPORT, "https://github.com/pytorch/pytorch/issues/1", "pytorch#1"),
        Link(LinkKind.FIX, "https://github.com/pytorch/pytorch/pull/2", "PR #2"),
        Link(LinkKind.EVIDENCE, "https://example.org/blog", "a blog"),
    ),
)
THIRD_PARTY = replace(
    make_issue("fla-2", workarounds=(), packages=Packages(("flash-linear-attention==0.2",))),
    culprit=Culprit.THIRD_PARTY,
)
USAGE = replace(make_issue("usage.3", workarounds=()), culprit=Culprit.USAGE, component="Docs & all")
_FOUND = {
    "good": WorkaroundFinding(WorkaroundVerdict.EFFECTIVE),
    "bad": WorkaroundFinding(WorkaroundVerdict.INEFFECTIVE, quoted("still fails")),
    "needless": WorkaroundFinding(WorkaroundVerdict.UNNECESSARY),
    "untried": WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, NOT_RUN),
}


def every_verdict() -> Extract:
    """Every verdict once for the first issue, on two hardware classes; two more issues, one of them never measured."""
    builds = (*LINE, V27_CPU, V27_OTHER_TRITON, V27_PY312, NIGHTLY)
    cells = [
        cell(verdict, build, attempts=attempts, line="error: conflicting", workarounds=_FOUND)
        for (verdict, attempts), build in zip(
            (
                (Verdict.AFFECTED, {"match": 2}),
                (Verdict.NOT_AFFECTED, {"pass": 1}),
                (Verdict.FLAKY, {"match": 1, "pass": 1}),
                (Verdict.DIFFERENT_FAILURE, {"other_failure": 1}),
                (Verdict.INCONCLUSIVE, {"env_error": 1}),
                (Verdict.NOT_APPLICABLE, {}),
                (Verdict.NO_BUILD, {"not_applicable": 1}),
                (Verdict.NOT_RUN, {}),
            ),
            builds,
            strict=True,
        )
    ]
    cells.append(cell(Verdict.AFFECTED, V28, hardware=GPU_CLASS, measured_at=NOON - timedelta(days=300)))
    cells.append(cell(Verdict.AFFECTED, V27, issue="fla-2"))
    cells.append(cell(Verdict.NOT_RUN, V27, issue="usage.3"))
    return extract(*cells, issues=(EVERY, THIRD_PARTY, USAGE), builds=builds)


def hostile() -> Extract:
    """Texts of the catalogue and of what processes wrote, each as bad as it may come."""
    issue = make_issue("toy-1", title=HOSTILE, summary=HOSTILE, component=HOSTILE)
    found = {"aot_eager": WorkaroundFinding(WorkaroundVerdict.INEFFECTIVE, quoted(HOSTILE))}
    told = cell(Verdict.AFFECTED, reason=HOSTILE, line=HOSTILE, workarounds=found)
    return extract(told, issues=(issue,), builds=(replace(V27, note=HOSTILE),))
