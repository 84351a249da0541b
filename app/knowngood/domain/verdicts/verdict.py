"""From attempts to a cell: a pure function of the multiset of attempts.

The mixture table is in docs/verdicts.md, and a test compares it with `mixture`. Nothing here knows in which order
results arrived.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil, log
from typing import NamedTuple

from knowngood.domain.builds.build import Build, parse_build_id
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_classes import isa_of, whole_class
from knowngood.domain.issue import (
    BASELINE,
    BOUNDS,
    CONTROL,
    COSTS,
    Issue,
    SignatureKind,
    arm_inapplicable,
    inapplicable,
    variants_of,
)
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.message import Message, Quoted, clauses, english, joined, quoted
from knowngood.domain.observations import Amount, DifferentValue, amounts_of, different_values
from knowngood.domain.timed_search import Searched
from knowngood.domain.verdicts.outcome import Outcome, ProofLevel, TroubleCode, classify
from knowngood.domain.verdicts.paired_time import blocks_of, compared
from knowngood.domain.vocabulary import many


class Verdict(StrEnum):
    AFFECTED = "affected"
    BIGGER = "bigger"
    MORE_WORK = "more_work"
    SLOWER = "slower"
    NOT_AFFECTED = "not_affected"
    DIFFERENT_FAILURE = "different_failure"
    FLAKY = "flaky"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not_applicable"
    NO_BUILD = "no_build"
    NOT_RUN = "not_run"


EXCESSES = frozenset({Verdict.BIGGER, Verdict.MORE_WORK, Verdict.SLOWER})
"""The results are right and take more than they must."""

FAILING = frozenset({Verdict.AFFECTED, Verdict.FLAKY}) | EXCESSES
"""The issue was seen."""

CONCLUSIVE = FAILING | {Verdict.NOT_AFFECTED, Verdict.DIFFERENT_FAILURE}

INFRASTRUCTURE = frozenset({Outcome.ENV_ERROR, Outcome.HARNESS_ERROR, Outcome.CANCELLED})
FAILURES = frozenset({Outcome.MATCH, Outcome.OTHER_FAILURE, Outcome.CRASH})

NOT_RUN = Message("not_run")
"""The whole reason of a cell, and the note of a workaround, of which there is no attempt."""

RULES = 10
"""The version of the rules by which a stored cell is derived from its attempts. A store whose cells were derived by
older ones is derived again when it is opened: raise it with every change that may turn a cell or a workaround.
"""

STALE_AFTER = timedelta(days=180)
NIGHTLY_STALE_AFTER = timedelta(days=7)

# A hang counts only where the same computation without the suspect path was this much faster.
_HANG_RATIO = 10


class Assurance(StrEnum):
    """How far a claim goes beyond what was measured: not at all, by one named rule, or nothing is known."""

    MEASURED = "measured"
    INFERRED = "inferred"
    NOT_KNOWN = "not_known"


class WorkaroundVerdict(StrEnum):
    EFFECTIVE = "effective"
    PARTIAL = "partial"
    INEFFECTIVE = "ineffective"
    UNNECESSARY = "unnecessary"
    HARMFUL = "harmful"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Judged:
    """One attempt with its outcome: what verdicts are made of. `marked` and `wall_s` are the record's own.

    `unserved` is true where the host could not run it although another host of the same class may; `machine` is the
    digest of that host; `observed` is what the arm reported; `searched` is the result of the search for the signature,
    where one was needed.
    """

    attempt: str
    arm: str
    variant: str
    outcome: Outcome
    reason: Message
    line: str
    measured_at: datetime
    wall_s: float = 0.0
    no_build: bool = False
    marked: str = ""
    unserved: bool = False
    machine: str = ""
    observed: Mapping[str, str] = field(default_factory=dict)
    proof: ProofLevel = ProofLevel.PROCESS
    searched: Searched | None = field(default=None, compare=False)


@dataclass(frozen=True)
class WorkaroundFinding:
    """How well one workaround works on one cell, and why, in a few words.

    `helped`, `failed` and `untried` name the variants that are affected or flaky in the cell: those with which it
    passed, those with which it failed, and those with which it has no answer. `runs` is the least number of passes
    among `helped`. `applies` is False where there is nothing to try: it is for other releases, each of its attempts
    reported that, or the row leaves it out of every variant that fails. It is unverified then, and nothing is missing.
    `ground` is the build of another Python on which it was run (empty: on the cell's own).
    """

    verdict: WorkaroundVerdict
    note: Message | None = None
    applies: bool = True
    helped: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    runs: int = 0
    ground: str = ""

    @property
    def rests_on(self) -> str:
        """`3 runs`, `1 run, inferred from torch-2.7.1+cu126`."""
        return many(self.runs, "run") + (f", {english(inferred_from(self.ground))}" if self.ground else "")


@dataclass(frozen=True)
class VariantFinding:
    """The baseline's verdict with one variant: of `n` attempts that gave an answer, `k` ended with the signature."""

    variant: str
    verdict: Verdict
    reason: Message
    k: int = 0
    n: int = 0


@dataclass(frozen=True)
class Difference:
    """An attempt that passed with other values than every control that passed with its variant.

    Without `values` there was no such control to hold it against.
    """

    attempt: str
    arm: str
    variant: str
    values: tuple[DifferentValue, ...]

    @property
    def reason(self) -> Message:
        if not self.values:
            return Message("nothing_to_differ_from", variant=self.variant)
        values, more = tuple(value.in_words for value in self.values[:_VALUES_SHOWN]), len(self.values) - _VALUES_SHOWN
        return (
            Message("more_values_differ", values=values, n=more)
            if more > 0
            else Message("values_differ", values=values)
        )


_VALUES_SHOWN = 2  # values in a sentence; the others stand beside it


@dataclass(frozen=True)
class Basis:
    """The measured cell that another one is inferred from, and how well the rule holds where both sides were measured.

    `rule` is `python` or `device`; `build` and `hardware` are the measured cell's. `agreed` of `compared` pairs of
    cells had the same verdict (0 of 0: no pair was measured).
    """

    rule: str
    build: str
    hardware: str
    agreed: int = 0
    compared: int = 0


CellPlace = tuple[str, str, str]
"""(issue, build, hardware class)."""


class CellKey(NamedTuple):
    """A `CellPlace` whose parts have names."""

    issue: str
    build: str
    hardware: str


@dataclass(frozen=True)
class OfCell:
    """A value that belongs to one cell."""

    issue: str
    build: str
    hardware: str

    @property
    def key(self) -> CellKey:
        return CellKey(self.issue, self.build, self.hardware)


@dataclass(frozen=True)
class Cell(OfCell):
    """(issue, build, hardware class) and what is known of it now.

    `attempts` counts the baseline's outcomes; `control` is the control arm's worst outcome, an outcome without an
    answer only where there is no other (None: not run); `line` is the newest line that matched the signature;
    `superseded` counts attempts bound to an older repro, `voided` those of a worker whose results somebody voided;
    `evidence` is the id of the most telling attempt. `reported` is the variant that the report ran (empty: not known).
    `basis` is what it is inferred from (None: it is what was measured here); a stored cell never has one. `silent` says
    whether a failure here gives wrong numbers without an error (None: nothing fails, or the attempts show nothing else
    than the issue itself states). `differences` are the passes whose values are not the control's. `proof` is how near
    to the suspect call the harness looked: the best of each variant, the weakest of these (None: nothing was measured).
    `not_covered` lists what is still wrong and what a pass does not cover; `amounts` are the largest of each arm and
    variant, where the issue is about amounts.
    """

    verdict: Verdict
    reason: Message
    measured_at: datetime | None = None
    control: Outcome | None = None
    attempts: Mapping[str, int] = field(default_factory=dict)
    line: str = ""
    variants: tuple[VariantFinding, ...] = ()
    workarounds: Mapping[str, WorkaroundFinding] = field(default_factory=dict)
    superseded: int = 0
    voided: int = 0
    evidence: str = ""
    reported: str = ""
    basis: Basis | None = None
    silent: bool | None = None
    differences: tuple[Difference, ...] = ()
    proof: ProofLevel | None = None
    not_covered: tuple[str, ...] = ()
    amounts: tuple[Amount, ...] = ()

    @property
    def assurance(self) -> Assurance:
        if self.verdict not in CONCLUSIVE:
            return Assurance.NOT_KNOWN
        return Assurance.INFERRED if self.basis else Assurance.MEASURED

    @property
    def as_reported(self) -> VariantFinding | None:
        """The variant that the report ran, where it says something else than the cell."""
        reported = next((variant for variant in self.variants if variant.variant == self.reported), None)
        return (
            reported if reported and reported.verdict is not self.verdict and reported.verdict in CONCLUSIVE else None
        )

    @property
    def runs(self) -> int:
        """How many attempts the verdict rests on: of a failure the most with one variant, of a pass the least."""
        own = [variant.n for variant in self.variants if variant.verdict is self.verdict]
        if self.verdict not in CONCLUSIVE or not own:
            return 0
        return min(own) if self.verdict is Verdict.NOT_AFFECTED else max(own)


_UNSERVED = frozenset({TroubleCode.DRIVER_TOO_OLD, TroubleCode.NO_VECTOR_ISA})


def judge(attempt: Attempt, issue: Issue, build: Build, log: str, earlier_search: Searched | None = None) -> Judged:
    """Classify a stored attempt with today's rules and today's signature; `earlier_search` is the result of an earlier
    search for the signature.
    """
    judgement = classify(attempt.record, issue, attempt.arm, build, log, earlier_search, hardware=attempt.hardware)
    trouble, raised = attempt.record.trouble, attempt.record.raised
    return Judged(
        attempt=attempt.id,
        arm=attempt.arm,
        variant=attempt.variant,
        outcome=judgement.outcome,
        reason=judgement.reason,
        line=judgement.line,
        measured_at=attempt.finished_at,
        wall_s=attempt.record.wall_s,
        no_build=trouble is not None and trouble.code is TroubleCode.NO_BUILD,
        marked=raised.marked if raised else "",
        unserved=trouble is not None and trouble.code in _UNSERVED,
        machine=attempt.machine,
        observed=attempt.record.observed,
        proof=attempt.record.proof,
        searched=judgement.searched,
    )


def derive_cell(
    issue: Issue, build: Build, hardware: str, judged: Iterable[Judged], superseded: int = 0, voided: int = 0
) -> Cell:
    """Derive the cell from all of its counted attempts. `superseded` and `voided` are the numbers of the
    attempts that do not count.

    Guarantees, held by properties in tests: not_affected only with a proven pass of every baseline variant on this very
    build; nothing infrastructural yields affected, not_affected or different_failure; the order of `judged` and
    repetitions of the same attempt change nothing. An attempt that a host could not serve is treated as not tried: it
    changes no verdict, and is the reason where there is nothing else.
    """
    absent = inapplicable(issue, build, hardware)
    if absent:
        cell = Cell(issue.id, build.id, hardware, Verdict.NOT_APPLICABLE, absent)
        return replace(cell, superseded=superseded, voided=voided)
    made = _in_stable_order(_counted(issue, judged))
    served = [attempt for attempt in made if not attempt.unserved]
    differences = tuple(_differences(issue, served))
    amounts = _amounts(issue, served)
    attempts = _weighed(issue, served, differences, amounts)
    baseline = [attempt for attempt in attempts if attempt.arm == BASELINE]
    control = [attempt for attempt in attempts if attempt.arm == CONTROL]
    findings = tuple(
        judge_variant(issue, variant.id, [attempt for attempt in baseline if attempt.variant == variant.id], control)
        for variant in variants_of(issue, BASELINE)
    )
    verdict, reason = _over_variants(findings)
    reason = _beside_the_report(issue, verdict, reason, findings)
    not_covered = issue.not_covered(build) if verdict is Verdict.NOT_AFFECTED else ()
    if not_covered:
        reason = Message(NOT_COVERED, quote=tuple(map(Quoted, not_covered)), said=reason)
    telling = _telling(baseline or attempts, verdict)
    refused = [attempt for attempt in made if attempt.unserved]
    if verdict is Verdict.NOT_RUN and refused:
        telling = _telling([attempt for attempt in refused if attempt.arm == BASELINE] or refused, verdict)
        reason = refused[-1].reason
    if not made and voided:
        reason = Message("results_voided", n=voided)
    return Cell(
        issue=issue.id,
        build=build.id,
        hardware=hardware,
        verdict=verdict,
        reason=reason,
        measured_at=max((attempt.measured_at for attempt in baseline or attempts), default=None),
        control=_worst(control),
        attempts=dict(Counter(attempt.outcome.value for attempt in served if attempt.arm == BASELINE)),
        line=next((attempt.line for attempt in reversed(baseline) if attempt.line), ""),
        variants=findings,
        workarounds={
            arm.id: _beside_the_rest(_workaround(issue, build, arm.id, attempts, findings), not_covered)
            for arm in issue.arms
            if arm.id not in {BASELINE, CONTROL}
        },
        superseded=superseded,
        voided=voided,
        evidence=telling.attempt if telling else "",
        reported=next((variant.id for variant in issue.variants if variant.is_reported), ""),
        silent=_is_silent(issue, baseline, differences),
        differences=differences,
        amounts=_largest(amounts.values()),
        proof=_weakest_proof(baseline),
        not_covered=not_covered,
    )


NOT_COVERED = "not_covered"
"""The key of the reason of a pass that does not cover all that is left wrong."""


def _beside_the_rest(finding: WorkaroundFinding, not_covered: Sequence[str]) -> WorkaroundFinding:
    """A workaround is not called unnecessary where something that was not measured is still wrong."""
    if not_covered and finding.verdict is WorkaroundVerdict.UNNECESSARY:
        return replace(finding, verdict=WorkaroundVerdict.UNVERIFIED, note=Message("rest_not_covered"))
    return finding


def _weakest_proof(baseline: Sequence[Judged]) -> ProofLevel | None:
    """The best proof of each variant counts: one attempt with proof of the call is enough."""
    telling = [attempt for attempt in baseline if _says_something(attempt.outcome)]
    at_call = {attempt.variant for attempt in telling if attempt.proof is ProofLevel.CALL}
    if not telling:
        return None
    return ProofLevel.CALL if at_call == {attempt.variant for attempt in telling} else ProofLevel.PROCESS


def _counted(issue: Issue, judged: Iterable[Judged]) -> Iterator[Judged]:
    """The attempts that verdicts rest on: those that time an arm where time tells the issue, else all others."""
    for one in judged:
        if one.arm.startswith(COSTS) is issue.is_timed:
            yield replace(one, arm=one.arm.removeprefix(COSTS))


def _in_stable_order(judged: Iterable[Judged]) -> list[Judged]:
    unique = {attempt.attempt: attempt for attempt in judged}
    return sorted(unique.values(), key=lambda attempt: (attempt.measured_at, attempt.attempt))


_DIFFERS = Outcome.TIMEOUT
"""The weight in the mixture of a pass with other values than the control's: it ended, and nobody can say what it means.
It is weighed so and no more; counted and shown it is the pass that it was.
"""


def _differences(issue: Issue, attempts: Sequence[Judged]) -> Iterator[Difference]:
    """Yield each pass that observed something else than every control that passed with its variant.

    One control that agrees is enough, on any machine: if the nearest one were preferred, losing it could turn a
    difference into a pass. For the same reason a variant that the control has, and was not tried with, leaves nothing
    proven.
    """
    observed = [attempt for attempt in attempts if attempt.outcome is Outcome.PASS and attempt.observed]
    controls = grouped((attempt for attempt in attempts if attempt.arm == CONTROL), lambda attempt: attempt.variant)
    lacking = {variant.id for variant in variants_of(issue, CONTROL)} - controls.keys() if controls else set()
    for attempt in observed:
        if attempt.arm == CONTROL:
            continue
        passed = [beside.observed for beside in controls.get(attempt.variant, []) if beside.outcome is Outcome.PASS]
        values = different_values(issue, attempt.arm, attempt.observed, passed)
        if values or attempt.variant in lacking:
            yield Difference(attempt.attempt, attempt.arm, attempt.variant, values)


def _amounts(issue: Issue, attempts: Sequence[Judged]) -> Mapping[str, tuple[Amount, ...]]:
    """The amounts of each pass, by its attempt, beside those of the controls that passed with its variant."""
    if issue.is_timed:
        return {one.attempt: _times(issue, one) for one in attempts if _says_something(one.outcome)}
    passed = [one for one in attempts if one.outcome is Outcome.PASS and issue.signature.kind in BOUNDS]
    controls = grouped((one for one in passed if one.arm == CONTROL), lambda one: one.variant)
    beside = {variant: [one.observed for one in ones] for variant, ones in controls.items()}
    return {
        one.attempt: amounts_of(issue, one.arm, one.variant, one.observed, beside.get(one.variant, ()))
        for one in passed
        if one.arm != CONTROL
    }


def _times(issue: Issue, timed: Judged) -> tuple[Amount, ...]:
    """Its time in percent of the control's."""
    percent = round(100 * compared(blocks_of(timed.observed)).cost.ratio)
    observed, control = (dict.fromkeys(issue.observed, str(value)) for value in (percent, 100))
    return amounts_of(issue, timed.arm, timed.variant, observed, [control])


def _largest(amounts: Iterable[Iterable[Amount]]) -> tuple[Amount, ...]:
    by_key = grouped((one for of_attempt in amounts for one in of_attempt), lambda one: (one.arm, one.variant, one.key))
    return tuple(max(of_key, key=lambda one: one.value) for of_key in by_key.values())


def _weighed(
    issue: Issue,
    attempts: Sequence[Judged],
    differences: Iterable[Difference],
    amounts: Mapping[str, Iterable[Amount]],
) -> list[Judged]:
    """The attempts as they weigh in the mixture: a pass that differs from the control does not count as a pass, and one
    that takes more than the issue allows shows it.
    """
    kind = issue.signature.kind
    why = {difference.attempt: (_DIFFERS, difference.reason) for difference in differences}
    for id_, found in amounts.items():
        above = [amount.in_words(kind) for amount in found if amount.is_above]
        if above and id_ not in why and not issue.is_timed:
            why[id_] = (Outcome.MATCH, joined("then", above))
    return [
        replace(attempt, outcome=why[attempt.attempt][0], reason=why[attempt.attempt][1])
        if attempt.attempt in why
        else attempt
        for attempt in attempts
    ]


def _is_silent(issue: Issue, baseline: Sequence[Judged], differences: Iterable[Difference]) -> bool | None:
    """Whether a failure here gives wrong numbers without an error; one variant is enough.

    If the issue's signature is a wrong result, its matches prove only what the issue itself states: the result may be
    wrong in another way than in its numbers.
    """
    failures = [attempt for attempt in baseline if attempt.outcome in FAILURES]
    by_word = issue.signature.kind is SignatureKind.WRONG_RESULT
    wrong = [failure for failure in failures if failure.marked == "wrong_result"]
    if any(difference.arm == BASELINE and difference.values for difference in differences) or (wrong and not by_word):
        return True
    if not failures:
        return None
    return issue.silent if wrong else False


def mixture(outcomes: Collection[Outcome]) -> Verdict:
    """The verdict of one arm with one variant from the set of its outcomes. The table of docs/verdicts.md."""
    kinds = set(outcomes)
    failed_otherwise = bool(kinds & {Outcome.OTHER_FAILURE, Outcome.CRASH})
    if Outcome.MATCH in kinds:
        return Verdict.FLAKY if Outcome.PASS in kinds else Verdict.AFFECTED
    if Outcome.PASS in kinds:
        unsteady = failed_otherwise or Outcome.TIMEOUT in kinds
        return Verdict.INCONCLUSIVE if unsteady else Verdict.NOT_AFFECTED
    if failed_otherwise:
        return Verdict.DIFFERENT_FAILURE
    if Outcome.TIMEOUT in kinds or kinds & INFRASTRUCTURE:
        return Verdict.INCONCLUSIVE
    return Verdict.NOT_APPLICABLE if kinds else Verdict.NOT_RUN


def judge_variant(issue: Issue, variant: str, baseline: Sequence[Judged], control: Sequence[Judged]) -> VariantFinding:
    """The baseline's finding with one variant, in the light of the control arm with that variant (else with any).

    `baseline` holds its attempts with that variant alone.
    """
    own = [attempt for attempt in control if attempt.variant == variant] or list(control)
    baseline = _hangs_only_beside_a_quick_control(issue, baseline, own)
    verdict = mixture([attempt.outcome for attempt in baseline])
    k, n = _counts(baseline)
    reason = _reason(verdict, baseline)
    if _varies_by_machine(baseline):
        reason = Message("varies_by_machine", said=reason)
    if verdict is Verdict.NOT_APPLICABLE and all(attempt.no_build for attempt in baseline):
        return VariantFinding(variant, Verdict.NO_BUILD, reason)
    if verdict not in CONCLUSIVE:
        return VariantFinding(variant, verdict, reason, k, n)
    if issue.is_timed:  # beside the control, each of them
        verdict, reason = _by_time(verdict, baseline)
        return VariantFinding(variant, verdict, reason, k, n)
    if issue.signature.kind in BOUNDS:
        if n < issue.agreeing and verdict is not Verdict.DIFFERENT_FAILURE:
            return VariantFinding(variant, Verdict.INCONCLUSIVE, Message("has_to_agree", said=reason), k, n)
        if verdict is Verdict.AFFECTED and k == n:
            verdict, reason = Verdict(issue.signature.kind), Message("took_more", n=n, said=baseline[-1].reason)
    steadied = mixture({attempt.outcome for attempt in own})
    if steadied is Verdict.NOT_AFFECTED:
        return VariantFinding(variant, verdict, reason, k, n)
    return VariantFinding(variant, Verdict.INCONCLUSIVE, _control_reason(steadied, own), k, n)


def _by_time(verdict: Verdict, baseline: Sequence[Judged]) -> tuple[Verdict, Message]:
    """One comparison decides; another that says otherwise leaves it open."""
    told = [attempt.reason for attempt in baseline if _says_something(attempt.outcome)]
    if verdict is Verdict.FLAKY:
        return Verdict.INCONCLUSIVE, Message("time_comes_and_goes", said=joined("then", told))
    return (Verdict.SLOWER if verdict is Verdict.AFFECTED else verdict), told[-1]


def _control_reason(verdict: Verdict, control: Sequence[Judged]) -> Message:
    if verdict is Verdict.NOT_RUN:
        return Message("control_not_run")
    failing = next(attempt for attempt in reversed(control) if attempt.outcome is not Outcome.PASS)
    has_failed = verdict is not Verdict.INCONCLUSIVE or failing.outcome in FAILURES
    return Message("control_failed" if has_failed else "control_gave_no_answer", said=failing.reason)


def _hangs_only_beside_a_quick_control(
    issue: Issue, baseline: Sequence[Judged], control: Sequence[Judged]
) -> list[Judged]:
    if issue.signature.kind is not SignatureKind.HANG:
        return list(baseline)
    slowest = max((attempt.wall_s for attempt in control if _says_something(attempt.outcome)), default=0.0)
    if slowest * _HANG_RATIO < issue.timeout_s:
        return list(baseline)
    slow = Message("control_was_slow", seconds=f"{issue.timeout_s:g}", n=f"{slowest:.0f}")
    return [
        replace(attempt, outcome=Outcome.TIMEOUT, reason=slow) if attempt.outcome is Outcome.MATCH else attempt
        for attempt in baseline
    ]


def _counts(attempts: Sequence[Judged]) -> tuple[int, int]:
    """Count the attempts that ended with the signature, and those that gave an answer."""
    outcomes = [attempt.outcome for attempt in attempts]
    return outcomes.count(Outcome.MATCH), sum(1 for outcome in outcomes if _says_something(outcome))


def _reason(verdict: Verdict, attempts: Sequence[Judged]) -> Message:
    """One sentence fit for the first line of a cell's page."""
    k, n = _counts(attempts)

    def newest(*outcomes: Outcome) -> Message:
        return next(attempt.reason for attempt in reversed(attempts) if attempt.outcome in outcomes)

    match verdict:
        case Verdict.AFFECTED if k < n:
            return Message("some_matched", k=k, n=n, m=n - k, said=newest(*_OTHERWISE))
        case Verdict.AFFECTED | Verdict.FLAKY | Verdict.BIGGER | Verdict.MORE_WORK | Verdict.SLOWER:
            return Message("all_matched" if k == n else "some_passed", k=k, n=n)
        case Verdict.NOT_AFFECTED:
            return Message("all_passed", n=n, said=newest(Outcome.PASS))
        case Verdict.DIFFERENT_FAILURE:
            return newest(Outcome.OTHER_FAILURE, Outcome.CRASH)
        case Verdict.INCONCLUSIVE if any(attempt.outcome is Outcome.PASS for attempt in attempts):
            return Message(_PASSED_AND_FAILED, said=newest(*_OTHERWISE))
        case Verdict.INCONCLUSIVE:
            return newest(*({Outcome.TIMEOUT} & {attempt.outcome for attempt in attempts} or INFRASTRUCTURE))
        case Verdict.NOT_APPLICABLE | Verdict.NO_BUILD:
            return newest(Outcome.NOT_APPLICABLE)
        case Verdict.NOT_RUN:
            return NOT_RUN


_OTHERWISE = (Outcome.OTHER_FAILURE, Outcome.CRASH, Outcome.TIMEOUT)
_PASSED_AND_FAILED = "passed_and_failed"
FLAKY_RUNS = 3
"""Runs that a pass rests on where the issue is known to be flaky."""


FLAKY_WORDS = (Verdict.FLAKY.value, _PASSED_AND_FAILED)
"""Without one of these in its text no stored cell is flaky."""


def is_flaky(cell: Cell) -> bool:
    """Whether the same baseline gave different outcomes here, with any variant, on one machine or on several."""
    return any(variant.verdict is Verdict.FLAKY or _is_mixed(variant.reason) for variant in cell.variants)


def _is_mixed(reason: Message) -> bool:
    inner_reason = reason.values["said"] if reason.key == "varies_by_machine" else reason
    return isinstance(inner_reason, Message) and inner_reason.key == _PASSED_AND_FAILED


class FlakyRate(NamedTuple):
    """How often a variant failed on a `release`, in how many runs."""

    k: int
    n: int
    release: str

    @property
    def passes_needed(self) -> int:
        return min(_MOST_PASSES, passes_beyond_luck(self.k / self.n))


_MANY_RUNS, _MOST_PASSES, _LUCK = 10, 30, 0.05


def passes_beyond_luck(rate: float) -> int:
    """How many passes in a row are luck at most once in twenty times, if it fails at this rate (between 0 and 1)."""
    return ceil(round(log(_LUCK) / log(1 - rate), 9))


def lowest_rates(cells: Iterable[Cell]) -> Mapping[str, FlakyRate]:
    """By variant, the lowest rate at which an issue failed now and then, in ten runs or more on one build."""
    by_rate = sorted(
        (variant.k / variant.n, variant.variant, FlakyRate(variant.k, variant.n, parse_build_id(cell.build).release))
        for cell in cells
        for variant in cell.variants
        if variant.n >= _MANY_RUNS and 0 < variant.k < variant.n
    )
    return {variant: rate for _, variant, rate in reversed(by_rate)}


def beside_flaky(cell: Cell, rates: Mapping[str, FlakyRate]) -> Cell:
    """The cell as it is claimed where the issue is flaky on its class. Passes that may be luck by the lowest `rates`
    are no answer; where no rate is known, a single pass is no cure, and is marked.
    """
    short = {variant.variant: variant.n for variant in cell.variants if variant.n < _needed(rates, variant.variant)}
    variants = tuple(
        replace(variant, verdict=Verdict.INCONCLUSIVE, reason=_too_few(rates[variant.variant], variant.n))
        if variant.variant in short and variant.verdict is Verdict.NOT_AFFECTED
        else variant
        for variant in cell.variants
    )
    verdict, reason = cell.verdict, cell.reason
    if verdict is Verdict.NOT_AFFECTED and short:
        worst = max(short, key=lambda variant: _needed(rates, variant))
        verdict, reason = Verdict.INCONCLUSIVE, _with([worst], _too_few(rates[worst], short[worst]))
    elif verdict is Verdict.NOT_AFFECTED and cell.runs == 1:
        reason = clauses([reason, _ONE_RUN])
    workarounds = {id_: _cured_beyond_luck(finding, rates) for id_, finding in cell.workarounds.items()}
    return replace(cell, verdict=verdict, reason=reason, variants=variants, workarounds=workarounds)


def with_findings_of(cell: Cell, other: Cell, ground: str = "") -> Cell:
    """The cell with the findings of `other` on workarounds that were not tried here, if the same variants fail;
    `ground` is the build of `other`, where that differs.
    """
    added = {
        id_: _run_on(ground, tried) if ground else tried
        for id_, finding in cell.workarounds.items()
        if not _is_tried(finding) and (tried := other.workarounds.get(id_)) and _is_tried(tried)
    }
    if not added or _failing(cell) != _failing(other):
        return cell
    return replace(cell, workarounds={**cell.workarounds, **added})


def _run_on(ground: str, finding: WorkaroundFinding) -> WorkaroundFinding:
    note = inferred_from(ground)
    return replace(finding, ground=ground, note=clauses([finding.note, note]) if finding.note else note)


def inferred_from(ground: str) -> Message:
    return Message("inferred_from", ground=ground)


def tried_here(cell: Cell) -> Cell:
    """The cell without findings on workarounds that come from another Python."""
    own = {
        id_: WorkaroundFinding(_UNVERIFIED, NOT_RUN) if finding.ground else finding
        for id_, finding in cell.workarounds.items()
    }
    return replace(cell, workarounds=own)


_UNVERIFIED = WorkaroundVerdict.UNVERIFIED


def _is_tried(finding: WorkaroundFinding) -> bool:
    return finding.verdict is not _UNVERIFIED


def _failing(cell: Cell) -> frozenset[str]:
    return frozenset(variant.variant for variant in cell.variants if variant.verdict in FAILING)


def _needed(rates: Mapping[str, FlakyRate], variant: str, least: int = 0) -> int:
    return max(least, rates[variant].passes_needed) if variant in rates else least


def _too_few(rate: FlakyRate, runs: int) -> Message:
    return Message("passes_needed", n=rate.passes_needed, k=rate.k, m=rate.n, version=rate.release, runs=runs)


_ONE_RUN = Message("one_run", n=FLAKY_RUNS - 1)
HELPING = frozenset({WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL})


def _cured_beyond_luck(finding: WorkaroundFinding, rates: Mapping[str, FlakyRate]) -> WorkaroundFinding:
    """Variants with which it helped in too few runs count as untried again."""
    short = [variant for variant in finding.helped if finding.runs < _needed(rates, variant, 2)]
    if finding.verdict not in HELPING or not (short or finding.runs == 1):
        return finding
    helped = tuple(variant for variant in finding.helped if variant not in short)
    worst = max(short, key=lambda variant: _needed(rates, variant), default="")
    note = _too_few(rates[worst], finding.runs) if worst in rates else _ONE_RUN
    return replace(
        finding,
        verdict=WorkaroundVerdict.PARTIAL if helped else WorkaroundVerdict.UNVERIFIED,
        note=clauses([Message("helps_with", names=helped), note]) if helped else note,
        helped=helped,
        untried=(*short, *finding.untried),
    )


def _varies_by_machine(attempts: Sequence[Judged]) -> bool:
    """Whether each machine always gives the same outcome, and the machines differ."""
    telling = [attempt for attempt in attempts if _says_something(attempt.outcome)]
    pairs = {(attempt.machine, attempt.outcome) for attempt in telling}
    agrees_with_itself = len(pairs) == len({attempt.machine for attempt in telling})
    return agrees_with_itself and len({attempt.outcome for attempt in telling}) > 1


_MOST_TELLING = (Verdict.AFFECTED, *EXCESSES, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE, Verdict.INCONCLUSIVE)


def _over_variants(findings: Sequence[VariantFinding]) -> tuple[Verdict, Message]:
    """A cell is affected if any variant is; it is not_affected only where every applicable variant is."""
    for verdict in _MOST_TELLING:
        matching = [finding for finding in findings if finding.verdict is verdict]
        if matching:
            return verdict, _in_variant(matching, findings)
    kinds = {finding.verdict for finding in findings}
    if kinds == {Verdict.NOT_RUN}:
        return Verdict.NOT_RUN, NOT_RUN
    if Verdict.NOT_RUN in kinds:
        missing = tuple(finding.variant for finding in findings if finding.verdict is Verdict.NOT_RUN)
        return Verdict.INCONCLUSIVE, Message("missing_variants", names=missing)
    passed = [finding for finding in findings if finding.verdict is Verdict.NOT_AFFECTED]
    if passed:
        return Verdict.NOT_AFFECTED, _in_variant(passed, findings)
    verdict = Verdict.NO_BUILD if Verdict.NO_BUILD in kinds else Verdict.NOT_APPLICABLE
    return verdict, next(finding.reason for finding in findings if finding.verdict is verdict)


def _beside_the_report(issue: Issue, verdict: Verdict, reason: Message, findings: Sequence[VariantFinding]) -> Message:
    """A cell's verdict is its worst variant's; where the reported variant has another one, the reason names both."""
    reported = {variant.id for variant in issue.variants if variant.is_reported}
    own = next((finding for finding in findings if finding.variant in reported), None)
    if own is None or own.verdict is verdict or own.verdict not in CONCLUSIVE or verdict not in CONCLUSIVE:
        return reason
    return Message("as_reported", said=reason, variant=own.variant, clause=Message(f"it_{own.verdict}"))


def _in_variant(matching: Sequence[VariantFinding], findings: Sequence[VariantFinding]) -> Message:
    if len(findings) == 1:
        return matching[0].reason
    if len(matching) == len(findings):
        return Message("with_every_variant", n=len(matching), said=matching[0].reason)
    return _with([finding.variant for finding in matching], matching[0].reason)


def _with(variants: Iterable[str], reason: Message) -> Message:
    return Message("with", names=tuple(variants), said=reason)


def _telling(attempts: Sequence[Judged], verdict: Verdict) -> Judged | None:
    wanted = {
        **{failing: {Outcome.MATCH} for failing in FAILING},
        Verdict.NOT_AFFECTED: {Outcome.PASS},
        Verdict.DIFFERENT_FAILURE: {Outcome.OTHER_FAILURE, Outcome.CRASH},
    }.get(verdict, set(Outcome))
    return next((attempt for attempt in reversed(attempts) if attempt.outcome in wanted), None)


def _worst(control: Sequence[Judged]) -> Outcome | None:
    outcomes = [attempt.outcome for attempt in control]
    settled = [outcome for outcome in outcomes if _says_something(outcome)]
    return max(settled or outcomes, key=list(Outcome).index, default=None)


def _says_something(outcome: Outcome) -> bool:
    return outcome not in INFRASTRUCTURE | {Outcome.NOT_APPLICABLE}


def _workaround(
    issue: Issue, build: Build, arm: str, attempts: Sequence[Judged], findings: Sequence[VariantFinding]
) -> WorkaroundFinding:
    """How well the workaround works on this cell, over the variants that are affected or flaky, each with its own
    attempts.

    If no variant is, it is unnecessary if it passes too. If it breaks what passes without it, or makes a loud failure
    silent, with any variant, that outranks all else.
    """
    absent = arm_inapplicable(issue.arm(arm), build) or _nothing_to_try(issue, arm, attempts)
    if absent:
        return WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, Message("does_not_apply", said=absent), applies=False)
    own = grouped((attempt for attempt in attempts if attempt.arm == arm), lambda attempt: attempt.variant)
    trials = [_trial(issue, finding, own.get(finding.variant, [])) for finding in findings]
    harm = next((trial for trial in trials if trial.verdict is WorkaroundVerdict.HARMFUL), None)
    failing = [trial for trial in trials if trial.baseline.verdict in FAILING]
    overall = _over_failing(issue, failing) if failing else _over_passing(trials)
    planned = {variant.id for variant in variants_of(issue, arm)}
    if failing and planned.isdisjoint(overall.untried) and overall.verdict is WorkaroundVerdict.UNVERIFIED:
        overall = replace(overall, note=Message("does_not_apply", said=_partial_note(issue, failing)), applies=False)
    return replace(overall, verdict=WorkaroundVerdict.HARMFUL, note=harm.note, applies=True) if harm else overall


