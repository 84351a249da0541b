"""Bounds in real files: found, and judged as a reader of the file does."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.threads import ThreadIndex
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.known import Known
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.move.caps.bounds import FILES, find_declared
from knowngood.move.caps.rules import PAIRED, Judge, Origin
from knowngood.move.upgrade.candidates import UpgradeQuestion
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.store.knowledge.snapshot import read_shipped
from tests.domain import given_claims
from tests.make import HARDWARE, NOON, make_issue
from tests.move.caps.real_files import GOES, REAL_FILES, RealFile

BUILDS = {
    id_: build
    for id_, build in read_shipped().knowledge.known.builds.items()
    if build.python == "3.11" and is_release(build)
}
TODAY = date(2026, 11, 29)
PACKAGES = {*shipped_wheels().packages, *PAIRED}


def known_where(signs: Mapping[str, Callable[[Build], str]]) -> Known:
    """Each issue by what it does on a build (see `given_claims`), and twenty that were reported after 2.13."""
    issues = [make_issue(id_, reported_on=date(2026, 8, 1)) for id_ in (*signs, *(f"late-{at}" for at in range(20)))]
    cells = [
        given_claims.made(id_, build, letter, HARDWARE, runs=2)
        for id_, sign in signs.items()
        for build in BUILDS.values()
        if (letter := sign(build)) != " "
    ]
    as_of = NOON.replace(year=TODAY.year, month=TODAY.month, day=TODAY.day)
    return replace(given_claims.known_of(cells, issues, BUILDS), as_of=as_of)


def judge_of(known: Known, *watched: str) -> Judge:
    def advice(start: Build) -> UpgradeAdvice:
        return advise(UpgradeQuestion(start, tuple(known.issues[id_] for id_ in watched)), known)

    index = ThreadIndex(known.issues.values())
    return Judge(known, shipped_wheels(), index, advice, known.hardware)


def judged(real: RealFile, judge: Judge) -> dict[tuple[int, str], str]:
    declared = list(find_declared(real.file, real.text, PACKAGES))
    origins = {(real.file, one.line): Origin("1f0c2aa", "2025-08-01", real.subject) for one in declared}
    return {(cap.line, f"{cap.package}{cap.bound}"): cap.status for cap in judge.caps(declared, origins)}


EASY = judge_of(known_where({"pytorch-1000001": lambda _: "o"}), "pytorch-1000001")


@pytest.mark.parametrize("real", REAL_FILES, ids=lambda real: real.source)
def test_every_bound_of_a_real_file_is_found_and_none_is_called_removable_that_is_not(real: RealFile) -> None:
    assert FILES.fullmatch(real.file)
    found = judged(real, EASY)
    assert found.keys() == real.judged.keys()
    assert {place for place, status in found.items() if status == GOES} <= {
        place for place, status in real.judged.items() if status == GOES
    }


def test_27_of_30_real_files_are_judged_as_by_hand() -> None:
    right = [real for real in REAL_FILES if judged(real, EASY) == real.judged]
    assert len(REAL_FILES) >= 30
    assert len(right) / len(REAL_FILES) >= 0.9, [real.source for real in REAL_FILES if real not in right]


@pytest.mark.parametrize(
    ("file", "text", "bounds"),
    [
        pytest.param("environment.yml", "dependencies:\n  - pytorch=2.1\n", {"torch==2.1.*": True}, id="conda"),
        pytest.param("environment.yml", "dependencies:\n  - pip:\n    - torch<2.9\n", {"torch<2.9": False}, id="pip"),
        pytest.param("pixi.toml", '[dependencies]\npytorch = ">=2.1,<2.2"\n', {"torch<2.2": True}, id="pixi"),
        pytest.param("pixi.toml", '[pypi-dependencies]\ntorch = "<2.9"\n', {"torch<2.9": False}, id="pixi, of PyPI"),
        pytest.param("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.1"\n', {"torch<3": False}, id="caret"),
        pytest.param(
            "pyproject.toml", '[tool.poetry.dependencies]\ntorch = "~2.4"\n', {"torch<2.5": False}, id="tilde"
        ),
        pytest.param(
            "pyproject.toml", '[tool.uv]\nconstraint-dependencies = ["torch<2.10"]\n', {"torch<2.10": False}, id="uv"
        ),
        pytest.param(
            "uv.lock",
            '[manifest]\nconstraints = [{ name = "torch", specifier = "<2.9" }]\n\n[[package]]\nname = "x"\n'
            'requires-dist = [{ name = "torch", specifier = "<2.8" }]\n',
            {"torch<2.9": False},
            id="the constraints of a lock, and not what it repeats of the project",
        ),
        pytest.param("setup.cfg", "install_requires =\n    torch>=1.9,<2.1\n", {"torch<2.1": False}, id="setup.cfg"),
        pytest.param("Pipfile", '[packages]\ntorch = "<2.4"\n', {"torch<2.4": False}, id="Pipfile"),
        pytest.param("requirements.txt", "torch==2.8.0\ntorch>=2\ntorch\n", {}, id="no bound"),
        pytest.param("requirements.txt", "# torch<2.9\nmytorch<2\ntorch-foo<2\n", {}, id="no requirement on torch"),
        pytest.param("setup.py", 'print("needs torch<2")\n', {}, id="words"),
        pytest.param("requirements.txt", "torch<2.x\ntorch<" + "9" * 3000, {}, id="no version"),
    ],
)
def test_a_bound_is_found_in_every_form(file: str, text: str, bounds: dict[str, bool]) -> None:
    found = [(one, bound) for one in find_declared(file, text, PACKAGES) for bound in one.bounds]
    assert {f"{one.package}{bound}": one.is_conda for one, bound in found} == bounds
