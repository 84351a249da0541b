"""From attempts to a cell: a pure function of the multiset of attempts.

The mixture table stands in GLOSSARY.md and is read back by a test. Nothing here knows in which order results arrived.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from app.domain.build import Build
from app.domain.issue import BASELINE, CONTROL, Issue, SignatureKind, arm_inapplicable, inapplicable, variants_of
from app.domain.job import Attempt
from app.domain.outcome import Outcome, TroubleCode, classify


class Verdict(StrEnum):
    AFFECTED = "affected"
    NOT_AFFECTED = "not_affected"
    DIFFERENT_FAILURE = "different_failure"
    FLAKY = "flaky"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not_applicable"
    NO_BUILD = "no_build"
    NOT_RUN = "not_run"


CONCLUSIVE = frozenset({Verdict.AFFECTED, Verdict.NOT_AFFECTED, Verdict.DIFFERENT_FAILURE, Verdict.FLAKY})

INFRASTRUCTURE = frozenset({Outcome.ENV_ERROR, Outcome.HARNESS_ERROR, Outcome.CANCELLED})
FAILURES = frozenset({Outcome.MATCH, Outcome.OTHER_FAILURE, Outcome.CRASH})

STALE_AFTER = timedelta(days=180)
NIGHTLY_STALE_AFTER = timedelta(days=7)

# A hang counts only where the same computation without the suspect path was this much faster.
_HANG_RATIO = 10


class WorkaroundVerdict(StrEnum):
    EFFECTIVE = "effective"
    INEFFECTIVE = "ineffective"
    UNNECESSARY = "unnecessary"
    HARMFUL = "harmful"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Judged:
    """One attempt with its outcome: what verdicts are made of. `marked` and `wall_s` are the record's own.

    `unserved` says that the host turned it away although another host of the same class may serve it; `machine` is
    the digest of that host.
    """

    attempt: str
    arm: str
    variant: str
    outcome: Outcome
    reason: str
    line: str
    measured_at: datetime
    wall_s: float = 0.0
    no_build: bool = False
    marked: str = ""
    unserved: bool = False
    machine: str = ""


@dataclass(frozen=True)
class WorkaroundFinding:
    """What was found of one workaround on one cell, and why in a few words.

    `applies` is False where there is nothing to try: it is for other releases, or each of its attempts said so. It is
    unverified then, and nothing is missing.
    """

    verdict: WorkaroundVerdict
    note: str = ""
    applies: bool = True


@dataclass(frozen=True)
class VariantFinding:
    """The baseline's verdict with one variant: `k` of `n` attempts that said anything ended with the signature."""

    variant: str
    verdict: Verdict
    reason: str
    k: int = 0
    n: int = 0


@dataclass(frozen=True)
class Cell:
    """(issue, build, hardware class) and what is known of it now.

    `attempts` counts the baseline's outcomes; `control` is the control arm's worst outcome, one that says nothing only
    where there is no other (None: not run); `line` is the newest line that matched the signature; `superseded` counts
    attempts bound to an older repro, `voided` those of a worker that somebody said not to count; `evidence` is the id
    of the attempt that says most.
    """

    issue: str
    build: str
    hardware: str
    verdict: Verdict
    reason: str
    measured_at: datetime | None = None
    control: Outcome | None = None
    attempts: Mapping[str, int] = field(default_factory=dict)
    line: str = ""
    variants: tuple[VariantFinding, ...] = ()
    workarounds: Mapping[str, WorkaroundFinding] = field(default_factory=dict)
    superseded: int = 0
    voided: int = 0
    evidence: str = ""


def judge(attempt: Attempt, issue: Issue, build: Build, log: str) -> Judged:
    """Classify a stored attempt with today's rules and today's signature."""
    judgement = classify(attempt.record, issue, attempt.arm, build, log)
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
        unserved=trouble is not None and trouble.code is TroubleCode.DRIVER_TOO_OLD,
        machine=attempt.machine,
    )