@dataclass(frozen=True)
class _Trial:
    """A workaround with one variant beside its baseline; `runs` counts its passes."""

    baseline: VariantFinding
    verdict: WorkaroundVerdict
    note: Message | None = None
    runs: int = 0


def _over_failing(issue: Issue, failing: Sequence[_Trial]) -> WorkaroundFinding:
    by_verdict = {
        verdict: tuple(trial.baseline.variant for trial in failing if trial.verdict is verdict)
        for verdict in (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.INEFFECTIVE)
    }
    helped, failed = by_verdict[WorkaroundVerdict.EFFECTIVE], by_verdict[WorkaroundVerdict.INEFFECTIVE]
    untried = tuple(trial.baseline.variant for trial in failing if trial.verdict is WorkaroundVerdict.UNVERIFIED)
    finding = WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, helped=helped, failed=failed, untried=untried)
    if helped:
        runs = min(trial.runs for trial in failing if trial.verdict is WorkaroundVerdict.EFFECTIVE)
        if len(helped) == len(failing):
            return replace(finding, verdict=WorkaroundVerdict.EFFECTIVE, runs=runs)
        return replace(finding, verdict=WorkaroundVerdict.PARTIAL, runs=runs, note=_partial_note(issue, failing))
    if failed:
        note = next(trial.note for trial in failing if trial.verdict is WorkaroundVerdict.INEFFECTIVE)
        return replace(finding, verdict=WorkaroundVerdict.INEFFECTIVE, note=note)
    return replace(finding, note=failing[0].note)


