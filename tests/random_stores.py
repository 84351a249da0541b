"""Stores by chance: rows of every kind of need, three Pythons of four wheels, cells judged from attempts.

A cell is told by its place and the number of a pattern: the attempts are made by chance from that number, and the same
number at the same place is the same cell. Pattern 0 is a place where nothing was attempted.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from itertools import product
from typing import Any

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import (
    BASELINE,
    CONTROL,
    Device,
    Issue,
    Packages,
    Requires,
    Severity,
    Signature,
    SignatureKind,
    Variant,
    variants_of,
)
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Cell, Judged, Verdict, derive_cell
from tests.make import HARDWARE, NOON, make_build, make_issue, make_judged

CPU, GPU, OLD_GPU = HARDWARE, "cuda-sm_90", "cuda-sm_75"
CLASSES = (CPU, OLD_GPU, GPU)
WHEELS = ("2.5.1+cu124", "2.6.0+cu124", "2.7.1+cu126", "2.8.0+cu128")
PYTHONS = ("3.10", "3.11", "3.12")
PATTERNS = 60


def _build_of(wheel: str, python: str) -> Build:
    suffix = "" if python == "3.11" else f"~py{python.replace('.', '')}"
    return replace(make_build(wheel), id=f"torch-{wheel}{suffix}", python=python)


_PLAIN = [_build_of(wheel, python) for wheel in WHEELS for python in PYTHONS]
_BESIDE = [make_build("2.7.1+cu126", triton="3.4.0"), make_build("2.7.1+cu128", origin="cu128")]
BUILDS: Mapping[str, Build] = {build.id: build for build in (*_PLAIN, *_BESIDE)}
FAMILIES = (*(f"torch-{wheel}" for wheel in WHEELS), *(build.id for build in _BESIDE))

_TWO = (Variant("small", "", is_reported=True), Variant("large", ""))
_THREE = (
    Variant("small", ""),
    Variant("large", "", is_reported=True),
    Variant("odd", "", arms=(CONTROL, BASELINE, "eager"), why_not="there is nothing to clone"),
)
_WRONG = Signature(SignatureKind.WRONG_RESULT)


def _own_signature(issue: Issue) -> Issue:
    """With words that only a failure of this row has."""
    if issue.signature.kind is SignatureKind.WRONG_RESULT:
        return issue
    return replace(issue, signature=Signature(SignatureKind.MESSAGE, rf"the kernel of {issue.id} broke in \d+ places"))


ISSUES: Mapping[str, Issue] = {
    issue.id: _own_signature(issue)
    for issue in (
        make_issue("cpu-1", variants=_THREE, workarounds=("eager", "clone"), component="Dynamo"),
        make_issue("cpu-2", signature=_WRONG, silent=True, severity=Severity.CRITICAL, workarounds=("eager",)),
        make_issue("low-1", severity=Severity.LOW, workarounds=("clone",), component="Dynamo"),
        make_issue("new-1", requires=Requires(torch=">=2.6"), severity=Severity.MEDIUM, variants=_TWO),
        make_issue(
            "ao-1",
            requires=Requires(package="torchao", torch="<2.8"),
            packages=Packages(("torchao==0.12.0",)),
            component="torchao",
        ),
        make_issue("py-1", requires=Requires(python=">=3.12"), workarounds=("eager",)),
        make_issue("gpu-1", requires=Requires(Device.CUDA), variants=_TWO, workarounds=("eager", "clone")),
        make_issue("gpu-2", requires=Requires(Device.CUDA, compute_capability=(8, 0)), silent=True, signature=_WRONG),
        make_issue("any-1", requires=Requires(Device.ANY), variants=_TWO, component="Dynamo"),
        make_issue("any-2", requires=Requires(Device.ANY, python="<3.12"), severity=Severity.MEDIUM),
    )
}
SMOKE = make_issue("smoke-1", is_smoke=True)
_PAIRED = tuple(make_issue(f"pair-{number:02}") for number in range(60))
_CARRIED = tuple(make_issue(f"both-{number:02}", requires=Requires(Device.ANY)) for number in range(20))

PLACES = tuple((issue, build, class_) for issue in ISSUES for build in BUILDS for class_ in CLASSES)
Place = tuple[str, str, str]

_ENDS = {
    "o": ("pass",),
    "x": ("match",),
    "~": ("match", "pass"),
    "!": ("other_failure",),
    "?": ("pass", "crash"),
    "e": ("env_error",),
    "t": ("timeout",),
    "-": ("not_applicable",),
    " ": (),
}


@dataclass(frozen=True)
class Background:
    """The ground of inference. `differing` of the 240 cells that each two Pythons have in common say something else on
    Python 3.11; of `pythons` alone anything was paired; on the builds of `smoked` the smoke row passes. `carried` rows
    pass on the CPU and on the newer GPU, on each of four builds.
    """

    differing: int = 0
    carried: int = len(_CARRIED)
    pythons: tuple[str, ...] = PYTHONS
    smoked: frozenset[str] = frozenset(build.id for build in _PLAIN)


BACKGROUNDS = (
    Background(),
    Background(smoked=frozenset(build.id for build in _PLAIN if build.python != "3.10")),
    Background(pythons=("3.10", "3.11")),
    Background(differing=12),
    Background(carried=10),
    Background(smoked=frozenset()),
)


@dataclass(frozen=True, repr=False)
class Made(Known):
    """Shown, by hypothesis too, by the cells of the rows that are asked about: the whole would take megabytes."""

    def __repr__(self) -> str:
        return "\n".join(f"{place}: {cell.verdict}" for place, cell in self.cells.items() if place[0] in ISSUES)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))


def store_of(patterns: Mapping[Place, int], background: Background = Background()) -> Known:
    """Knowledge of places that were each attempted so."""
    return known_of([*beside(background), *(cell_of(*place, pattern) for place, pattern in patterns.items())])


def known_of(cells: Iterable[Cell]) -> Known:
    stored = {(cell.issue, cell.build, cell.hardware): cell for cell in cells}
    issues = {**ISSUES, SMOKE.id: SMOKE, **{issue.id: issue for issue in (*_PAIRED, *_CARRIED)}}
    return Made(issues, BUILDS, stored, tuple(sorted({class_ for _, _, class_ in stored})), NOON)


@cache
def beside(background: Background) -> tuple[Cell, ...]:
    """The cells of the rows that nobody asks about: those that show how well Pythons agree, and the CPU with a GPU, and
    the smoke row.
    """
    cells = []
    for number, (issue, wheel) in enumerate((issue, wheel) for issue in _PAIRED for wheel in WHEELS):
        for python in background.pythons:
            differs = python == "3.11" and number < background.differing
            cells.append(_plain_cell(issue, _build_of(wheel, python), "x" if differs else "o"))
    cells += [_plain_cell(SMOKE, build, "o" if build.id in background.smoked else "x") for build in _PLAIN]
    both = product(_CARRIED[: background.carried], WHEELS, (CPU, GPU))
    cells += [_plain_cell(issue, _build_of(wheel, "3.11"), "o", class_) for issue, wheel, class_ in both]
    return tuple(cells)


def _plain_cell(issue: Issue, build: Build, end: str, class_: str = CPU) -> Cell:
    passed = make_judged(Outcome.PASS, CONTROL)
    judged = [make_judged(Outcome(one), n=number) for number, one in enumerate(_ENDS[end])]
    return derive_cell(issue, build, class_, [passed, *judged])


@cache
def cell_of(issue: str, build: str, class_: str, pattern: int) -> Cell:
    return derive_cell(ISSUES[issue], BUILDS[build], class_, attempts_of(ISSUES[issue], pattern))


def attempts_of(issue: Issue, pattern: int) -> tuple[Judged, ...]:
    """Attempts of every arm by chance, each between now and a year ago."""
    if not pattern:
        return ()
    chance = random.Random(pattern)  # noqa: S311 - repeatable on purpose
    made: list[Judged] = []
    mood = chance.choice("ooooxxxx~!?e")
    control = chance.choices(["pass", "other_failure", "env_error"], [20, 1, 1])[0]
    made += _of_every_variant(issue, _attempt(chance, CONTROL, "default", control))
    for variant in variants_of(issue, BASELINE):
        end = mood if chance.random() < 0.7 else chance.choice("oox~!?et- ")
        made += _ending(chance, BASELINE, variant.id, end)
    for workaround in issue.workarounds:
        for variant in variants_of(issue, workaround.id):
            made += _ending(chance, workaround.id, variant.id, chance.choice("oooooxx~!?e-  "))
    return tuple(made)


def _of_every_variant(issue: Issue, control: Judged) -> list[Judged]:
    return [
        replace(control, variant=variant.id, attempt=f"{control.attempt}-{variant.id}")
        for variant in variants_of(issue, CONTROL)
    ]


def _ending(chance: random.Random, arm: str, variant: str, end: str) -> list[Judged]:
    times = chance.choice([1, 1, 2, 3])
    return [_attempt(chance, arm, variant, outcome) for outcome in _ENDS[end] for _ in range(times)]


def _attempt(chance: random.Random, arm: str, variant: str, outcome: str) -> Judged:
    marked = "wrong_result" if outcome == "other_failure" and chance.random() < 0.3 else ""
    at = NOON - timedelta(days=chance.choice([1, 5, 30, 170, 190, 300]), hours=6)
    number = chance.randrange(10**9)
    observed = {"sum": "2.0" if number % 20 == 0 else "1.0"}  # a few differ from their control
    judged = make_judged(Outcome(outcome), arm, variant, observed=observed)
    return replace(judged, attempt=f"a{number}", measured_at=at, marked=marked, line="")


@dataclass(frozen=True)
class Family:
    """Attempts that went alike on some Pythons of one wheel, as they mostly do."""

    issue: str
    wheel: str
    class_: str
    pattern: int
    pythons: frozenset[str]

    @property
    def places(self) -> dict[Place, int]:
        return {
            (self.issue, id_, self.class_): self.pattern
            for id_, build in BUILDS.items()
            if id_.partition("~py")[0] == self.wheel and build.python in self.pythons
        }


def patterns_of(families: Iterable[Family], odd: Mapping[Place, int]) -> dict[Place, int]:
    """`odd` are places at which it went as it may."""
    return {place: pattern for family in families for place, pattern in family.places.items()} | dict(odd)


def random_patterns(chance: random.Random, density: float, *, is_steady: bool = False) -> dict[Place, int]:
    """Of every family with a chance of `density`, and of six odd places. `is_steady` leaves out what gives no answer,
    and has every Python measured: as in a catalogue that somebody keeps up.
    """
    drawn = steady_patterns() if is_steady else range(PATTERNS)
    families = [
        Family(
            *place,
            chance.choice(drawn),
            frozenset(python for python in PYTHONS if is_steady or chance.random() < 0.5),
        )
        for place in product(ISSUES, FAMILIES, CLASSES)
        if chance.random() < density
    ]
    return patterns_of(families, {place: chance.randrange(PATTERNS) for place in chance.sample(PLACES, 6)})


@cache
def steady_patterns() -> tuple[int, ...]:
    """Those by which a row without variants fails or passes."""
    said = {Verdict.AFFECTED, Verdict.NOT_AFFECTED}
    return tuple(one for one in range(PATTERNS) if cell_of("low-1", next(iter(BUILDS)), CPU, one).verdict in said)


def without(known: Known, gone: Iterable[Place]) -> Known:
    """The same without these cells; which classes were measured is what is left."""
    dropped = {*gone}
    return known_of([cell for place, cell in known.cells.items() if place not in dropped])


def asked(known: Known) -> Sequence[Issue]:
    """The rows that questions are about."""
    return [known.issues[id_] for id_ in ISSUES]