def derive_cell(
    issue: Issue, build: Build, hardware: str, judged: Iterable[Judged], superseded: int = 0, voided: int = 0
) -> Cell:
    """Say what all counted attempts of one cell mean together. `superseded` and `voided` are how many there are beside
    them that do not count.

    Guarantees, held by properties in tests: not_affected only with a proven pass of every baseline variant on this very
    build; nothing infrastructural yields affected, not_affected or different_failure; the order of `judged` and
    repetitions of the same attempt change nothing. What a host turned away unserved is as if it had not been tried: it
    changes no verdict, and is the reason where there is nothing else.
    """
    absent = inapplicable(issue, build, hardware)
    if absent:
        cell = Cell(issue.id, build.id, hardware, Verdict.NOT_APPLICABLE, absent)
        return replace(cell, superseded=superseded, voided=voided)
    made = _in_stable_order(judged)
    attempts = [one for one in made if not one.unserved]
    baseline = [one for one in attempts if one.arm == BASELINE]
    control = [one for one in attempts if one.arm == CONTROL]
    findings = tuple(
        judge_variant(issue, variant.id, [one for one in baseline if one.variant == variant.id], control)
        for variant in variants_of(issue, BASELINE)
    )
    verdict, reason = _over_variants(findings)
    telling = _telling(baseline or attempts, verdict)
    refused = [one for one in made if one.unserved]
    if verdict is Verdict.NOT_RUN and refused:
        telling = _telling([one for one in refused if one.arm == BASELINE] or refused, verdict)
        reason = refused[-1].reason
    if not made and voided:
        reason = f"{voided} {'attempt' if voided == 1 else 'attempts'} of a worker whose results were voided"
    return Cell(
        issue=issue.id,
        build=build.id,
        hardware=hardware,
        verdict=verdict,
        reason=reason,
        measured_at=max((one.measured_at for one in baseline or attempts), default=None),
        control=_worst(control),
        attempts=dict(Counter(one.outcome.value for one in baseline)),
        line=next((one.line for one in reversed(baseline) if one.line), ""),
        variants=findings,
        workarounds={
            arm.id: _workaround(issue, build, arm.id, attempts, findings)
            for arm in issue.arms
            if arm.id not in {BASELINE, CONTROL}
        },
        superseded=superseded,
        voided=voided,
        evidence=telling.attempt if telling else "",
    )


def _in_stable_order(judged: Iterable[Judged]) -> list[Judged]:
    unique = {one.attempt: one for one in judged}
    return sorted(unique.values(), key=lambda one: (one.measured_at, one.attempt))


def mixture(outcomes: Collection[Outcome]) -> Verdict:
    """The verdict of one arm with one variant from the set of its outcomes. The table of GLOSSARY.md, in code."""
    found = set(outcomes)
    failed_otherwise = bool(found & {Outcome.OTHER_FAILURE, Outcome.CRASH})
    if Outcome.MATCH in found:
        return Verdict.FLAKY if Outcome.PASS in found else Verdict.AFFECTED
    if Outcome.PASS in found:
        unsteady = failed_otherwise or Outcome.TIMEOUT in found
        return Verdict.INCONCLUSIVE if unsteady else Verdict.NOT_AFFECTED
    if failed_otherwise:
        return Verdict.DIFFERENT_FAILURE
    if Outcome.TIMEOUT in found or found & INFRASTRUCTURE:
        return Verdict.INCONCLUSIVE
    return Verdict.NOT_APPLICABLE if found else Verdict.NOT_RUN


def judge_variant(issue: Issue, variant: str, baseline: Sequence[Judged], control: Sequence[Judged]) -> VariantFinding:
    """The baseline's finding with one variant, in the light of the control arm with that variant (else with any).

    `baseline` are its attempts with that variant alone.
    """
    own = [one for one in control if one.variant == variant] or list(control)
    baseline = _hangs_only_beside_a_quick_control(issue, baseline, own)
    outcomes = [one.outcome for one in baseline]
    verdict = mixture(outcomes)
    k = outcomes.count(Outcome.MATCH)
    n = sum(1 for outcome in outcomes if _says_something(outcome))
    reason = ("varies by machine: " if _varies_by_machine(baseline) else "") + _reason(verdict, baseline, k, n)
    if verdict is Verdict.NOT_APPLICABLE and all(one.no_build for one in baseline):
        return VariantFinding(variant, Verdict.NO_BUILD, reason)
    if verdict not in CONCLUSIVE:
        return VariantFinding(variant, verdict, reason, k, n)
    steadied = mixture({one.outcome for one in own})
    if steadied is Verdict.NOT_AFFECTED:
        return VariantFinding(variant, verdict, reason, k, n)
    return VariantFinding(variant, Verdict.INCONCLUSIVE, _control_reason(steadied, own), k, n)


