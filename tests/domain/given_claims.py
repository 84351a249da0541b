"""Stores in which claims are inferred: three Pythons of four wheels, a smoke row, and rows that make them agree."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Issue, Requires
from knowngood.domain.message import quoted
from knowngood.domain.rate import Rate
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, VariantFinding, Verdict, WorkaroundFinding
from tests.make import HARDWARE, NOON, make_build, make_issue

GPU = "cuda-sm_90"
WHEELS = ("2.5.1+cu124", "2.6.0+cu124", "2.7.1+cu126", "2.8.0+cu128")
PYTHONS = ("3.10", "3.11", "3.12")
LETTERS = {
    "x": Verdict.AFFECTED,
    "o": Verdict.NOT_AFFECTED,
    "~": Verdict.FLAKY,
    "!": Verdict.DIFFERENT_FAILURE,
    "?": Verdict.INCONCLUSIVE,
    "-": Verdict.NOT_APPLICABLE,
    "0": Verdict.NO_BUILD,
}
ROW, SMOKE = make_issue(), make_issue("smoke-1", is_smoke=True)


def build_of(wheel: str, python: str) -> Build:
    suffix = "" if python == "3.11" else f"~py{python.replace('.', '')}"
    return replace(make_build(wheel), id=f"torch-{wheel}{suffix}", python=python)


BUILDS = {(wheel, python): build_of(wheel, python) for wheel in WHEELS for python in PYTHONS}


def made(issue: str, build: Build, letter: str, hardware: str = HARDWARE, **changes: Any) -> Cell:
    """A cell as it is stored; its one variant was run `runs` times (2)."""
    verdict, runs = LETTERS[letter], changes.pop("runs", 2)
    k = runs if verdict is Verdict.AFFECTED else int(verdict is Verdict.FLAKY)
    variant = VariantFinding("default", verdict, quoted(""), k, runs)
    fields: dict[str, Any] = {"measured_at": NOON, "variants": (variant,), "evidence": f"{issue}@{build.id}@{hardware}"}
    return Cell(issue, build.id, hardware, verdict, quoted(f"{runs} of {runs}"), **{**fields, **changes})


def agreeing(count: int, differing: int = 0, pythons: Iterable[str] = PYTHONS) -> tuple[list[Issue], list[Cell]]:
    """Rows of which `count` cells each say the same on all Pythons, and `differing` ones not, all of the last wheel."""
    issues = [make_issue(f"pair-{number}") for number in range(count + differing)]
    cells = [
        made(issue.id, BUILDS[WHEELS[-1], python], "x" if number >= count and python == "3.11" else "o")
        for number, issue in enumerate(issues)
        for python in pythons
    ]
    return issues, cells


def smoked(pythons: Iterable[str] = PYTHONS, wheels: Iterable[str] = WHEELS) -> list[Cell]:
    return [made(SMOKE.id, BUILDS[wheel, python], "o") for wheel in wheels for python in pythons]


def store(cells: Iterable[Cell], *issues: Issue, pairs: int = 100, differing: int = 0, smoke: bool = True) -> Known:
    """These cells known, beside a smoke row that passes everywhere and so many pairs that agree."""
    rows, others = agreeing(pairs, differing)
    stored = [*others, *(smoked() if smoke else ()), *cells]
    return known_of(stored, (*(issues or (ROW,)), SMOKE, *rows))


def known_of(cells: Iterable[Cell], issues: Iterable[Issue], builds: Mapping[Any, Build] = BUILDS) -> Known:
    stored = {(cell.issue, cell.build, cell.hardware): cell for cell in cells}
    return Known(
        issues={issue.id: issue for issue in issues},
        builds={build.id: build for build in builds.values()},
        cells=stored,
        hardware=tuple(sorted({hardware for _, _, hardware in stored})),
        as_of=NOON,
    )


def carrying(known: Known) -> Known:
    """The same where the CPU and GPUs were seen to agree often enough."""
    known.claims.__dict__["device_agreement"] = Rate(100, 100)
    return known


def any_device(id_: str = "any-1", **changes: Any) -> Issue:
    return make_issue(id_, requires=Requires(device=Device.ANY), **changes)


def helps(*variants: str, **changes: Any) -> WorkaroundFinding:
    from knowngood.domain.verdicts.verdict import WorkaroundVerdict

    return WorkaroundFinding(WorkaroundVerdict.EFFECTIVE, helped=variants or ("default",), runs=2, **changes)
