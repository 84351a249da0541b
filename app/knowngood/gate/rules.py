"""The rules of a policy: what one cell weighs in the gate's decision, and why. Each rule of a policy is one small
function here.

A rule takes the effect that the rules before it left, and returns a milder or more severe one with a clause for the
reason (empty: nothing to say). No rule makes an unknown milder but an ignore, and `unknown` itself. What decides
whether a cell is an answer at all (`accept`, `refuse_assumed`, `accept_variant`) is no rule of this kind: it stands in
question.py and decision.py.
"""

from collections.abc import Mapping
from datetime import timedelta

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.issue import CPU_PATH
from knowngood.domain.issue_selectors import is_at_least
from knowngood.domain.message import english
from knowngood.domain.verdicts.status import is_untried, passes_as_reported
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    FAILING,
    NOT_COVERED,
    NOT_RUN,
    Cell,
    Verdict,
    WorkaroundVerdict,
    is_silent,
)
from knowngood.domain.vocabulary import VERDICTS
from knowngood.gate.policy import Effect, Policy, RemedyFilter, Variants
from knowngood.gate.question import FAILURES, Case

EFFECT_RANK = {effect: rank for rank, effect in enumerate(Effect)}

_ANSWERS = FAILURES | {Verdict.NOT_AFFECTED}
_Weight = tuple[Effect, str]
"""The effect that a rule leaves, and the clause that it adds to the reason."""


def weigh(case: Case) -> tuple[Effect, str, str]:
    """The effect of one cell by the policy, why in one sentence, and who ignores it until when (empty: nobody)."""
    effect, clause = _by_verdict(case)
    clauses = [clause]
    if not case.is_accepted:
        effect = case.policy.unknown
        clauses.append("the policy takes measured answers only")
    elif case.build:
        for rule in (*_OF_FAILURES, *_OF_ALL) if case.fails else _OF_ALL:
            effect, clause = rule(case, effect)
            clauses.append(clause)
    effect, clause, ignored = _by_ignores(case, effect)
    if case.question.is_unwatched:
        effect = Effect.WARN if case.is_new and effect is not Effect.PASS else Effect.PASS
    return effect, "; ".join(text for text in (*clauses, clause) if text), ignored


def _by_verdict(case: Case) -> _Weight:
    policy = case.policy
    effects = {
        Verdict.AFFECTED: policy.affected,
        Verdict.FLAKY: policy.flaky,
        Verdict.DIFFERENT_FAILURE: policy.different_failure,
        Verdict.BIGGER: policy.bigger,
        Verdict.MORE_WORK: policy.more_work,
        Verdict.SLOWER: policy.slower,
        Verdict.NOT_AFFECTED: policy.unknown if case.strays else Effect.PASS,
        Verdict.NOT_APPLICABLE: Effect.PASS,
    }
    clauses = [in_words(case.cell)]
    if is_untried(case.cell):
        clauses.append(not_tried(case.works_on))
    if case.strays and case.verdict in CONCLUSIVE:
        clauses.append(f"measured with other packages: {case.strays}")
    return effects.get(case.verdict, policy.unknown), "; ".join(clauses)


def in_words(cell: Cell) -> str:
    """The verdict and its reason, as a clause. An issue that concerns others says whom it concerns, and no more."""
    clause = VERDICTS[cell.verdict].as_clause
    word = f"{clause} here" if cell.verdict in _ANSWERS else clause
    reason = english(cell.reason)
    if passes_as_reported(cell):
        return f"passes as reported, {word} in a variant: {reason}"
    return reason if cell.reason.key in _SAYS_IT_ALL else f"{word}: {reason}"


CONCERNS_OTHERS = frozenset({CPU_PATH.key, "concerns_package"})
"""Reasons why an issue is about another class, or about a package that is not known to be there."""

_SAYS_IT_ALL = CONCERNS_OTHERS | {NOT_RUN.key, NOT_COVERED, "two_inferences"}
"""Reasons that repeat the verdict, or stand for it."""


def not_tried(works_on: str) -> str:
    """`works_on` is the build on which one helps (empty: none is known)."""
    return "workaround not verified here" + (f" (works on {plain_name(works_on)})" if works_on else "")


def _eased(effect: Effect, clause: str) -> _Weight:
    """A warning at most; what is one already, or less, needs no clause."""
    return (Effect.WARN, clause) if effect in {Effect.BLOCK, Effect.INSUFFICIENT} else (effect, "")


def _by_severity(case: Case, effect: Effect) -> _Weight:
    severity, minimum = case.issue.severity, case.policy.minimum
    if is_at_least(severity, minimum):
        return effect, ""
    if case.policy.silent_always and is_silent(case.issue, case.cell) and case.verdict in FAILING:
        return effect, f"its severity is {severity}, but silent wrong results count whatever it is"
    return _eased(effect, f"its severity is {severity}, and only {minimum} or worse blocks")


def _by_remedy(case: Case, effect: Effect) -> _Weight:
    wanted = case.policy.remedy
    if wanted is RemedyFilter.ANY:
        return effect, ""
    remedy = _remedy(case)
    if wanted is RemedyFilter.WITH_REMEDY and not remedy:
        known = "no later release" if is_untried(case.cell) else "no later release and no workaround"
        return _eased(effect, f"{known} is known to help, and only what can be helped blocks")
    if wanted is RemedyFilter.WITHOUT_REMEDY and remedy:
        return _eased(effect, f"{remedy}, and only what cannot be helped blocks")
    return effect, ""