def _partial_note(issue: Issue, failing: Sequence[_Trial]) -> Message:
    """`helps with a; fails with b; not tried with c, d (why)`."""
    why = {variant.id: variant.why_not.rstrip(".") for variant in issue.variants}
    helped, failed = (
        tuple(trial.baseline.variant for trial in failing if trial.verdict is verdict)
        for verdict in (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.INEFFECTIVE)
    )
    others = [trial for trial in failing if trial.baseline.variant not in {*helped, *failed}]
    unsure = [
        Message("aside", said=Message("names", names=(other.baseline.variant,)), aside=other.note)
        for other in others
        if other.note and other.note != NOT_RUN
    ]
    untried = grouped((trial.baseline.variant for trial in others if trial.note == NOT_RUN), why.__getitem__)
    parts = [Message("helps_with", names=helped)] if helped else []
    parts += [Message("fails_with", names=failed)] if failed else []
    parts += [Message("no_answer_with", said=joined("then", unsure))] if unsure else []
    parts += [
        Message("left_out_with", names=tuple(names), why=Quoted(reason))
        if reason
        else Message("not_tried_with", names=tuple(names))
        for reason, names in untried.items()
    ]
    return clauses(parts)


def _over_passing(trials: Sequence[_Trial]) -> WorkaroundFinding:
    """Judge a workaround where nothing fails: one that passes is not needed. A doubtful baseline proves nothing."""
    applicable = [trial for trial in trials if trial.baseline.verdict is not Verdict.NOT_APPLICABLE] or trials
    tried = [trial for trial in applicable if trial.note != NOT_RUN]
    unsure = next((trial for trial in tried if trial.verdict is not WorkaroundVerdict.UNNECESSARY), None)
    if unsure or not tried:
        return WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, unsure.note if unsure else NOT_RUN)
    return WorkaroundFinding(WorkaroundVerdict.UNNECESSARY)


