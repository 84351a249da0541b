"""Planning the next runs: wanted cells minus what is known, grouped into jobs. Pure; the store keeps the queue."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from math import ceil

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.grouping import gathered, grouped
from knowngood.domain.hardware_classes import whole_class, with_isa_classes
from knowngood.domain.issue import (
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
    is_asked_on,
    variants_of,
)
from knowngood.domain.measuring.job import PlannedArm
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    FAILING,
    FAILURES,
    FLAKY_RUNS,
    INFRASTRUCTURE,
    Cell,
    CellPlace,
    FlakyRate,
    OfCell,
    Verdict,
    is_flaky,
    is_stale,
    lowest_rates,
)

REPEATED = 2  # attempts that a recommendation may rest on
CONFIRMING = FLAKY_RUNS  # attempts on both sides of a change, and of what is in doubt
SETTLING = 10  # attempts of what both failed and passed

_Finding = tuple[str, str, str, str]  # issue, build, hardware class, variant


@dataclass(frozen=True)
class ArmKey(OfCell):
    """The key that an attempt is counted under: the same binding means that the same thing ran."""

    arm: str
    variant: str
    binding: str


@dataclass(frozen=True)
class KnownAttempts:
    """Stored attempts: counted outcomes per key, and the highest ordinal ever given out (0: none)."""

    outcomes: Mapping[ArmKey, Sequence[Outcome]] = field(default_factory=dict)
    ordinals: Mapping[ArmKey, int] = field(default_factory=dict)
    cells: Mapping[tuple[str, str, str], Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanRequest:
    """A request for a plan.

    `repeat` is the number of settled attempts each arm shall have; `force` runs `repeat` more, whatever is known.
    `confirm` asks only of cells that have an answer, and there for what their claims rest on: two attempts of each
    variant of the baseline, three on both sides of every change along the line of releases, ten where flaky; with each
    variant that fails two of every workaround, tried or not, ten where its own are mixed.
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
class PlannedJob:
    """One environment on one hardware class, and the arms that share it in the order to run them."""

    build: Build
    hardware: str
    request: EnvironmentRequest
    arms: tuple[PlannedArm, ...]


@dataclass(frozen=True)
class Doubts:
    """Cells that answer otherwise than the measured releases before and after them, and flaky issues by class, with the
    lowest rate of each variant.
    """

    odd: Collection[CellPlace] = frozenset()
    flaky: Mapping[tuple[str, str], Mapping[str, FlakyRate]] = field(default_factory=dict)

    def demand(self, key: ArmKey, settled: Collection[Outcome]) -> int:
        """How many settled attempts an arm needs that has one: of what passes now and then enough not to be luck. A
        single control supports all that was measured beside it.
        """
        if key.arm == CONTROL:
            return 0
        rates = self.flaky.get((key.issue, key.hardware))
        if rates is None:
            return CONFIRMING if key.arm == BASELINE and (key.issue, key.build, key.hardware) in self.odd else 0
        rate = rates.get(key.variant) if set(settled) == {Outcome.PASS} else None
        return max(CONFIRMING, rate.passes_needed if rate else 0)


_NO_DOUBTS = Doubts()


def _in_jobs(
    build: Build, hardware: str, planned: Iterable[tuple[Issue, Sequence[PlannedArm]]]
) -> Iterator[PlannedJob]:
    """Arms of one job share an environment, and where a repro edits its own, the issue too."""
    requests = ((environment_request(issue, build), issue, arms) for issue, arms in planned)
    shared = gathered(
        ((request, issue.id if request.mutates else ""), arm) for request, issue, arms in requests for arm in arms
    )
    return (PlannedJob(build, hardware, request, tuple(arms)) for (request, _), arms in shared.items())