def _remedy(case: Case) -> str:
    """The remedy in a few words; empty where none is known."""
    helping = [workaround.id for workaround in case.issue.workarounds if _helps(case, workaround.id)]
    if helping:
        return f"the workaround {helping[0]} helps here"
    return f"{case.fix.build.in_words} passes" if case.fix else ""


def _helps(case: Case, workaround: str) -> bool:
    return not case.strays and case.finding(workaround).verdict is WorkaroundVerdict.EFFECTIVE


def _by_base(case: Case, effect: Effect) -> _Weight:
    if not case.policy.only_new or case.on_base is None:
        return effect, ""
    base = plain_name(case.on_base.build)
    match case.is_new:
        case None:
            mildest = min(effect, case.policy.unknown_on_base, key=EFFECT_RANK.__getitem__)
            return mildest, f"nobody can say whether it is new: nothing is known of it on the base build {base}"
        case True:
            clause = VERDICTS[case.on_base.verdict].as_clause
            return effect, f"it is new: on the base build {base} it {clause}"
        case False:
            return _eased(effect, f"it is not new: it fails on the base build {base} too")


def _by_variants(case: Case, effect: Effect) -> _Weight:
    if case.policy.variants is Variants.ALL or case.strays or not passes_as_reported(case.cell):
        return effect, ""
    return Effect.PASS, "the policy asks for what the report ran alone"


def _by_declared(case: Case, effect: Effect) -> _Weight:
    """A workaround counts where it was measured on this very cell; one that does harm never leaves a plain pass."""
    if case.fails and any(_helps(case, workaround) for workaround in case.declared):
        effect = Effect.PASS
    if any(case.finding(workaround).verdict is WorkaroundVerdict.HARMFUL for workaround in case.declared):
        effect = max(effect, Effect.WARN, key=EFFECT_RANK.__getitem__)
    return effect, "; ".join(_does(case, workaround) for workaround in case.declared)


def _does(case: Case, workaround: str) -> str:
    known = [remedy.id for remedy in case.issue.workarounds]
    if workaround not in known:
        return f"no workaround of it is called {workaround:.60}; known: {', '.join(known) or 'none'}"
    finding = case.finding(workaround)
    if finding.verdict is WorkaroundVerdict.EFFECTIVE and case.strays:
        return f"the declared workaround {workaround} was measured with other packages and does not count"
    note = f": {english(finding.note)}" if finding.note else ""
    return f"the declared workaround {workaround} {_DOES[finding.verdict]}{note}"


_DOES: Mapping[WorkaroundVerdict, str] = {
    WorkaroundVerdict.EFFECTIVE: "helps here",
    WorkaroundVerdict.PARTIAL: "helps here with some variants only",
    WorkaroundVerdict.INEFFECTIVE: "does not help here",
    WorkaroundVerdict.UNNECESSARY: "is not needed here",
    WorkaroundVerdict.HARMFUL: "does harm here",
    WorkaroundVerdict.UNVERIFIED: "is not verified here",
}


def _by_age(case: Case, effect: Effect) -> _Weight:
    if case.verdict not in CONCLUSIVE or not is_stale(case):
        return effect, ""
    days = f"measured {age_days(case)} days ago, and after {_limit_days(case.build, case.policy)} it is stale"
    return max(effect, case.policy.stale, key=EFFECT_RANK.__getitem__), days


def is_stale(case: Case) -> bool:
    """Whether its evidence is older than the policy allows for a build of this class."""
    made_at, days = case.cell.measured_at, _limit_days(case.build, case.policy)
    return made_at is not None and case.question.now - made_at > timedelta(days=days)


def _limit_days(build: Build | None, policy: Policy) -> int:
    return policy.nightly_days if build and build.build_id.version.is_devrelease else policy.release_days


def age_days(case: Case) -> int | None:
    """Whole days since it was measured; 0 for what a clock ahead of ours wrote."""
    made_at = case.cell.measured_at
    return None if made_at is None else max(0, (case.question.now - made_at).days)


def _by_python(case: Case, effect: Effect) -> _Weight:
    """A failure on some of the Pythons that an environment may have neither blocks it nor lets it pass."""
    if case.only_on:
        pythons = " and ".join(case.only_on)
        clause = f"only on Python {pythons}, and the environment does not state its Python: say --python"
        return Effect.INSUFFICIENT if effect is Effect.BLOCK else effect, clause
    return effect, f"not known on Python {' and '.join(case.unknown_on)}" if case.unknown_on else ""


_OF_FAILURES = (_by_severity, _by_remedy, _by_base, _by_variants)
_OF_ALL = (_by_declared, _by_age, _by_python)


def _by_ignores(case: Case, effect: Effect) -> tuple[Effect, str, str]:
    """The ignore that holds longest counts; one that ran out changes nothing and says so."""
    ignores = case.question.ignores.get(case.issue.id, ())
    if not ignores:
        return effect, "", ""
    longest = max(ignores, key=lambda ignore: (ignore.expires, ignore.author, ignore.reason))
    if longest.expires < case.question.now.date():
        return effect, f"the ignore of {longest.author} ran out on {longest.expires}", ""
    if effect is Effect.PASS:
        return effect, f"the ignore of {longest.author} is not needed here", ""
    ignored = f"until {longest.expires} by {longest.author}: {longest.reason}"
    return Effect.PASS, f"ignored {ignored}", ignored