def _control_reason(verdict: Verdict, control: Sequence[Judged]) -> str:
    if verdict is Verdict.NOT_RUN:
        return "control not run: without it neither a failure nor a pass says anything"
    failing = next((one for one in reversed(control) if one.outcome is not Outcome.PASS), control[-1])
    word = (
        "control failed"
        if verdict is not Verdict.INCONCLUSIVE or failing.outcome in FAILURES
        else "control gave no answer"
    )
    return f"{word}: {failing.reason}"


def _hangs_only_beside_a_quick_control(
    issue: Issue, baseline: Sequence[Judged], control: Sequence[Judged]
) -> list[Judged]:
    if issue.signature.kind is not SignatureKind.HANG:
        return list(baseline)
    slowest = max((one.wall_s for one in control if _says_something(one.outcome)), default=0.0)
    if slowest * _HANG_RATIO < issue.timeout_s:
        return list(baseline)
    slow = f"did not end within {issue.timeout_s:g} s, but the control took {slowest:.0f} s itself"
    return [
        replace(one, outcome=Outcome.TIMEOUT, reason=slow, line="") if one.outcome is Outcome.MATCH else one
        for one in baseline
    ]


def _reason(verdict: Verdict, attempts: Sequence[Judged], k: int, n: int) -> str:
    """One sentence fit for the first line of a cell's page."""

    def newest(*outcomes: Outcome) -> str:
        return next((one.reason for one in reversed(attempts) if one.outcome in outcomes), "")

    match verdict:
        case Verdict.AFFECTED:
            beside = (
                ""
                if k == n
                else f"; {n - k} ended otherwise: {newest(Outcome.OTHER_FAILURE, Outcome.CRASH, Outcome.TIMEOUT)}"
            )
            return f"{k} of {n} {_attempts(n)} ended with the issue's own signature{beside}"
        case Verdict.FLAKY:
            return f"{k} of {n} {_attempts(n)} ended with the issue's own signature, others passed"
        case Verdict.NOT_AFFECTED:
            return f"{n} of {n} {_attempts(n)} {newest(Outcome.PASS)}"
        case Verdict.DIFFERENT_FAILURE:
            return newest(Outcome.OTHER_FAILURE, Outcome.CRASH)
        case Verdict.INCONCLUSIVE if n and any(one.outcome is Outcome.PASS for one in attempts):
            return f"passed and failed: {newest(Outcome.OTHER_FAILURE, Outcome.CRASH, Outcome.TIMEOUT)}"
        case Verdict.INCONCLUSIVE:
            return newest(Outcome.TIMEOUT) or newest(*INFRASTRUCTURE)
        case Verdict.NOT_APPLICABLE | Verdict.NO_BUILD:
            return newest(Outcome.NOT_APPLICABLE)
        case Verdict.NOT_RUN:
            return "not run yet"


def _varies_by_machine(attempts: Sequence[Judged]) -> bool:
    """Whether each machine always says the same, and not all machines the same."""
    said: dict[str, set[Outcome]] = {}
    for one in attempts:
        if _says_something(one.outcome):
            said.setdefault(one.machine, set()).add(one.outcome)
    agrees_with_itself = all(len(outcomes) == 1 for outcomes in said.values())
    return agrees_with_itself and len(set().union(*said.values())) > 1


def _attempts(n: int) -> str:
    return "attempt" if n == 1 else "attempts"


_MOST_TELLING = (Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE, Verdict.INCONCLUSIVE)


