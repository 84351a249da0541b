"""Findings as the gate decides."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache

from knowngood.cli.knowledge import ground_here
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import Watch, find_issue
from knowngood.domain.verdicts.verdict import FAILING
from knowngood.environments.installed import state_here
from knowngood.environments.resolve import ResolvedBuild, resolve
from knowngood.environments.wheels.table import wheels_of
from knowngood.gate.decision import Reason, decide
from knowngood.gate.in_code.finding import Finding
from knowngood.gate.policy import Effect, Policy
from knowngood.gate.question import GateQuestion
from knowngood.store.knowledge.model import Knowledge

_NO_AGE = 1_000_000
"""Days. Whoever asks has `measured_at`: no reason depends on the day."""


def ask_gate(written: str, hardware: Sequence[str]) -> list[Finding]:
    """The findings on the issue that is meant, one for each class on which it can exist. Raises UnknownIssue."""
    knowledge = _knowledge()
    issue = find_issue(written, knowledge.known.issues)
    resolved = resolve(state_here(), knowledge.known.build_names, knowledge.tested, wheels_of(knowledge.known))
    return findings_of([issue], resolved, hardware, knowledge)


@cache
def _knowledge() -> Knowledge:
    return ground_here(quietly=True).knowledge


def findings_of(
    issues: Sequence[Issue], resolved: ResolvedBuild, hardware: Sequence[str], knowledge: Knowledge
) -> list[Finding]:
    watch = Watch(issues=tuple(issue.id for issue in issues))
    policy = Policy(watch=watch, hardware=tuple(hardware), release_days=_NO_AGE, nightly_days=_NO_AGE)
    ruling = decide(GateQuestion(resolved, policy, datetime.now(UTC), knowledge.known))
    known = knowledge.known.issues
    return [_finding(reason, known[reason.issue], resolved) for reason in ruling.reasons]


def _finding(reason: Reason, issue: Issue, resolved: ResolvedBuild) -> Finding:
    return Finding(
        issue=issue.id,
        title=issue.title,
        signature=issue.signature.kind.value,
        upstream=reason.upstream or "",
        build=reason.build,
        hardware=reason.hardware,
        affected=_is_affected(reason),
        verdict=reason.verdict.value,
        reason=reason.why if resolved.build or reason.effect is Effect.PASS else resolved.not_tested,
        assurance=reason.assurance.value,
        runs=reason.runs,
        measured_at=reason.measured_at,
        silent=reason.silent,
        fixed_in=reason.fixed_in,
        workarounds={workaround.id: workaround.verdict.value for workaround in reason.workarounds},
        note=resolved.note if resolved.build else "",
    )


def _is_affected(reason: Reason) -> bool | None:
    """A different failure says neither that the issue is there nor that it is not."""
    return reason.verdict in FAILING if reason.verdict in FAILING or reason.effect is Effect.PASS else None


def workarounds_of(issue: str) -> tuple[str, ...]:
    return tuple(workaround.id for workaround in find_issue(issue, _knowledge().known.issues).workarounds)