def _nothing_to_try(issue: Issue, arm: str, attempts: Sequence[Judged]) -> Message | None:
    """The reason that the workaround itself gave for not being applicable; None unless every one of its variants gave
    one.

    A build that cannot be installed says nothing about the workaround.
    """
    answers = [attempt for attempt in attempts if attempt.arm == arm and attempt.outcome not in INFRASTRUCTURE]
    with_all = {attempt.variant for attempt in answers} >= {variant.id for variant in variants_of(issue, arm)}
    if (
        not answers
        or not with_all
        or any(attempt.outcome is not Outcome.NOT_APPLICABLE or attempt.no_build for attempt in answers)
    ):
        return None
    return answers[-1].reason


def _trial(issue: Issue, baseline: VariantFinding, arm: Sequence[Judged]) -> _Trial:
    verdict = mixture({attempt.outcome for attempt in arm})
    failing = next((attempt for attempt in reversed(arm) if attempt.outcome in FAILURES), None)
    is_seen = baseline.verdict in FAILING
    if not is_seen and baseline.verdict is not Verdict.NOT_AFFECTED:
        return _Trial(baseline, WorkaroundVerdict.UNVERIFIED, Message(f"baseline_{baseline.verdict}"))
    if verdict is Verdict.NOT_AFFECTED:
        cures = WorkaroundVerdict.EFFECTIVE if is_seen else WorkaroundVerdict.UNNECESSARY
        return _Trial(baseline, cures, runs=sum(1 for attempt in arm if attempt.outcome is Outcome.PASS))
    if is_seen and verdict is Verdict.FLAKY and failing is not None:
        return _Trial(baseline, WorkaroundVerdict.INEFFECTIVE, Message("not_every_time", said=_last_words(failing)))
    if verdict not in {Verdict.AFFECTED, Verdict.DIFFERENT_FAILURE} or failing is None:
        return _Trial(baseline, WorkaroundVerdict.UNVERIFIED, _reason(verdict, arm))
    if not is_seen:
        return _Trial(baseline, WorkaroundVerdict.HARMFUL, Message("breaks_what_passes", said=failing.reason))
    return _still_failing(issue, baseline, failing)