def _over_variants(findings: Sequence[VariantFinding]) -> tuple[Verdict, str]:
    """A cell is affected if any variant is; it is not_affected only where every applicable variant is."""
    for verdict in _MOST_TELLING:
        found = [one for one in findings if one.verdict is verdict]
        if found:
            return verdict, _in_variant(found, findings)
    kinds = {one.verdict for one in findings}
    if kinds == {Verdict.NOT_RUN}:
        return Verdict.NOT_RUN, "not run yet"
    if Verdict.NOT_RUN in kinds:
        missing = ", ".join(one.variant for one in findings if one.verdict is Verdict.NOT_RUN)
        return Verdict.INCONCLUSIVE, f"not measured with {missing} yet"
    passed = [one for one in findings if one.verdict is Verdict.NOT_AFFECTED]
    if passed:
        return Verdict.NOT_AFFECTED, _in_variant(passed, findings)
    verdict = Verdict.NO_BUILD if Verdict.NO_BUILD in kinds else Verdict.NOT_APPLICABLE
    return verdict, next(one.reason for one in findings if one.verdict is verdict)


def _in_variant(found: Sequence[VariantFinding], findings: Sequence[VariantFinding]) -> str:
    if len(findings) == 1:
        return found[0].reason
    if len(found) == len(findings):
        return f"with every variant ({len(found)}): {found[0].reason}"
    return f"with {', '.join(one.variant for one in found)}: {found[0].reason}"


def _telling(attempts: Sequence[Judged], verdict: Verdict) -> Judged | None:
    wanted = {
        Verdict.AFFECTED: {Outcome.MATCH},
        Verdict.FLAKY: {Outcome.MATCH},
        Verdict.NOT_AFFECTED: {Outcome.PASS},
        Verdict.DIFFERENT_FAILURE: {Outcome.OTHER_FAILURE, Outcome.CRASH},
    }.get(verdict, set(Outcome))
    return next((one for one in reversed(attempts) if one.outcome in wanted), None)


def _worst(control: Sequence[Judged]) -> Outcome | None:
    outcomes = [one.outcome for one in control]
    settled = [outcome for outcome in outcomes if _says_something(outcome)]
    return max(settled or outcomes, key=list(Outcome).index, default=None)


def _says_something(outcome: Outcome) -> bool:
    return outcome not in INFRASTRUCTURE | {Outcome.NOT_APPLICABLE}


def _workaround(
    issue: Issue, build: Build, arm: str, attempts: Sequence[Judged], findings: Sequence[VariantFinding]
) -> WorkaroundFinding:
    """What the workaround does on this cell, judged variant by variant against the baseline.

    Variants that do not apply here are left out, unless none does: there is nothing to cure with them. So are those
    whose baseline proved nothing, where the workaround passes and the issue is seen with another variant.
    """
    absent = arm_inapplicable(issue.arm(arm), build) or _nothing_to_try(issue, arm, attempts)
    if absent:
        return WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, f"does not apply to this build: {absent}", applies=False)
    applicable = [one for one in findings if one.verdict is not Verdict.NOT_APPLICABLE] or findings
    baseline = {one.variant: one for one in applicable}
    tried = [
        (baseline[variant.id], _with(attempts, arm, variant.id))
        for variant in variants_of(issue, arm)
        if variant.id in baseline
    ]
    is_seen = any(one.verdict is Verdict.AFFECTED for one, _ in tried)
    per_variant = [
        _beside(issue, one, own)
        for one, own in tried
        if not (is_seen and _says_nothing(one, _with(attempts, BASELINE, one.variant), own))
    ]
    for verdict in (WorkaroundVerdict.HARMFUL, WorkaroundVerdict.INEFFECTIVE):
        found = next((one for one in per_variant if one.verdict is verdict), None)
        if found:
            return found
    return _curative(per_variant, findings)


def _with(attempts: Sequence[Judged], arm: str, variant: str) -> list[Judged]:
    return [one for one in attempts if one.arm == arm and one.variant == variant]


