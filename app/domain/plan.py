"""What to run next: wanted cells minus what is known, grouped into jobs. Pure; the store keeps the queue."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.domain.build import DEFAULT_PYTHON, Build, parse_build_id
from app.domain.history import is_release
from app.domain.issue import (
    BASELINE,
    CONTROL,
    Arm,
    EnvironmentRequest,
    Issue,
    Variant,
    arm_inapplicable,
    binding,
    digest,
    environment_request,
    inapplicable,
    variants_of,
)
from app.domain.outcome import Outcome
from app.domain.verdict import CONCLUSIVE, INFRASTRUCTURE, Cell, Verdict, is_stale

CONFIRMING = 3  # attempts on both sides of a change
SETTLING = 10  # attempts where a baseline both failed and passed


@dataclass(frozen=True)
class ArmKey:
    """What an attempt is counted under: the same binding means that the same thing ran."""

    issue: str
    build: str
    hardware: str
    arm: str
    variant: str
    binding: str


@dataclass(frozen=True)
class Known:
    """What the store holds: counted outcomes per key, and the highest ordinal ever given out (0: none)."""

    outcomes: Mapping[ArmKey, Sequence[Outcome]] = field(default_factory=dict)
    ordinals: Mapping[ArmKey, int] = field(default_factory=dict)
    cells: Mapping[tuple[str, str, str], Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """What is asked for.

    `repeat` is the number of settled attempts each arm shall have; `confirm` asks for three on both sides of every
    change along the line of releases and ten where mixed; `force` runs `repeat` more, whatever is known.
    With `where_affected` a workaround waits until the issue was seen on that very build: a whole catalogue on many
    builds costs a fraction of the arms, and what is left out could only say "unnecessary" or "harmful".
    `baseline` is the number of settled attempts of a baseline alone, where it is the larger; without `workarounds`
    only the question itself is asked, control and baseline. Where `now` is given, a stale cell is measured anew.
    """

    repeat: int = 1
    confirm: bool = False
    force: bool = False
    where_affected: bool = False
    baseline: int = 1
    workarounds: bool = True
    now: datetime | None = None


@dataclass(frozen=True)
class PlannedArm:
    issue: str
    arm: str
    variant: str
    ordinal: int
    binding: str


@dataclass(frozen=True)
class PlannedJob:
    """One environment on one hardware class, and the arms that share it in the order to run them."""

    build: Build
    hardware: str
    request: EnvironmentRequest
    arms: tuple[PlannedArm, ...]


def plan_jobs(
    issues: Iterable[Issue],
    builds: Sequence[Build],
    hardware: Collection[str],
    known: Known,
    wanted: Wanted,
) -> tuple[PlannedJob, ...]:
    """Jobs for every (issue, build, hardware class) that applies, in the order of `builds` (release order).

    Outcomes that say nothing (infrastructure, cancelled) are never counted as done, so the same question asks again.
    Controls run before baselines and these before workarounds, so that an interrupted job has said what matters most.
    """
    issues = tuple(issues)
    jobs = []
    for build in builds:
        for class_ in hardware:
            grouped: dict[EnvironmentRequest, list[PlannedArm]] = {}
            for issue in issues:
                if inapplicable(issue, build, class_) is None:
                    arms = missing_arms(issue, build, class_, builds, known, wanted)
                    grouped.setdefault(environment_request(issue, build), []).extend(arms)
            jobs += [PlannedJob(build, class_, request, tuple(arms)) for request, arms in grouped.items() if arms]
    return tuple(jobs)


@dataclass(frozen=True)
class Sample:
    """So many cells by chance; the same `seed` over the same cells picks the same ones.

    With `python` (`3.12`) they are cells of the default Python, and what they say is asked on that one.
    """

    cells: int
    seed: str
    python: str = ""


STEADY = frozenset({Verdict.AFFECTED, Verdict.NOT_AFFECTED, Verdict.DIFFERENT_FAILURE})


def twins_of(builds: Iterable[Build], python: str) -> Mapping[str, Build]:
    """By id of a build, the one to ask: itself, or with `python` the one of a default build that has that Python."""
    every = tuple(builds)
    if not python:
        return {build.id: build for build in every}
    asked = {build.build_id.apart_from_python: build for build in every if build.python == python}
    pairs = ((build, asked.get(build.build_id)) for build in every if build.python == DEFAULT_PYTHON)
    return {build.id: twin for build, twin in pairs if twin is not None and twin.triton == build.triton}


def recheck_cells(
    issues: Iterable[Issue], builds: Iterable[Build], hardware: Collection[str], known: Known, sample: Sample
) -> tuple[Cell, ...]:
    """Cells with an answer to ask once more, drawn by chance; fewer where there are not so many.

    Flaky ones are left out: whatever such a cell says a second time was known of it before. Where another Python is
    asked, only builds that exist with it count, and only issues that name no Python of their own.
    """
    twins = twins_of(builds, sample.python)
    ids = {issue.id for issue in issues if not (sample.python and issue.requires.python)}
    columns = {build for build, twin in twins.items() if not sample.python or twin.python != DEFAULT_PYTHON}
    steady = [
        cell
        for key, cell in known.cells.items()
        if cell.verdict in STEADY and key[0] in ids and key[1] in columns and key[2] in hardware
    ]
    drawn = sorted(steady, key=lambda cell: digest(f"{sample.seed} {cell.issue} {cell.build} {cell.hardware}"))
    return tuple(drawn[: sample.cells])


def recheck_jobs(
    issues: Iterable[Issue], twins: Mapping[str, Build], chosen: Iterable[Cell], known: Known
) -> tuple[PlannedJob, ...]:
    """One more attempt of the control and the baseline of each cell, with every variant. On another Python just those
    that have no answer there: what is asked is whether it says the same, and a stopped run goes on.
    """
    wanted = {(cell.issue, twins[cell.build].id, cell.hardware) for cell in chosen}
    issues = tuple(issues)
    jobs = []
    for build in twins.values():
        for class_ in sorted({hardware for _, id_, hardware in wanted if id_ == build.id}):
            grouped: dict[EnvironmentRequest, list[PlannedArm]] = {}
            for issue in issues:
                if (issue.id, build.id, class_) in wanted:
                    arms = _once_more(issue, build, class_, known, is_twin=build.id not in twins)
                    grouped.setdefault(environment_request(issue, build), []).extend(arms)
            jobs += [PlannedJob(build, class_, request, tuple(arms)) for request, arms in grouped.items() if arms]
    return tuple(jobs)


def _once_more(issue: Issue, build: Build, hardware: str, known: Known, *, is_twin: bool) -> Iterable[PlannedArm]:
    request = environment_request(issue, build)
    for id_ in (CONTROL, BASELINE):
        arm = issue.arm(id_)
        for variant in variants_of(issue, id_):
            key = ArmKey(issue.id, build.id, hardware, id_, variant.id, binding(arm, variant, request))
            is_settled = any(outcome not in INFRASTRUCTURE for outcome in known.outcomes.get(key, ()))
            if is_twin and is_settled:
                continue
            yield PlannedArm(issue.id, id_, variant.id, known.ordinals.get(key, 0) + 1, key.binding)


def missing_arms(
    issue: Issue, build: Build, hardware: str, builds: Sequence[Build], known: Known, wanted: Wanted
) -> list[PlannedArm]:
    """What one cell still needs, controls first; nothing where it has its answer. The issue must apply to the build.

    `builds` are those among which changes are looked for.
    """
    request = environment_request(issue, build)
    cell = known.cells.get((issue.id, build.id, hardware))
    is_old = cell is not None and wanted.now is not None and is_stale(cell, build, wanted.now)
    is_seen = cell is not None and cell.verdict in {Verdict.AFFECTED, Verdict.FLAKY}
    waits = not wanted.workarounds or (wanted.where_affected and not is_seen)
    failing = _failing_variants(cell) if wanted.where_affected else None
    planned = []
    for arm in sorted(issue.arms, key=lambda arm: _rank(arm.id)):
        if arm_inapplicable(arm, build) or (waits and arm.id not in {CONTROL, BASELINE}):
            continue
        for variant in variants_of(issue, arm.id):
            if failing is not None and arm.id not in {CONTROL, BASELINE} and variant.id not in failing:
                continue
            key = ArmKey(issue.id, build.id, hardware, arm.id, variant.id, binding(arm, variant, request))
            asked = _asked(arm, wanted)
            needed = asked if is_old else _needed(arm, variant, key, builds, known, wanted)
            first = known.ordinals.get(key, 0) + 1
            planned += [
                PlannedArm(issue.id, arm.id, variant.id, ordinal, key.binding)
                for ordinal in range(first, first + needed)
            ]
    return planned


def _failing_variants(cell: Cell | None) -> frozenset[str]:
    """Those with which the issue was seen: a workaround has to be tried with every one of them, and with no other."""
    found = cell.variants if cell else ()
    return frozenset(one.variant for one in found if one.verdict in {Verdict.AFFECTED, Verdict.FLAKY})


def _rank(arm: str) -> int:
    return {CONTROL: 0, BASELINE: 1}.get(arm, 2)


def _asked(arm: Arm, wanted: Wanted) -> int:
    return max(wanted.repeat, wanted.baseline) if arm.id == BASELINE else wanted.repeat


def _needed(arm: Arm, variant: Variant, key: ArmKey, builds: Sequence[Build], known: Known, wanted: Wanted) -> int:
    target = _asked(arm, wanted)
    if wanted.force:
        return target
    settled = sum(1 for outcome in known.outcomes.get(key, ()) if outcome not in INFRASTRUCTURE)
    if wanted.confirm and arm.id == BASELINE:
        target = max(target, _confirming(variant, key, builds, known))
    return max(0, target - settled)


def _confirming(variant: Variant, key: ArmKey, builds: Sequence[Build], known: Known) -> int:
    """How often a baseline is to be run where its verdict matters: at a change, and where it is mixed."""
    own = _verdict(variant, key.issue, key.build, key.hardware, known)
    if own is Verdict.FLAKY:
        return SETTLING
    python = parse_build_id(key.build).python
    line = [build.id for build in builds if is_release(build) and build.python == python]
    if key.build not in line or own not in {Verdict.AFFECTED, Verdict.NOT_AFFECTED}:
        return 1
    at = line.index(key.build)
    said = [_verdict(variant, key.issue, build, key.hardware, known) for build in line]
    beside = {_first_answer(reversed(said[:at])), _first_answer(said[at + 1 :])}
    return CONFIRMING if beside & ({Verdict.AFFECTED, Verdict.NOT_AFFECTED} - {own}) else 1


def _first_answer(verdicts: Iterable[Verdict]) -> Verdict:
    """A change lies between two answers, whatever releases nobody measured lie between them."""
    return next((verdict for verdict in verdicts if verdict in CONCLUSIVE), Verdict.NOT_RUN)


def _verdict(variant: Variant, issue: str, build: str, hardware: str, known: Known) -> Verdict:
    cell = known.cells.get((issue, build, hardware))
    found = [one.verdict for one in cell.variants if one.variant == variant.id] if cell else []
    return found[0] if found else Verdict.NOT_RUN


@dataclass(frozen=True)
class Price:
    """What a plan costs in time. `seconds` is wall time on `slots` slots; `guessed` of the `arms` were never timed."""

    jobs: int
    arms: int
    seconds: float
    guessed: int


GUESS_S = 15.0  # an arm nobody timed: a trivial compile takes 8 to 18 s on a quiet core (measured 2026-11)
ENVIRONMENT_S = 20.0  # a new environment of cached wheels, its bytecode compiled once (measured 2026-11)


def price_of(
    planned: Sequence[PlannedJob],
    durations: Mapping[tuple[str, str, str], float],
    *,
    slots: int,
    environment_s: float = ENVIRONMENT_S,
) -> Price:
    """How long `planned` will take. `durations` are seconds of earlier attempts by (issue, arm, variant),
    `environment_s` those of making one environment.
    """
    keys = [(arm.issue, arm.arm, arm.variant) for job in planned for arm in job.arms]
    work = sum(durations.get(key, GUESS_S) for key in keys)
    return Price(
        jobs=len(planned),
        arms=len(keys),
        seconds=round(work / max(slots, 1) + environment_s * len(planned), 1),
        guessed=sum(1 for key in keys if key not in durations),
    )