def _still_failing(issue: Issue, baseline: VariantFinding, failing: Judged) -> _Trial:
    quiet = issue.signature.kind is SignatureKind.WRONG_RESULT
    if not quiet and failing.marked == "wrong_result":
        return _Trial(baseline, WorkaroundVerdict.HARMFUL, Message("becomes_silent"))
    if quiet and failing.marked != "wrong_result":
        return _Trial(baseline, WorkaroundVerdict.INEFFECTIVE, Message("becomes_loud", said=failing.reason))
    return _Trial(baseline, WorkaroundVerdict.INEFFECTIVE, _last_words(failing))


def _last_words(failing: Judged) -> Message:
    """The line that matched the signature; else why it counts as a failure."""
    return quoted(failing.line) if failing.line else failing.reason


_WORST_FIRST = (
    WorkaroundVerdict.HARMFUL,
    WorkaroundVerdict.INEFFECTIVE,
    WorkaroundVerdict.UNVERIFIED,
    WorkaroundVerdict.PARTIAL,
    WorkaroundVerdict.EFFECTIVE,
    WorkaroundVerdict.UNNECESSARY,
)


def over_isas(issue: Issue, own: Cell | None, of_isas: Sequence[Cell]) -> Cell | None:
    """The cell of the whole class: the worst of what was measured with each ISA (`of_isas`) and with the ISA a machine
    happened to have (`own`), as with several variants. A pass with one ISA says nothing about the others.
    """
    if not of_isas:
        return own
    cells = [cell for cell in (*of_isas, own) if cell is not None and cell.verdict is not Verdict.NOT_RUN]
    if cells == [own]:
        return own
    if not cells:
        return replace(of_isas[0], hardware=whole_class(of_isas[0].hardware))
    findings = [VariantFinding(isa_of(cell.hardware), cell.verdict, cell.reason) for cell in cells]
    if own is None or own.verdict not in CONCLUSIVE:
        lacking = set(issue.requires.vector_isas) - {isa_of(cell.hardware) for cell in cells}
        findings += [VariantFinding(isa, Verdict.NOT_RUN, NOT_RUN) for isa in sorted(lacking)]
    verdict, reason = _over_variants(findings)
    hardware = whole_class(of_isas[0].hardware)
    worst = sorted((cell for cell in cells if cell.verdict is verdict), key=lambda cell: cell.as_reported is not None)
    isas = [isa_of(cell.hardware) for cell in worst if isa_of(cell.hardware)]
    if not worst:  # no answer, as one ISA passes and another was not run
        return replace(cells[0], hardware=hardware, verdict=verdict, reason=reason)
    return replace(
        worst[0],
        hardware=hardware,
        reason=Message("on", names=tuple(isas), said=worst[0].reason) if isas else worst[0].reason,
        workarounds={id_: _worst_finding(issue, id_, cells, worst) for id_ in worst[0].workarounds},
        superseded=own.superseded if own else 0,
        voided=own.voided if own else 0,
    )