def _says_nothing(baseline: VariantFinding, ran: Sequence[Judged], own: Sequence[Judged]) -> bool:
    """The baseline ran, and nothing shows what it exercised: Dynamo may leave it to Python. The workaround passes."""
    is_unproven = baseline.verdict is Verdict.INCONCLUSIVE and {one.outcome for one in ran} == {Outcome.HARNESS_ERROR}
    return is_unproven and mixture({one.outcome for one in own}) is Verdict.NOT_AFFECTED


def _nothing_to_try(issue: Issue, arm: str, attempts: Sequence[Judged]) -> str | None:
    """The workaround's own word that it cannot be tried here; None unless it said so with each of its variants.

    A build that cannot be had says nothing of the workaround.
    """
    said = [one for one in attempts if one.arm == arm and one.outcome not in INFRASTRUCTURE]
    with_all = {one.variant for one in said} >= {variant.id for variant in variants_of(issue, arm)}
    if not said or not with_all or any(one.outcome is not Outcome.NOT_APPLICABLE or one.no_build for one in said):
        return None
    return said[-1].reason


def _curative(per_variant: Sequence[WorkaroundFinding], findings: Sequence[VariantFinding]) -> WorkaroundFinding:
    kinds = [one.verdict for one in per_variant]
    if WorkaroundVerdict.UNVERIFIED in kinds or not kinds:
        return next(
            (one for one in per_variant if one.verdict is WorkaroundVerdict.UNVERIFIED), _unverified("not run yet")
        )
    if WorkaroundVerdict.EFFECTIVE in kinds:
        return next(one for one in per_variant if one.verdict is WorkaroundVerdict.EFFECTIVE)
    if all(one.verdict in {Verdict.NOT_AFFECTED, Verdict.NOT_APPLICABLE} for one in findings):
        return per_variant[0]
    return _unverified("nothing to cure was measured with the variants it was tried on")


def _unverified(note: str) -> WorkaroundFinding:
    return WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, note)


def _beside(issue: Issue, baseline: VariantFinding, arm: Sequence[Judged]) -> WorkaroundFinding:
    verdict = mixture({one.outcome for one in arm})
    failing = next((one for one in reversed(arm) if one.outcome in FAILURES), None)
    if baseline.verdict not in {Verdict.AFFECTED, Verdict.NOT_AFFECTED}:
        return _unverified(f"the baseline here is {baseline.verdict}")
    if verdict is Verdict.NOT_AFFECTED:
        cures = baseline.verdict is Verdict.AFFECTED
        return WorkaroundFinding(WorkaroundVerdict.EFFECTIVE if cures else WorkaroundVerdict.UNNECESSARY)
    if verdict not in {Verdict.AFFECTED, Verdict.DIFFERENT_FAILURE} or failing is None:
        return _unverified(_reason(verdict, arm, 0, len(arm)))
    if baseline.verdict is Verdict.NOT_AFFECTED:
        return WorkaroundFinding(WorkaroundVerdict.HARMFUL, f"the baseline passes, with it: {failing.reason}")
    return _still_failing(issue, failing)


def _still_failing(issue: Issue, failing: Judged) -> WorkaroundFinding:
    quiet = issue.signature.kind is SignatureKind.WRONG_RESULT
    if not quiet and failing.marked == "wrong_result":
        return WorkaroundFinding(WorkaroundVerdict.HARMFUL, "a loud failure becomes silent wrong numbers")
    if quiet and failing.marked != "wrong_result":
        return WorkaroundFinding(WorkaroundVerdict.INEFFECTIVE, f"makes it loud: {failing.reason}")
    return WorkaroundFinding(WorkaroundVerdict.INEFFECTIVE, failing.line or failing.reason)


def is_stale(cell: Cell, build: Build, now: datetime) -> bool:
    """Old evidence is marked, never dropped: after 180 days for releases, 7 for nightlies (`.dev` versions)."""
    return cell.measured_at is not None and cell.measured_at < stale_before(build, now)


def stale_before(build: Build, now: datetime) -> datetime:
    """What was measured on `build` before this moment is stale `now`."""
    return now - stays_fresh(build)


def stays_fresh(build: Build) -> timedelta:
    """How long after it was measured a result on `build` may be leant on."""
    return NIGHTLY_STALE_AFTER if build.build_id.version.is_devrelease else STALE_AFTER