def plan_jobs(
    issues: Iterable[Issue],
    builds: Sequence[Build],
    hardware: Collection[str],
    known: KnownAttempts,
    wanted: PlanRequest,
    *,
    line: Sequence[Build] = (),
) -> tuple[PlannedJob, ...]:
    """Jobs for every (issue, build, hardware class) that applies, in the order of `builds` (release order).

    Outcomes that say nothing (infrastructure, cancelled) are never counted as done, so the same question asks again.
    Controls run before baselines and these before workarounds, so that an interrupted job has said what matters most.
    Changes are looked for along `line`, in release order; without it among `builds`. So are answers in doubt: such a
    cell gets up to three attempts without being asked for more than one. Rows that depend on the vector ISA are asked
    with each one, where the CPU's class is wanted.
    """
    issues, hardware = tuple(issues), with_isa_classes(hardware)
    doubts = find_doubts(issues, line or builds, hardware, known)
    changes = find_changes(issues, line or builds, hardware, known) if wanted.confirm else frozenset[_Finding]()
    jobs = list[PlannedJob]()
    for build in builds:
        for class_ in hardware:
            asked = (issue for issue in issues if is_asked_on(issue, build, class_))
            planned = ((one, missing_arms(one, build, class_, known, wanted, changes, doubts)) for one in asked)
            jobs += _in_jobs(build, class_, planned)
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
    """The build to measure for each build, by id: the build itself, or with `python` the twin of a default build that
    has that Python.
    """
    every = tuple(builds)
    if not python:
        return {build.id: build for build in every}
    with_python = {build.build_id.apart_from_python: build for build in every if build.python == python}
    pairs = ((build, with_python.get(build.build_id)) for build in every if build.python == DEFAULT_PYTHON)
    return {build.id: twin for build, twin in pairs if twin is not None and twin.triton == build.triton}


def recheck_cells(
    issues: Iterable[Issue], builds: Iterable[Build], hardware: Collection[str], known: KnownAttempts, sample: Sample
) -> tuple[Cell, ...]:
    """Cells with an answer to ask once more, drawn by chance; fewer where there are not so many.

    Flaky ones are left out: whatever such a cell says a second time was known of it before. Where another Python is
    asked, only builds that exist with it count, and only issues that name no Python of their own.
    """
    twins = twins_of(builds, sample.python)
    rows = {issue.id: issue for issue in issues if not (sample.python and issue.requires.python)}
    classes = with_isa_classes(hardware)
    columns = {build for build, twin in twins.items() if not sample.python or twin.python != DEFAULT_PYTHON}
    steady = [
        cell
        for key, cell in known.cells.items()
        if cell.verdict in STEADY
        and key[0] in rows
        and key[1] in columns
        and key[2] in classes
        and is_asked_on(rows[key[0]], twins[key[1]], key[2])
    ]
    drawn = sorted(steady, key=lambda cell: digest(f"{sample.seed} {cell.issue} {cell.build} {cell.hardware}"))
    return tuple(drawn[: sample.cells])


def recheck_jobs(
    issues: Iterable[Issue], twins: Mapping[str, Build], chosen: Iterable[Cell], known: KnownAttempts
) -> tuple[PlannedJob, ...]:
    """One more attempt of the control and the baseline of each cell, with every variant. On another Python just those
    that have no answer there: what is asked is whether it says the same, and a stopped run goes on.
    """
    wanted = {(cell.issue, twins[cell.build].id, cell.hardware) for cell in chosen}
    issues = tuple(issues)
    jobs = list[PlannedJob]()
    for build in twins.values():
        once_more = PlanRequest(force=build.id in twins, workarounds=False)
        for class_ in sorted({hardware for _, id_, hardware in wanted if id_ == build.id}):
            asked = (issue for issue in issues if (issue.id, build.id, class_) in wanted)
            planned = ((one, missing_arms(one, build, class_, known, once_more)) for one in asked)
            jobs += _in_jobs(build, class_, planned)
    return tuple(jobs)