def _worst_finding(issue: Issue, workaround: str, cells: Iterable[Cell], worst: Sequence[Cell]) -> WorkaroundFinding:
    """How well the workaround works where the issue occurs; that it does harm anywhere outranks that. Where it was not
    tried with an ISA, the finding on the whole class stands, and where it was tried with each, theirs do.
    """
    failing = [cell for cell in cells if cell.verdict in FAILING] or worst
    untried, harmful = WorkaroundVerdict.UNVERIFIED, WorkaroundVerdict.HARMFUL
    findings = [
        (isa_of(cell.hardware), cell in failing, cell.workarounds[workaround])
        for cell in cells
        if workaround in cell.workarounds
    ]
    relevant = [(isa, finding) for isa, is_failing, finding in findings if is_failing or finding.verdict is harmful]
    whole = [finding for isa, finding in relevant if not isa and finding.verdict is not untried]
    tried = {isa: finding for isa, finding in relevant if isa and not _lacks_trials(finding)}
    is_tried = bool(whole) or tried.keys() >= set(issue.requires.vector_isas)
    counted = [*whole, *tried.values()] if is_tried else [finding for _, finding in relevant]
    return min(counted, key=lambda finding: _WORST_FIRST.index(finding.verdict))


def _lacks_trials(finding: WorkaroundFinding) -> bool:
    """Whether nothing is known against it, and it was not tried with every variant that fails."""
    return finding.verdict is WorkaroundVerdict.UNVERIFIED or (bool(finding.untried) and not finding.failed)


def is_silent(issue: Issue, cell: Cell) -> bool:
    """Whether it gives wrong numbers without an error here; where the cell does not show that, as the issue states."""
    return issue.silent if cell.silent is None else cell.silent


def is_stale(cell: Cell, build: Build, now: datetime) -> bool:
    """Old evidence is marked, never dropped: after 180 days for releases, 7 for nightlies (`.dev` versions)."""
    return cell.measured_at is not None and cell.measured_at < stale_before(build, now)


def stale_before(build: Build, now: datetime) -> datetime:
    """The moment before which a measurement on `build` is stale `now`."""
    return now - stays_fresh(build)


def stays_fresh(build: Build) -> timedelta:
    """How long a result on `build` may be relied on after it was measured."""
    return NIGHTLY_STALE_AFTER if build.build_id.version.is_devrelease else STALE_AFTER