def missing_arms(  # noqa: PLR0913 - a plan is made of what is known and of what is in doubt
    issue: Issue,
    build: Build,
    hardware: str,
    known: KnownAttempts,
    wanted: PlanRequest,
    changes: Collection[_Finding] = (),
    doubts: Doubts = _NO_DOUBTS,
) -> list[PlannedArm]:
    """The arms that one cell still needs, controls first; none where it has its answer, or where time alone gives one.
    The issue must apply to the build.

    `changes` are what `find_changes` gives, for whoever confirms, and `doubts` what `find_doubts` does.
    """
    cell = known.cells.get((issue.id, build.id, hardware))
    is_confirmed = wanted.confirm and not wanted.force
    if issue.is_timed or (is_confirmed and (cell is None or cell.verdict not in CONCLUSIVE)):
        return []
    request = environment_request(issue, build)
    is_old = cell is not None and wanted.now is not None and is_stale(cell, build, wanted.now)
    verdicts = {finding.variant: finding.verdict for finding in cell.variants} if cell else {}
    planned = []
    for arm, variant in _candidates(issue, build, cell, wanted):
        key = ArmKey(issue.id, build.id, hardware, arm.id, variant.id, binding(arm, variant, request))
        settled = [outcome for outcome in known.outcomes.get(key, ()) if outcome not in INFRASTRUCTURE]
        target = _wanted_runs(issue, arm, wanted)
        needed = doubts.demand(key, settled) if settled else 0
        if is_confirmed:
            is_side = (issue.id, build.id, hardware, variant.id) in changes
            confirming = _confirming(arm, verdicts.get(variant.id, Verdict.NOT_RUN), settled, is_side=is_side)
            target = max(target, confirming, needed if needed > CONFIRMING else 0) if confirming else 0
        else:
            target = max(target, needed)
        anew = min(_wanted_runs(issue, arm, wanted), target) if is_old or wanted.force else 0
        first = known.ordinals.get(key, 0) + 1
        planned += [
            PlannedArm(issue.id, arm.id, variant.id, ordinal, key.binding)
            for ordinal in range(first, first + max(anew, target - len(settled)))
        ]
    return planned


_ORDER = {CONTROL: 0, BASELINE: 1}  # then the workarounds


def _candidates(issue: Issue, build: Build, cell: Cell | None, wanted: PlanRequest) -> Iterator[tuple[Arm, Variant]]:
    """The arms that apply to the build with their variants, without workarounds that have to wait. A workaround has to
    be tried with every variant with which the issue was seen, and with no other.
    """
    is_seen = cell is not None and cell.verdict in FAILING
    waits = not wanted.workarounds or (wanted.where_affected and not is_seen)
    failing = {finding.variant for finding in (cell.variants if cell else ()) if finding.verdict in FAILING}
    for arm in sorted(issue.arms, key=lambda arm: _ORDER.get(arm.id, len(_ORDER))):
        is_cure = arm.id not in {CONTROL, BASELINE}
        if arm_inapplicable(arm, build) or (waits and is_cure):
            continue
        for variant in variants_of(issue, arm.id):
            if not (wanted.where_affected and is_cure) or variant.id in failing:
                yield arm, variant


def _wanted_runs(issue: Issue, arm: Arm, wanted: PlanRequest) -> int:
    least = issue.agreeing if arm.id != CONTROL else 1
    return max(wanted.repeat, least, wanted.baseline if arm.id == BASELINE else 1)


def _confirming(arm: Arm, verdict: Verdict, settled: Sequence[Outcome], *, is_side: bool) -> int:
    """How many settled attempts of an arm with one variant the claims on it ask for; 0 where none rests on it.

    `verdict` is the baseline's with that variant. One control that passed supports all that was measured beside it.
    """
    if verdict not in CONCLUSIVE:
        return 0
    if arm.id == CONTROL:
        return 1
    if arm.id == BASELINE:
        return SETTLING if verdict is Verdict.FLAKY else CONFIRMING if is_side else REPEATED
    if verdict not in FAILING:
        return 0
    if set(settled) == {Outcome.NOT_APPLICABLE}:
        return 1
    return SETTLING if Outcome.PASS in settled and not _FAILED.isdisjoint(settled) else REPEATED


_FAILED = FAILURES | {Outcome.TIMEOUT}


def find_changes(
    issues: Iterable[Issue], line: Sequence[Build], hardware: Collection[str], known: KnownAttempts
) -> frozenset[_Finding]:
    """The findings on both sides of every change along the releases of one Python on one hardware class.

    A change lies between a pass and a failure (flaky ones too) with neither between them, whatever else does. Where a
    cell changes, each of its variants that says what the cell says is a side of it: a pass rests on all of them.
    """
    rows = (row for issue in issues for class_ in hardware for row in _rows(issue, class_, line, known))
    return frozenset(finding for row in rows for finding in _changes(row))


def find_doubts(
    issues: Iterable[Issue], line: Sequence[Build], hardware: Collection[str], known: KnownAttempts
) -> Doubts:
    """The first answers that are worth a second look, along the releases of one Python on one hardware class."""
    rows = [row for issue in issues for class_ in hardware for row in _rows(issue, class_, line, known)]
    odd = frozenset(cell.key for row in rows for cell in _odd(row))
    flaky = {(key[0], key[2]) for key, cell in known.cells.items() if is_flaky(cell)}
    of_rows = grouped(known.cells.values(), lambda cell: (cell.issue, cell.hardware)) if flaky else {}
    return Doubts(odd, {row: lowest_rates(of_rows[row]) for row in flaky})


def _rows(issue: Issue, hardware: str, line: Sequence[Build], known: KnownAttempts) -> Iterator[list[Cell]]:
    for builds in grouped(filter(is_release, line), lambda build: build.python).values():
        yield [cell for build in builds if (cell := known.cells.get((issue.id, build.id, hardware))) is not None]


def _odd(cells: Sequence[Cell]) -> Iterator[Cell]:
    """A pass between two failures, or a failure between two passes."""
    answers = [(fails, cell) for cell in cells if (fails := is_failing(cell.verdict)) is not None]
    for before, middle, after in zip(answers, answers[1:], answers[2:], strict=False):
        if before[0] is after[0] is not middle[0]:
            yield middle[1]


def _changes(cells: Sequence[Cell]) -> set[_Finding]:
    """The changes along one issue's `cells`, oldest build first."""
    by_variant = gathered(
        (finding.variant, (fails, cell))
        for cell in cells
        for finding in cell.variants
        if (fails := is_failing(finding.verdict)) is not None
    )
    whole = [(fails, cell) for cell in cells if (fails := is_failing(cell.verdict)) is not None]
    of_variants = {
        (cell.issue, cell.build, cell.hardware, variant)
        for variant, answers in by_variant.items()
        for _, cell in _sides(answers)
    }
    of_cells = {
        (cell.issue, cell.build, cell.hardware, finding.variant)
        for fails, cell in _sides(whole)
        for finding in cell.variants
        if is_failing(finding.verdict) is fails
    }
    return of_variants | of_cells


def _sides(answers: Sequence[tuple[bool, Cell]]) -> Iterator[tuple[bool, Cell]]:
    for before, after in pairwise(answers):
        if before[0] is not after[0]:
            yield from (before, after)


def is_failing(verdict: Verdict) -> bool | None:
    """Whether a verdict is a failure; None for one that is neither a pass nor a failure with the issue's signature."""
    return True if verdict in FAILING else False if verdict is Verdict.NOT_AFFECTED else None


@dataclass(frozen=True)
class Price:
    """The time that a plan takes. `seconds` is wall time, one hardware class after another; `guessed` of the `arms`
    were never timed.
    """

    jobs: int
    arms: int
    seconds: float
    guessed: int
    cells: int = 0
    environments: int = 0

    @property
    def minutes(self) -> int:
        """Whole minutes, rounded up: an estimate, to be told with "about"."""
        return ceil(self.seconds / 60)


GUESS_S = 15.0  # an arm nobody timed: a trivial compile takes 8 to 18 s on a quiet core (measured 2026-11)
ENVIRONMENT_S = 20.0  # a new environment of cached wheels, its bytecode compiled once (measured 2026-11)


def price_of(
    planned: Sequence[PlannedJob],
    durations: Mapping[tuple[str, str, str], float],
    *,
    at_once: Mapping[str, int],
    environment_s: float = ENVIRONMENT_S,
    ready: int = 0,
) -> Price:
    """How long `planned` will take. `durations` are seconds of earlier attempts by (issue, arm, variant), `at_once`
    how many arms of a hardware class run side by side (else one), `environment_s` the seconds of making one
    environment, and so many environments are `ready`.
    """
    keys = [(arm.issue, arm.arm, arm.variant) for job in planned for arm in job.arms]
    beside = (at_once.get(whole_class(job.hardware), 1) for job in planned for _ in job.arms)
    environments = len({job.request for job in planned})
    return Price(
        jobs=len(planned),
        arms=len(keys),
        seconds=round(
            sum(durations.get(key, GUESS_S) / n for key, n in zip(keys, beside, strict=True))
            + environment_s * (environments - ready),
            1,
        ),
        guessed=sum(1 for key in keys if key not in durations),
        cells=len({(arm.issue, job.build.id, job.hardware) for job in planned for arm in job.arms}),
        environments=environments,
    )
